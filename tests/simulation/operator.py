"""The operator: acts on the books from a process of its own, and asks again when an answer was lost."""

from collections.abc import Callable
from random import Random

from tarazu.domain.accounts import AccountStatus
from tarazu.domain.catalogue import Catalogue
from tarazu.domain.keys import parse
from tarazu.service.provisioning import Provisioning
from tarazu.service.provisioning_errors import ProvisioningError
from tarazu.store.availability import BooksUnavailableError
from tests.simulation.callers import Callers
from tests.simulation.faults import Death, Fault, FaultyEngine
from tests.simulation.scenery import PLAN_NAMES
from tests.simulation.told import CORRECTION, Payment, Told

REFERENCES = 12
"""Few, so that one comes again."""
GRACE_S = 90


class Operator:
    """Chooses acts, and notes what is known of them."""

    def __init__(
        self,
        random: Random,
        faulty: FaultyEngine,
        catalogue: Catalogue,
        clock: Callable[[], int],
        told: Told,
        callers: Callers,
    ) -> None:
        self._random = random
        self._faulty = faulty
        self._clock = clock
        self._desk = Provisioning(faulty.engine, catalogue, clock, by="operator")
        self._told = told
        self._callers = callers

    def act(self, fault: Fault | None) -> tuple[str, bool]:
        """Do something; answer with what it was and what came of it, and with whether it was committed."""
        acts = [
            self._top_up,
            self._top_up,
            self._correct,
            self._set_plan,
            self._set_status,
            self._end_key,
            self._pause_key,
            self._switch,
        ]
        account_id = self._callers.account_id()
        if self.has_closed() and self._random.randrange(4):
            blocked = self._blocked()
            acts = [self._set_status] if blocked else [self._switch]
            account_id = blocked[0] if blocked else account_id
        with self._faulty.suffering(fault):
            words = self._random.choice(acts)(account_id)
        return words, self._faulty.committed

    def has_closed(self) -> bool:
        """Tell whether an account or the intake is closed, or may be: that must not last for the whole of a world."""
        return bool(self._blocked()) or True in self._told.is_stopped

    def choose_payment(self, account_id: str) -> Payment:
        """Choose a payment, or one that was made before, or by mistake another one with its reference."""
        made = self._made()
        reference = f"payment {self._random.randint(1, REFERENCES)}"
        if reference in made and self._random.randrange(4):
            return made[reference]
        return Payment(reference, account_id, self._random.randint(1, 12))

    def _choose_correction(self, account_id: str) -> Payment:
        reference = f"{CORRECTION} {self._random.randint(1, REFERENCES)}"
        return self._made().get(reference) or Payment(reference, account_id, self._random.choice([-9, -2, -1, 1, 5]))

    def add_credit(self, payment: Payment) -> str:
        """Add credits, or learn that they were added before. A correction that takes too much is refused."""
        words = f"adds {payment.credits} to {payment.account_id} ({payment.reference})"
        try:
            is_new = self._pay(payment)
        except (BooksUnavailableError, Death) as error:
            if self._faulty.committed:
                self._told.note_unanswered(payment)
            return f"{words}: {_failed(error)}"
        except ProvisioningError:
            if payment.is_correction:
                assert payment.credits < 0, f"{payment} was refused"
                assert payment.reference not in self._told.payments, f"{payment} was done, and refused"
                return f"{words}: more than there is"
            assert self._made().get(payment.reference, payment) != payment, f"{payment} was refused"
            return f"{words}: another has its reference"
        first = self._made().get(payment.reference)
        assert first is None if is_new else first == payment, f"{payment} was answered {is_new=}, after {first}"
        self._told.payments[payment.reference] = payment
        return f"{words}: {'done' if is_new else 'was there'}"

    def _pay(self, payment: Payment) -> bool:
        account_id, credits_, reference = payment.account_id, payment.credits, payment.reference
        if payment.is_correction:
            return self._desk.adjust_credit(account_id, credits_, reason="a correction", reference=reference)[1]
        return self._desk.add_credit(account_id, credits_, reference=reference)[1]

    def _blocked(self) -> list[str]:
        standings = sorted(self._told.standings.items())
        return [id_ for id_, possible in standings if any(status != "active" for _, status in possible)]

    def _made(self) -> dict[str, Payment]:
        return self._told.maybe_payments | self._told.payments

    def _top_up(self, account_id: str) -> str:
        return self.add_credit(self.choose_payment(account_id))

    def _correct(self, account_id: str) -> str:
        return self.add_credit(self._choose_correction(account_id))

    def _set_plan(self, account_id: str) -> str:
        plan = self._random.choice([*PLAN_NAMES, None])
        words = f"puts {account_id} on plan {plan}"
        wanted = {(plan, status) for _, status in self._told.standings[account_id]}
        return self._stand(account_id, wanted, words, lambda: self._desk.set_account(account_id, plan=plan))

    def _set_status(self, account_id: str) -> str:
        status = AccountStatus.ACTIVE if account_id in self._blocked() else AccountStatus.BLOCKED
        wanted = {(plan, status.value) for plan, _ in self._told.standings[account_id]}
        words = f"makes {account_id} {status}"
        return self._stand(account_id, wanted, words, lambda: self._desk.set_account(account_id, status=status))

    def _stand(
        self, account_id: str, wanted: set[tuple[str | None, str]], words: str, act: Callable[[], object]
    ) -> str:
        try:
            act()
        except (BooksUnavailableError, Death) as error:
            if self._faulty.committed:
                self._told.standings[account_id] |= wanted
            return f"{words}: {_failed(error)}"
        self._told.standings[account_id] = wanted
        return f"{words}: done"

    def _end_key(self, account_id: str) -> str:
        """Replace a key, at once or after a grace period."""
        key = self._callers.key(account_id)
        grace_s = self._random.choice([0, GRACE_S])
        words = f"replaces {key.id[4:7]} with {grace_s} s of grace"
        try:
            issued = self._desk.replace_key(key.id, grace_s=grace_s)
        except ProvisioningError:
            return f"{words}: it has ended, or was replaced before"
        except (BooksUnavailableError, Death) as error:
            return f"{words}: {_failed(error)}"
        end_ms = self._clock() + 1_000 * grace_s
        self._told.ends_ms[key.id] = min(end_ms, self._told.ends_ms.get(key.id, end_ms))
        presented = parse(issued.secret)
        assert presented is not None
        self._callers.keys[account_id].append(presented)
        return f"{words}: {presented.id[4:7]}"

    def _pause_key(self, account_id: str) -> str:
        """Pause a key, or let it work again: in most cases, so that an account is not shut out for long."""
        key = self._callers.key(account_id)
        pauses = not self._random.randrange(3)
        words = f"{'pauses' if pauses else 'resumes'} {key.id[4:7]}"
        try:
            self._desk.pause_key(key.id) if pauses else self._desk.resume_key(key.id)
        except ProvisioningError:
            return f"{words}: it has ended"
        except (BooksUnavailableError, Death) as error:
            if self._faulty.committed:
                self._told.pauses.setdefault(key.id, {False}).add(pauses)
            return f"{words}: {_failed(error)}"
        self._told.pauses[key.id] = {pauses}
        return f"{words}: done"

    def _switch(self, _account_id: str) -> str:
        stops = self._told.is_stopped == {False}
        words = f"{'stops' if stops else 'resumes'} the intake"
        try:
            self._desk.stop_intake() if stops else self._desk.resume_intake()
        except (BooksUnavailableError, Death) as error:
            if self._faulty.committed:
                self._told.is_stopped |= {stops}
            return f"{words}: {_failed(error)}"
        self._told.is_stopped = {stops}
        return f"{words}: done"


def _failed(error: BaseException) -> str:
    return "dead" if isinstance(error, Death) else "unavailable"
