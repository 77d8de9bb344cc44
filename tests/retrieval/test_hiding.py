"""A text that is hidden: its chunks are found as if they had been indexed without it, and nothing else changes."""

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from growth import assert_subquadratic
from hypothesis import example, given, settings
from hypothesis import strategies as st
from recall_workspace import opened, publish, write_workspace
from support import MemorySource, memory_parts, sync

from evals.masked_chunks import Quoted
from evals.masked_document import _Without, without
from nornweave.ask.search.query import read_query
from nornweave.ask.search.search import SearchContext, search
from nornweave.config import Bm25Settings, FieldWeights, PlanSettings, StorageSettings
from nornweave.core.errors import EncoderError
from nornweave.core.text import analyzer
from nornweave.core.text.index_fields import asked_keys
from nornweave.core.types import Domain, Span
from nornweave.index.corpus import DuckDBStore
from nornweave.index.index import Index
from nornweave.models.encoders.hashing import HashEncoder
from nornweave.models.encoders.port import Progress, Vectors, encode_queries

TEXTS = {
    "a": "cat cat dog, under the big tree",
    "b": "dog and bird. The bird sings loudly",
    "c": "bird bird bird fish",
    "d": "cat",
}
ENCODER = HashEncoder(dimensions=16)
WORDS = ("cat", "dog", "bird", "fish", "tree", "big", "sings")


class Remembering(HashEncoder):
    """Notes what it is asked to embed."""

    def __init__(self, dimensions: int = 16) -> None:
        super().__init__(dimensions=dimensions)
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str], *, progress: Progress | None = None) -> Vectors:
        self.asked += texts
        return super().encode(texts, progress=progress)


class Unreachable(HashEncoder):
    """Is of the right version, and cannot be reached."""

    def encode(self, texts: Sequence[str], *, progress: Progress | None = None) -> Vectors:
        raise EncoderError("no answer")


def published(folder: Path, texts: dict[str, str], storage: StorageSettings | None = None) -> Index:
    """Publish texts, each a chunk."""
    source = MemorySource()
    for path, text in texts.items():
        source.write(path, text)
    parts = memory_parts(folder, source, limit=512)
    if storage:
        parts = replace(parts, store=DuckDBStore(folder, storage, dimensions=parts.encoder.dimensions))
    report = sync(parts)
    assert report.generation is not None
    return parts.store.files.open(report.generation)


