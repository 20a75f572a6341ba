"""Random batches at random times, on the real books and on a model of them in plain dicts: always the same outcome."""

from collections.abc import Callable, Collection
from dataclasses import astuple, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from tarazu.domain.accounts import AccountStatus, Intake
from tarazu.domain.catalogue import Offer
from tarazu.domain.credits import Reason, RequestState
from tarazu.domain.errors import Refusal
from tarazu.domain.idempotency import Replay, idempotency_of
from tarazu.store.accounts import BalanceError, find_account, update_account
from tarazu.store.adjustments import insert_adjustment
from tarazu.store.batch import run_batch
from tarazu.store.engine import transaction
from tarazu.store.intake import write_intake
from tarazu.store.keys import revoke_key
from tarazu.store.operations import Admit, End, Operation, Sweep, Work
from tarazu.store.topups import insert_topup
from tests.support.books import Books, empty_books, make_adjustment, make_topup, open_books
from tests.support.ledger_model import LedgerModel
from tests.support.ledger_tables import AccountRow, KeyRow, month_start_ms, reply_of
from tests.support.scale import scaled
from tests.support.seeds import session_seed
from tests.support.stores import Store
from tests.support.values import (
    DAY_MS,
    MINUTE_MS,
    instant_ms,
    make_account,
    make_asked,
    make_catalogue,
    make_key,
    make_model,
    make_plan,
)

pytestmark = pytest.mark.both_stores

