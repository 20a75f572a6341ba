"""Keys are replaced once, paused, resumed and changed; all of it stands in the trail."""

from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from tarazu.domain.accounts import Key, KeyState
from tarazu.domain.calendar import iso_time
from tarazu.service.checks import EXPIRY_S_MAX
from tarazu.service.key_acts import KEY_CHANGES_HOURLY_MAX, IssuedKey
from tarazu.service.provisioning import Provisioning
from tarazu.service.provisioning_errors import ConflictError, NotThereError, ProvisioningError
from tarazu.store.trail import Act, Via
from tests.support.books import open_books
from tests.support.stores import Store
from tests.support.values import NOON_MS, make_account

pytestmark = pytest.mark.both_stores

DAY_S = 86_400


@pytest.fixture
def acts(store: Store, tmp_path: Path) -> Iterator[Provisioning]:
    """Two accounts, and who acts on them; a millisecond passes between any two acts."""
    instants = count(NOON_MS)
    with open_books(store, tmp_path) as books:
        books.add(make_account(), make_account(id="acc_2"))
        yield Provisioning(books.engine, books.catalogue, lambda: next(instants), by="operator")


def issued(acts: Provisioning, **terms: int) -> IssuedKey:
    """Issue a key."""
    return acts.create_key("acc_1", name="laptop", **terms)  # type: ignore[arg-type]


def newest(acts: Provisioning) -> Act:
    """Tell the newest act."""
    return acts.trail(account_id="acc_1").acts[0]


@pytest.mark.parametrize("expires_in_s", [None, 90 * DAY_S])
@pytest.mark.parametrize("grace_s", [0, 3_600, 7 * DAY_S])
def test_a_successor_has_the_keys_own_end(acts: Provisioning, expires_in_s: int | None, grace_s: int) -> None:
    """And not that of the time in which the old one works on."""
    old = acts.create_key("acc_1", name="laptop", expires_in_s=expires_in_s)
    new = acts.replace_key(old.key.id, grace_s=grace_s)
    assert new.key.expires_at_ms == old.key.expires_at_ms
    after = acts.key(old.key.id)
    assert after.successor_id == (new.key.id if grace_s else None)
    assert after.expires_at_ms == (new.key.created_at_ms + grace_s * 1_000 if grace_s else old.key.expires_at_ms)


def test_a_key_that_has_been_replaced_is_not_replaced_again(acts: Provisioning) -> None:
    """Nobody is handed a key that ends with the old one; what took its place can be replaced."""
    old = issued(acts)
    new = acts.replace_key(old.key.id, grace_s=3_600)
    with pytest.raises(ConflictError, match=f"{old.key.id} has been replaced by {new.key.id} already"):
        acts.replace_key(old.key.id, grace_s=7 * DAY_S)
    with pytest.raises(ConflictError, match="its end stays as it is"):
        acts.set_key(old.key.id, expires_in_s=None)
    assert acts.replace_key(new.key.id).key.expires_at_ms is None
    assert acts.key(old.key.id).expires_at_ms == new.key.created_at_ms + 3_600_000


def test_a_key_is_paused_and_resumed(acts: Provisioning) -> None:
    """Each once in the trail, however often it is asked for; a paused key can be replaced and counts as one."""
    key_id = issued(acts).key.id
    for _ in range(2):
        assert acts.pause_key(key_id).state(NOON_MS) is KeyState.PAUSED
    assert acts.active_keys("acc_1", limit=9) == []
    assert newest(acts).act == "key.pause"
    for _ in range(2):
        assert acts.resume_key(key_id).state(NOON_MS) is KeyState.ACTIVE
    assert [act.act for act in acts.trail(account_id="acc_1").acts] == ["key.resume", "key.pause", "key.create"]
    acts.pause_key(key_id)
    assert acts.replace_key(key_id).key.state(NOON_MS) is KeyState.ACTIVE


def test_a_grace_is_no_longer_than_the_life_of_the_key(acts: Provisioning) -> None:
    """A key that ends within it ends then, and that is what is told of it."""
    old = issued(acts, expires_in_s=60).key
    assert acts.replace_key(old.id, grace_s=3_600).old_ends_ms == old.expires_at_ms
    other = issued(acts).key
    assert acts.replace_key(other.id, grace_s=3_600).old_ends_ms == acts.key(other.id).expires_at_ms


def test_a_holder_cannot_fill_the_trail_with_changes_of_keys(store: Store, tmp_path: Path) -> None:
    """So many in an hour, whatever they are; an operator may go on, and the holder may still revoke."""
    with open_books(store, tmp_path) as books:
        books.add(make_account())
        holder, operator = (
            Provisioning(books.engine, books.catalogue, books.clock, by="ada@example.com", via=via)
            for via in (Via.HOLDER, Via.OPERATOR)
        )
        key = issued(holder).key.id
        for number in range(KEY_CHANGES_HOURLY_MAX):
            (holder.pause_key, holder.resume_key, partial(holder.set_key, name=f"{number}"))[number % 3](key)
        for change in (holder.pause_key, partial(holder.set_key, name="again")):
            with pytest.raises(ConflictError, match="Minutes to wait"):
                change(key)
        assert operator.pause_key(key).paused_at_ms is not None
        assert holder.revoke_key(key).revoked_at_ms is not None


def test_a_key_is_changed(acts: Provisioning) -> None:
    """What is given, and nothing else; None takes a bound away. The trail has how it was and is."""
    key_id = issued(acts, limit_per_minute=5).key.id
    changed = acts.set_key(key_id, name=" night job ", models=["small"], expires_in_s=DAY_S)
    assert _terms(changed)[:3] == ("night job", ("small",), 5)
    assert changed.expires_at_ms is not None
    assert newest(acts).detail == {
        "name": ["laptop", "night job"],
        "models": [None, "small"],
        "expires_at": [None, iso_time(changed.expires_at_ms)],
    }
    freed = acts.set_key(key_id, models=None, limit_per_minute=None, expires_in_s=None)
    assert _terms(freed) == ("night job", None, None, None)
    assert acts.key(key_id) == freed
    count = len(acts.trail(account_id="acc_1").acts)
    acts.set_key(key_id, name="night job")
    assert len(acts.trail(account_id="acc_1").acts) == count


def _terms(key: Key) -> tuple[object, ...]:
    return key.name, key.models, key.limit_per_minute, key.expires_at_ms


@pytest.mark.parametrize(
    "changes",
    [{"name": " "}, {"models": []}, {"models": ["none"]}, {"limit_per_minute": 0}, {"expires_in_s": EXPIRY_S_MAX + 1}],
)
def test_a_key_is_not_changed_to_what_none_can_be(acts: Provisioning, changes: dict[str, object]) -> None:
    """Nothing of it is done."""
    key = issued(acts).key
    with pytest.raises(ProvisioningError):
        acts.set_key(key.id, **{"name": "other", **changes})  # type: ignore[arg-type]
    assert acts.key(key.id) == key


def test_what_has_ended_or_is_another_accounts_stays_as_it_is(acts: Provisioning) -> None:
    """Neither paused, resumed, changed nor replaced."""
    key_id = issued(acts).key.id
    with pytest.raises(NotThereError):
        acts.pause_key(key_id, account_id="acc_2")
    with pytest.raises(NotThereError):
        acts.set_key(key_id, name="theirs", account_id="acc_2")
    acts.revoke_key(key_id)
    for act in (acts.pause_key, acts.resume_key, acts.replace_key, acts.set_key):
        with pytest.raises(ConflictError, match="no longer works"):
            act(key_id)