@pytest.fixture(scope="module")
def animals(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    with published(tmp_path_factory.mktemp("animals"), TEXTS) as generation:
        yield generation


def numbers(generation: Index) -> np.ndarray:
    return np.arange(generation.chunk_count, dtype=np.int32)


def place(generation: Index, path: str, words: str) -> Span:
    """Return where a document has these words."""
    text = generation.indexed_documents(path)[0].document.text
    start = text.index(words)
    return Span(start, start + len(words))


def found(generation: Index, query: str, encoder: HashEncoder) -> dict[int, float]:
    """Search as the agent does; chunk → combined score, best first."""
    with ThreadPoolExecutor(2) as executor:
        context = SearchContext(
            domain=Domain.CODE, generation=generation, plan=PlanSettings(),
            encode=lambda text: executor.submit(lambda: encode_queries(encoder, [text])[0]), executor=executor,
        )  # fmt: skip
        ranking = search(read_query(query), context).ranking
    return dict(zip(ranking.numbers.tolist(), ranking.scores.tolist(), strict=True))


def answers(generation: Index, query: str, encoder: HashEncoder) -> tuple[list[float], ...]:
    """Return what every retrieval source says of every chunk."""
    asked = read_query(query)
    everything = numbers(generation)
    named = generation.named(asked.keys)
    paired = generation.paired(map(analyzer.pair_key, asked.pairs))
    return (
        generation.similarities(encoder.encode_query(query), everything).tolist(),
        generation.sparse(dict.fromkeys(asked.terms, 1.0), 0.1).tolist(),
        *(
            [float(sum(number in chunks for chunks in held.values())) for number in everything.tolist()]
            for held in (paired, named)
        ),
    )


@settings(max_examples=25)
@given(path=st.sampled_from(sorted(TEXTS)), at=st.integers(0, 40))
def test_hiding_nothing_changes_nothing(animals: Index, path: str, at: int) -> None:
    assert without(animals, path, Span(at, at), ENCODER) is animals
    assert without(animals, path, Span(at + 1000, at + 1010), ENCODER) is animals
    assert without(animals, "no such document", Span(0, 3), ENCODER) is animals


def test_hiding_blank_space_and_punctuation_changes_nothing(animals: Index) -> None:
    assert without(animals, "a", place(animals, "a", ", "), ENCODER) is animals


@settings(max_examples=25)
@given(
    data=st.data(),
    query=st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join),
    of_path=st.sampled_from([0, 1, 3]),
)
@example(data=None, query="dog", of_path=1)
def test_what_is_left_is_found_as_if_it_had_been_indexed_so(
    animals: Index, data: st.DataObject | None, query: str, of_path: int
) -> None:
    """The oracle: the formulas of each source over the text that is left, with the corpus' own statistics."""
    path = data.draw(st.sampled_from(["a", "b", "c"])) if data else "a"
    text = TEXTS[path]
    start = data.draw(st.integers(0, len(text) - 1)) if data else 4
    end = data.draw(st.integers(start + 1, len(text))) if data else 7
    left = text[:start] + text[end:]
    own = sorted(TEXTS).index(path)
    view = without(animals, path, Span(start, end), ENCODER)
    if view is animals or not analyzer.analyze(left):
        return
    asked = read_query(query)
    bm25 = Bm25Settings(fields=FieldWeights(path=of_path))
    counts = analyzer.analyze(left + f"\n{path}" * of_path)
    lengths = [analyzer.analyze(one).total() + of_path for one in TEXTS.values()]
    norm = bm25.k1 * (1 - bm25.b + bm25.b * counts.total() / np.mean(lengths))
    dense, _, paired, _ = answers(view, query, ENCODER)
    sparse = view.sparse(dict.fromkeys(asked.terms, 1.0), 0.1, bm25)
    assert dense[own] == pytest.approx(float(ENCODER.encode([left])[0] @ ENCODER.encode_query(query)), abs=1e-5)
    expected = sum(counts[term] * (bm25.k1 + 1) / (counts[term] + norm) for term in asked.terms if counts[term])
    assert sparse[own] == pytest.approx(expected, rel=1e-4)
    assert paired[own] == len(set(asked.pairs) & analyzer.word_pairs(analyzer.sequence(left)))
    assert view.contents(np.array([own], np.int32)) == {own: left}
    assert view.chunks(np.array([own], np.int32))[own].content == left


@settings(max_examples=25)
@given(data=st.data(), query=st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join))
def test_nothing_is_said_of_the_others_that_was_not_said_before(
    animals: Index, data: st.DataObject, query: str
) -> None:
    path = data.draw(st.sampled_from(sorted(TEXTS)))
    start = data.draw(st.integers(0, len(TEXTS[path]) - 1))
    view = without(animals, path, Span(start, data.draw(st.integers(start + 1, len(TEXTS[path])))), ENCODER)
    own = sorted(TEXTS).index(path)
    for before, after in zip(answers(animals, query, ENCODER), answers(view, query, ENCODER), strict=True):
        assert [one for number, one in enumerate(before) if number != own] == [
            one for number, one in enumerate(after) if number != own
        ]
    kept = {number: score for number, score in found(animals, query, ENCODER).items() if number != own}
    left = {number: score for number, score in found(view, query, ENCODER).items() if number != own}
    shared = [number for number in kept if number in left]
    assert [number for number in left if number in kept] == shared  # in the order that they had


def test_a_chunk_of_which_nothing_is_left_is_found_by_nothing(animals: Index) -> None:
    view = without(animals, "d", Span(0, 3), ENCODER)
    assert 3 in found(animals, "cat", ENCODER)
    assert 3 in animals.holding(["d"])
    assert 3 not in view.holding(["d"])
    assert 3 not in found(view, "d cat", ENCODER)
    assert 3 not in view.dense(ENCODER.encode_query("cat"), 10).numbers
    assert view.named(["path:d"]) == {}
    assert list(view.containing("cat", 10)) == [0]


