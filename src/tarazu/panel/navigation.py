"""Where the pages of each site lead: its first level, as it stands at the side of every page."""

from msgspec import Struct

from tarazu.panel.messages import later
from tarazu.panel.sites import HOLDERS, OPERATORS, Site


class Place(Struct, frozen=True):
    """One line of the navigation. `icon` is the name of a drawing in `icons.html`."""

    path: str
    label: str
    icon: str

    def holds(self, path: str) -> bool:
        """Tell whether a page is this one or under it."""
        return path == self.path or (self.path != "/" and path.startswith(f"{self.path}/"))


SETTINGS = Place("/settings", later("Settings"), "settings")

PLACES: dict[Site, tuple[Place, ...]] = {
    HOLDERS: (
        Place("/", later("Overview"), "overview"),
        Place("/keys", later("Keys"), "keys"),
        Place("/models", later("Models"), "models"),
        Place("/playground", later("Playground"), "playground"),
        Place("/history", later("History"), "history"),
        Place("/credits", later("Credits"), "credits"),
        SETTINGS,
    ),
    OPERATORS: (
        Place("/", later("Dashboard"), "overview"),
        Place("/accounts", later("Accounts"), "accounts"),
        Place("/intake", later("Traffic switch"), "switch"),
        Place("/catalogue", later("Catalogue"), "models"),
        Place("/audit", later("Audit"), "audit"),
        Place("/trail", later("Activity log"), "trail"),
        SETTINGS,
    ),
}
