"""The history in a real browser: narrowed by its form, turned, opened, and taken along as a file."""

import csv
from io import StringIO

from playwright.sync_api import Browser

from tests.support.browser import PERSIAN, Spoken, Visitor, visiting, with_key
from tests.support.service import RunningService

SPOKEN = PERSIAN
PASSWORD = "a sentence to remember"


def test_a_history_is_narrowed_and_downloaded(
    browser: Browser, service: RunningService, base_url: str, spoken: Spoken
) -> None:
    """By the form, kept over the next page; the file has the same requests, and names that are not Latin."""
    account = service.provisioning.create_account(
        name="Reader", email=f"reader.{spoken.language}@example.com", plan="large"
    )
    other, asked = (service.provisioning.create_key(account.id, name=name) for name in ("other", "سرور"))
    for key, times in ((other, 2), (asked, 27)):
        for _ in range(times):
            assert service.chat(with_key(key.secret)).status == 200
    link = service.provisioning.invite_holder(account.id).link(base_url)
    with visiting(browser, base_url, locale=spoken.locale) as visitor:
        visitor.accept(link, PASSWORD)
        visitor.open("/panel/history")
        page = visitor.page
        page.select_option("#key", asked.key.id)
        page.select_option("#outcome", "succeeded")
        page.fill("#from", "1400/01/01")
        page.locator("form:has(#key) button").click()
        page.wait_for_url("**key=key_**")
        assert page.locator("tbody tr").count() == 25
        visitor.assert_readable()
        page.locator("tbody tr summary").first.click()
        assert asked.key.id in page.inner_text("tbody tr:first-child")
        assert _file(visitor) == 27
        page.locator(".pager a").last.click()
        page.wait_for_url("**before=**")
        assert page.locator("tbody tr").count() == 2
        assert page.input_value("#key") == asked.key.id
        assert page.input_value("#from") == "1400/01/01"


def _file(visitor: Visitor) -> int:
    """Download the requests; answer with their number, all of the one key."""
    with visitor.page.expect_download() as download:
        visitor.page.locator('a[href*="/history.csv"]').click()
    text = download.value.path().read_text(encoding="utf-8")
    assert text.startswith("\ufeff")
    lines = list(csv.DictReader(StringIO(text.removeprefix("\ufeff"))))
    assert {line["key"] for line in lines} == {"سرور"}
    return len(lines)
