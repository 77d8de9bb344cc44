"""What ``docs/extend.md`` lists for a new retrieval source, page and kind of fact is there for each that exists."""

from pathlib import Path
from typing import get_args

from api.pages.rendering import HtmlRoute
from api.routes import pages, sources, tokens
from nornweave.ask.search.records import RetrievalSource
from nornweave.config.domain import SourceWeights
from nornweave.core.types import Attribute

DOCS = Path(__file__).parents[2] / "docs"
LISTED = "docs/extend.md lists what else a new one needs"


def lines_of(page: str) -> list[str]:
    return (DOCS / page).read_text(encoding="utf-8").splitlines()


def test_each_retrieval_source_has_a_weight_and_a_row_of_its_own() -> None:
    names = {source.value for source in RetrievalSource}
    assert set(SourceWeights.model_fields) == names, LISTED
    rows = {line.split("|")[1].strip() for line in lines_of("recall.md") if line.startswith("|")}
    assert names - rows == set(), LISTED


def test_each_page_is_described() -> None:
    """A page has its data at the same address with ``.json``, or shares its address with an operation."""
    described = "\n".join(lines_of("pages.md"))
    routes = [*pages.routes, *sources.routes, *tokens.routes]
    paths = {route.path for route in routes}
    shown = {route.path for route in routes if f"{route.path}.json" in paths or isinstance(route, HtmlRoute)}
    assert {"/", "/conflicts"} <= shown
    assert {path for path in shown if f"`{path}`" not in described} == set(), LISTED


def test_the_page_about_facts_names_each_kind() -> None:
    page = "\n".join(lines_of("fusion.md"))
    assert {kind for kind in get_args(Attribute) if kind not in page} == set(), LISTED
