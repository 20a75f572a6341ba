"""The keys of one account, as its operators see them: list, create, show once, change, pause, replace, revoke."""

from msgspec import Struct
from sqlalchemy import Connection
from starlette.responses import Response

from tarazu.domain.accounts import Account
from tarazu.panel.acting import act
from tarazu.panel.holders.offer import offered_models
from tarazu.panel.key_forms import GRACES_S, KeyTerms, expiry_choices, key_query, read_grace, show_key_once
from tarazu.panel.usage_bars import drawn
from tarazu.panel.visits import Visit
from tarazu.service.back_office import BackOffice
from tarazu.service.finding import existing_account
from tarazu.service.key_acts import IssuedKey
from tarazu.service.provisioning import Provisioning
from tarazu.service.reports import KeyLine, KeyList, UsageReport, key_line, key_list, usage_report
from tarazu.store.usage import Part


class KeyGlance(Struct, frozen=True):
    """A key, and whose it is."""

    account: Account
    key: KeyLine


class AccountKeysPages:
    """The pages of an account's keys. A key of another account than the address names does not exist there."""

    def __init__(self, office: BackOffice) -> None:
        self._office = office

    async def list(self, visit: Visit) -> Response:
        """List the keys that are looked for, the newest first."""
        account_id, (sought, query) = visit.part("account_id"), key_query(visit)
        page, zone, now_ms = visit.number("page"), self._office.catalogue.zone, self._office.clock()

        def look(connection: Connection) -> tuple[Account, KeyList]:
            found = key_list(connection, account_id, zone, now_ms, sought, page=page)
            return existing_account(connection, account_id), found

        account, found = await self._office.look(look)
        return visit.page("operators/account_keys.html", account=account, found=found, query=query)

    async def ask(self, visit: Visit) -> Response:
        """Ask for what a new key is to be."""
        account = await self._account(visit)
        models = offered_models(account, self._office.catalogue)
        return visit.page(
            "operators/account_key_new.html", account=account, models=models, expiries=expiry_choices(visit.formats)
        )

    async def create(self, visit: Visit) -> Response:
        """Create a key, which is shown once."""
        account = await self._account(visit)
        terms = KeyTerms.of(visit, offered_models(account, self._office.catalogue))
        issued = await act(self._office, visit, lambda books: terms.create(books, account.id))
        return show_key_once(visit, f"/accounts/{account.id}/keys/{issued.key.id}/shown", issued)

    async def show(self, visit: Visit) -> Response:
        """Show one key, with what can be done to it."""
        account_id, key_id = visit.part("account_id"), visit.part("key_id")
        catalogue, now_ms = self._office.catalogue, self._office.clock()

        def look(connection: Connection) -> tuple[Account, KeyLine, UsageReport]:
            account = existing_account(connection, account_id)
            key = key_line(connection, account_id, key_id, catalogue.zone, now_ms)
            return account, key, usage_report(connection, account_id, catalogue, now_ms, part=Part(key_id=key_id))

        account, key, usage = await self._office.look(look)
        return visit.page(
            "operators/account_key.html",
            account=account,
            key=key,
            usage=usage,
            drawn=drawn(usage, visit.formats),
            graces_s=GRACES_S,
        )

    async def edit(self, visit: Visit) -> Response:
        """Ask for what a key is to be called and may do."""
        found = await self._glance(visit)
        models = offered_models(found.account, self._office.catalogue)
        return visit.page(
            "operators/account_key_edit.html",
            account=found.account,
            key=found.key,
            models=models,
            expiries=expiry_choices(visit.formats, found.key),
        )

    async def change(self, visit: Visit) -> Response:
        """Change it, from the next request on."""
        found = await self._glance(visit)
        terms = KeyTerms.of(visit, offered_models(found.account, self._office.catalogue), found.key)
        await act(self._office, visit, lambda books: terms.change(books, found.key, found.account.id))
        return visit.done(f"/accounts/{found.account.id}/keys/{found.key.id}", "key-changed")

    async def pause(self, visit: Visit) -> Response:
        """Let requests with a key be refused until it is resumed."""
        account_id, key_id = visit.part("account_id"), visit.part("key_id")
        await act(self._office, visit, lambda books: books.pause_key(key_id, account_id=account_id))
        return visit.done(f"/accounts/{account_id}/keys/{key_id}", "key-paused")

    async def resume(self, visit: Visit) -> Response:
        """Let a key work again."""
        account_id, key_id = visit.part("account_id"), visit.part("key_id")
        await act(self._office, visit, lambda books: books.resume_key(key_id, account_id=account_id))
        return visit.done(f"/accounts/{account_id}/keys/{key_id}", "key-resumed")

    async def replace(self, visit: Visit) -> Response:
        """Create a key in the place of another, which ends now or after a while; it is shown once."""
        account_id, key_id, grace_s = visit.part("account_id"), visit.part("key_id"), read_grace(visit.form)

        def replace(books: Provisioning) -> IssuedKey:
            return books.replace_key(key_id, grace_s=grace_s, account_id=account_id)

        issued = await act(self._office, visit, replace)
        return show_key_once(visit, f"/accounts/{account_id}/keys/{issued.key.id}/shown", issued, grace_s)

    async def shown(self, visit: Visit) -> Response:
        """Show a new key, until the page is left."""
        found = await self._glance(visit)
        return visit.page("operators/account_key_shown.html", account=found.account, key=found.key)

    async def leave(self, visit: Visit) -> Response:
        """Forget the new key."""
        await self._glance(visit)
        return visit.leave(f"/accounts/{visit.part('account_id')}/keys")

    async def revoke(self, visit: Visit) -> Response:
        """End a key now."""
        account_id, key_id = visit.part("account_id"), visit.part("key_id")
        await act(self._office, visit, lambda books: books.revoke_key(key_id, account_id=account_id))
        return visit.done(f"/accounts/{account_id}/keys", "key-revoked")

    async def _glance(self, visit: Visit) -> KeyGlance:
        account_id, key_id = visit.part("account_id"), visit.part("key_id")
        zone, now_ms = self._office.catalogue.zone, self._office.clock()

        def look(connection: Connection) -> KeyGlance:
            account = existing_account(connection, account_id)
            return KeyGlance(account, key_line(connection, account_id, key_id, zone, now_ms))

        return await self._office.look(look)

    async def _account(self, visit: Visit) -> Account:
        return await act(self._office, visit, lambda books: books.account(visit.part("account_id")))
