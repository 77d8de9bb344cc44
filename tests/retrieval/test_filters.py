"""Filters: every one of every domain on the example corpus, against brute force; and what is refused, and how."""

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from brute_force import Corpus
from git_repository import Repository
from hypothesis import given
from hypothesis import strategies as st
from support import sync

from nornweave.ask.search.filters import kind_of, parse_filter_options, read_filters
from nornweave.config import Settings
from nornweave.connect.connectors import load_settings, open_source
from nornweave.core.errors import QueryError
from nornweave.core.types import Domain, JsonValue
from nornweave.index.connection import connect_reader
from nornweave.index.corpus import DuckDBStore
from nornweave.index.searching.conditions import AnyName, AnyOf, Between, PathGlob, Under
from nornweave.ingest.records import DomainParts
from nornweave.ingest.wiring import chunker_of
from nornweave.models.encoders.hashing import HashEncoder

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "payments"
PAPERS = EXAMPLES / "research"
SOURCES = f"""
data_dir: unused
sources:
  - {{id: code, domain: code, type: files, path: code, history: 9, metadata: {EXAMPLES}/code.metadata.yaml}}
  - {{id: docs, domain: documentation, type: files, path: {EXAMPLES}, only: ["docs/**"]}}
  - {{id: slack, domain: conversations, type: slack, path: {EXAMPLES}/slack}}
  - {{id: issues, domain: conversations, type: github, path: {EXAMPLES}/github}}
  - {{id: meetings, domain: conversations, type: transcripts, path: {EXAMPLES}/transcripts}}
  - {{id: logs, domain: conversations, type: messages, path: {EXAMPLES}/messages}}
  - {{id: papers, domain: research, type: files, path: {PAPERS}, metadata: {PAPERS}.metadata.yaml}}
"""


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    file = tmp_path_factory.mktemp("filters") / "nornweave.yaml"
    file.write_text(SOURCES)
    shutil.copytree(EXAMPLES / "code", file.parent / "code")
    repository = Repository(file.parent / "code")
    repository.commit({}, "2024-01-01T00:00:00Z", author="Ada Lovelace <ada@example.com>")
    more = {"src/nothing.py": "def handle_nothing():\n    pass\n"}
    repository.commit(more, "2024-01-02T00:00:00Z", author="Grace Hopper <g@example.com>")
    return load_settings(file, {})


@pytest.fixture(scope="module")
def corpora(settings: Settings) -> Iterator[dict[Domain, Corpus]]:
    """The example corpus, published with a store of its own per domain."""
    encoder = HashEncoder(dimensions=4)
    corpora = {}
    for domain in Domain:
        configured = settings.domains[domain]
        store = DuckDBStore(settings.file.parent / domain.value, configured.storage, dimensions=encoder.dimensions)
        parts = DomainParts(
            domain=domain,
            sources=tuple(open_source(source, settings.own_files) for source in settings.sources_of(domain)),
            chunker=chunker_of(configured),
            encoder=encoder,
            store=store,
        )
        assert sync(parts).failed == ()
        name = store.current()
        assert name
        corpora[domain] = Corpus(connect_reader(store.files.data_files(name)[0].path))
    yield corpora
    for corpus in corpora.values():
        corpus.connection.close()


