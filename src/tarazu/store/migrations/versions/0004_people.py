"""Who signs in, the admin API's tokens, and the trail of all acts.

The release before goes on beside it: it neither writes nor reads these tables.
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Make the tables of people, tokens and acts."""
    op.create_table(
        "operators",
        sa.Column("id", sa.String, nullable=False),
        sa.Column("email", sa.String, nullable=False),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("status", sa.String, nullable=False),
        sa.Column("password", sa.String),
        sa.Column("language", sa.String),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_operators"),
        sa.UniqueConstraint("email", name="uq_operators_email"),
        sa.CheckConstraint("status IN ('active', 'inactive')", name=op.f("ck_operators_status")),
    )
    op.create_table(
        "logins",
        sa.Column("account_id", sa.String, nullable=False),
        sa.Column("password", sa.String, nullable=False),
        sa.Column("language", sa.String),
        sa.Column("changed_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("account_id", name="pk_logins"),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name="fk_logins_account_id"),
    )
    _create_by_person("sessions", sa.Column("seen_at_ms", sa.BigInteger, nullable=False))
    op.create_index("ix_sessions_account_id", "sessions", ["account_id"])
    op.create_index("ix_sessions_operator_id", "sessions", ["operator_id"])
    _create_by_person(
        "invitations",
        sa.UniqueConstraint("account_id", name="uq_invitations_account_id"),
        sa.UniqueConstraint("operator_id", name="uq_invitations_operator_id"),
    )
    op.create_table(
        "sign_in_failures",
        sa.Column("subject", sa.LargeBinary(32), nullable=False),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("until_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("subject", name="pk_sign_in_failures"),
        sa.CheckConstraint("failures >= 1", name=op.f("ck_sign_in_failures_failures")),
    )
    op.create_index("ix_sign_in_failures_until_ms", "sign_in_failures", ["until_ms"])
    op.create_table(
        "admin_tokens",
        sa.Column("id", sa.String, nullable=False),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("scopes", sa.String, nullable=False),
        sa.Column("made_by", sa.String, nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.Column("expires_at_ms", sa.BigInteger),
        sa.Column("revoked_at_ms", sa.BigInteger),
        sa.PrimaryKeyConstraint("id", name="pk_admin_tokens"),
    )
    op.create_table(
        "creations",
        sa.Column("reference", sa.String, nullable=False),
        sa.Column("fingerprint", sa.LargeBinary(32), nullable=False),
        sa.Column("subject", sa.String, nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("reference", name="pk_creations"),
    )
    op.create_table(
        "acts",
        sa.Column("id", sa.String, nullable=False),
        sa.Column("act", sa.String, nullable=False),
        sa.Column("made_by", sa.String, nullable=False),
        sa.Column("via", sa.String, nullable=False),
        sa.Column("account_id", sa.String),
        sa.Column("subject", sa.String),
        sa.Column("detail", sa.String, nullable=False),
        sa.Column("made_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_acts"),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name="fk_acts_account_id"),
        sa.CheckConstraint("via IN ('command', 'operator', 'token', 'holder')", name=op.f("ck_acts_via")),
    )
    op.create_index("ix_acts_account_id_id", "acts", ["account_id", "id"])


def _create_by_person(name: str, *more: sa.Column[int] | sa.Constraint) -> None:
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
        *more,
    )
    op.create_index(f"ix_{name}_expires_at_ms", name, ["expires_at_ms"])
