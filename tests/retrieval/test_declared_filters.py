"""Declared filters: read from every origin, exact against brute force, new ones without embedding, counted, named."""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from configurations import configured, files
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from postgres_server import PostgresServer, postgres_server
from recall_workspace import NO_MODELS, agent_of, opened, publish

from nornweave.ask.search.filters import parse_filter_options, read_filters
from nornweave.ask.search.question import Question
from nornweave.carry.postgresql.server import close_idle
from nornweave.carry.wiring import store_of
from nornweave.config import Settings
from nornweave.core.access import OPERATOR
from nornweave.core.errors import QueryError
from nornweave.core.types import Domain, present
from nornweave.index.index import Index
from nornweave.ingest.pipeline import run
from nornweave.ingest.records import SyncOptions, SyncReport
from nornweave.ingest.wiring import domain_parts

DOCS = Domain.DOCUMENTATION
FILTERS: list[dict[str, Any]] = [
    {"key": "environment", "type": "keyword", "from": "front_matter.environment"},
    {"key": "severity", "type": "integer", "from": ["metadata.severity", "front_matter.severity"]},
    {"key": "load", "type": "number", "from": "metadata.load"},
    {"key": "public", "type": "boolean", "from": "front_matter.public"},
    {"key": "reviewed", "type": "date", "from": "front_matter.review.date"},
    {"key": "service", "type": "keyword", "from": "path:services/{service}/**"},
    {"key": "place", "type": "keyword", "from": "source.id"},
    {"key": "kind", "type": "keyword", "from": "source.type"},
]
FILES = {
    "services/billing/run.md": (
        "---\nEnvironment: Prod\nseverity: 3\npublic: yes\nreview: {date: 2026-01-15}\n---\n# R\n\nDo."
    ),
    "services/billing/deep/stage.md": "---\nenvironment: [staging, prod]\nseverity: high\n---\n# Stage\n\nTry.",
    "services/cards/a.rst": "A card\n======\n\n:severity: 1\n:environment: staging\n\nSay it.",
    "b.html": "<head><meta name='environment' content='prod'></head><body><h1>B</h1><p>Say more.</p>",
    "plain.txt": "Nothing is stated here.",
}
SIDECAR = {
    "plain.txt": {"severity": 9, "load": 0.5},
    "b.html": {"load": "7e-1"},
    "services/cards/a.rst": {"load": [1, 2]},
}


def write(
    folder: Path, filters: list[dict[str, Any]] | None = FILTERS, domain: Domain = DOCS, storage: str = ""
) -> Settings:
    for path, text in FILES.items():
        (folder / "docs" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "docs" / path).write_text(text)
    (folder / "side.json").write_text(json.dumps(SIDECAR))
    overrides = {**NO_MODELS, **({} if filters is None else {"filters": filters})}
    keys = {"storage": {"url": storage}} if storage else {}
    return configured(folder, files("handbook", domain, "docs", metadata="side.json"), domain=overrides, **keys)


def synced(settings: Settings) -> SyncReport:
    return run(domain_parts(settings, DOCS), SyncOptions(run_id="test", wait_s=0))


def found(settings: Settings, generation: Index, **values: Any) -> set[str]:
    """Return the paths of the documents whose chunks pass, all of whose chunks do."""
    conditions = read_filters(settings.domains[DOCS].filters, values, "filters.documentation")
    mask = generation.within(conditions)
    chunks = generation.chunks(np.flatnonzero(mask).astype(np.int32))
    return {chunk.path for chunk in chunks.values()}


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with pytest.MonkeyPatch.context() as patch, postgres_server(patch) as running:
        yield running
        close_idle()


