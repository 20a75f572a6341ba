"""Keys that are paused, which key was made in the place of one that works on for a while, and refused requests.

The release before goes on beside it: it neither writes nor reads what is new. It lets a paused key in, replaces a key
a second time, and tells its caller alone that a request is refused.
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the columns, and make the table."""
    op.add_column("keys", sa.Column("paused_at_ms", sa.BigInteger))
    op.add_column("keys", sa.Column("successor_id", sa.String))
    op.create_table(
        "refused_requests",
        sa.Column("id", sa.String, nullable=False),
        sa.Column("account_id", sa.String, nullable=False),
        sa.Column("key_id", sa.String, nullable=False),
        sa.Column("code", sa.String, nullable=False),
        sa.Column("model_id", sa.String),
        sa.Column("requests", sa.BigInteger, nullable=False),
        sa.Column("first_at_ms", sa.BigInteger, nullable=False),
        sa.Column("last_at_ms", sa.BigInteger, nullable=False),
        sa.Column("expires_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_refused_requests"),
        sa.CheckConstraint("requests >= 1", name=op.f("ck_refused_requests_requests")),
    )
    op.create_index("ix_refused_requests_account_id_first_at_ms", "refused_requests", ["account_id", "first_at_ms"])
    op.create_index("ix_refused_requests_expires_at_ms", "refused_requests", ["expires_at_ms"])
