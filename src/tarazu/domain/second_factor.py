"""A second factor: codes that change with time (RFC 6238), and recovery codes for who has lost what makes them. Pure.

These are the forty lines of RFC 4226 and 6238, and no library: what matters here, that no step is good twice, is no
part of those that there are.
"""

from base64 import b32decode, b32encode
from hashlib import sha1, sha256
from hmac import compare_digest, digest
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace

from tarazu.domain.keys import base62

SECRET_BYTES = 20
"""As long as the SHA-1 that the applications on telephones work with."""
STEP_MS = 30_000
DIGITS = 6
DRIFT_STEPS = 1
"""So many steps before and after the present one are good too: clocks differ, and people type slowly."""
RECOVERY_CODES = 10
RECOVERY_CODE_LENGTH = 12
"""62**12 possibilities, more than 70 bits: a digest of one cannot be undone by trying."""
RECOVERY_ENTROPY_BYTES = 24
_TEXT_LENGTH_MAX = 64
"""Far above any code as people write it, with spaces and hyphens."""


class SecondFactor(Struct, frozen=True, kw_only=True):
    """What a person has set up. `last_step` is the newest step whose code was used; none up to it is good any more.

    `recovery` are the SHA-256 of the recovery codes that are left.
    """

    secret: bytes
    last_step: int
    recovery: tuple[bytes, ...]

    def __repr__(self) -> str:
        """Leave the secret out."""
        return f"SecondFactor(recovery codes left={len(self.recovery)})"

    def used(self, text: str, now_ms: int) -> "SecondFactor | None":
        """Use a code, or a recovery code, up: what is left then, or None where it is not good."""
        code = _plain(text)
        step = None if len(code) != DIGITS else _step_of(self.secret, code, now_ms)
        if step is not None and step > self.last_step:
            return replace(self, last_step=step)
        found = sha256(code.encode()).digest()
        if found in self.recovery:
            return replace(self, recovery=tuple(each for each in self.recovery if each != found))
        return None


def begin(secret: bytes, text: str, recovery: tuple[str, ...], now_ms: int) -> SecondFactor | None:
    """Set a second factor up by a first code, which shows that the application has the secret; None: it has not."""
    code = _plain(text)
    step = None if len(code) != DIGITS else _step_of(secret, code, now_ms)
    if step is None:
        return None
    digests = tuple(sha256(_plain(each).encode()).digest() for each in recovery)
    return SecondFactor(secret=secret, last_step=step, recovery=digests)


def code_at(secret: bytes, step: int) -> str:
    """Make the code of one step (RFC 4226, 5.3)."""
    mac = digest(secret, step.to_bytes(8, "big"), sha1)
    offset = mac[-1] & 0xF
    number = int.from_bytes(mac[offset : offset + 4], "big") & 0x7FFFFFFF
    return f"{number % 10**DIGITS:0{DIGITS}}"


def step_at(now_ms: int) -> int:
    """Tell which step it is."""
    return now_ms // STEP_MS


def recovery_codes(entropy: bytes) -> tuple[str, ...]:
    """Make recovery codes from random bytes, RECOVERY_ENTROPY_BYTES for each, in groups that can be copied by hand."""
    assert len(entropy) == RECOVERY_CODES * RECOVERY_ENTROPY_BYTES, "too few random bytes"
    codes = (
        base62(int.from_bytes(entropy[start : start + RECOVERY_ENTROPY_BYTES], "big"), RECOVERY_CODE_LENGTH)
        for start in range(0, len(entropy), RECOVERY_ENTROPY_BYTES)
    )
    return tuple("-".join(code[start : start + 4] for start in range(0, RECOVERY_CODE_LENGTH, 4)) for code in codes)


def secret_text(secret: bytes) -> str:
    """Write a secret as people and applications read it."""
    return b32encode(secret).decode()


def secret_of(text: str) -> bytes | None:
    """Read a secret; None for a text that is none."""
    try:
        secret = b32decode(text.encode("ascii"))
    except ValueError:  # UnicodeEncodeError and binascii.Error are such
        return None
    return secret if len(secret) == SECRET_BYTES else None


def setup_address(secret: bytes, *, service: str, email: str) -> str:
    """Write the address that an application reads from a QR code."""
    label = quote(f"{service}:{email}")
    return f"otpauth://totp/{label}?secret={secret_text(secret)}&issuer={quote(service)}"


def _step_of(secret: bytes, code: str, now_ms: int) -> int | None:
    """Find the newest step near to now whose code this is. All of them are compared, in even time."""
    here = step_at(now_ms)
    given = code.encode()
    steps = range(max(0, here - DRIFT_STEPS), here + DRIFT_STEPS + 1)
    good = [step for step in steps if compare_digest(code_at(secret, step).encode(), given)]
    return max(good, default=None)


def _plain(text: str) -> str:
    """Take the spaces and hyphens from a code; digits of any script are those of ASCII. Too long a text is no code."""
    if len(text) > _TEXT_LENGTH_MAX:
        return ""
    kept = (character for character in text if not character.isspace() and character != "-")
    plain = "".join(str(int(each)) if each.isdecimal() else each for each in kept)
    return plain if plain.isascii() else ""
