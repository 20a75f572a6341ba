"""Turn templates into pages: strictly, with everything escaped, in the reader's language."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from tarazu.domain.search_form import NORMAL_FORM, READ, UNREAD, WRITTEN
from tarazu.panel.charts import bar_chart, meter
from tarazu.panel.formats import isolated
from tarazu.panel.kept import Kind
from tarazu.panel.language import Language
from tarazu.panel.messages import filled_in, translations
from tarazu.panel.navigation import PLACES
from tarazu.panel.notices import NOTICE, NOTICES, WARNINGS, WITH_FIGURES
from tarazu.panel.static_files import static_file

if TYPE_CHECKING:
    from tarazu.panel.visits import Visit


def render(template: str, visit: Visit, values: Mapping[str, object]) -> str:
    """Make a page of a template. Beside `values` it knows the visit, and how to write in its language."""
    done = visit.form.text(NOTICE) if visit.kept.kind is Kind.DONE else ""
    return (
        environment(visit.formats.language)
        .get_template(template)
        .render(
            values,
            visit=visit,
            person=visit.person,
            f=visit.formats,
            url=visit.site.url,
            places=PLACES[visit.site],
            notice=_notice(visit),
            is_warning=done in WARNINGS,
            refusal=values.get("refusal", visit.refusal),
        )
    )


def _notice(visit: Visit) -> str | None:
    """Say what a form has done, with its figures where it is kept for this session alone."""
    done, kind = visit.form.text(NOTICE), visit.kept.kind
    if kind is Kind.TOLD and done in WITH_FIGURES:
        figures = {name: int(value) for name, value in visit.form.fields if name != NOTICE}
        return filled_in(WITH_FIGURES[done], figures, visit.formats)
    return filled_in(NOTICES[done], {}, visit.formats) if kind is Kind.DONE and done in NOTICES else None


@lru_cache
def environment(language: Language) -> Environment:
    """Make what knows the templates, for one language."""
    made = Environment(
        autoescape=True,
        extensions=["jinja2.ext.i18n"],
        loader=PackageLoader("tarazu.panel"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    i18n: Any = made
    i18n.install_gettext_translations(translations(language), newstyle=True)
    made.policies["ext.i18n.trimmed"] = True
    made.filters["isolated"] = isolated
    made.globals.update(
        language=language,
        languages=tuple(Language),
        is_rtl=language.direction == "rtl",
        bar_chart=bar_chart,
        meter=meter,
        search_form={"form": NORMAL_FORM, "written": WRITTEN, "read": READ, "unread": UNREAD},
        version=lambda name: static_file(name).version,
    )
    return made
