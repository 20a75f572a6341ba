"""The account's keys: list, create, show once, change, pause, replace, revoke."""

from sqlalchemy import Connection
from starlette.responses import Response

from tarazu.api.contract.samples import list_samples
from tarazu.domain.catalogue import Model
from tarazu.panel.acting import act
from tarazu.panel.holders.offer import offered_models
from tarazu.panel.key_forms import GRACES_S, KeyTerms, expiry_choices, key_query, read_grace, show_key_once
from tarazu.panel.usage_bars import drawn
from tarazu.panel.visits import Visit
from tarazu.service.back_office import BackOffice
from tarazu.service.configuration.addresses import API_PATH
from tarazu.service.key_acts import IssuedKey
from tarazu.service.provisioning import Provisioning
from tarazu.service.reports import KeyLine, UsageReport, key_line, key_list, usage_report
from tarazu.store.usage import Part


class KeyPages:
    """The pages of an account's keys. A key of another account does not exist here.

    `base_url` is where callers reach the service.
    """

    def __init__(self, office: BackOffice, base_url: str) -> None:
        self._office = office
        self._api_url = base_url + API_PATH

    async def list(self, visit: Visit) -> Response:
        """List the keys that are looked for, the newest first."""
        sought, query = key_query(visit)
        page, zone, now_ms = visit.number("page"), self._office.catalogue.zone, self._office.clock()
        found = await self._office.look(
            lambda connection: key_list(connection, visit.someone.id, zone, now_ms, sought, page=page)
        )
        return visit.page("keys.html", found=found, query=query)

    async def ask(self, visit: Visit) -> Response:
        """Ask for what a new key is to be."""
        return visit.page("key_new.html", models=await self._models(visit), expiries=expiry_choices(visit.formats))

    async def create(self, visit: Visit) -> Response:
        """Create a key, which is shown once."""
        terms = KeyTerms.of(visit, await self._models(visit))
        issued = await act(self._office, visit, lambda books: terms.create(books, visit.someone.id))
        return show_key_once(visit, f"/keys/{issued.key.id}/shown", issued)

    async def show(self, visit: Visit) -> Response:
        """Show one key, with what can be done to it."""
        key_id, now_ms, catalogue = visit.part("key_id"), self._office.clock(), self._office.catalogue

        def look(connection: Connection) -> tuple[KeyLine, UsageReport]:
            account_id, part = visit.someone.id, Part(key_id=key_id)
            key = key_line(connection, account_id, key_id, catalogue.zone, now_ms)
            return key, usage_report(connection, account_id, catalogue, now_ms, part=part)

        key, usage = await self._office.look(look)
        return visit.page("key.html", key=key, usage=usage, drawn=drawn(usage, visit.formats), graces_s=GRACES_S)

    async def edit(self, visit: Visit) -> Response:
        """Ask for what a key is to be called and may do."""
        key, models = await self._line(visit), await self._models(visit)
        return visit.page("key_edit.html", key=key, models=models, expiries=expiry_choices(visit.formats, key))

    async def change(self, visit: Visit) -> Response:
        """Change it, from the next request on."""
        key = await self._line(visit)
        terms = KeyTerms.of(visit, await self._models(visit), key)
        await act(self._office, visit, lambda books: terms.change(books, key, visit.someone.id))
        return visit.done(f"/keys/{key.id}", "key-changed")

    async def pause(self, visit: Visit) -> Response:
        """Let requests with a key be refused until it is resumed."""
        key_id, account_id = visit.part("key_id"), visit.someone.id
        await act(self._office, visit, lambda books: books.pause_key(key_id, account_id=account_id))
        return visit.done(f"/keys/{key_id}", "key-paused")

    async def resume(self, visit: Visit) -> Response:
        """Let a key work again."""
        key_id, account_id = visit.part("key_id"), visit.someone.id
        await act(self._office, visit, lambda books: books.resume_key(key_id, account_id=account_id))
        return visit.done(f"/keys/{key_id}", "key-resumed")

    async def replace(self, visit: Visit) -> Response:
        """Create a key in the place of another, which ends now or after a while; it is shown once."""
        key_id, account_id, grace_s = visit.part("key_id"), visit.someone.id, read_grace(visit.form)

        def replace(books: Provisioning) -> IssuedKey:
            return books.replace_key(key_id, grace_s=grace_s, account_id=account_id)

        issued = await act(self._office, visit, replace)
        return show_key_once(visit, f"/keys/{issued.key.id}/shown", issued, grace_s)

    async def shown(self, visit: Visit) -> Response:
        """Show a new key, until the page is left."""
        return await self._show(visit, "key_shown.html", sample=list_samples(self._api_url)[0].source)

    async def leave(self, visit: Visit) -> Response:
        """Forget the new key."""
        await self._line(visit)
        return visit.leave("/keys")

    async def revoke(self, visit: Visit) -> Response:
        """End a key now."""
        key_id, account_id = visit.part("key_id"), visit.someone.id
        await act(self._office, visit, lambda books: books.revoke_key(key_id, account_id=account_id))
        return visit.done("/keys", "key-revoked")

    async def _show(self, visit: Visit, template: str, **values: object) -> Response:
        return visit.page(template, key=await self._line(visit), **values)

    async def _line(self, visit: Visit) -> KeyLine:
        key_id, zone, now_ms = visit.part("key_id"), self._office.catalogue.zone, self._office.clock()
        return await self._office.look(lambda connection: key_line(connection, visit.someone.id, key_id, zone, now_ms))

    async def _models(self, visit: Visit) -> tuple[Model, ...]:
        account = await act(self._office, visit, lambda books: books.account(visit.someone.id))
        return offered_models(account, self._office.catalogue)
