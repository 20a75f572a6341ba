"""What operators choose from in forms about accounts."""

from tarazu.domain.accounts import AccountStatus
from tarazu.panel.formats import Formats
from tarazu.panel.language import Language
from tarazu.panel.operators.choices import plan_choices, status_choices
from tests.support.values import make_catalogue

ENGLISH, PERSIAN = Formats(Language.ENGLISH), Formats(Language.PERSIAN)


def test_no_plan_comes_first_and_a_plan_that_is_sold_no_more_last() -> None:
    """So an account keeps it as long as nobody chooses another."""
    catalogue = make_catalogue()
    names = list(catalogue.plans)
    assert plan_choices(catalogue, ENGLISH) == [("", "no plan"), *((name, name) for name in names)]
    assert [value for value, _ in plan_choices(catalogue, PERSIAN, "old")] == ["", *names, "old"]
    assert [value for value, _ in plan_choices(catalogue, PERSIAN, names[0])] == ["", *names]


def test_every_status_can_be_chosen_by_its_word() -> None:
    """In either language."""
    assert [value for value, _ in status_choices(ENGLISH)] == [status.value for status in AccountStatus]
    words = dict(status_choices(PERSIAN))
    assert words["blocked"] == "مسدود"
    assert len(set(words.values())) == len(AccountStatus)
