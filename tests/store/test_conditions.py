"""Conditions select exactly the chunks that meet them: against a brute-force answer, from 1 to 100 % of the corpus."""

import itertools
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from brute_force import Corpus
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from support import MemorySource, sync

from nornweave.config import StorageSettings
from nornweave.core.types import (
    ContentHash,
    Document,
    Domain,
    Entry,
    Section,
    SourceId,
    Span,
    digest,
    document_id,
    freeze,
)
from nornweave.index.connection import Connection, connect_reader
from nornweave.index.corpus import DuckDBStore
from nornweave.index.searching.conditions import AnyName, AnyOf, Between, Condition, PathGlob, Under
from nornweave.ingest.records import DomainParts
from nornweave.models.encoders.hashing import HashEncoder
from nornweave.read.chunking.chunker import Chunker

DAY = timedelta(days=1)
NOW = datetime(2026, 2, 1, 12, 0, tzinfo=UTC)


@dataclass
class RecordSource(MemorySource):
    """Documents written as JSON, each of their sections with metadata of its own, so that a test decides on all."""

    def parse(self, entry: Entry, raw: bytes) -> Document:
        record = json.loads(raw)
        text, sections = "", []
        for number, section in enumerate(record["sections"]):
            start = len(text)
            text += f"Part {number} of {entry.path}.\n"
            sections.append(
                Section(
                    span=Span(start, len(text)),
                    heading=section.get("heading", ""),
                    level=section.get("level", 1),
                    metadata=freeze(section.get("metadata", {})),
                )
            )
        return Document(
            id=document_id(self.id, entry.path),
            domain=self.domain,
            source_id=SourceId(self.id),
            path=entry.path,
            text=text,
            format=record.get("format", "text"),
            content_hash=ContentHash(digest(raw)),
            updated_at=datetime.fromisoformat(record["updated_at"]) if "updated_at" in record else None,
            metadata=freeze(record.get("metadata", {})),
            sections=tuple(sections),
        )


def published(folder: Path, records: dict[str, dict[str, Any]]) -> Connection:
    """Sync records, publish them, and open what was published."""
    source = RecordSource()
    for path, record in records.items():
        source.write(path, json.dumps(record))
    encoder = HashEncoder(dimensions=4)
    store = DuckDBStore(folder, StorageSettings(), dimensions=encoder.dimensions)
    parts = DomainParts(
        domain=Domain.DOCUMENTATION,
        sources=(source,),
        chunker=Chunker(strategy="HIERARCHICAL_SECTIONS", limit=64),
        encoder=encoder,
        store=store,
    )
    assert sync(parts).failed == ()
    name = store.current()
    assert name
    return connect_reader(store.files.data_files(name)[0].path)


FOLDERS = ("src", "src_utils", "src/payments", "src/pay%ments", "docs/api", "déjà/vu", "a b/it's", 'q"x/[1]')
NAMES = (
    "main.py",
    "main.pyc",
    "MAIN.py",
    "read_me.md",
    "read-me.md",
    "x'; drop table chunks;--.py",
    "naïve.rs",
    "日本.md",
)
AUTHORS = (
    "Vaswani, A.",
    "Ashish Vaswani",
    "Vaswanison, B.",
    "O'Brien-Smith, Müller",
    "李 小龙",
    "N. Shazeer",
    "Shazeer",
)
TAGS = ("RAG", "rag", "c++", "100%", "under_score", "two  words", "naïve", "it's", "' or 1=1 --", "NFD: e\u0301")
CHANNELS = ("#engineering", "engineering", "#Releases", "heronpay/payments", "#a b")
HEADINGS = ("API Reference", "API", "Errors", "100% it's", "Überblick", "errors", "Section one")
DATES = (
    "2017",
    "2017-06",
    "2017-06-12",
    "2017-06-12T08:30:00Z",
    "2017-06-12T23:30:00-02:00",
    "2016-12-31",
    "in June",
    "",
)
TIMES = tuple((NOW - each * DAY / 3).strftime("%Y-%m-%dT%H:%M:%SZ") for each in range(30))


