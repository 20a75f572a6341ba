"""What must hold after every transaction, judged by the rows and by what was told, without the product's own rules."""

from collections import Counter, defaultdict
from datetime import datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

from tarazu.domain.errors import Refusal
from tarazu.store.operations import Admit, End, Sweep
from tests.simulation.answers import Answers
from tests.simulation.places import Places
from tests.simulation.rows import Look, RequestRow, read_rows
from tests.simulation.told import Sending, Told, Transaction
from tests.support.values import DAY_MS


class Judge:
    """Compares the rows as they are with those before the last transaction, and with what was told."""

    def __init__(self, look: Look, told: Told, zone: ZoneInfo) -> None:
        self._look = look
        self._told = told
        self._zone = zone
        self.rows = self._before = read_rows(look)
        self._places = Places(self.rows)
        self._quota_max: Counter[str] = Counter()
        self._order: dict[str, int] = {}
        """In which order requests came into the books."""
        self._forgotten_until_ms = 0
        """Sweeps have forgotten the idempotency keys up to then."""

    def nothing_has_changed(self) -> None:
        """Check after a transaction that was not committed."""
        assert read_rows(self._look) == self.rows, "a transaction that did not happen has changed the books"

    def power_is_back(self) -> None:
        """Check after a power cut: holds, releases and places may be lost, and nothing that was promised."""
        self._take_rows()
        self._places.lose_some(self.rows)
        self._figures_add_up()

    def operator_has_acted(self) -> None:
        """Check after an act of the operator."""
        self._take_rows()
        self._rows_only_go_on()
        self._figures_add_up()

    def batch_has_run(self, transaction: Transaction) -> None:
        """Check after a batch that was committed, whether it was answered or not."""
        self._take_rows()
        for row in self.rows.accounts.values():
            self._quota_max[row.id] = max(self._quota_max[row.id], transaction.quota(row.plan))
        self._rows_only_go_on()
        self._new_requests_are_as_asked(transaction)
        self._requests_ended_as_asked(transaction)
        if transaction.answers is None:
            self._places.take_unknown(transaction, self.rows)
        else:
            Answers(transaction, self._before, self.rows, self._told, self._places).check()
        if transaction.has(Sweep):
            self._forgotten_until_ms = max(self._forgotten_until_ms, transaction.now_ms - DAY_MS)
        self._figures_add_up()

    def nothing_is_held(self) -> None:
        """Check when everybody is well again, all deadlines have passed, and somebody has swept."""
        held = [row for row in self.rows.requests.values() if row.state == "held"]
        assert not held, f"held for ever: {held}"

    def _take_rows(self) -> None:
        self._before, self.rows = self.rows, read_rows(self._look)
        for id_ in sorted(self.rows.requests):
            self._order.setdefault(id_, len(self._order))

    # From the rows before to those after.

    def _rows_only_go_on(self) -> None:
        """A hold ends once, no request goes away, and no page is turned back."""
        for id_, old in self._before.requests.items():
            new = self.rows.requests.get(id_)
            assert new is not None, f"{id_} has gone"
            assert new == old or old.state == "held", f"{id_} has ended twice: {old}, then {new}"
            assert new.as_admitted() == old.as_admitted(), f"{id_} was changed: {old}, then {new}"
        for old_account in self._before.accounts.values():
            assert self.rows.accounts[old_account.id].period >= old_account.period, (
                f"a page was turned back: {old_account}"
            )

    def _new_requests_are_as_asked(self, transaction: Transaction) -> None:
        asked = {waiting.asker.id for waiting in transaction.of(Admit) if isinstance(waiting.asker, Sending)}
        for id_ in self.rows.requests.keys() - self._before.requests.keys():
            assert id_ in asked, f"nobody has asked for {id_}"
            self._is_as_asked(self.rows.requests[id_], transaction)

    def _is_as_asked(self, row: RequestRow, transaction: Transaction) -> None:
        sending = self._told.sendings[row.id]
        request = sending.asked.request
        model = transaction.catalogue.models[row.model_id]
        day = datetime.fromtimestamp(transaction.now_ms / 1_000, self._zone).strftime("%Y-%m-%d")
        page = self._before.accounts[row.account_id].period
        assert (row.account_id, row.key_id) == (sending.account_id, sending.asked.key.id), f"{row}: another's"
        assert not isinstance(request, Refusal), f"{row} is invalid"
        assert request.model in {None, row.model_id}, f"{row}: another model, not {request.model}"
        assert row.credits == model.credits, f"{row}: another price, not {model.credits}"
        assert row.created_at_ms == transaction.now_ms, f"{row}: another time, not {transaction.now_ms}"
        assert row.deadline_ms > row.created_at_ms + 1_000 * model.timeout_s, f"{row}: too early a deadline"
        assert (row.day, row.period) == (day, max(day[:7], page)), f"{row}: another day, not {day} on page {page}"

    def _requests_ended_as_asked(self, transaction: Transaction) -> None:
        asked = {(end.request_id, end.state.value) for end in transaction.operations(End)}
        changed = [row for id_, row in self.rows.requests.items() if row != self._before.requests.get(id_)]
        ended = [row for row in changed if row.state != "held"]
        swept = [row for row in ended if row.state == "swept"]
        for row in ended:
            assert row.ended_at_ms == transaction.now_ms, f"{row}: another time, not {transaction.now_ms}"
            assert row in swept or (row.id, row.state) in asked, f"{row}: nobody has asked for this end"
        for row in swept:
            assert transaction.has(Sweep), f"{row}: nobody has swept"
            assert row.deadline_ms < transaction.now_ms, f"{row} was swept before its deadline"
        if transaction.has(Sweep):
            held = [row for row in self.rows.requests.values() if row.state == "held"]
            overdue = [row for row in held if row.deadline_ms < transaction.now_ms]
            assert not overdue, f"the sweep has left {overdue}"

    # Sums over all that has ever happened.

    def _figures_add_up(self) -> None:
        self._replies_are_charges()
        self._credits_are_conserved()
        self._quotas_are_kept()
        self._usage_is_the_charges()
        self._keys_are_charged_once()
        self._operators_were_told_the_truth()
        self._places.compare(self.rows)

    def _replies_are_charges(self) -> None:
        """Every delivered reply is charged. A charge without one fell between its commit and its answer."""
        charged = {row.id for row in self.rows.requests.values() if row.state == "charged"}
        unpaid = self._told.delivered - charged
        assert not unpaid, f"delivered and not charged: {sorted(unpaid)}"
        unseen = charged - self._told.delivered - self._told.maybe_charged
        assert not unseen, f"charged and not delivered: {sorted(unseen)}"

    def _credits_are_conserved(self) -> None:
        used: Counter[str] = Counter()
        balance: Counter[str] = Counter()
        for payment in self.rows.topups.values():
            balance[payment.account_id] += payment.credits
        for row in self.rows.requests.values():
            if row.is_kept and row.source == "plan" and row.period == self.rows.accounts[row.account_id].period:
                used[row.account_id] += row.credits
            elif row.is_kept and row.source == "api_balance":
                balance[row.account_id] -= row.credits
        for account in self.rows.accounts.values():
            assert account.used == used[account.id] >= 0, f"{account}: its requests have used {used[account.id]}"
            assert account.balance == balance[account.id] >= 0, f"{account}: there must be {balance[account.id]}"

    def _quotas_are_kept(self) -> None:
        """No month has given more than the largest quota that the account has ever had."""
        taken: Counter[tuple[str, str]] = Counter()
        for row in self.rows.requests.values():
            if row.is_kept and row.source == "plan":
                taken[row.account_id, row.period] += row.credits
        for (account_id, period), credits_ in taken.items():
            quota = self._quota_max[account_id]
            assert credits_ <= quota, f"{account_id} has taken {credits_} of {quota} in {period}"

    def _usage_is_the_charges(self) -> None:
        usage: dict[tuple[str, ...], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
        for row in self.rows.requests.values():
            if row.state == "charged":
                tokens = self._told.sendings[row.id].tokens
                assert (row.prompt_tokens, row.completion_tokens) == tokens, f"{row}: not the tokens of {tokens}"
                sums = usage[row.account_id, row.day, row.key_id, row.model_id]
                for place, figure in enumerate((1, row.credits, *tokens)):
                    sums[place] += figure
        charges = {key: tuple(sums) for key, sums in usage.items()}
        assert self.rows.usage == charges, f"daily usage {self.rows.usage}, charges {charges}"

    def _keys_are_charged_once(self) -> None:
        """Of the requests with one idempotency key, only one in a day is held or charged, and it has the key."""
        by_key: dict[tuple[str, str], list[RequestRow]] = defaultdict(list)
        for row in sorted(self.rows.requests.values(), key=lambda row: self._order[row.id]):
            sent = self._told.sendings[row.id].sent
            if sent is not None:
                by_key[row.account_id, sent[0]].append(row)
        owners = {}
        for place, rows in by_key.items():
            kept = [row for row in rows if row.is_kept]
            for first, second in pairwise(kept):
                is_forgotten = first.created_at_ms <= max(second.created_at_ms - DAY_MS, self._forgotten_until_ms)
                assert is_forgotten, f"key {place} was taken twice: {first}, {second}"
            if rows[-1].is_kept and rows[-1].created_at_ms > self._forgotten_until_ms:
                owners[place] = rows[-1].id
        for place, id_ in owners.items():
            assert id_ in self.rows.kept, f"{id_} has lost its key {place}"
        for kept_row in self.rows.kept.values():
            row = self.rows.requests[kept_row.request_id]
            reply = self._told.sendings[row.id].reply if row.state == "charged" else None
            assert row.is_kept, f"{row} has ended, and keeps its key"
            assert kept_row.reply == reply, f"{row} has the reply {kept_row.reply!r}"

    def _operators_were_told_the_truth(self) -> None:
        told = self._told
        topups = self.rows.topups
        for reference, payment in told.payments.items():
            assert topups.get(reference) == tuple(payment), f"{payment} was told to be in the books"
        for reference in topups.keys() - told.payments.keys():
            assert topups[reference] == tuple(told.maybe_payments[reference]), f"{topups[reference]}: nobody was told"
        for account in self.rows.accounts.values():
            standings = told.standings[account.id]
            assert (account.plan, account.status) in standings, f"{account} must be one of {standings}"
        for key_id, end_ms in told.ends_ms.items():
            key = self.rows.keys[key_id]
            ends_ms = [instant_ms for instant_ms in (key.revoked_at_ms, key.expires_at_ms) if instant_ms is not None]
            assert min(ends_ms, default=end_ms + 1) <= end_ms, f"{key} was told to end at {end_ms}"
        assert self.rows.is_stopped in told.is_stopped, "the intake switch stands otherwise than was told"