# For every declared filter: values, and how many chunks of the example corpus they leave at least; 0 is none.
ASKED: dict[Domain, dict[str, list[tuple[JsonValue, int]]]] = {
    Domain.CODE: {
        "source": [("code", 60), (["code", "docs"], 60), ("cod", 0)],
        "path_glob": [("src/payments/**", 20), ("*.py", 20), ("sdks/*/src/**", 2), ("**", 60), ("src/pay/**", 0)],
        "language": [("python", 20), ("Go", 5), ("cobol", 0), ("' or '1'='1", 0)],
        "since": [("2025-12-01", 10), ("2026-01-10T00:00:00Z", 5), ("2000-01-01", 60), ("2100-01-01", 0)],
        "node_type": [("function_definition", 10), ("FUNCTION_DEFINITION", 10), ("function", 20), ("func", 0)],
        "kind": [("commit", 2), ("Commit", 2), ("release", 0)],
        "author": [("Ada", 1), (["hopper, GRACE"], 1), ("Eve", 0)],
        "path": [("src/nothing.py", 2), ("*.py", 20), ("src/pay/**", 0)],
        "touches": [("handle_nothing", 1), ("nothing", 0)],
    },
    Domain.DOCUMENTATION: {
        "source": [(["docs"], 20), ("code", 0)],
        "path_glob": [("docs/api/**", 10), ("docs/*", 5), ("*.rst", 4), ("api/**", 0), ("docs/ap%", 0)],
        "format": [("markdown", 20), ("RST", 4), ("html", 2), ("pdf", 0)],
        "heading_path": [("Heron Pay", 3), ("payments api > ERROR HANDLING", 1), ("Refund", 0)],
    },
    Domain.CONVERSATIONS: {
        "source": [("slack", 10), (["issues", "logs"], 10), ("' or '1'='1", 0)],
        "path_glob": [("engineering/**", 5), ("*.vtt", 1), ("*.py", 0)],
        "participants": [(["alice", "bob"], 5), (["ALICE"], 3), ("dana", 3), (["ali"], 0), (["nobody", "grace"], 2)],
        "channel": [("#engineering", 5), ("engineering", 5), ("heronpay/payments", 5), ("eng", 0)],
        "date_range": [
            ({"start": "2026-01-12", "end": "2026-01-14"}, 3),
            ({"end": "2025-12-31"}, 3),
            ({"start": "2026-01-01"}, 20),
            ({"start": "2026-01-19T10:30:00Z", "end": "2026-01-19T11:00:00+00:00"}, 2),
            ({"start": "2027-01-01"}, 0),
        ],
        "source_type": [("slack", 10), ("github", 5), ("transcripts", 5), ("messages", 5), ("email", 0)],
    },
    Domain.RESEARCH: {
        "source": [("papers", 20), ("none", 0)],
        "path_glob": [("*.pdf", 10), ("*.py", 0)],
        "source_type": [("arxiv_paper", 10), ("stackoverflow", 5), ("markdown", 5), ("arxiv", 0)],
        "authors": [(["Halvorsen"], 10), (["boateng, kwame"], 10), ("Osei", 3), (["Hal"], 0), (["Neri", "Wilk"], 15)],
        "date_range": [
            ({"start": "2025-01-01"}, 20),
            ({"start": "2025-09-14", "end": "2025-09-14"}, 10),
            ({"end": "2024-12-31"}, 1),
        ],
        "tags": [(["retries", "psd2"], 20), ("Jitter", 5), (["retr"], 0)],
    },
}


def test_every_declared_filter_is_asked_below(settings: Settings) -> None:
    declared = {
        domain: {each.key for each in settings.domains[domain].filters if not each.is_declared} for domain in Domain
    }
    assert declared == {domain: set(filters) for domain, filters in ASKED.items()}


def test_a_kind_of_code_is_found_in_every_grammar(settings: Settings, corpora: dict[Domain, Corpus]) -> None:
    declared, corpus = settings.domains[Domain.CODE].filters, corpora[Domain.CODE]

    def selected(kind: str) -> set[int]:
        return set(corpus.selected(*read_filters(declared, {"node_type": kind}, "filters.code")))

    definitions, declarations = selected("class_definition"), selected("class_declaration")
    assert definitions and declarations and not definitions & declarations
    assert selected("class") >= definitions | declarations
    assert {kind_of(name) for name in ("class", "class_definition", "class_declaration")} == {"class"}


@pytest.mark.parametrize(
    ("domain", "key", "value", "least"),
    [(domain, key, *asked) for domain, filters in ASKED.items() for key, values in filters.items() for asked in values],
)
def test_a_filter_leaves_what_brute_force_leaves(
    settings: Settings, corpora: dict[Domain, Corpus], domain: Domain, key: str, value: JsonValue, least: int
) -> None:
    conditions = read_filters(settings.domains[domain].filters, {key: value}, f"filters.{domain.value}")
    found = corpora[domain].selected(*conditions)
    assert found == corpora[domain].expected(*conditions)
    assert len(found) >= least
    assert bool(found) is (least > 0)


def test_all_filters_must_be_met(settings: Settings, corpora: dict[Domain, Corpus]) -> None:
    both = {"path_glob": "src/**", "language": "python", "node_type": "function_definition"}
    conditions = read_filters(settings.domains[Domain.CODE].filters, both, "filters.code")
    found = [corpora[Domain.CODE].rows[number] for number in corpora[Domain.CODE].selected(*conditions)]
    assert found
    assert {(row.path.split("/")[0], row.facts["language"], row.facts["node_type"]) for row in found} == {
        ("src", "python", "function_definition")
    }


def test_a_slack_chunk_is_found_by_the_time_of_any_of_its_messages(
    settings: Settings, corpora: dict[Domain, Corpus]
) -> None:
    corpus = corpora[Domain.CONVERSATIONS]
    number, row = next(
        (number, row)
        for number, row in enumerate(corpus.rows)
        if row.facts["source_type"] == "slack" and len(row.message_ids) > 1
    )
    last = datetime.fromtimestamp(int(row.message_ids[-1].split(".")[0]), UTC).isoformat()
    assert last > row.facts["message_timestamp"].replace("Z", "+00:00")
    assert number in corpus.selected(*read(settings, Domain.CONVERSATIONS, date_range={"start": last, "end": last}))