def record(chance: random.Random, number: int) -> dict[str, Any]:
    """Make up one document; every field is missing now and then, and stands at the document or at the chunk."""

    def some(values: Sequence[Any], share: float = 0.8) -> Any:
        return chance.choice(values) if chance.random() < share else None

    def facts() -> dict[str, Any]:
        return {
            "language": some(("python", "Go", "rust"), 0.4),
            "node_type": some(("function_definition", "class_definition"), 0.4),
            "source_type": some(("slack", "arxiv_paper"), 0.3),
            "channel": some(CHANNELS, 0.4),
            "participants": some((["alice", "Bob"], ["Álvaro"], "bob", [], ["alice"]), 0.4),
            "authors": some(([chance.choice(AUTHORS) for _ in range(2)], chance.choice(AUTHORS), []), 0.4),
            "tags": [*some(([chance.choice(TAGS)], []), 1), "all", *(["rare"] if number % 100 == 7 else [])],
            "publication_date": some((*DATES, 2017), 0.5),
            "message_timestamp": some(TIMES, 0.5),
        }

    sections = [
        {"heading": chance.choice(HEADINGS), "level": level, "metadata": facts() if chance.random() < 0.7 else {}}
        for level in range(1, chance.randrange(2, 6))
    ]
    moment = NOW - chance.randrange(400) * DAY / 4
    return {
        "format": chance.choice(("markdown", "HTML", "pdf")),
        "metadata": {**facts(), "author": some(AUTHORS, 0.3)},
        "sections": [*sections, {"metadata": {}}],
        **({"updated_at": moment.isoformat()} if chance.random() < 0.9 else {}),
    }


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    chance = random.Random(7)
    places = [f"{folder}/{name}" for folder in ("", *FOLDERS) for name in NAMES]
    deep = [f"src/level{number % 3}/{number}/file.py" for number in range(80)]
    paths = [place.lstrip("/") for place in places] + deep
    records = {path: record(chance, number) for number, path in enumerate(paths)}
    with published(tmp_path_factory.mktemp("conditions"), records) as connection:
        yield Corpus(connection)


def moments() -> st.SearchStrategy[datetime]:
    around = [datetime(2017, 6, 12, 8, 30, tzinfo=UTC), datetime(2017, 1, 1, tzinfo=UTC), NOW, NOW - 5 * DAY]
    steps = [timedelta(0), timedelta(microseconds=1), timedelta(seconds=1), DAY, 20 * DAY, -DAY]
    return st.builds(lambda moment, step: moment + step, st.sampled_from(around), st.sampled_from(steps))


def conditions() -> st.SearchStrategy[Condition]:
    """Values that stand in the corpus, parts of them, other spellings of them, and others."""
    respelt = st.sampled_from((str, str.upper, str.lower, str.title, lambda text: f"  {text} "))

    def like(values: Sequence[str]) -> st.SearchStrategy[str]:
        spelt = st.builds(lambda change, text: change(text), respelt, st.sampled_from(values))
        return spelt | st.text(min_size=1, max_size=4).filter(str.strip)

    def any_of(field: str, values: Sequence[str]) -> st.SearchStrategy[Condition]:
        return st.builds(AnyOf, st.just(field), st.lists(like(values), min_size=1, max_size=4).map(tuple))

    words = (*AUTHORS, "Vaswani", "A. Vaswani", "vaswani ashish", "Müller", "Smith O'Brien", "小龙", "...", "B")
    globs = ("src/**", "src", "src/", "*.py", "/*.py", "src/*", "src/*/*", "**/main.py*", "src/**/*.py", "*/main.py",
             "?rc/**", "src/level[01]/**", "src/level[!01]/**", "**", "*", "déjà/*", "a b/it's/*", 'q"x/\\[1]/**',
             "pay%*/", "src/pay%ments/*", "*_me.md", "x'; drop*", "**/[!a-z]*", "src/payments/main.py", "SRC/**",
             "日*")  # fmt: skip
    return st.one_of(
        any_of("language", ("python", "go", "rust")),
        any_of("node_type", ("function_definition", "class_definition")),
        any_of("format", ("markdown", "html", "pdf")),
        any_of("source_type", ("slack", "arxiv_paper", "pdf", "html")),
        any_of("channel", (*CHANNELS, "releases", "##engineering")),
        any_of("participants", ("alice", "bob", "álvaro", "ali")),
        any_of("tags", (*TAGS, "all", "rare", "two words", "NFD: \u00e9")),
        st.builds(AnyName, st.just("authors"), st.lists(like(words), min_size=1, max_size=3).map(tuple)),
        st.builds(PathGlob, st.sampled_from(globs)),
        st.builds(Under, like((*HEADINGS, "API > Errors", "Reference", "Errors > API Reference > API"))),
        st.builds(
            Between,
            st.sampled_from(("updated_at", "publication_date", "message_timestamp")),
            st.none() | moments(),
            st.none() | moments(),
        ),
    )


@given(st.lists(conditions(), min_size=1, max_size=3))
@hypothesis_settings(max_examples=300)
def test_what_is_selected_is_what_brute_force_finds(corpus: Corpus, wanted: list[Condition]) -> None:
    assert corpus.selected(*wanted) == corpus.expected(*wanted)


def test_no_condition_is_met_by_all_and_no_value_by_none(corpus: Corpus) -> None:
    assert corpus.selected() == list(range(len(corpus.rows)))
    assert corpus.selected(AnyOf("tags", ())) == []
    assert corpus.selected(AnyOf("no such field", ("python",))) == []


