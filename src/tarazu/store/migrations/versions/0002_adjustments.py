"""Corrections of balances, and who made each change of one.

It only adds, so the services of the release before go on beside it:
- they read and change balances as they are, and need not know what has adjusted them;
- top-ups of that release leave `made_by` NULL, as those from before;
- its `tarazu audit` would miss the adjustments, but no command of it opens books of a revision that it does not know.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the table of adjustments; let top-ups say who made them."""
    # Top-ups first, then accounts: in the order in which the release before locks them when it adds credits.
    op.add_column("topups", sa.Column("made_by", sa.String))
    op.create_table(
        "adjustments",
        sa.Column("id", sa.String, nullable=False),
        sa.Column("account_id", sa.String, nullable=False),
        sa.Column("credits", sa.BigInteger, nullable=False),
        sa.Column("reason", sa.String, nullable=False),
        sa.Column("reference", sa.String),
        sa.Column("made_by", sa.String, nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_adjustments"),
        sa.ForeignKeyConstraint(["account_id"], ["accounts.id"], name="fk_adjustments_account_id"),
        sa.UniqueConstraint("reference", name="uq_adjustments_reference"),
        sa.CheckConstraint("credits <> 0", name=op.f("ck_adjustments_credits")),
    )
    op.create_index("ix_adjustments_account_id", "adjustments", ["account_id"])