@pytest.mark.parametrize("index", ["exact", pytest.param("hnsw", marks=pytest.mark.vss)])
def test_the_nearest_are_those_of_a_scan(tmp_path: Path, index: str) -> None:
    texts = {f"{number:02d}": f"{WORDS[number % 7]} {WORDS[number % 5]} word{number}" for number in range(30)}
    with published(tmp_path, texts, StorageSettings(vector_index=index)) as generation:
        assert generation.meta["built_with"] == index
        hidden = place(generation, "07", texts["07"].split()[0])
        view = without(generation, "07", hidden, ENCODER)
        query = ENCODER.encode_query(texts["07"].split()[0])
        vectors = view.vectors(numbers(view))
        assert vectors[7] == pytest.approx(ENCODER.encode([texts["07"][hidden.end :]])[0], abs=1e-5)
        mask = np.ones(30, np.bool_)
        mask[[3, 7, 14]] = False
        for within in (None, mask):
            hits = view.dense(query, 5, within)
            scores = np.where(mask if within is not None else True, vectors @ query, -2)
            assert hits.scores == pytest.approx(np.sort(scores)[::-1][:5], abs=0.02)
            assert hits.scores == pytest.approx(scores[hits.numbers], abs=0.02)


@pytest.mark.parametrize("encoder", [None, Unreachable(dimensions=16), HashEncoder(dimensions=8)])
def test_without_the_right_encoder_what_is_left_resembles_nothing(animals: Index, encoder: HashEncoder | None) -> None:
    view = without(animals, "a", place(animals, "a", "dog"), encoder)
    assert not view.vectors(np.array([0], np.int32)).any()
    assert view.sparse({"cat": 1.0})[0] > 0


def test_what_was_embedded_once_is_remembered(animals: Index) -> None:
    encoder, remembered = Remembering(), dict[str, Vectors]()
    views = [without(animals, "a", place(animals, "a", "dog"), encoder, remembered=remembered) for _ in range(3)]
    assert encoder.asked == ["cat cat , under the big tree"]
    assert len({view.vectors(np.array([0], np.int32)).tobytes() for view in views}) == 1


def test_the_generation_itself_stays_as_it_was(animals: Index) -> None:
    before = answers(animals, "big dog tree", ENCODER)
    view = without(animals, "a", Span(0, len(TEXTS["a"])), ENCODER)
    assert answers(view, "big dog tree", ENCODER) != before
    assert answers(animals, "big dog tree", ENCODER) == before
    assert animals.contents(np.array([0], np.int32)) == {0: TEXTS["a"]}


def test_a_quoted_phrase_is_looked_for_in_what_is_left(animals: Index) -> None:
    view = without(animals, "a", place(animals, "a", "big tree"), ENCODER)
    assert found(animals, '"big tree"', ENCODER)[0] > found(view, '"big tree"', ENCODER).get(0, 0)
    assert list(view.holding(["big", "tree"])) == []
    assert list(animals.holding(["big", "tree"])) == [0]
    assert view.contents(numbers(view))[0] == "cat cat dog, under the "


def test_a_hidden_heading_is_hidden_in_titles_and_heading_paths_too(domains: dict[Domain, Index]) -> None:
    generation, encoder = domains[Domain.DOCUMENTATION], HashEncoder(dimensions=64)
    view = without(generation, "api.md", place(generation, "api.md", "## Error handling"), encoder)
    before, after = (one.chunks(numbers(one)) for one in (generation, view))
    changed = [number for number in before if before[number] != after[number]]
    assert [before[number].section for number in changed] == ["Payments API > Error handling"]
    assert [after[number].section for number in changed] == ["Payments API"]
    assert asked_keys("error handling") & set(generation.named(asked_keys("error handling")))
    assert not view.named(asked_keys("error handling"))
    own = np.array(changed, np.int32)
    left = after[changed[0]].content
    assert view.vectors(own)[0] == pytest.approx(encoder.encode([f"Payments API\n{left}"])[0], abs=1e-5)


def test_a_hidden_title_is_hidden_in_all_chunks_of_its_document(domains: dict[Domain, Index]) -> None:
    generation = domains[Domain.RESEARCH]
    title = "Retry storms in card networks"
    view = without(generation, "storms.md", place(generation, "storms.md", f"# {title}"), HashEncoder(dimensions=64))
    own = [number for number, chunk in generation.chunks(numbers(generation)).items() if chunk.path == "storms.md"]
    assert len(own) > 1
    term = analyzer.query_terms("storms")[0]
    weights = view.sparse({analyzer.query_terms("networks")[0]: 1.0})
    assert not weights[own].any()
    assert generation.sparse({analyzer.query_terms("networks")[0]: 1.0})[own].all()
    assert view.sparse({term: 1.0})[own].all()  # the path still says it
    assert not view.named(asked_keys(title))