GLOBS = [
    # pattern, what it matches, what it does not
    ("src/**", ["src/a.py", "src/x/y/b.py"], ["src_utils/a.py", "a.py", "lib/src/a.py", "src.py"]),
    ("src/", ["src/a.py", "src/x/y/b.py"], ["src_utils/a.py", "src.py"]),
    ("src/*", ["src/a.py"], ["src/x/y/b.py", "src_utils/a.py"]),
    ("src/**/b.py", ["src/x/y/b.py"], ["src/a.py"]),
    ("src/**/a.py", ["src/a.py"], ["lib/src/a.py", "src_utils/a.py"]),
    ("**/a.py", ["a.py", "src/a.py", "lib/src/a.py", "src_utils/a.py"], ["src/x/y/b.py"]),
    ("*.py", ["a.py", "src/a.py", "src/x/y/b.py", "src.py"], ["c.pyx"]),
    ("/*.py", ["a.py", "src.py"], ["src/a.py"]),
    ("./a.py", ["a.py"], ["src/a.py"]),
    ("src", [], ["src/a.py", "src.py", "src_utils/a.py"]),
    ("**/src/**", ["src/a.py", "lib/src/a.py"], ["src_utils/a.py", "src.py"]),
    ("src**", ["src.py"], ["src/a.py", "src/x/y/b.py", "src_utils/a.py"]),
    ("?.py", ["a.py", "src/a.py"], ["src.py", "c.pyx"]),
    ("src?a.py", [], ["src/a.py"]),
    ("src[/]a.py", [], ["src/a.py"]),
    ("src[!x]a.py", [], ["src/a.py"]),
    ("src[.-0]a.py", [], ["src/a.py"]),
    ("[a-c].py*", ["a.py", "src/x/y/b.py", "c.pyx"], ["src.py"]),
    ("[c-a].py", [], ["a.py"]),
    ("[!a].py", ["src/x/y/b.py"], ["a.py"]),
    ("[a.py", [], ["a.py"]),
    ("A.py", [], ["a.py"]),
    (r"\a.py", ["a.py"], ["src/x/y/b.py"]),
    (r"\*.py", [], ["a.py"]),
    ("a.py' or '1'='1", [], ["a.py"]),
    ("%.py", [], ["a.py"]),
    ("_.py", [], ["a.py"]),
    ("src//a.py", ["src/a.py"], ["lib/src/a.py"]),
    ("**/**/a.py", ["a.py", "src/a.py"], []),
]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    paths = sorted({path for _, yes, no in GLOBS for path in (*yes, *no)})
    components = ("a", "b", "ab", "a.b", "A-", "_")
    paths += ["/".join(parts) for size in (1, 2, 3) for parts in itertools.product(components[: 7 - size], repeat=size)]
    paths.append("/".join(["a" * 60] * 10))
    with published(tmp_path_factory.mktemp("tree"), {path: {"sections": [{}]} for path in paths}) as connection:
        yield Corpus(connection)


@pytest.mark.parametrize(("glob", "yes", "no"), GLOBS)
def test_a_glob_matches_whole_components(tree: Corpus, glob: str, yes: list[str], no: list[str]) -> None:
    found = {tree.rows[number].path for number in tree.selected(PathGlob(glob))}
    assert found.issuperset(yes)
    assert found.isdisjoint(no)


@given(st.text("ab.A-_*?[]!^/\\%", min_size=1, max_size=9))
@hypothesis_settings(max_examples=400)
def test_any_glob_matches_what_brute_force_matches(tree: Corpus, glob: str) -> None:
    assert tree.selected(PathGlob(glob)) == tree.expected(PathGlob(glob))


@pytest.mark.parametrize(("glob", "ending"), [
    ("*a" * 500 + "b", None), ("**/" * 300 + "*b", "b"), ("/".join(["**", "*a*a*a*b"] * 90), None),
    ("?" * 1000, None), ("[!a-y]*" * 140, None), ("**/*" + "a?????????????" * 40, None),
])  # fmt: skip
def test_no_glob_takes_long(tree: Corpus, glob: str, ending: str | None) -> None:
    """An engine that backtracks would not return within the life of the machine."""
    expected = {number for number, row in enumerate(tree.rows) if ending and row.path.endswith(ending)}
    assert set(tree.selected(PathGlob(glob))) == expected


def test_a_chunk_of_several_messages_has_the_time_of_each_that_is_known(tmp_path: Path) -> None:
    at = datetime(2026, 1, 12, 9, 0, tzinfo=UTC)
    one = {"metadata": {"message_timestamp": "2026-01-12T09:00:00Z"}}
    several = {"metadata": {**one["metadata"], "message_timestamps": ["2026-01-12T09:00:00Z", "2026-01-13T09:00:00Z"]}}
    records: dict[str, dict[str, Any]] = {"one": {"sections": [one]}, "several": {"sections": [several]}}
    with published(tmp_path, records) as connection:
        corpus = Corpus(connection)
        assert corpus.selected(Between("message_timestamp", start=at + DAY)) == [1]
        assert corpus.selected(Between("message_timestamp", start=at, end=at)) == [0, 1]
        assert corpus.selected(Between("message_timestamp", start=at + DAY / 4, end=at + DAY / 2)) == []
