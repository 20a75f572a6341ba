"""Wrong passwords in the books, counted by subject; the rules are in domain/attempts.py."""

from collections.abc import Iterable, Mapping

from sqlalchemy import Connection, and_, case, delete, select

from tarazu.domain.attempts import Failures, Rule
from tarazu.store.schema import sign_in_failures as failed
from tarazu.store.upsert import insert_into


def read_failures(connection: Connection, subjects: Iterable[bytes]) -> dict[bytes, Failures]:
    """Read what is counted of these subjects."""
    query = select(failed.c.subject, failed.c.failures, failed.c.until_ms).where(failed.c.subject.in_(list(subjects)))
    return {subject: Failures(number, until_ms) for subject, number, until_ms in connection.execute(query)}


def count_failure(connection: Connection, rules: Mapping[bytes, Rule], now_ms: int) -> dict[bytes, Failures]:
    """Count one failure more of each subject by its rule; answer with what was counted of them before.

    Whoever counts the same one at the same time comes before or after, and is answered with one less or more. Subjects
    are taken in their order, so that nobody waits in a circle.
    """
    return {subject: _count(connection, subject, rules[subject], now_ms) for subject in sorted(rules)}


def forget_failures(connection: Connection, subject: bytes) -> None:
    """Count from the beginning again."""
    connection.execute(delete(failed).where(failed.c.subject == subject))


def _count(connection: Connection, subject: bytes, rule: Rule, now_ms: int) -> Failures:
    new = insert_into(connection, failed).values(subject=subject, failures=1, until_ms=now_ms + rule.window_ms)
    # As `counts` in domain/attempts.py has it.
    is_counted = and_(failed.c.until_ms > now_ms, failed.c.until_ms <= new.excluded.until_ms)
    counted = new.on_conflict_do_update(
        index_elements=[failed.c.subject],
        set_={
            "failures": case((is_counted, failed.c.failures + 1), else_=1),
            "until_ms": case((is_counted, failed.c.until_ms), else_=new.excluded.until_ms),
        },
    ).returning(failed.c.failures - 1, failed.c.until_ms)
    return Failures(*connection.execute(counted).one())