START_MS = instant_ms("2030-01-31T20:00:00")
"""Half an hour before February begins in Tehran."""
START_PERIOD = "2030-01"
PRICES = {"free": 0, "small": 1, "large": 4}
PLANS = {"little": (6, 12), "more": (25, 30)}
PAYG_PER_MINUTE = 5
ABANDONED_PER_HOUR = 2
ACCOUNTS = {"acc_1": "little", "acc_2": None, "acc_3": "more"}
KEYS = {1: ("acc_1", None), 2: ("acc_1", 4), 3: ("acc_2", None), 4: ("acc_3", 9)}
CATALOGUE = make_catalogue(
    models=[make_model(id_, price) for id_, price in PRICES.items()],
    plans=[make_plan(name, quota, requests_per_minute=per_minute) for name, (quota, per_minute) in PLANS.items()],
    payg=Offer(models=("*",), requests_per_minute=PAYG_PER_MINUTE),
    zone=ZoneInfo("Asia/Tehran"),
    abandoned_per_hour=ABANDONED_PER_HOUR,
)
ACCOUNTS_QUERY = (
    "SELECT window_minute, window_taken, id, plan, status, period, used, balance, abandoned_hour, abandoned_taken"
    " FROM accounts"
)
KEYS_QUERY = "SELECT window_minute, window_taken, id, account_id, limit_per_minute, revoked_at_ms IS NOT NULL FROM keys"
REQUESTS_QUERY = (
    "SELECT id, account_id, key_id, model_id, credits, source, period, day, deadline_ms, state FROM requests"
)
KEPT_QUERY = "SELECT request_id, account_id, key, fingerprint, created_at_ms, reply FROM idempotency_keys"
USAGE_QUERY = (
    "SELECT account_id, day, key_id, model_id, requests, credits, prompt_tokens, completion_tokens FROM daily_usage"
)
RUNS = scaled(100)
"""On each kind of database."""
RUNS_OF_ONE_TEST = 100
CHUNKS = -(-RUNS // RUNS_OF_ONE_TEST)
"""Tests that share the runs."""
STEPS = 8
SHRINKING_MAX_S = 600
"""A failure is shown as the shortest sequence that still fails; finding that takes a while."""

account_ids = st.sampled_from(sorted(ACCOUNTS))
key_numbers = st.sampled_from(sorted(KEYS))
sendings = st.none() | st.tuples(st.sampled_from("ab"), st.sampled_from([b"{}", b"{}", b"[]"]))
"""An idempotency key with a body, or none."""
admissions = st.tuples(
    st.just("admit"),
    key_numbers,
    st.lists(st.sampled_from(["small", "large", "free", "large", "small", "gone"]), min_size=1, max_size=8),
    sendings,
)
endings = st.tuples(
    st.sampled_from(["end_held", "end_held", "end_any"]),
    st.integers(0, 99),
    st.sampled_from([RequestState.CHARGED, RequestState.RELEASED]),
    st.tuples(st.integers(0, 50), st.integers(0, 50)),
    st.sampled_from([None, *Reason]),
)
changes = st.one_of(
    st.tuples(st.just("top_up"), account_ids, st.integers(1, 9), st.integers(1, 50)),
    st.tuples(st.just("adjust"), account_ids, st.integers(-9, 9).filter(bool)),
    st.tuples(st.just("change_plan"), account_ids, st.sampled_from([*PLANS, None])),
    st.tuples(st.sampled_from(["block", "stop"]), account_ids),
    st.just(("revoke", 2)),
)
operations = st.one_of(admissions, endings, st.just(("sweep",)), admissions.map(tuple), endings.map(tuple), changes)
"""Admissions and endings stand twice, so that they come more often."""
times = st.one_of(
    st.tuples(
        st.just("by"),
        st.sampled_from([0, 0, 1, MINUTE_MS, 2 * MINUTE_MS, DAY_MS, -1, -MINUTE_MS, -5 * MINUTE_MS, -DAY_MS]),
    ),
    st.tuples(st.sampled_from(["deadline", "next month", "last month"]), st.sampled_from([-1, 0, 1])),
)
"""How far the clock goes on or back before a batch: by so much, or to just before, at or just after such a time."""

Expect = Callable[[], Any]
"""Does to the model what an operation does to the books, and tells what its answer must be."""


class BooksMachine(RuleBasedStateMachine):
    """One step is one batch; after it every answer and every row is compared. At the end the books are audited."""

    books: Books

    def __init__(self) -> None:
        super().__init__()
        empty_books(self.books.engine)
        self.books.clock.now_ms = START_MS
        self.model = LedgerModel(
            prices=PRICES, plans=PLANS, payg_per_minute=PAYG_PER_MINUTE, free_per_hour=ABANDONED_PER_HOUR
        )
        self.batch: list[tuple[Operation, Expect]] = []
        self.requests = self.adjustments = 0
        self.idempotency_keys: dict[str, str] = {}
        accounts = [make_account(id=id_, plan=plan, period=START_PERIOD) for id_, plan in ACCOUNTS.items()]
        keys = [make_key(number, account_id=id_, limit_per_minute=limit) for number, (id_, limit) in KEYS.items()]
        self.books.add(*accounts, *keys)
        for account in accounts:
            self.model.accounts[account.id] = AccountRow(id=account.id, plan=account.plan, period=START_PERIOD)
        for key in keys:
            self.model.keys[key.id] = KeyRow(id=key.id, account=key.account_id, limit=key.limit_per_minute)

    def teardown(self) -> None:
        """Audit the books. A batch that came out otherwise was rolled back."""
        self.books.assert_balanced()

    @rule(operations=st.lists(operations, min_size=1, max_size=10), time=times)
    def run_batch(self, operations: list[tuple[Any, ...]], time: tuple[str, int]) -> None:
        """Let time pass or set the clock back, run a batch, and compare everything."""
        self._pass_time(*time)
        for name, *arguments in operations:
            getattr(self, f"_{name}")(*arguments)
        operations_ = [operation for operation, _ in self.batch]
        with transaction(self.books.engine, relaxed=True) as connection:
            answers = run_batch(connection, operations_, CATALOGUE, self.books.clock())
            expected: dict[int, Any] = {}
            for place in sorted(range(len(self.batch)), key=lambda place: _turn(operations_[place])):
                expected[place] = self.batch[place][1]()
            assert [_outcome(answer) for answer in answers] == [expected[place] for place in range(len(answers))]
            self._compare(connection)
        self.batch.clear()
        self._serve_again()

    def _pass_time(self, until: str, step_ms: int) -> None:
        now_ms = self.books.clock()
        if until == "deadline" and (held := self.model.held()):
            now_ms = self.model.requests[held[0]].deadline_ms
        elif until == "next month":
            now_ms = month_start_ms(now_ms, 1)
        elif until == "last month":
            now_ms = month_start_ms(now_ms, 0)
        self.books.clock.now_ms = now_ms + step_ms

    def _compare(self, connection: Connection) -> None:
        model = self.model
        rows_of: dict[str, Collection[Any]] = {
            ACCOUNTS_QUERY: model.accounts.values(),
            KEYS_QUERY: model.keys.values(),
            REQUESTS_QUERY: model.requests.values(),
            KEPT_QUERY: model.kept.values(),
        }
        for query, rows in rows_of.items():
            assert sorted(map(tuple, connection.exec_driver_sql(query))) == sorted(map(astuple, rows))
        assert {row[:4]: list(row[4:]) for row in connection.exec_driver_sql(USAGE_QUERY)} == model.usage

    # What a batch is made of: each adds an operation, and what it does to the model.

    def _admit(self, number: int, models: list[str], sent: tuple[str, bytes] | None) -> None:
        idempotency = None if sent is None else idempotency_of(*sent)
        for model in models:
            self.requests += 1
            asked = make_asked(number, model, request_id=f"req_{self.requests:06}", idempotency=idempotency)
            if idempotency is not None:
                self.idempotency_keys[asked.request_id] = idempotency.key
            self._add(
                Admit(asked),
                partial(
                    self.model.admit,
                    asked.request_id,
                    self.model.keys[asked.key.id],
                    model,
                    self.books.clock(),
                    None if sent is None else (sent[0], sha256(sent[1]).digest()),
                ),
            )

    def _end_held(self, place: int, state: RequestState, tokens: tuple[int, int], reason: Reason | None) -> None:
        self._end(self.model.held(), place, state, tokens, reason)

    def _end_any(self, place: int, state: RequestState, tokens: tuple[int, int], reason: Reason | None) -> None:
        self._end(sorted(self.model.requests), place, state, tokens, reason)

    def _end(
        self, ids: list[str], place: int, state: RequestState, tokens: tuple[int, int], reason: Reason | None
    ) -> None:
        if not ids:
            return
        if state is RequestState.CHARGED:
            reason = None
        request_id = ids[place % len(ids)]
        end = End(
            period=self.model.requests[request_id].period,
            request_id=request_id,
            account_id=self.model.requests[request_id].account,
            state=state,  # type: ignore[arg-type]
            prompt_tokens=tokens[0],
            completion_tokens=tokens[1],
            idempotency_key=self.idempotency_keys.get(request_id),
            reply=reply_of(request_id) if state is RequestState.CHARGED else None,
            reason=reason,
        )
        self._add(
            end,
            lambda: self.model.end(
                request_id, state.value, self.books.clock(), tokens, is_callers_doing=reason is not None
            ),
        )

    def _sweep(self) -> None:
        if not any(isinstance(operation, Sweep) for operation, _ in self.batch):
            self._add(Sweep(), lambda: self.model.sweep(self.books.clock()))

    def _top_up(self, account_id: str, credits_: int, reference: int) -> None:
        topup = make_topup(credits_, account_id=account_id, reference=f"payment {reference}")
        self._work(
            lambda connection, _now_ms: insert_topup(connection, topup),
            lambda: None if self.model.top_up(account_id, credits_, topup.reference) else IntegrityError,
        )

    def _adjust(self, account_id: str, credits_: int) -> None:
        self.adjustments += 1
        adjustment = make_adjustment(credits_, id=f"adj_{self.adjustments:06}", account_id=account_id)
        self._work(
            lambda connection, _now_ms: insert_adjustment(connection, adjustment),
            lambda: None if self.model.adjust(account_id, credits_) else BalanceError,
        )

    def _change_plan(self, account_id: str, plan: str | None) -> None:
        self._set_account(account_id, plan=plan)

    def _block(self, account_id: str) -> None:
        self._set_account(account_id, status=AccountStatus.BLOCKED)

    def _stop(self, _account_id: str) -> None:
        self._switch_intake(stopped=True)

    def _revoke(self, number: int) -> None:
        key_id = make_key(number).id

        def expect() -> None:
            self.model.keys[key_id].is_revoked = True

        self._work(lambda connection, now_ms: revoke_key(connection, key_id, now_ms), expect)

    def _serve_again(self) -> None:
        """Let a block or a stop last for one batch only: the next one begins with its end."""
        for account_id in self.model.blocked():
            self._set_account(account_id, status=AccountStatus.ACTIVE)
        if self.model.is_stopped:
            self._switch_intake(stopped=False)

    def _set_account(self, account_id: str, **changes: Any) -> None:
        def work(connection: Connection, _now_ms: int) -> None:
            account = find_account(connection, account_id)
            assert account is not None
            update_account(connection, account_id, **{"plan": account.plan, "status": account.status, **changes})

        def expect() -> None:
            self.model.accounts[account_id] = replace(self.model.accounts[account_id], **changes)

        self._work(work, expect)

    def _switch_intake(self, *, stopped: bool) -> None:
        def expect() -> None:
            self.model.is_stopped = stopped

        self._work(lambda connection, _now_ms: write_intake(connection, Intake(stopped)), expect)

    def _work(self, function: Callable[[Connection, int], None], expect: Expect) -> None:
        self._add(Work(function), expect)

    def _add(self, operation: Operation, expect: Expect) -> None:
        self.batch.append((operation, expect))


def _turn(operation: Operation) -> int:
    """Tell when in a batch an operation has its turn: what brings credits back comes before what takes them."""
    return (Work, Sweep, End, Admit).index(type(operation))


def _outcome(answer: Any) -> Any:
    """Reduce an answer to what the model says: a hold's source, a reply, a refusal's code, an exception's type."""
    if isinstance(answer, BaseException):
        return type(answer)
    outcome = getattr(answer, "outcome", answer)
    if isinstance(outcome, Refusal):
        return outcome.error.value.code
    if isinstance(outcome, Replay):
        return outcome.reply
    return getattr(outcome, "source", outcome)


@pytest.mark.timeout(SHRINKING_MAX_S)
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_any_sequence_of_batches_comes_out_as_in_the_model(chunk: int, store: Store, tmp_path: Path) -> None:
    """Credits, windows, states, usage and answers are exact, whatever comes together and wherever the clock goes."""
    with open_books(store, tmp_path, CATALOGUE) as books:
        machine = type("BooksMachine", (BooksMachine,), {"books": books})
        run_state_machine_as_test(
            seed(CHUNKS * session_seed() + chunk)(machine),
            settings=settings(max_examples=min(RUNS, RUNS_OF_ONE_TEST), stateful_step_count=STEPS),
        )