def read(settings: Settings, domain: Domain, **values: Any) -> tuple[Any, ...]:
    return read_filters(settings.domains[domain].filters, values, f"filters.{domain.value}")


def test_what_is_asked_for_becomes_a_condition(settings: Settings) -> None:
    assert read(settings, Domain.CODE) == ()
    assert read(settings, Domain.CODE, path_glob="src/**", language="go", since="2026-01-15T01:00:00+01:00") == (
        PathGlob("src/**"),
        AnyOf("language", ("go",)),
        Between("updated_at", start=datetime(2026, 1, 15, tzinfo=UTC)),
    )
    assert read(settings, Domain.DOCUMENTATION, heading_path="A > B") == (Under("A > B"),)
    assert read(settings, Domain.RESEARCH, authors="Vaswani", tags=["a", "b"]) == (
        AnyName("authors", ("Vaswani",)),
        AnyOf("tags", ("a", "b")),
    )


def test_a_date_is_the_whole_day_and_without_a_zone_utc(settings: Settings) -> None:
    (days,) = read(settings, Domain.RESEARCH, date_range={"start": "2026-01-15", "end": "2026-01-15"})
    assert days == Between(
        "publication_date",
        start=datetime(2026, 1, 15, tzinfo=UTC),
        end=datetime(2026, 1, 15, 23, 59, 59, 999_999, tzinfo=UTC),
    )
    (moments,) = read(settings, Domain.RESEARCH, date_range={"end": "2026-01-15T10:00", "start": None})
    assert moments == Between("publication_date", end=datetime(2026, 1, 15, 10, tzinfo=UTC))


CODE, DOCS, TALK, STUDY = Domain.CODE, Domain.DOCUMENTATION, Domain.CONVERSATIONS, Domain.RESEARCH
REFUSED: list[tuple[Domain, str, Any, str, str]] = [
    (
        CODE,
        "lang",
        "python",
        "filters.code.lang",
        "no such filter; allowed here: author, category, confidence, environment, error_category, kind, language, "
        "node_type, path, path_glob, since, source, touches",
    ),
    (CODE, "heading_path", "x", "filters.code.heading_path", "no such filter"),
    (CODE, "\ud800", "x", r"filters.code.\ud800", "no such filter"),
    (CODE, "language", 3, "filters.code.language", "expected a string, found 3"),
    (CODE, "language", None, "filters.code.language", "expected a string, found None"),
    (CODE, "language", True, "filters.code.language", "expected a string, found True"),
    (CODE, "language", ["python"], "filters.code.language", "expected a string, found"),
    (CODE, "language", " ", "filters.code.language", "blank"),
    (CODE, "language", "x" * 1025, "filters.code.language", "1025 characters; at most 1024"),
    (CODE, "language", "py\0thon", "filters.code.language", "NUL"),
    (CODE, "language", "py\ud800", "filters.code.language", "surrogate"),
    (CODE, "path_glob", "../other/**", "filters.code.path_glob", "'..'"),
    (CODE, "path_glob", "", "filters.code.path_glob", "blank"),
    (CODE, "since", "yesterday", "filters.code.since", "is not a date; expected an ISO 8601"),
    (CODE, "since", "0001-01-01T00:00:00+14:00", "filters.code.since", "is not a date"),
    (CODE, "since", "2026-02-30", "filters.code.since", "is not a date"),
    (CODE, "since", 1768435200, "filters.code.since", "expected an ISO 8601"),
    (TALK, "participants", [], "filters.conversations.participants", "has 0 values; expected 1 to 100"),
    (TALK, "participants", ["a"] * 101, "filters.conversations.participants", "has 101 values"),
    (TALK, "participants", ["a", ""], "filters.conversations.participants[1]", "blank"),
    (TALK, "participants", ["a", 1], "filters.conversations.participants[1]", "expected a string, found 1"),
    (TALK, "participants", {"a": 1}, "filters.conversations.participants", "expected a list of strings"),
    (TALK, "date_range", "2026", "filters.conversations.date_range", "expected an object with 'start', 'end' or both"),
    (TALK, "date_range", {}, "filters.conversations.date_range", "is empty"),
    (TALK, "date_range", {"start": None}, "filters.conversations.date_range", "is empty"),
    (TALK, "date_range", {"from": "2026-01-01"}, "filters.conversations.date_range.from", "allowed here: end, start"),
    (TALK, "date_range", {"start": "soon"}, "filters.conversations.date_range.start", "is not a date"),
    (TALK, "date_range", {"end": 2026}, "filters.conversations.date_range.end", "expected an ISO 8601"),
    (STUDY, "date_range", {"start": "2026-01-02", "end": "2026-01-01"}, "filters.research.date_range", "after its end"),
    (DOCS, "format", {"md": True}, "filters.documentation.format", "expected a string, found {'md': True}"),
]


