"""All operations of the admin API, in the order in which they are described."""

from tarazu.api.admin import accounts, audit, backends, catalogue, credits, holders, intake, keys, requests, trail  # noqa: A004 - a noun
from tarazu.api.admin.route import Route

ROUTES: tuple[Route, ...] = (
    *accounts.ROUTES,
    *holders.ROUTES,
    *keys.ROUTES,
    *credits.ROUTES,
    *requests.ROUTES,
    *intake.ROUTES,
    *catalogue.ROUTES,
    *backends.ROUTES,
    *audit.ROUTES,
    *trail.ROUTES,
)
