"""The backends that rest, as each process of the service sees them.

The release before goes on beside it: it neither writes nor reads them.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make the table of rests."""
    op.create_table(
        "backend_rests",
        sa.Column("process_id", sa.String, nullable=False),
        sa.Column("backend", sa.String, nullable=False),
        sa.Column("model_id", sa.String, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("fault", sa.String, nullable=False),
        sa.Column("since_ms", sa.BigInteger, nullable=False),
        sa.Column("until_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("process_id", "backend", name="pk_backend_rests"),
        sa.CheckConstraint("state IN ('busy', 'tripped')", name=op.f("ck_backend_rests_state")),
    )
