"""How much of what is kept an account may make, and all accounts together."""

from msgspec import Struct

MIB = 1024 * 1024


class Bounds(Struct, frozen=True, kw_only=True):
    """As the configuration sets them.

    - `keys`: an account's keys that have not ended; `new_keys_hourly`: those that its holder makes in an hour.
    - `account_reply_bytes`: replies that are kept for an account under its idempotency keys; `reply_bytes`: for all.
    """

    keys: int = 100
    new_keys_hourly: int = 60
    account_reply_bytes: int = 64 * MIB
    reply_bytes: int = 1024 * MIB
