"""What must hold after every transaction, judged by the rows and by what was told, without the product's own rules."""

from datetime import datetime
from zoneinfo import ZoneInfo

from tarazu.domain.errors import Refusal
from tarazu.store.operations import Admit, End, Sweep
from tests.simulation.answers import Answers
from tests.simulation.places import Places
from tests.simulation.rows import Look, RequestRow, read_rows
from tests.simulation.sums import Sums
from tests.simulation.told import Sending, Told, Transaction


class Judge:
    """Compares the rows as they are with those before the last transaction, and with what was told."""

    def __init__(self, look: Look, told: Told, zone: ZoneInfo) -> None:
        self._look = look
        self._told = told
        self._zone = zone
        self.rows = self._before = read_rows(look)
        self._places = Places(self.rows)
        self._sums = Sums(told)

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
        self._rows_only_go_on()
        self._new_requests_are_as_asked(transaction)
        self._requests_ended_as_asked(transaction)
        if transaction.answers is None:
            self._places.take_unknown(transaction, self.rows)
        else:
            Answers(transaction, self._before, self.rows, self._told, self._places).check()
        self._sums.note(transaction, self.rows)
        self._figures_add_up()

    def nothing_is_held(self) -> None:
        """Check when everybody is well again, all deadlines have passed, and somebody has swept."""
        held = [row for row in self.rows.requests.values() if row.state == "held"]
        assert not held, f"held for ever: {held}"

    def _take_rows(self) -> None:
        self._before, self.rows = self.rows, read_rows(self._look)

    def _figures_add_up(self) -> None:
        self._sums.check(self.rows)
        self._places.compare(self.rows)

    # From the rows before to those after.

    def _rows_only_go_on(self) -> None:
        """A hold ends once, and no request goes away."""
        for id_, old in self._before.requests.items():
            new = self.rows.requests.get(id_)
            assert new is not None, f"{id_} has gone"
            assert new == old or old.state == "held", f"{id_} has ended twice: {old}, then {new}"
            assert new.as_admitted() == old.as_admitted(), f"{id_} was changed: {old}, then {new}"

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
        assert (row.account_id, row.key_id) == (sending.account_id, sending.asked.key.id), f"{row}: another's"
        assert not isinstance(request, Refusal), f"{row} is invalid"
        assert request.model in {None, row.model_id}, f"{row}: another model, not {request.model}"
        assert row.credits == model.credits, f"{row}: another price, not {model.credits}"
        assert row.created_at_ms == transaction.now_ms, f"{row}: another time, not {transaction.now_ms}"
        assert row.deadline_ms > row.created_at_ms + 1_000 * model.timeout_s, f"{row}: too early a deadline"
        assert (row.day, row.period) == (day, day[:7]), f"{row}: another day, not {day}"

    def _requests_ended_as_asked(self, transaction: Transaction) -> None:
        ends = transaction.operations(End)
        asked = {(end.request_id, end.state.value, end.reason) for end in ends}
        asked |= {(end.request_id, "charged", end.reason) for end in ends if end.reason is not None}
        changed = [row for id_, row in self.rows.requests.items() if row != self._before.requests.get(id_)]
        ended = [row for row in changed if row.state != "held"]
        swept = [row for row in ended if row.state == "swept"]
        for row in ended:
            assert row.ended_at_ms == transaction.now_ms, f"{row}: another time, not {transaction.now_ms}"
            assert row in swept or (row.id, row.state, row.reason) in asked, f"{row}: nobody has asked for this end"
        self._given_up_are_free_up_to_the_bound(transaction, [row for row in ended if row.reason is not None])
        for row in swept:
            assert transaction.has(Sweep), f"{row}: nobody has swept"
            assert row.deadline_ms < transaction.now_ms, f"{row} was swept before its deadline"
        self._nothing_overdue_is_left(transaction)

    def _given_up_are_free_up_to_the_bound(self, transaction: Transaction, given_up: list[RequestRow]) -> None:
        """Each that was free is counted, in an hour that had one left; one was charged where there was none."""
        bound = transaction.catalogue.abandoned_per_hour
        for account in self.rows.accounts.values():
            states = [row.state for row in given_up if row.account_id == account.id]
            free, before = states.count("released"), self._before.accounts[account.id]
            counted_before = before.free_taken if before.free_hour == account.free_hour else 0
            assert account.free_taken == counted_before + free, f"{account} has had {free} free, after {before}"
            assert not free or account.free_taken <= bound, f"{account}: more are free than {bound}"
            assert "charged" not in states or account.free_taken >= bound, f"{account} pays below {bound}: {given_up}"

    def _nothing_overdue_is_left(self, transaction: Transaction) -> None:
        if transaction.has(Sweep):
            held = [row for row in self.rows.requests.values() if row.state == "held"]
            overdue = [row for row in held if row.deadline_ms < transaction.now_ms]
            assert not overdue, f"the sweep has left {overdue}"