@pytest.fixture(scope="module", params=["files", "postgresql"])
def settings(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    in_server = request.param == "postgresql"
    storage = request.getfixturevalue("server").url if in_server else ""
    settings = write(tmp_path_factory.mktemp("declared"), storage=storage)
    publish(settings, DOCS)
    return settings


@pytest.fixture(scope="module")
def generation(settings: Settings) -> Iterator[Index]:
    store = store_of(settings, DOCS)
    current = store.current()
    assert current
    with store.files.open(current) as generation:
        yield generation


RUN, STAGE, CARDS, HTML, PLAIN = sorted(FILES, key=list(FILES).index)


@pytest.mark.parametrize(("values", "paths"), [
    ({"environment": "prod"}, {RUN, STAGE, HTML}), ({"environment": "PROD"}, {RUN, STAGE, HTML}),
    ({"environment": ["staging"]}, {STAGE, CARDS}),
    ({"environment": ["staging", "prod"]}, {RUN, STAGE, CARDS, HTML}), ({"environment": "pro"}, set()),
    ({"severity": 3}, {RUN}), ({"severity": [1, 9]}, {CARDS, PLAIN}), ({"severity": {"min": 2}}, {RUN, PLAIN}),
    ({"severity": {"min": 1, "max": 3}}, {RUN, CARDS}), ({"severity": {"max": 0}}, set()),
    ({"load": {"min": 0.6}}, {HTML, CARDS}), ({"load": 0.5}, {PLAIN}), ({"load": 2}, {CARDS}),
    ({"public": True}, {RUN}), ({"public": False}, set()), ({"reviewed": "2026-01-15"}, {RUN}),
    ({"reviewed": {"start": "2026-01-15T12:00:00Z"}}, {RUN}), ({"reviewed": {"start": "2026-01-16"}}, set()),
    ({"service": "billing"}, {RUN, STAGE}),
    ({"service": ["cards", "billing"], "environment": "staging"}, {STAGE, CARDS}),
    ({"place": "handbook"}, set(FILES)), ({"kind": "files"}, set(FILES)), ({"kind": "inbox"}, set()),
])  # fmt: skip
def test_every_origin_and_type_is_found_exactly(
    settings: Settings, generation: Index, values: dict[str, Any], paths: set[str]
) -> None:
    assert found(settings, generation, **values) == paths


def test_an_error_category_reaches_expansion(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("---\nerror_category: INFRA_ERROR\n---\n# Payment\n\nThe deployment fails.")
    settings = write(tmp_path, None)
    publish(settings, DOCS)
    with ThreadPoolExecutor(4) as executor, agent_of(settings, DOCS, executor) as agent:
        question = Question(
            text="payment is down",
            now=present(),
            viewer=OPERATOR,
            filters={DOCS: {"error_category": "infra_error"}},
            expand="on",
        )
        response = agent.recall(question)
    assert "payment is down infrastructure" in response.expansions
    assert [item.citation.source_path for item in response.items] == ["a.md"]


def test_describe_counts_values_and_names_what_could_not_be_read(settings: Settings) -> None:
    with ThreadPoolExecutor(4) as executor, agent_of(settings, DOCS, executor) as agent:
        described: Any = agent.describe(OPERATOR)
        facets = agent.facets(OPERATOR)
    filters = {each["key"]: each for each in described["filters"]}
    assert filters["environment"] == {
        "key": "environment",
        "type": "keyword",
        "from": ["front_matter.environment"],
        "documents": 4,
        "distinct_values": 2,
        "values": [{"value": "prod", "documents": 3, "chunks": 3}, {"value": "staging", "documents": 2, "chunks": 2}],
    }
    severity = filters["severity"]
    assert (severity["documents"], severity["min"], severity["max"]) == (3, 1, 9)
    assert [each["value"] for each in severity["values"]] == [1, 3, 9]
    assert severity["unread"] == {
        "documents": 1,
        "examples": [{"source_path": STAGE, "value": '"high"', "reason": "expected an integer from -2^53 to 2^53"}],
    }
    assert filters["reviewed"]["values"] == [{"value": "2026-01-15", "documents": 1, "chunks": 1}]
    assert filters["category"]["documents"] == 0
    assert facets["environment"] == [("prod", 3), ("staging", 2)]
    assert facets["severity"] == [("1", 1), ("3", 1), ("9", 1)]


def test_a_new_filter_is_indexed_without_reading_or_embedding_anything(tmp_path: Path) -> None:
    settings = write(tmp_path, None)
    first = synced(settings)
    assert first.embedded > 0
    assert synced(settings).published is False
    settings = write(tmp_path, FILTERS)
    with ThreadPoolExecutor(2) as executor, agent_of(settings, DOCS, executor) as agent:
        question = Question(text="say", now=present(), viewer=OPERATOR, filters={DOCS: {"service": "cards"}})
        before = agent.recall(question)
        assert before.items == ()
        assert "filters were declared anew" in " ".join(before.notices)
        report = synced(settings)
        assert (report.published, report.embedded, report.added, report.changed) == (True, 0, 0, 0)
        assert report.unchanged == len(FILES)
        agent.refresh()
        after = agent.recall(question)
        assert {item.citation.source_path for item in after.items} == {CARDS}
        assert after.notices == ()
    assert synced(settings).published is False
    changed = [*FILTERS[:-3], {"key": "service", "type": "keyword", "from": "path:**/{service}.md"}]
    report = synced(write(tmp_path, changed))
    assert (report.published, report.embedded) == (True, 0)


@pytest.mark.parametrize(("values", "said"), [
    ({"severity": "3"}, "filters.documentation.severity: expected an integer"),
    ({"severity": 2.5}, "expected an integer"),
    ({"severity": True}, "expected an integer"),
    ({"severity": []}, "has 0 values"),
    ({"severity": {"least": 1}}, "severity.least: no such key; allowed here: max, min"),
    ({"severity": {}}, "is empty"),
    ({"severity": {"min": 3, "max": 1}}, "starts at 3, above its end at 1"),
    ({"load": math.inf}, "expected a number"),
    ({"environment": 3}, "expected a string or a list of strings, found 3"),
    ({"environment": " "}, "is blank"),
    ({"public": "true"}, "expected true or false, found 'true'"),
    ({"reviewed": "soon"}, "is not a date"),
    ({"reviewed": 3}, "expected an ISO 8601 date"),
    ({"team": "a"}, "no such filter; allowed here: category, confidence, environment"),
])  # fmt: skip
def test_wrong_values_are_named(settings: Settings, values: dict[str, Any], said: str) -> None:
    with pytest.raises(QueryError, match=said.replace(".", r"\.")):
        read_filters(settings.domains[DOCS].filters, values, "filters.documentation")


def test_filters_of_the_command_line_say_the_same(settings: Settings) -> None:
    declared = {domain: settings.domains[domain].filters for domain in Domain}
    options = [
        "environment=prod,staging",
        "severity=2..4",
        "load=..1.5",
        "public=TRUE",
        "reviewed=2026-01-01..",
        "service=a",
    ]
    parsed = parse_filter_options([f"documentation.{each}" for each in options], declared)
    assert parsed[DOCS] == {
        "environment": ["prod", "staging"],
        "severity": {"min": 2, "max": 4},
        "load": {"max": 1.5},
        "public": True,
        "reviewed": {"start": "2026-01-01"},
        "service": ["a"],
    }
    assert parse_filter_options(["documentation.severity=3", "documentation.severity=4"], declared)[DOCS] == {
        "severity": [3, 4]
    }
    for wrong, said in (("severity=high", "'high' is not an integer"), ("public=yes", "'yes' is not a boolean")):
        with pytest.raises(QueryError, match=said):
            parse_filter_options([f"documentation.{wrong}"], declared)


# Random documents, a value of each type in side files, against a plain reading of the same metadata.
WORDS = ("prod", "Prod", "staging", "dev", "x y", "é", "")
SAID: Mapping[str, st.SearchStrategy[Any]] = {
    "word": st.one_of(
        st.sampled_from(WORDS), st.lists(st.sampled_from(WORDS), max_size=3), st.integers(0, 3), st.none()
    ),
    "whole": st.one_of(st.integers(-3, 3), st.sampled_from(["2", "two", " 1 ", 2.0, 2.5, True, None])),
    "part": st.one_of(st.floats(-2, 2), st.sampled_from([1, "0.5", "x", False]), st.lists(st.floats(0, 1), max_size=2)),
    "flag": st.sampled_from([True, False, "true", "FALSE", "yes", 1, None]),
    "day": st.sampled_from(["2026-01-01", "2026-01", "2026", "2026-01-01T12:00:00Z", "soon", 2026, None]),
}
TYPES = {"word": "keyword", "whole": "integer", "part": "number", "flag": "boolean", "day": "date"}
ASKED: Mapping[str, st.SearchStrategy[Any]] = {
    "word": st.lists(st.sampled_from([word for word in WORDS if word]), min_size=1, max_size=2),
    "whole": st.one_of(st.integers(-3, 3), st.fixed_dictionaries({"min": st.integers(-3, 3)})),
    "part": st.one_of(st.floats(-2, 2), st.fixed_dictionaries({"max": st.floats(-2, 2)})),
    "flag": st.booleans(),
    "day": st.sampled_from(["2026-01-01", "2025-12-31", "2026-06-01"]),
}


def _members(said: Any) -> list[Any]:
    return said if isinstance(said, list) else [said]


def _numeric(said: Any, whole: bool) -> float | None:
    if isinstance(said, bool) or said is None:
        return None
    try:
        number = float(said)
    except ValueError:
        return None
    return None if whole and not number.is_integer() else number


def _number_meets(said: Any, asked: Any, whole: bool) -> bool:
    numbers = [number for each in _members(said) if (number := _numeric(each, whole)) is not None]
    if isinstance(asked, dict):
        return any(asked.get("min", -math.inf) <= number <= asked.get("max", math.inf) for number in numbers)
    return asked in numbers


def _day_meets(said: Any, asked: str) -> bool:
    return (
        isinstance(said, str | int) and str(said) != "soon" and (asked.startswith(str(said)) or str(said)[:10] == asked)
    )


MEETS: Mapping[str, Callable[[Any, Any], bool]] = {
    "word": lambda said, asked: bool(
        {str(each).lower() for each in _members(said) if each is not None} & {each.lower() for each in asked}
    ),
    "whole": lambda said, asked: _number_meets(said, asked, whole=True),
    "part": lambda said, asked: _number_meets(said, asked, whole=False),
    "flag": lambda said, asked: str(said).lower() == str(asked).lower() and said is not None,
    "day": _day_meets,
}


@hypothesis_settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    said=st.lists(st.fixed_dictionaries({}, optional=dict(SAID)), min_size=1, max_size=12),
    asked=st.lists(st.fixed_dictionaries({}, optional=dict(ASKED)), min_size=1, max_size=8),
)
def test_random_metadata_is_filtered_as_by_brute_force(
    tmp_path_factory: pytest.TempPathFactory, said: list[dict[str, Any]], asked: list[dict[str, Any]]
) -> None:
    folder = tmp_path_factory.mktemp("random")
    (folder / "docs").mkdir()
    for number in range(len(said)):
        (folder / "docs" / f"{number}.txt").write_text(f"Document {number}.")
    (folder / "side.json").write_text(json.dumps({f"{number}.txt": fields for number, fields in enumerate(said)}))
    filters = [{"key": key, "type": kind, "from": f"metadata.{key}"} for key, kind in TYPES.items()]
    source = files("s", DOCS, "docs", metadata="side.json")
    settings = configured(folder, source, domain={**NO_MODELS, "filters": filters})
    publish(settings, DOCS)
    with opened(settings, DOCS) as generation:
        for values in asked:
            expected = {
                f"{number}.txt"
                for number, fields in enumerate(said)
                if all(key in fields and MEETS[key](fields[key], value) for key, value in values.items())
            }
            assert found(settings, generation, **values) == expected, values


def test_keys_are_taken_as_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("Text.")
    keys = {"a/b": "one", "x~y": "two", "größe": "three", "back\\slash": "four", "0": "five"}
    (tmp_path / "side.json").write_text(json.dumps({"a.txt": keys}))
    filters = [{"key": f"f{number}", "type": "keyword", "from": f"metadata.{key}"} for number, key in enumerate(keys)]
    source = files("s", DOCS, "docs", metadata="side.json")
    settings = configured(tmp_path, source, domain={**NO_MODELS, "filters": filters})
    publish(settings, DOCS)
    with opened(settings, DOCS) as generation:
        for number, value in enumerate(keys.values()):
            assert found(settings, generation, **{f"f{number}": value}) == {"a.txt"}
