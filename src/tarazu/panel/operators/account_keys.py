"""The keys of one account, as its operators see them: list, create, show once, replace, revoke."""

from http import HTTPStatus

from msgspec import Struct
from sqlalchemy import Connection
from starlette.responses import Response

from tarazu.domain.accounts import Account
from tarazu.panel.acting import act
from tarazu.panel.holders.offer import offered_models
from tarazu.panel.key_forms import GRACES_S, KeyTerms, KeyWish, read_grace
from tarazu.panel.messages import told
from tarazu.panel.visits import Visit
from tarazu.service.back_office import BackOffice
from tarazu.service.finding import existing_account
from tarazu.service.key_acts import IssuedKey
from tarazu.service.provisioning import Provisioning
from tarazu.service.provisioning_errors import ConflictError, ProvisioningError
from tarazu.service.reports import KeyLine, KeyList, key_line, key_list

PAGE_LENGTH = 25


class KeyGlance(Struct, frozen=True):
    """A key, and whose it is."""

    account: Account
    key: KeyLine


class AccountKeysPages:
    """The pages of an account's keys. A key of another account than the address names does not exist there."""

    def __init__(self, office: BackOffice) -> None:
        self._office = office

    async def list(self, visit: Visit) -> Response:
        """List the keys, the newest first."""
        account_id, after, now_ms = _account_id(visit), visit.query("after") or None, self._office.clock()

        def look(connection: Connection) -> tuple[Account, KeyList]:
            found = key_list(connection, account_id, now_ms, limit=PAGE_LENGTH, after=after)
            return existing_account(connection, account_id), found

        account, found = await self._office.look(look)
        return visit.page("operators/account_keys.html", account=account, found=found, is_first=after is None)

    async def ask(self, visit: Visit) -> Response:
        """Ask for what a new key is to be."""
        return await self._ask(visit)

    async def create(self, visit: Visit) -> Response:
        """Create a key, and show it this once."""
        account = await self._account(visit)
        try:
            terms = KeyTerms.of(visit.form, offered_models(account, self._office.catalogue))
            issued = await act(self._office, visit, lambda books: terms.create(books, account.id))
        except ProvisioningError as error:
            return await self._ask(visit, told(error, visit.formats))
        return _shown(visit, account, issued, None)

    async def show(self, visit: Visit) -> Response:
        """Show one key, with what can be done to it."""
        return await self._show(visit)

    async def replace(self, visit: Visit) -> Response:
        """Create a key in the place of another, which ends now or after a while, and show it this once."""
        account_id, key_id, grace_s = _account_id(visit), _key_id(visit), read_grace(visit.form)

        def replace(books: Provisioning) -> IssuedKey:
            return books.replace_key(key_id, grace_s=grace_s, account_id=account_id)

        try:
            issued = await act(self._office, visit, replace)
        except ConflictError as error:  # it has ended
            return await self._show(visit, HTTPStatus.CONFLICT, told(error, visit.formats))
        return _shown(visit, await self._account(visit), issued, grace_s)

    async def revoke(self, visit: Visit) -> Response:
        """End a key now."""
        account_id, key_id = _account_id(visit), _key_id(visit)
        await act(self._office, visit, lambda books: books.revoke_key(key_id, account_id=account_id))
        return visit.done(f"/accounts/{account_id}/keys", "key-revoked")

    async def _ask(self, visit: Visit, refusal: str | None = None) -> Response:
        account = await self._account(visit)
        return visit.page(
            "operators/account_key_new.html",
            HTTPStatus.OK if refusal is None else HTTPStatus.UNPROCESSABLE_ENTITY,
            account=account,
            wish=KeyWish.of(visit.form),
            refusal=refusal,
            models=offered_models(account, self._office.catalogue),
        )

    async def _show(self, visit: Visit, status: int = HTTPStatus.OK, refusal: str | None = None) -> Response:
        account_id, key_id, now_ms = _account_id(visit), _key_id(visit), self._office.clock()

        def look(connection: Connection) -> KeyGlance:
            account = existing_account(connection, account_id)
            return KeyGlance(account, key_line(connection, account_id, key_id, now_ms))

        found = await self._office.look(look)
        return visit.page(
            "operators/account_key.html",
            status,
            account=found.account,
            key=found.key,
            refusal=refusal,
            graces_s=GRACES_S,
        )

    async def _account(self, visit: Visit) -> Account:
        return await act(self._office, visit, lambda books: books.account(_account_id(visit)))


def _account_id(visit: Visit) -> str:
    account_id: str = visit.request.path_params["account_id"]
    return account_id


def _key_id(visit: Visit) -> str:
    key_id: str = visit.request.path_params["key_id"]
    return key_id


def _shown(visit: Visit, account: Account, issued: IssuedKey, grace_s: int | None) -> Response:
    return visit.page(
        "operators/account_key_shown.html",
        account=account,
        key=issued.key,
        secret=issued.secret,
        grace_s=grace_s,
        live_keys=issued.live_keys,
    )
