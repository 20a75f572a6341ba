"""What guards who signs in, how much is kept of replies, and how many requests without one are free.

The browsers that are known, second factors, and what a session tells about itself; the place of each reply that is kept
under an idempotency key; why a request has no reply, and how many such requests of an account were free in an hour. The
release before goes on beside it: it neither writes nor reads the new tables and columns. It asks for no second factor,
gives back what every request without a reply has cost, and what it keeps of replies is not counted for 24 hours, so it
should not go on for long.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Make the tables and columns; let a switch that has not been used tell the new default."""
    if op.get_bind().dialect.name == "postgresql":
        # What services use is locked in their order, and at once as it has to be: a lock that is made stronger later
        # would meet those who wait for the weaker one.
        op.execute("LOCK TABLE accounts, requests, idempotency_keys, operators, sessions IN ACCESS EXCLUSIVE MODE")
    op.add_column("sessions", sa.Column("address", sa.String))
    op.add_column("sessions", sa.Column("browser", sa.String))
    op.add_column("sessions", sa.Column("confirmed_at_ms", sa.BigInteger))
    _create_by_person("devices")
    _create_by_person("pending_sign_ins")
    op.create_table(
        "second_factors",
        sa.Column("person_id", sa.String, nullable=False),
        sa.Column("secret", sa.LargeBinary, nullable=False),
        sa.Column("last_step", sa.BigInteger, nullable=False),
        sa.Column("recovery", sa.LargeBinary, nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("person_id", name="pk_second_factors"),
    )
    op.add_column("idempotency_keys", sa.Column("reply_from", sa.BigInteger))
    op.add_column("idempotency_keys", sa.Column("reply_bytes", sa.BigInteger))
    op.create_index(
        "ix_idempotency_keys_account_id_reply_from",
        "idempotency_keys",
        ["account_id", "reply_from", "reply_bytes"],
        sqlite_where=sa.text("reply_from IS NOT NULL"),
        postgresql_where=sa.text("reply_from IS NOT NULL"),
    )
    op.add_column("accounts", sa.Column("abandoned_hour", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("accounts", sa.Column("abandoned_taken", sa.Integer, nullable=False, server_default="0"))
    op.add_column("requests", sa.Column("reason", sa.String))
    op.execute("UPDATE intake SET retry_after_s = 300 WHERE stopped = 0")


def _create_by_person(name: str) -> None:
    """Make a table whose rows belong to an account's holder or to an operator, and end."""
    op.create_table(
        name,
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("account_id", sa.String),
        sa.Column("operator_id", sa.String),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.Column("expires_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("digest", name=f"pk_{name}"),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name=f"fk_{name}_account_id"),
        sa.ForeignKeyConstraint(["operator_id"], ["operators.id"], name=f"fk_{name}_operator_id"),
        sa.CheckConstraint("(account_id IS NULL) <> (operator_id IS NULL)", name=op.f(f"ck_{name}_person")),
    )
    for column in ("account_id", "operator_id", "expires_at_ms"):
        op.create_index(f"ix_{name}_{column}", name, [column])
