"""The account's keys: list, create, show once, replace, revoke."""

from http import HTTPStatus

from starlette.responses import Response

from tarazu.domain.catalogue import Model
from tarazu.panel.acting import act
from tarazu.panel.holders.offer import offered_models
from tarazu.panel.key_forms import GRACES_S, KeyTerms, KeyWish, read_grace
from tarazu.panel.messages import told
from tarazu.panel.visits import Visit
from tarazu.service.back_office import BackOffice
from tarazu.service.key_acts import IssuedKey
from tarazu.service.provisioning import Provisioning
from tarazu.service.provisioning_errors import ConflictError, ProvisioningError
from tarazu.service.reports import key_line, key_list

PAGE_LENGTH = 25


class KeyPages:
    """The pages of an account's keys. A key of another account does not exist here."""

    def __init__(self, office: BackOffice) -> None:
        self._office = office

    async def list(self, visit: Visit) -> Response:
        """List the keys, the newest first."""
        after, now_ms = visit.query("after") or None, self._office.clock()
        found = await self._office.look(
            lambda connection: key_list(connection, visit.someone.id, now_ms, limit=PAGE_LENGTH, after=after)
        )
        return visit.page("keys.html", found=found, is_first=after is None)

    async def ask(self, visit: Visit) -> Response:
        """Ask for what a new key is to be."""
        return visit.page("key_new.html", wish=KeyWish(), refusal=None, models=await self._models(visit))

    async def create(self, visit: Visit) -> Response:
        """Create a key, and show it this once."""
        models = await self._models(visit)
        try:
            terms = KeyTerms.of(visit.form, models)
            issued = await act(self._office, visit, lambda books: terms.create(books, visit.someone.id))
        except ProvisioningError as error:
            values = {"wish": KeyWish.of(visit.form), "refusal": told(error, visit.formats), "models": models}
            return visit.page("key_new.html", HTTPStatus.UNPROCESSABLE_ENTITY, **values)
        return _shown(visit, issued, None)

    async def show(self, visit: Visit) -> Response:
        """Show one key, with what can be done to it."""
        return await self._show(visit)

    async def replace(self, visit: Visit) -> Response:
        """Create a key in the place of another, which ends now or after a while, and show it this once."""
        key_id, account_id = visit.request.path_params["key_id"], visit.someone.id
        grace_s = read_grace(visit.form)

        def replace(books: Provisioning) -> IssuedKey:
            return books.replace_key(key_id, grace_s=grace_s, account_id=account_id)

        try:
            issued = await act(self._office, visit, replace)
        except ConflictError as error:  # it has ended, or there are too many
            return await self._show(visit, HTTPStatus.CONFLICT, told(error, visit.formats))
        return _shown(visit, issued, grace_s)

    async def revoke(self, visit: Visit) -> Response:
        """End a key now."""
        key_id, account_id = visit.request.path_params["key_id"], visit.someone.id
        await act(self._office, visit, lambda books: books.revoke_key(key_id, account_id=account_id))
        return visit.done("/keys", "key-revoked")

    async def _show(self, visit: Visit, status: int = HTTPStatus.OK, refusal: str | None = None) -> Response:
        key_id, now_ms = visit.request.path_params["key_id"], self._office.clock()
        key = await self._office.look(lambda connection: key_line(connection, visit.someone.id, key_id, now_ms))
        return visit.page("key.html", status, key=key, refusal=refusal, graces_s=GRACES_S)

    async def _models(self, visit: Visit) -> tuple[Model, ...]:
        account = await act(self._office, visit, lambda books: books.account(visit.someone.id))
        return offered_models(account, self._office.catalogue)


def _shown(visit: Visit, issued: IssuedKey, grace_s: int | None) -> Response:
    return visit.page("key_shown.html", key=issued.key, secret=issued.secret, grace_s=grace_s)
