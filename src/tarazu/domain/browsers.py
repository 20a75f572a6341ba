"""What browsers call themselves, in two words that people know. Pure."""

USER_AGENT_LENGTH_MAX = 512
"""No further is looked."""

_BROWSERS = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chromium/", "Chromium"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
    ("curl/", "curl"),
)
"""The first that is found is it: most name others too, for the sake of old servers."""
_SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("CrOS", "ChromeOS"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)


def browser_words(user_agent: str) -> str | None:
    """Tell browser and system, as in `Firefox, Linux`; None where neither is known."""
    text = user_agent[:USER_AGENT_LENGTH_MAX]
    found = (next((word for sign, word in known if sign in text), None) for known in (_BROWSERS, _SYSTEMS))
    return ", ".join(word for word in found if word is not None) or None
