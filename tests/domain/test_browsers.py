"""What browsers call themselves, in words."""

import pytest

from tarazu.domain.browsers import browser_words

MOZILLA = "Mozilla/5.0"


@pytest.mark.parametrize(
    ("user_agent", "words"),
    [
        (f"{MOZILLA} (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox, Linux"),
        (f"{MOZILLA} (Windows NT 10.0) AppleWebKit/537.36 (KHTML) Chrome/140.0 Safari/537.36", "Chrome, Windows"),
        (f"{MOZILLA} (Windows NT 10.0) AppleWebKit/537.36 Chrome/140.0 Safari/537.36 Edg/140.0", "Edge, Windows"),
        (f"{MOZILLA} (Macintosh; Intel Mac OS X 10_15) Version/18.0 Safari/605.1", "Safari, macOS"),
        (f"{MOZILLA} (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Safari/604.1", "Safari, iPhone"),
        (f"{MOZILLA} (Linux; Android 15) AppleWebKit/537.36 Chrome/140.0 Mobile Safari/537.36", "Chrome, Android"),
        ("curl/8.5.0", "curl"),
        ("x" * 600 + "Firefox/1", None),
        ("", None),
        ("<script>", None),
    ],
)
def test_browser_and_system_are_told(user_agent: str, words: str | None) -> None:
    """Of what is not known nothing is repeated."""
    assert browser_words(user_agent) == words
