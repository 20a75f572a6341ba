"""The tables of the books. Instants are milliseconds since the epoch, credits are whole numbers.

The CHECK constraints are the last guard: a bug above them fails loudly instead of spending what is not there.
"""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    text,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _of_persons(name: str) -> Table:
    """Make a table of what a holder or an operator has for a while, by the SHA-256 of a secret."""
    return Table(
        name,
        metadata,
        Column("digest", LargeBinary(32), primary_key=True),
        Column("account_id", ForeignKey("accounts.id"), index=True),
        Column("operator_id", ForeignKey("operators.id"), index=True),
        Column("created_at_ms", BigInteger, nullable=False),
        Column("expires_at_ms", BigInteger, nullable=False, index=True),
        CheckConstraint("(account_id IS NULL) <> (operator_id IS NULL)", name="person"),
    )


accounts = Table(
    "accounts",
    metadata,
    Column("id", String, primary_key=True),
    Column("name", String, nullable=False),
    Column("email", String, unique=True),
    Column("plan", String),
    Column("status", String, nullable=False),
    Column("period", String(7), nullable=False),
    Column("used", BigInteger, nullable=False),
    Column("balance", BigInteger, nullable=False),
    Column("window_minute", BigInteger, nullable=False),
    Column("window_taken", Integer, nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("abandoned_hour", BigInteger, nullable=False, server_default="0"),
    Column("abandoned_taken", Integer, nullable=False, server_default="0"),
    CheckConstraint("status IN ('active', 'unverified', 'inactive', 'blocked')", name="status"),
    CheckConstraint("used >= 0", name="used"),
    CheckConstraint("balance >= 0", name="balance"),
    CheckConstraint("window_taken >= 0", name="window_taken"),
)

keys = Table(
    "keys",
    metadata,
    Column("id", String, primary_key=True),
    Column("account_id", ForeignKey("accounts.id"), nullable=False, index=True),
    Column("name", String, nullable=False),
    Column("digest", LargeBinary(32), nullable=False),
    Column("models", String),
    Column("limit_per_minute", Integer),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("expires_at_ms", BigInteger),
    Column("revoked_at_ms", BigInteger),
    Column("window_minute", BigInteger, nullable=False),
    Column("window_taken", Integer, nullable=False),
    Column("paused_at_ms", BigInteger),
    Column("successor_id", String),
    CheckConstraint("limit_per_minute >= 1", name="limit_per_minute"),
    CheckConstraint("window_taken >= 0", name="window_taken"),
)
"""`models` is a JSON array of model ids, or NULL for all that the plan allows; `successor_id` names the key that
was made in its place."""

requests = Table(
    "requests",
    metadata,
    Column("id", String, primary_key=True),
    Column("period", String(7), primary_key=True),
    Column("account_id", ForeignKey("accounts.id"), nullable=False),
    Column("key_id", ForeignKey("keys.id"), nullable=False),
    Column("model_id", String, nullable=False),
    Column("credits", BigInteger, nullable=False),
    Column("source", String, nullable=False),
    Column("state", String, nullable=False),
    Column("day", String(10), nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("deadline_ms", BigInteger, nullable=False),
    Column("ended_at_ms", BigInteger),
    Column("tries", Integer),
    Column("prompt_tokens", BigInteger),
    Column("completion_tokens", BigInteger),
    Column("reason", String),
    CheckConstraint("credits >= 0", name="credits"),
    CheckConstraint("source IN ('plan', 'api_balance')", name="source"),
    CheckConstraint("state IN ('held', 'charged', 'released', 'swept')", name="state"),
    CheckConstraint("(state = 'held') = (ended_at_ms IS NULL)", name="ended"),
    Index(
        "ix_requests_held_deadline_ms",
        "deadline_ms",
        sqlite_where=text("state = 'held'"),
    ),
    Index("ix_requests_account_id_created_at_ms", "account_id", "created_at_ms"),
)
"""One row a request: a hold that ends once, as `charged`, `released` or `swept`. No prompt, no reply.

`reason` tells why it has no reply, where that was the caller's doing: a `Reason`.

On PostgreSQL it is cut by month, so that old months can go once they are in the daily usage; hence `period` in the key.
The migrations say so, and that the index there has only what is held: said here, it would have every command on SQLite
load PostgreSQL's dialect, a tenth of its start.
"""

refused_requests = Table(
    "refused_requests",
    metadata,
    Column("id", String, primary_key=True),
    Column("account_id", String, nullable=False),
    Column("key_id", String, nullable=False),
    Column("code", String, nullable=False),
    Column("model_id", String),
    Column("requests", BigInteger, nullable=False),
    Column("first_at_ms", BigInteger, nullable=False),
    Column("last_at_ms", BigInteger, nullable=False),
    Column("expires_at_ms", BigInteger, nullable=False, index=True),
    CheckConstraint("requests >= 1", name="requests"),
    Index("ix_refused_requests_account_id_first_at_ms", "account_id", "first_at_ms"),
)
"""Requests that were refused, summed up: one row for those of a key, an error, a model and ten minutes.

`model_id` is the one asked for, sold or not. No foreign key: its check would lock the account, before the ledger does
in its own order.
"""

topups = Table(
    "topups",
    metadata,
    Column("id", String, primary_key=True),
    Column("account_id", ForeignKey("accounts.id"), nullable=False, index=True),
    Column("credits", BigInteger, nullable=False),
    Column("reference", String, nullable=False, unique=True),
    Column("note", String),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("made_by", String),
    CheckConstraint("credits > 0", name="credits"),
)
"""Money that came in. `made_by` is NULL where a release before 0002 wrote it."""

adjustments = Table(
    "adjustments",
    metadata,
    Column("id", String, primary_key=True),
    Column("account_id", ForeignKey("accounts.id"), nullable=False, index=True),
    Column("credits", BigInteger, nullable=False),
    Column("reason", String, nullable=False),
    Column("reference", String, unique=True),
    Column("made_by", String, nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
    CheckConstraint("credits <> 0", name="credits"),
)
"""Corrections of a balance, up or down. A reference is also unique over top-ups and adjustments together."""

daily_usage = Table(
    "daily_usage",
    metadata,
    Column("account_id", ForeignKey("accounts.id"), primary_key=True),
    Column("day", String(10), primary_key=True),
    Column("key_id", ForeignKey("keys.id"), primary_key=True),
    Column("model_id", String, primary_key=True),
    Column("requests", BigInteger, nullable=False),
    Column("credits", BigInteger, nullable=False),
    Column("prompt_tokens", BigInteger, nullable=False),
    Column("completion_tokens", BigInteger, nullable=False),
)
"""The charged requests of a day, added up as they are charged."""

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("account_id", ForeignKey("accounts.id"), primary_key=True),
    Column("key", String(255), primary_key=True),
    Column("fingerprint", LargeBinary(32), nullable=False),
    Column("request_id", String, nullable=False, unique=True),
    Column("period", String(7), nullable=False),
    Column("created_at_ms", BigInteger, nullable=False, index=True),
    Column("reply", LargeBinary),
    Column("reply_from", BigInteger),
    Column("reply_bytes", BigInteger),
    Index(
        "ix_idempotency_keys_account_id_reply_from",
        "account_id",
        "reply_from",
        "reply_bytes",
        sqlite_where=text("reply_from IS NOT NULL"),
    ),
)
"""The requests that were sent with a key, for 24 hours: without a reply while held, with it once charged.

`request_id` and `period` name the row of `requests`. The kept replies of an account lie one behind the other on a line
of bytes: from `reply_from` on, `reply_bytes` long. Of a reply that was dropped only `reply_bytes` 0 is left. What a
release before 0005 has kept has neither, and is not counted.
"""

intake = Table(
    "intake",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("stopped", Integer, nullable=False),
    Column("retry_after_s", Integer, nullable=False),
    CheckConstraint("id = 1", name="single"),
    CheckConstraint("retry_after_s >= 1", name="retry_after_s"),
)
"""One row: the operator's switch."""

backend_rests = Table(
    "backend_rests",
    metadata,
    Column("process_id", String, primary_key=True),
    Column("backend", String, primary_key=True),
    Column("model_id", String, nullable=False),
    Column("state", String, nullable=False),
    Column("fault", String, nullable=False),
    Column("since_ms", BigInteger, nullable=False),
    Column("until_ms", BigInteger, nullable=False),
    CheckConstraint("state IN ('busy', 'tripped')", name="state"),
)
"""The backends that rest, as each process sees them: for operators to look at. A row means nothing after `until_ms`."""

operators = Table(
    "operators",
    metadata,
    Column("id", String, primary_key=True),
    Column("email", String, nullable=False, unique=True),
    Column("name", String, nullable=False),
    Column("status", String, nullable=False),
    Column("password", String),
    Column("language", String),
    Column("created_at_ms", BigInteger, nullable=False),
    CheckConstraint("status IN ('active', 'inactive')", name="status"),
)
"""Who may open the operators' pages. `password` is an argon2 hash, NULL until the invitation is followed."""

logins = Table(
    "logins",
    metadata,
    Column("account_id", ForeignKey("accounts.id"), primary_key=True),
    Column("password", String, nullable=False),
    Column("language", String),
    Column("changed_at_ms", BigInteger, nullable=False),
)
"""How an account's holder signs in, beside the account's email. `password` is an argon2 hash."""

sessions = Table(
    "sessions",
    metadata,
    Column("digest", LargeBinary(32), primary_key=True),
    Column("account_id", ForeignKey("accounts.id"), index=True),
    Column("operator_id", ForeignKey("operators.id"), index=True),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("seen_at_ms", BigInteger, nullable=False),
    Column("expires_at_ms", BigInteger, nullable=False, index=True),
    Column("address", String),
    Column("browser", String),
    Column("confirmed_at_ms", BigInteger),
    CheckConstraint("(account_id IS NULL) <> (operator_id IS NULL)", name="person"),
)
"""The browsers that are signed in, by the SHA-256 of what their cookie holds; one that has ended has no row.

`address` and `browser` are as they were when it began, `confirmed_at_ms` is when the password was given last.
"""

devices = _of_persons("devices")
"""The browsers in which a person has signed in before, by the SHA-256 of what their cookie holds."""

pending_sign_ins = _of_persons("pending_sign_ins")
"""Who has given the right password and not yet the code of the second factor, by the SHA-256 of the form's ticket."""

second_factors = Table(
    "second_factors",
    metadata,
    Column("person_id", String, primary_key=True),
    Column("secret", LargeBinary, nullable=False),
    Column("last_step", BigInteger, nullable=False),
    Column("recovery", LargeBinary, nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
)
"""The second factors of accounts' holders and operators, by the id of either.

`secret` is what codes are made from, in clear: who reads the books can make codes, and still lacks the password.
`recovery` is the SHA-256 of each recovery code that is left, one after the other.
"""

invitations = Table(
    "invitations",
    metadata,
    Column("digest", LargeBinary(32), primary_key=True),
    Column("account_id", ForeignKey("accounts.id"), unique=True),
    Column("operator_id", ForeignKey("operators.id"), unique=True),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("expires_at_ms", BigInteger, nullable=False, index=True),
    CheckConstraint("(account_id IS NULL) <> (operator_id IS NULL)", name="person"),
)
"""The one-time links that let a person choose a password, by the SHA-256 of what the link holds."""

sign_in_failures = Table(
    "sign_in_failures",
    metadata,
    Column("subject", LargeBinary(32), primary_key=True),
    Column("failures", Integer, nullable=False),
    Column("until_ms", BigInteger, nullable=False, index=True),
    CheckConstraint("failures >= 1", name="failures"),
)
"""Wrong passwords, counted by a digest of whom they were for and whence they came, until `until_ms`."""

admin_tokens = Table(
    "admin_tokens",
    metadata,
    Column("id", String, primary_key=True),
    Column("name", String, nullable=False),
    Column("digest", LargeBinary(32), nullable=False),
    Column("scopes", String, nullable=False),
    Column("made_by", String, nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("expires_at_ms", BigInteger),
    Column("revoked_at_ms", BigInteger),
)
"""The tokens of the admin API, by the SHA-256 of their secrets. `scopes` is a JSON array."""

creations = Table(
    "creations",
    metadata,
    Column("reference", String, primary_key=True),
    Column("fingerprint", LargeBinary(32), nullable=False),
    Column("subject", String, nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
)
"""What was created under a reference, so that the same creation sent twice makes one. `subject` is the id."""

acts = Table(
    "acts",
    metadata,
    Column("id", String, primary_key=True),
    Column("act", String, nullable=False),
    Column("made_by", String, nullable=False),
    Column("via", String, nullable=False),
    Column("account_id", ForeignKey("accounts.id")),
    Column("subject", String),
    Column("detail", String, nullable=False),
    Column("made_at_ms", BigInteger, nullable=False),
    CheckConstraint("via IN ('command', 'operator', 'token', 'holder')", name="via"),
    Index("ix_acts_account_id_id", "account_id", "id"),
)
"""The trail: every act on the books but requests, with who and when. Ids sort by time; `detail` is a JSON object."""