def test_a_hidden_message_is_hidden_where_later_messages_remember_it(tmp_path: Path) -> None:
    asked = "which acquirer answers slowly since the failover of last night"
    said = ["it is the second one, " + "its queue was never drained " * 20, "closing this " + "after the drill " * 40]
    talk = [("dana", asked), *(("bob", one) for one in said)]
    lines = [f"[2026-01-12 09:{minute:02d}] {speaker}: {one}" for minute, (speaker, one) in enumerate(talk)]
    configured = write_workspace(tmp_path)
    (tmp_path / "chat/ops.log").write_text("\n".join(lines), encoding="utf-8")
    publish(configured, Domain.CONVERSATIONS)
    with opened(configured, Domain.CONVERSATIONS) as generation:
        chunks = generation.indexed_documents("ops.log")[0].chunks
        quoting = [number for number, chunk in chunks if "failover" in chunk.context]
        assert quoting
        encoder = Remembering(64)
        view = without(generation, "ops.log", place(generation, "ops.log", f"dana: {asked}"), encoder)
        assert encoder.asked
        assert not any("failover" in text for text in encoder.asked)
        assert {number: view.contents(numbers(view))[number] for number in quoting} == {
            number: chunk.content for number, chunk in chunks if number in quoting
        }


def test_in_html_the_words_are_hidden_wherever_the_chunk_shows_them(tmp_path: Path) -> None:
    configured = write_workspace(tmp_path)
    (tmp_path / "docs/start.html").write_text(
        "<html><body><h1>First steps</h1><p>Welcome to all.</p><h2>Rotate the <em>signing</em> key</h2>"
        "<p>Ask the vault for a new one, and tell the partners when it changes.</p></body></html>",
        encoding="utf-8",
    )
    publish(configured, Domain.DOCUMENTATION)
    with opened(configured, Domain.DOCUMENTATION) as generation:
        hidden = place(generation, "start.html", "Rotate the <em>signing</em> key")
        view = without(generation, "start.html", hidden, HashEncoder(dimensions=64))
        before, after = (one.chunks(numbers(one)) for one in (generation, view))
        changed = [number for number in before if before[number] != after[number]]
        assert len(changed) == 1
        assert "Rotate the signing key" in before[changed[0]].content
        assert "signing" not in after[changed[0]].content
        assert "Ask the vault" in after[changed[0]].content
        assert after[changed[0]].section == "First steps"


@pytest.mark.parametrize(("hidden", "line", "kept"), [
    ("## Refunds", "Payments API > Refunds", "Payments API"),
    ("## Refunds", "Payments API > Refunds and chargebacks", "Payments API > Refunds and chargebacks"),
    ("## Rate *limits* of a key<a name='x'></a>", "API > Rate limits of a key", "API"),
    ("Rate limits of a key", "#12 Rate limits of a key", "#12"),
    ("bob: who has drained the queue of shard 4 since noon?", "bob: who has drained the queue …", None),
    ("Return the status of a payment.", "PaymentStatus", "PaymentStatus"),
    ("Return the status", "the status", "the status"),
])  # fmt: skip
def test_quotations_are_told_from_shared_words(hidden: str, line: str, kept: str | None) -> None:
    assert Quoted(hidden).cleared(line) == kept


@pytest.mark.parametrize("text", ["a " * 20_000, "a" * 50_000, "<a " * 10_000, "> " * 20_000, "a.b" * 10_000 + " !"])
def test_hostile_text_takes_no_time(text: str) -> None:
    def clear(text: str) -> None:
        re.purge()  # compiling the pattern is a part of the cost
        for hidden in (text, text[:900], "a a a a a a b", "a b c"):
            quoted = Quoted(hidden)
            quoted.cleared_lines(text)
            quoted.cut(text)

    assert_subquadratic(clear, lambda size: (4 * text)[:size], 4 * len(text))


def test_every_view_of_a_generation_with_something_hidden_hides_it() -> None:
    """What is passed on would answer with the text: a view of a view is made by the view itself."""
    views = {
        name for name, member in vars(Index).items() if getattr(member, "__annotations__", {}).get("return") == "Index"
    }
    assert {"seen_by", "without"} <= views <= set(vars(_Without))
