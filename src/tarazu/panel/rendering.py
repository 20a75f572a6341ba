"""Turn templates into pages: strictly, with everything escaped, in the reader's language."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from tarazu.panel.charts import bar_chart, meter
from tarazu.panel.kept import Kind
from tarazu.panel.language import Language
from tarazu.panel.messages import translations
from tarazu.panel.navigation import PLACES
from tarazu.panel.notices import NOTICE, NOTICES, WARNINGS
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
            notice=NOTICES.get(done),
            is_warning=done in WARNINGS,
            refusal=values.get("refusal", visit.refusal),
        )
    )


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
    made.globals.update(
        language=language,
        languages=tuple(Language),
        is_rtl=language.direction == "rtl",
        bar_chart=bar_chart,
        meter=meter,
        version=lambda name: static_file(name).version,
    )
    return made
