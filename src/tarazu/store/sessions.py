"""Sessions in the books: begin, find, list, see again, end."""

from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from tarazu.domain.sessions import Session
from tarazu.store.owners import Owner, is_of, make_room, owner_of, owner_values
from tarazu.store.schema import sessions

SESSIONS_MAX = 20
"""Of one person at a time."""


def insert_session(connection: Connection, session: Session) -> None:
    """Add a session of a person whose row is locked; the oldest end where there would be more than SESSIONS_MAX."""
    owner = Owner(session.kind, session.person_id)
    make_room(connection, sessions, owner, by=sessions.c.created_at_ms, most=SESSIONS_MAX)
    connection.execute(
        insert(sessions).values(
            digest=session.digest,
            created_at_ms=session.created_at_ms,
            seen_at_ms=session.seen_at_ms,
            expires_at_ms=session.expires_at_ms,
            address=session.address,
            browser=session.browser,
            confirmed_at_ms=session.confirmed_at_ms,
            **owner_values(owner),
        )
    )


def find_session(connection: Connection, digest: bytes) -> Session | None:
    """Read one session, also one that has ended and not been swept yet."""
    row = connection.execute(select(sessions).where(sessions.c.digest == digest)).mappings().one_or_none()
    return None if row is None else _session_of(row)


def list_sessions(connection: Connection, owner: Owner, now_ms: int) -> list[Session]:
    """Read the live sessions of a person, the one that was seen last first."""
    live = select(sessions).where(is_of(sessions, owner), sessions.c.expires_at_ms > now_ms)
    newest_first = live.order_by(sessions.c.seen_at_ms.desc(), sessions.c.digest)
    return [_session_of(row) for row in connection.execute(newest_first).mappings()]


def see_session(connection: Connection, session: Session) -> None:
    """Write when a session was seen, and when it will end; one that has been ended meanwhile stays so."""
    connection.execute(
        update(sessions)
        .where(sessions.c.digest == session.digest)
        .values(seen_at_ms=session.seen_at_ms, expires_at_ms=session.expires_at_ms)
    )


def confirm_session(connection: Connection, digest: bytes, now_ms: int) -> None:
    """Write that the password was given in a session."""
    connection.execute(update(sessions).where(sessions.c.digest == digest).values(confirmed_at_ms=now_ms))


def end_session(connection: Connection, digest: bytes) -> bool:
    """End one session; tell whether it was there."""
    return connection.execute(delete(sessions).where(sessions.c.digest == digest)).rowcount > 0


def end_sessions(connection: Connection, owner: Owner, now_ms: int, *, keep: bytes | None = None) -> int:
    """End all sessions of a person, but the one with the digest `keep`; tell how many were live."""
    statement = delete(sessions).where(is_of(sessions, owner)).returning(sessions.c.expires_at_ms)
    if keep is not None:
        statement = statement.where(sessions.c.digest != keep)
    return sum(now_ms < expires_at_ms for expires_at_ms in connection.execute(statement).scalars())


def _session_of(row: Any) -> Session:
    owner = owner_of(row)
    return Session(
        digest=row["digest"],
        kind=owner.kind,
        person_id=owner.id,
        created_at_ms=row["created_at_ms"],
        seen_at_ms=row["seen_at_ms"],
        expires_at_ms=row["expires_at_ms"],
        address=row["address"],
        browser=row["browser"],
        confirmed_at_ms=row["confirmed_at_ms"],
    )
