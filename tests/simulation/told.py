"""What callers and operators know of the books: what they have asked for, and what they were told."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct

from tarazu.domain.admission import Asked
from tarazu.domain.catalogue import Catalogue
from tarazu.domain.credits import Hold, Reason, RequestState
from tarazu.store.operations import Admit, End, Identify, Operation, Sweep, Work

T = TypeVar("T", bound=Operation)


@dataclass(eq=False)
class Sending:
    """One request of a caller. `hold` is what its process was told."""

    account_id: str
    asked: Asked
    sent: tuple[str, bytes] | None
    """The idempotency key and the body."""
    tokens: tuple[int, int]
    hold: Hold | None = None

    @property
    def id(self) -> str:
        """Tell the request's id."""
        return self.asked.request_id

    @property
    def reply(self) -> bytes:
        """Write what the model answers."""
        return f"reply to {self.id}".encode()

    def end(self, state: RequestState, reason: Reason | None = None) -> End:
        """Make the operation that ends the hold, as the ledger does."""
        assert self.hold is not None
        is_charge = state is RequestState.CHARGED
        return End(
            request_id=self.id,
            account_id=self.account_id,
            period=self.hold.period,
            state=state,  # type: ignore[arg-type] # only ever charged or released
            tries=1,
            prompt_tokens=self.tokens[0] if is_charge else 0,
            completion_tokens=self.tokens[1] if is_charge else 0,
            idempotency_key=self.hold.idempotency_key,
            reply=self.reply if is_charge and self.sent is not None else None,
            reason=reason,
        )


CORRECTION = "correction"
"""How the references of corrections begin."""


class Payment(NamedTuple):
    """Credits that an operator adds, or, as a correction, adds or takes."""

    reference: str
    account_id: str
    credits: int

    @property
    def is_correction(self) -> bool:
        """Tell whether it is an adjustment, and no top-up."""
        return self.reference.startswith(CORRECTION)


class Waiting(Struct, frozen=True):
    """One operation in a process's queue, and whom its answer is for."""

    operation: Operation
    asker: Sending | Payment | None = None

    @property
    def is_charge(self) -> bool:
        """Tell whether a reply waits for it."""
        return isinstance(self.operation, End) and self.operation.state is RequestState.CHARGED

    def __str__(self) -> str:
        match self.operation, self.asker:
            case Admit(asked), Sending() as sending:
                model = getattr(asked.request, "model", "invalid")
                key = "" if sending.sent is None else f", key {sending.sent[0]} {sending.sent[1].decode()}"
                return f"admit {sending.id} ({sending.account_id}, {asked.key.id[4:7]}, {model}{key})"
            case End(reason=reason), Sending() as sending:
                return f"{'charge' if self.is_charge else reason or 'release'} {sending.id}"
            case Work(), Payment() as payment:
                return f"top up {payment.account_id} by {payment.credits} ({payment.reference})"
            case Identify(key), _:
                return f"identify {key.id[4:7]}"
            case Sweep(), _:
                return "sweep"
            case other:
                return str(other)


class Transaction(Struct, frozen=True, kw_only=True):
    """One batch, as its process saw it. `answers` is None when it died, or was told that the books are unavailable."""

    waiting: list[Waiting]
    answers: list[Any] | None
    now_ms: int
    catalogue: Catalogue

    def of(self, kind: type[Operation]) -> list[Waiting]:
        """List what waited for such an operation."""
        return [waiting for waiting in self.waiting if isinstance(waiting.operation, kind)]

    def operations(self, kind: type[T]) -> list[T]:
        """List the operations of a kind."""
        return [waiting.operation for waiting in self.waiting if isinstance(waiting.operation, kind)]

    def has(self, kind: type[Operation]) -> bool:
        """Tell whether there was such an operation."""
        return bool(self.of(kind))

    def quota(self, plan: str | None) -> int:
        """Tell the credits of a month."""
        found = self.catalogue.plans.get(plan or "")
        return 0 if found is None else found.monthly_credits


@dataclass
class Told:
    """The callers' own books. What is in a `maybe_` was asked for, committed, and never answered."""

    sendings: dict[str, Sending] = field(default_factory=dict)
    delivered: set[str] = field(default_factory=set)
    maybe_charged: set[str] = field(default_factory=set)
    payments: dict[str, Payment] = field(default_factory=dict)
    maybe_payments: dict[str, Payment] = field(default_factory=dict)
    standings: dict[str, set[tuple[str | None, str]]] = field(default_factory=dict)
    """The plans and statuses, one of which each account must have: more than one after an act in doubt."""
    ends_ms: dict[str, int] = field(default_factory=dict)
    """By when a key has ended, of those that an operator has replaced."""
    pauses: dict[str, set[bool]] = field(default_factory=dict)
    """Whether each key is paused, of those that an operator has paused or resumed: both, after an act in doubt."""
    is_stopped: set[bool] = field(default_factory=lambda: {False})

    def note_unanswered(self, payment: Payment) -> None:
        """Note that a payment may have been added: the first with its reference."""
        self.maybe_payments.setdefault(payment.reference, payment)
