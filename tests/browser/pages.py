"""Every page of the panel and of the operators, with something to see on each."""

from collections.abc import Callable

from msgspec import Struct

from tests.support.service import Customer, RunningService

PASSWORD = "a sentence to remember"
HOLDER_PAGES = (
    "/panel/",
    "/panel/keys",
    "/panel/keys/new",
    "/panel/keys/{key_id}",
    "/panel/models",
    "/panel/models/test/one",
    "/panel/playground",
    "/panel/history",
    "/panel/credits",
    "/panel/settings",
    "/panel/settings/second-factor",
)
OPERATOR_PAGES = (
    "/admin/",
    "/admin/accounts",
    "/admin/accounts/new",
    "/admin/accounts/{account_id}",
    "/admin/accounts/{account_id}/credits",
    "/admin/accounts/{account_id}/keys",
    "/admin/accounts/{account_id}/keys/new",
    "/admin/accounts/{account_id}/keys/{key_id}",
    "/admin/accounts/{account_id}/requests",
    "/admin/accounts/{account_id}/trail",
    "/admin/intake",
    "/admin/catalogue",
    "/admin/audit",
    "/admin/trail",
    "/admin/settings",
    "/admin/settings/second-factor",
)
OPEN_PAGES = (
    "/panel/sign-in",
    "/admin/sign-in",
    "/panel/invitation/none",
)


class Inhabitants(Struct, frozen=True):
    """Who is in the books: a customer with a history, one without, and an operator; the links that let them in."""

    customer: Customer
    holder_link: str
    newcomer_link: str
    operator_link: str

    def path(self, page: str) -> str:
        """Put the ids of the customer into a page's path."""
        return page.format(account_id=self.customer.account_id, key_id=self.customer.key_id)


def settle(
    service: RunningService,
    base_url: str,
    *,
    live: Callable[[Customer], None] = lambda _: None,
    number: int = 1,
    name: str = "Sara Kamali",
) -> Inhabitants:
    """Let some people live in the books, of which there may be several groups.

    `live` is what the customer does before all are invited.
    """
    of = "" if number == 1 else str(number)
    books = service.provisioning
    account = books.create_account(name=name, email=f"sara{of}@example.com", plan="large")
    issued = books.create_key(account.id, name="laptop")
    customer = Customer(account.id, issued.key.id, issued.secret)
    books.create_key(account.id, name="night job", models=["test/one"], limit_per_minute=10, expires_in_s=30 * 86_400)
    books.revoke_key(books.create_key(account.id, name="old phone").key.id)
    books.add_credit(account.id, 2_500, reference=f"invoice {number}", note="Paid by card")
    books.adjust_credit(account.id, -50, reason="Counted twice")
    for model in ("test/one", "test/two", "test/free") * 3:
        assert service.chat(customer, model=model).status == 200
    live(customer)
    newcomer = books.create_account(name="Nima", email=f"nima{of}@example.com")
    _, invitation = books.create_operator(email=f"ada{of}@example.com", name="Ada")
    return Inhabitants(
        customer,
        books.invite_holder(account.id).link(base_url),
        books.invite_holder(newcomer.id).link(base_url),
        invitation.link(base_url),
    )
