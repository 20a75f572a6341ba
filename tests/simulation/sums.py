"""What must add up at any time, over all that has ever happened in a world."""

from collections import Counter, defaultdict

from tarazu.store.operations import Sweep
from tests.simulation.rows import RequestRow, Rows
from tests.simulation.told import Told, Transaction
from tests.support.values import DAY_MS


class Sums:
    """Adds up rows, and compares with figures and with what was told."""

    def __init__(self, told: Told) -> None:
        self._told = told
        self._quota_max: Counter[str] = Counter()
        self._order: dict[str, int] = {}
        """In which order requests came into the books."""
        self._forgotten_until_ms = 0
        """Sweeps have forgotten the idempotency keys up to then."""

    def note(self, transaction: Transaction, rows: Rows) -> None:
        """Take note of what a batch allows: quotas, and keys that are forgotten."""
        for row in rows.accounts.values():
            self._quota_max[row.id] = max(self._quota_max[row.id], transaction.quota(row.plan))
        for id_ in sorted(rows.requests):
            self._order.setdefault(id_, len(self._order))
        if transaction.has(Sweep):
            self._forgotten_until_ms = max(self._forgotten_until_ms, transaction.now_ms - DAY_MS)

    def check(self, rows: Rows) -> None:
        """Add everything up."""
        self._replies_are_charges(rows)
        self._credits_are_conserved(rows)
        self._quotas_are_kept(rows)
        self._usage_is_the_charges(rows)
        self._keys_are_charged_once(rows)
        self._operators_were_told_the_truth(rows)

    def _replies_are_charges(self, rows: Rows) -> None:
        """Every delivered reply is charged. A charge without one fell between its commit and its answer."""
        charged = {row.id for row in rows.requests.values() if row.state == "charged" and row.reason is None}
        unpaid = self._told.delivered - charged
        assert not unpaid, f"delivered and not charged: {sorted(unpaid)}"
        unseen = charged - self._told.delivered - self._told.maybe_charged
        assert not unseen, f"charged and not delivered: {sorted(unseen)}"

    def _credits_are_conserved(self, rows: Rows) -> None:
        used: Counter[str] = Counter()
        balance: Counter[str] = Counter()
        for payment in rows.topups.values():
            balance[payment.account_id] += payment.credits
        for row in rows.requests.values():
            if row.is_kept and row.source == "plan" and row.period == rows.accounts[row.account_id].period:
                used[row.account_id] += row.credits
            elif row.is_kept and row.source == "api_balance":
                balance[row.account_id] -= row.credits
        for account in rows.accounts.values():
            assert account.used == used[account.id] >= 0, f"{account}: its requests have used {used[account.id]}"
            assert account.balance == balance[account.id] >= 0, f"{account}: there must be {balance[account.id]}"

    def _quotas_are_kept(self, rows: Rows) -> None:
        """No month has given more than the largest quota that the account has ever had."""
        taken: Counter[tuple[str, str]] = Counter()
        for row in rows.requests.values():
            if row.is_kept and row.source == "plan":
                taken[row.account_id, row.period] += row.credits
        for (account_id, period), credits_ in taken.items():
            quota = self._quota_max[account_id]
            assert credits_ <= quota, f"{account_id} has taken {credits_} of {quota} in {period}"

    def _usage_is_the_charges(self, rows: Rows) -> None:
        usage: dict[tuple[str, ...], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
        for row in rows.requests.values():
            if row.state == "charged":
                tokens = (0, 0) if row.reason else self._told.sendings[row.id].tokens
                assert (row.prompt_tokens, row.completion_tokens) == tokens, f"{row}: not the tokens of {tokens}"
                sums = usage[row.account_id, row.day, row.key_id, row.model_id]
                for place, figure in enumerate((1, row.credits, *tokens)):
                    sums[place] += figure
        charges = {key: tuple(sums) for key, sums in usage.items()}
        assert rows.usage == charges, f"daily usage {rows.usage}, charges {charges}"

    def _keys_are_charged_once(self, rows: Rows) -> None:
        """Of the requests with one idempotency key, only one in a day is held or charged, and it has the key."""
        by_key: dict[tuple[str, str], list[RequestRow]] = defaultdict(list)
        for row in sorted(rows.requests.values(), key=lambda row: self._order[row.id]):
            sent = self._told.sendings[row.id].sent
            if sent is not None:
                by_key[row.account_id, sent[0]].append(row)
        owners = {}
        for place, sent_with_key in by_key.items():
            first, forgotten_until_ms = None, self._forgotten_until_ms
            for row in sent_with_key:
                # Also one that was released since: who takes a key a day later, by its own clock, forgets the first.
                forgotten_until_ms = max(forgotten_until_ms, row.created_at_ms - DAY_MS)
                if row.has_key:
                    is_free = first is None or first.created_at_ms <= forgotten_until_ms
                    assert is_free, f"key {place} was taken twice: {first}, {row}"
                    first = row
            last = sent_with_key[-1]
            if last.has_key and last.created_at_ms > self._forgotten_until_ms:
                owners[place] = last.id
        for place, id_ in owners.items():
            assert id_ in rows.kept, f"{id_} has lost its key {place}"
        for kept_row in rows.kept.values():
            row = rows.requests[kept_row.request_id]
            reply = self._told.sendings[row.id].reply if row.state == "charged" else None
            assert row.has_key, f"{row} has ended, and keeps its key"
            assert kept_row.reply == reply, f"{row} has the reply {kept_row.reply!r}"

    def _operators_were_told_the_truth(self, rows: Rows) -> None:
        told = self._told
        topups = rows.topups
        for reference, payment in told.payments.items():
            assert topups.get(reference) == tuple(payment), f"{payment} was told to be in the books"
        for reference in topups.keys() - told.payments.keys():
            assert topups[reference] == tuple(told.maybe_payments[reference]), f"{topups[reference]}: nobody was told"
        for account in rows.accounts.values():
            standings = told.standings[account.id]
            assert (account.plan, account.status) in standings, f"{account} must be one of {standings}"
        for key_id, end_ms in told.ends_ms.items():
            key = rows.keys[key_id]
            ends_ms = [instant_ms for instant_ms in (key.revoked_at_ms, key.expires_at_ms) if instant_ms is not None]
            assert min(ends_ms, default=end_ms + 1) <= end_ms, f"{key} was told to end at {end_ms}"
        for key_id, pauses in told.pauses.items():
            assert (rows.keys[key_id].paused_at_ms is not None) in pauses, f"{rows.keys[key_id]} is paused otherwise"
        assert rows.is_stopped in told.is_stopped, "the intake switch stands otherwise than was told"