@pytest.mark.parametrize(("domain", "key", "value", "field", "problem"), REFUSED)
def test_what_is_wrong_is_named(
    settings: Settings, domain: Domain, key: str, value: Any, field: str, problem: str
) -> None:
    with pytest.raises(QueryError) as raised:
        read(settings, domain, **{key: value})
    assert raised.value.field == field
    assert problem in raised.value.problem
    str(raised.value).encode()  # whatever was found, the message can be sent


def test_filters_that_are_no_object_are_refused(settings: Settings) -> None:
    with pytest.raises(QueryError, match=r"filters\.code: expected an object of filter keys and values, found \['a'\]"):
        read_filters(settings.domains[Domain.CODE].filters, ["a"], "filters.code")  # type: ignore[arg-type]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6) | st.just("start"), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.sampled_from([(domain, key) for domain, filters in ASKED.items() for key in filters]), JSON)
def test_whatever_json_holds_it_is_answered_or_refused(
    settings: Settings, corpora: dict[Domain, Corpus], place: tuple[Domain, str], value: JsonValue
) -> None:
    domain, key = place
    try:
        conditions = read_filters(settings.domains[domain].filters, {key: value}, "filters")
    except QueryError as error:
        assert error.field.startswith(f"filters.{key}")
    else:
        assert corpora[domain].selected(*conditions) == corpora[domain].expected(*conditions)


def options(settings: Settings, *texts: str) -> dict[Domain, dict[str, JsonValue]]:
    return parse_filter_options(texts, {domain: settings.domains[domain].filters for domain in Domain})


def test_options_of_the_command_line(settings: Settings) -> None:
    assert options(settings) == {}
    assert options(
        settings,
        "code.language=python",
        "code.path_glob=src/a=b/**",
        'research.authors=Vaswani, "Shazeer, N."',
        "research.authors=Uszkoreit",
        "research.date_range=2026-01-01..2026-02-01",
        "conversations.date_range=..2026-02-01T10:00:00Z",
        "conversations.participants=alice",
    ) == {
        Domain.CODE: {"language": "python", "path_glob": "src/a=b/**"},
        Domain.RESEARCH: {
            "authors": ["Vaswani", "Shazeer, N.", "Uszkoreit"],
            "date_range": {"start": "2026-01-01", "end": "2026-02-01"},
        },
        Domain.CONVERSATIONS: {"date_range": {"end": "2026-02-01T10:00:00Z"}, "participants": ["alice"]},
    }
    assert options(settings, "research.date_range=2026-01-01..") == {
        Domain.RESEARCH: {"date_range": {"start": "2026-01-01"}}
    }


@pytest.mark.parametrize(("texts", "field", "problem"), [
    (["language=python"], "filters", "'language=python' is not DOMAIN.KEY=VALUE, such as code.language=python"),
    (["code.language"], "filters", "is not DOMAIN.KEY=VALUE"),
    (["wiki.language=python"], "filters", "no domain 'wiki'; there are: code, documentation, conversations, research"),
    (
        ["code.lang=python"],
        "filters.code.lang",
        "no such filter; allowed here: author, category, confidence, environment, error_category, kind, language",
    ),
    (["code.language=go", "code.language=c"], "filters.code.language", "given twice; it takes one value"),
    (["research.date_range=2026"], "filters.research.date_range", "'2026' is not START..END, START.. or ..END"),
    (['research.tags="a'], "filters.research.tags", "cannot be split at its commas"),
])  # fmt: skip
def test_a_wrong_option_is_named(settings: Settings, texts: list[str], field: str, problem: str) -> None:
    with pytest.raises(QueryError) as raised:
        options(settings, *texts)
    assert raised.value.field == field
    assert problem in raised.value.problem


@pytest.mark.parametrize("text", ["research.tags=", "research.tags=a,,b", "research.date_range=..", "code.language="])
def test_an_empty_option_is_refused_when_it_is_read(settings: Settings, text: str) -> None:
    for domain, values in options(settings, text).items():
        with pytest.raises(QueryError, match=r"blank|empty|has 0 values"):
            read_filters(settings.domains[domain].filters, values, "filters")


def test_a_path_glob_matches_the_path_that_citations_print(corpora: dict[Domain, Corpus]) -> None:
    for corpus in corpora.values():
        for path in {row.path for row in corpus.rows}:
            chosen = corpus.selected(PathGlob(path))
            assert {number for number, row in enumerate(corpus.rows) if row.path == path} <= set(chosen)
