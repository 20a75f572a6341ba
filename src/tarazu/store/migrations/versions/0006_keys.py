"""Keys that are paused, and which key was made in the place of one that works on for a while.

The release before goes on beside it: it neither writes nor reads the new columns. It lets a paused key in, and replaces
a key a second time.
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the columns."""
    op.add_column("keys", sa.Column("paused_at_ms", sa.BigInteger))
    op.add_column("keys", sa.Column("successor_id", sa.String))
