"""What the log is told of signing in: who, from where, with what outcome; no secret, and no email in clear."""

from hashlib import sha256

import structlog

from tarazu.domain.people import PersonKind

DIGEST_DIGITS = 12

log = structlog.get_logger()


def tell_signed_in(kind: PersonKind, person_id: str, address: str) -> None:
    """Tell that a session has begun."""
    log.info("signed_in", world=kind.value, person=person_id, address=address)


def tell_sign_in_failed(kind: PersonKind, person: str, address: str, reason: str) -> None:
    """Tell that a password or a code was wrong. `person` is an id, or the digest of an email that nobody has."""
    log.warning("sign_in_failed", world=kind.value, person=person, address=address, reason=reason)


def tell_sign_in_limited(kind: PersonKind, person: str, address: str, reason: str) -> None:
    """Tell that nothing was compared, since there were too many wrong ones, or too many wait."""
    log.warning("sign_in_limited", world=kind.value, person=person, address=address, reason=reason)


def tell_confirmed(kind: PersonKind, person_id: str, address: str) -> None:
    """Tell that the right password was given again in a session, before what matters."""
    log.info("password_confirmed", world=kind.value, person=person_id, address=address)


def tell_signed_out(kind: PersonKind, person_id: str, address: str) -> None:
    """Tell that a person has ended a session."""
    log.info("signed_out", world=kind.value, person=person_id, address=address)


def tell_sessions_ended(kind: PersonKind, person_id: str, address: str, sessions: int) -> None:
    """Tell that a person has ended others of their sessions."""
    log.info("sessions_ended", world=kind.value, person=person_id, address=address, sessions=sessions)


def tell_form_refused(kind: PersonKind, person_id: str | None, address: str, reason: str) -> None:
    """Tell that a form came from another site, or without the word of its session."""
    log.warning("form_refused", world=kind.value, person=person_id, address=address, reason=reason)


def email_digest(email: str) -> str:
    """Write an email so that the lines about it can be put together, and it cannot be read."""
    return sha256(email.strip().lower().encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_DIGITS]
