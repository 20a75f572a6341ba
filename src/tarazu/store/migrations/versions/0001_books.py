"""The first books: accounts, keys, requests, top-ups, daily usage, idempotency keys, the intake switch."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make all tables, and the one row of the intake switch."""
    _accounts()
    _keys()
    _requests()
    _topups()
    _daily_usage()
    _idempotency_keys()
    _intake()


def _accounts() -> None:
    op.create_table(
        "accounts",
        sa.Column("id", sa.String, nullable=False),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("email", sa.String),
        sa.Column("plan", sa.String),
        sa.Column("status", sa.String, nullable=False),
        sa.Column("period", sa.String(7), nullable=False),
        sa.Column("used", sa.BigInteger, nullable=False),
        sa.Column("balance", sa.BigInteger, nullable=False),
        sa.Column("window_minute", sa.BigInteger, nullable=False),
        sa.Column("window_taken", sa.Integer, nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_accounts"),
        sa.UniqueConstraint("email", name="uq_accounts_email"),
        sa.CheckConstraint(
            "status IN ('active', 'unverified', 'inactive', 'blocked')", name=op.f("ck_accounts_status")
        ),
        sa.CheckConstraint("used >= 0", name=op.f("ck_accounts_used")),
        sa.CheckConstraint("balance >= 0", name=op.f("ck_accounts_balance")),
        sa.CheckConstraint("window_taken >= 0", name=op.f("ck_accounts_window_taken")),
    )


def _keys() -> None:
    op.create_table(
        "keys",
        sa.Column("id", sa.String, nullable=False),
        sa.Column("account_id", sa.String, nullable=False),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("models", sa.String),
        sa.Column("limit_per_minute", sa.Integer),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.Column("expires_at_ms", sa.BigInteger),
        sa.Column("revoked_at_ms", sa.BigInteger),
        sa.Column("window_minute", sa.BigInteger, nullable=False),
        sa.Column("window_taken", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_keys"),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name="fk_keys_account_id"),
        sa.CheckConstraint("limit_per_minute >= 1", name=op.f("ck_keys_limit_per_minute")),
        sa.CheckConstraint("window_taken >= 0", name=op.f("ck_keys_window_taken")),
    )
    op.create_index("ix_keys_account_id", "keys", ["account_id"])


def _requests() -> None:
    op.create_table(
        "requests",
        sa.Column("id", sa.String, nullable=False),
        sa.Column("period", sa.String(7), nullable=False),
        sa.Column("account_id", sa.String, nullable=False),
        sa.Column("key_id", sa.String, nullable=False),
        sa.Column("model_id", sa.String, nullable=False),
        sa.Column("credits", sa.BigInteger, nullable=False),
        sa.Column("source", sa.String, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("day", sa.String(10), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.Column("deadline_ms", sa.BigInteger, nullable=False),
        sa.Column("ended_at_ms", sa.BigInteger),
        sa.Column("tries", sa.Integer),
        sa.Column("prompt_tokens", sa.BigInteger),
        sa.Column("completion_tokens", sa.BigInteger),
        sa.PrimaryKeyConstraint("id", "period", name="pk_requests"),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name="fk_requests_account_id"),
        sa.ForeignKeyConstraint(["key_id"], ["keys.id"], name="fk_requests_key_id"),
        sa.CheckConstraint("credits >= 0", name=op.f("ck_requests_credits")),
        sa.CheckConstraint("source IN ('plan', 'api_balance')", name=op.f("ck_requests_source")),
        sa.CheckConstraint("state IN ('held', 'charged', 'released', 'swept')", name=op.f("ck_requests_state")),
        sa.CheckConstraint("(state = 'held') = (ended_at_ms IS NULL)", name=op.f("ck_requests_ended")),
        postgresql_partition_by="LIST (period)",
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute("CREATE TABLE requests_default PARTITION OF requests DEFAULT")
    op.create_index(
        "ix_requests_held_deadline_ms",
        "requests",
        ["deadline_ms"],
        sqlite_where=sa.text("state = 'held'"),
        postgresql_where=sa.text("state = 'held'"),
    )
    op.create_index("ix_requests_account_id_created_at_ms", "requests", ["account_id", "created_at_ms"])


def _topups() -> None:
    op.create_table(
        "topups",
        sa.Column("id", sa.String, nullable=False),
        sa.Column("account_id", sa.String, nullable=False),
        sa.Column("credits", sa.BigInteger, nullable=False),
        sa.Column("reference", sa.String, nullable=False),
        sa.Column("note", sa.String),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_topups"),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name="fk_topups_account_id"),
        sa.UniqueConstraint("reference", name="uq_topups_reference"),
        sa.CheckConstraint("credits > 0", name=op.f("ck_topups_credits")),
    )
    op.create_index("ix_topups_account_id", "topups", ["account_id"])


def _daily_usage() -> None:
    op.create_table(
        "daily_usage",
        sa.Column("account_id", sa.String, nullable=False),
        sa.Column("day", sa.String(10), nullable=False),
        sa.Column("key_id", sa.String, nullable=False),
        sa.Column("model_id", sa.String, nullable=False),
        sa.Column("requests", sa.BigInteger, nullable=False),
        sa.Column("credits", sa.BigInteger, nullable=False),
        sa.Column("prompt_tokens", sa.BigInteger, nullable=False),
        sa.Column("completion_tokens", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("account_id", "day", "key_id", "model_id", name="pk_daily_usage"),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name="fk_daily_usage_account_id"),
        sa.ForeignKeyConstraint(["key_id"], ["keys.id"], name="fk_daily_usage_key_id"),
    )


def _idempotency_keys() -> None:
    op.create_table(
        "idempotency_keys",
        sa.Column("account_id", sa.String, nullable=False),
        sa.Column("key", sa.String(255), nullable=False),
        sa.Column("fingerprint", sa.LargeBinary(32), nullable=False),
        sa.Column("request_id", sa.String, nullable=False),
        sa.Column("period", sa.String(7), nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.Column("reply", sa.LargeBinary),
        sa.PrimaryKeyConstraint("account_id", "key", name="pk_idempotency_keys"),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name="fk_idempotency_keys_account_id"),
        sa.UniqueConstraint("request_id", name="uq_idempotency_keys_request_id"),
    )
    op.create_index("ix_idempotency_keys_created_at_ms", "idempotency_keys", ["created_at_ms"])


def _intake() -> None:
    intake = op.create_table(
        "intake",
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("stopped", sa.Integer, nullable=False),
        sa.Column("retry_after_s", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_intake"),
        sa.CheckConstraint("id = 1", name=op.f("ck_intake_single")),
        sa.CheckConstraint("retry_after_s >= 1", name=op.f("ck_intake_retry_after_s")),
    )
    op.bulk_insert(intake, [{"id": 1, "stopped": 0, "retry_after_s": 60}])
