"""The four retrieval sources, on real generations: scores by hand calculation, phrases, names, and what fails."""

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recall_workspace import paths_of
from support import MemorySource, memory_parts, sync

from nornweave.ask.search.combine import EXACT
from nornweave.ask.search.exact import DEFINED, LEAST
from nornweave.ask.search.query import read_query, statistics_of
from nornweave.ask.search.retrievers import (
    RetrieverFinding,
    search_dense,
    search_fulltext,
    search_sparse,
    search_structured,
    term_weights,
)
from nornweave.ask.search.search import SearchContext, SearchOutcome, search
from nornweave.config import PlanSettings, SourceWeights
from nornweave.core.errors import EncoderError
from nornweave.core.types import Domain
from nornweave.index.index import Index
from nornweave.models.encoders.hashing import HashEncoder
from nornweave.models.encoders.port import EncodedQuery, encode_queries

PLAIN = PlanSettings(document_share=0, function_words=1)
TRACEBACK = "ERROR [worker 4] connection reset by peer: errno=104"


def published(folder: Path, texts: dict[str, str], limit: int = 16) -> Index:
    source = MemorySource()
    for path, text in texts.items():
        source.write(path, text)
    parts = memory_parts(folder, source, limit=limit)
    report = sync(parts)
    assert report.generation is not None
    return parts.store.files.open(report.generation)


@pytest.fixture(scope="module")
def animals(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    """Three chunks of 4, 3 and 5 terms, their paths included."""
    texts = {"a": "cat cat dog", "b": "dog bird", "c": "bird bird bird fish"}
    with published(tmp_path_factory.mktemp("animals"), texts) as generation:
        yield generation


@pytest.fixture(scope="module")
def phrases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    """Three hundred chunks that hold the same words as two others, which have them side by side."""
    texts = {f"{number:03d}": f"we retry; some limit => no {number}" for number in range(300)}
    texts["y"] = "the\n  Retry\tLIMIT\u00a0is three"
    texts["z"] = "limit => retry"
    texts["old"] = "drops Python 3.1"
    texts["new"] = "drops python 3.10, at last"
    with published(tmp_path_factory.mktemp("phrases"), texts) as generation:
        yield generation


def scores_of(finding: RetrieverFinding) -> list[float]:
    assert finding.scores is not None
    return list(finding.scores.tolist())


def found_paths(generation: Index, finding: RetrieverFinding) -> list[str]:
    return paths_of(generation, finding.hits.numbers)


def weights_of(text: str, generation: Index, plan: PlanSettings = PLAIN) -> dict[str, float]:
    query = read_query(text)
    return term_weights(query, statistics_of(query, generation), plan)


def sparse(text: str, generation: Index, plan: PlanSettings = PLAIN, within: Any = None) -> RetrieverFinding:
    return search_sparse(weights_of(text, generation, plan), generation, plan, 10, within)


def fulltext(text: str, generation: Index, within: Any = None, k: int = 10) -> RetrieverFinding:
    query = read_query(text)
    return search_fulltext(query, weights_of(text, generation), generation, k, within)


# Sparse


def idf(held_by: int, chunks: int = 3) -> float:
    return math.log(1 + (chunks - held_by + 0.5) / (held_by + 0.5))


def saturated(times: int, length: int, average: float = 4) -> float:
    return times * 2.2 / (times + 1.2 * (1 - 0.75 + 0.75 * length / average))


def test_idf_by_hand(animals: Index) -> None:
    weights = weights_of("cat dog unicorn", animals)
    assert weights == pytest.approx({"cat": idf(1), "dog": idf(2), "unicorn": idf(0)})
    assert weights["dog"] == pytest.approx(math.log(1.6))


def test_bm25_on_its_theoretical_bound_by_hand(animals: Index) -> None:
    """The bound is what a chunk would score that repeats every term endlessly: (k1 + 1) · Σ idf."""
    bound = 2.2 * (idf(1) + idf(2))
    expected = [(idf(1) * saturated(2, 4) + idf(2) * saturated(1, 4)) / bound, idf(2) * saturated(1, 3) / bound, 0.0]
    finding = sparse("dog cat", animals)
    assert scores_of(finding) == pytest.approx(expected, rel=1e-5)
    assert finding.hits.numbers.tolist() == [0, 1]


def test_a_word_that_is_nowhere_lowers_every_score(animals: Index) -> None:
    """Half of what was asked for is not there: a weak answer, which must look weak beside other domains'."""
    with_it, without = scores_of(sparse("cat unicorn", animals)), scores_of(sparse("cat", animals))
    assert with_it[0] == pytest.approx(without[0] * idf(1) / (idf(1) + idf(0)), rel=1e-5)


def test_function_words_count_for_less_by_the_plan(animals: Index) -> None:
    full = weights_of("the cat", animals)
    less = weights_of("the cat", animals, PlanSettings(function_words=0.3))
    assert less == pytest.approx({"the": 0.3 * full["the"], "cat": full["cat"]})
    none = PlanSettings(function_words=0, document_share=0)
    assert scores_of(sparse("the cat", animals, none)) == scores_of(sparse("cat", animals, none))


def test_function_words_alone(animals: Index) -> None:
    """Counting for nothing they find nothing; there is no bound to divide by."""
    for plan in (PLAIN, PlanSettings(function_words=0)):
        assert scores_of(sparse("what is the", animals, plan)) == [0, 0, 0]


def test_document_share_by_hand(tmp_path: Path) -> None:
    """Half of a term's part comes from where the chunk's document says it best, of its other chunks too."""
    texts = {"one": "alpha alpha beta\n\n\n\nbeta gamma delta", "two": "alpha epsilon zeta"}
    with published(tmp_path, texts, limit=3) as generation:
        chunks = generation.chunks(np.arange(generation.chunk_count, dtype=np.int32))
        assert [chunk.path for chunk in chunks.values()] == ["one", "one", "two"]
        none = generation.sparse({"alpha": 2.0})
        half = generation.sparse({"alpha": 2.0}, 0.5)
        whole = generation.sparse({"alpha": 2.0}, 1.0)
    first, second, third = none.tolist()
    assert first > third > second == 0
    assert half.tolist() == pytest.approx([first, first / 2, third])
    assert whole.tolist() == pytest.approx([first, first, third])


TEXTS = st.lists(
    st.lists(st.sampled_from(["cat", "dog", "Größe", "支付", "the"]), min_size=1, max_size=12).map(" ".join),
    min_size=1,
    max_size=5,
)


@settings(max_examples=8)
@given(TEXTS, st.lists(st.sampled_from(["cat", "Größe", "支付", "the", "unicorn"]), min_size=1, max_size=4))
def test_no_chunk_reaches_the_bound(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], words: list[str]
) -> None:
    with published(tmp_path_factory.mktemp("bound"), {f"{n}": text for n, text in enumerate(texts)}) as generation:
        for share in (0.0, 0.5, 1.0):
            plan = PlanSettings(document_share=share, function_words=0.3)
            assert all(0 <= score < 1 for score in scores_of(sparse(" ".join(words), generation, plan)))
        assert all(0 <= score <= 1 for score in scores_of(fulltext(" ".join(words), generation)))
        assert all(0 <= score <= 1 for score in scores_of(structured(" ".join(words), generation)))


# Full text


@pytest.mark.parametrize("query", [
    '"retry limit"', '"RETRY  Limit"', "`retry\tlimit`", "“retry limit is three”", 'what is "the retry limit"',
    'where do we find the number of the "retry limit" of some other thing that nobody wrote down?',
])  # fmt: skip
def test_a_quoted_phrase_is_found_whatever_its_case_and_blank_space(phrases: Index, query: str) -> None:
    finding = fulltext(query, phrases)
    assert found_paths(phrases, finding)[0] == "y"
    assert finding.hits.scores[0] == 1
    assert scores_of(finding).count(1) == 1, "its words alone are no phrase"


@pytest.mark.parametrize(("version", "path"), [("3.1", "old"), ("3.10", "new")])
def test_a_product_and_its_version_are_one_phrase(phrases: Index, version: str, path: str) -> None:
    scores = scores_of(fulltext(f"which release drops support for Python {version}", phrases))
    [held] = np.flatnonzero(np.equal(scores, 1))
    assert paths_of(phrases, [held]) == [path]


def test_a_quoted_word_tells_by_how_rare_it_is(phrases: Index) -> None:
    """A value of an error message stands in quotation marks too, and may stand anywhere."""
    rare, frequent = (max(scores_of(fulltext(f'no such thing: "{word}"', phrases))) for word in ("three", "limit"))
    assert 1 == rare > frequent > 0


def test_a_phrase_is_read_word_for_word(phrases: Index) -> None:
    """The pair is there ("limit => retry"), the phrase is not."""
    assert 1 not in scores_of(fulltext('what about "limit retry" and other things', phrases))


def test_a_phrase_of_punctuation(phrases: Index) -> None:
    finding = fulltext('"=>"', phrases, k=400)
    assert set(found_paths(phrases, finding)) <= {f"{number:03d}" for number in range(300)} | {"z"}
    assert set(finding.hits.scores.tolist()) == {1}
    assert len(fulltext('"<=>"', phrases).hits) == 0


@pytest.mark.parametrize(("query", "path"), [('"=>"', "z"), ('"some limit"', "299"), ('"we retry; some limit"', "250")])
def test_a_filter_loses_no_phrase(phrases: Index, query: str, path: str) -> None:
    numbers = np.arange(phrases.chunk_count, dtype=np.int32)
    within = np.array([one == path for one in paths_of(phrases, numbers)])
    assert within.sum() == 1
    assert found_paths(phrases, fulltext(query, phrases, within)) == [path]


def test_a_phrase_in_another_script(domains: dict[Domain, Index]) -> None:
    generation = domains[Domain.DOCUMENTATION]
    for query in ('"支付 失败"', '"LÄNGE STEHT im überwachungsbild"'):
        finding = fulltext(query, generation)
        assert found_paths(generation, finding) == ["operations/runbook.md"]
        assert finding.hits.scores.tolist() == [1]


@pytest.mark.parametrize(("domain", "query"), [
    (Domain.DOCUMENTATION, TRACEBACK),
    (Domain.DOCUMENTATION, f"2026-01-16T10:00:00Z host7 {TRACEBACK.lower()}"),
    (Domain.CODE, "TimeoutError: upstream acquirer timed out: shard 4 is unreachable"),
    (Domain.CODE, "upstream   acquirer\ntimed out"),
    (Domain.CONVERSATIONS, "which shard is fakturo on"),
])  # fmt: skip
def test_a_pasted_message_finds_its_chunk_first(domains: dict[Domain, Index], domain: Domain, query: str) -> None:
    generation = domains[domain]
    finding = fulltext(query, generation)
    (first,) = generation.contents(finding.hits.numbers[:1]).values()
    assert "errno=104" in first or "shard 4 is unreachable" in first or "fakturo" in first
    assert len(finding.hits) == 1 or finding.hits.scores[0] > 2 * finding.hits.scores[1]


def test_the_share_of_word_pairs_by_hand(animals: Index) -> None:
    """ "cat dog" is a pair of chunk 0, "dog fish" of none: by the idf of their words."""
    have, lack = idf(1) + idf(2), idf(2) + idf(1)
    assert scores_of(fulltext("cat dog fish", animals)) == pytest.approx([have / (have + lack), 0, 0])
    assert scores_of(fulltext("cat dog", animals))[0] == pytest.approx(1)
    assert scores_of(fulltext("cat", animals)) == [0, 0, 0], "one word is no pair"


# Structured


def structured(text: str, generation: Index, within: Any = None) -> RetrieverFinding:
    return search_structured(read_query(text), generation, 10, within)


def test_rarity_by_hand(domains: dict[Domain, Index]) -> None:
    """1 − ln n / ln (N + 1): Dana is in both chunks of two, ``ops`` too; Bob in one."""
    generation = domains[Domain.CONVERSATIONS]
    assert generation.chunk_count == 2
    of_all = 1 - math.log(2) / math.log(3)
    assert scores_of(structured("Dana", generation)) == pytest.approx([of_all, of_all])
    assert scores_of(structured("Dana in #ops", generation)) == pytest.approx([1 - (1 - of_all) ** 2] * 2)
    assert scores_of(structured("Bob", generation)) == [1, 0]
    assert scores_of(structured("Bob and Dana", generation)) == pytest.approx([1, of_all])
    assert scores_of(structured("Nobody", generation)) == [0, 0]


# All of them


class Failing(HashEncoder):
    """An encoder whose model went away."""

    def encode_query(self, text: str) -> Any:
        raise EncoderError("the model is gone; start it again")


class Defective(HashEncoder):
    """An encoder that answers in another number of dimensions than it says."""

    def encode_query(self, text: str) -> Any:
        return super().encode_query(text)[:-1]


def search_all(
    text: str,
    generation: Index,
    pool: ThreadPoolExecutor,
    *,
    encoder: HashEncoder | None = None,
    plan: PlanSettings = PLAIN,
    within: Any = None,
) -> SearchOutcome:
    context = SearchContext(
        domain=Domain.CODE,
        generation=generation,
        plan=plan,
        encode=lambda asked: pool.submit(lambda: encode_queries(encoder or HashEncoder(64), [asked])[0]),
        executor=pool,
        within=within,
    )
    return search(read_query(text), context)


def test_every_source_adds_its_part(domains: dict[Domain, Index], pool: ThreadPoolExecutor) -> None:
    found = search_all("handle_payment_error", domains[Domain.CODE], pool)
    assert dict(found.states) == dict.fromkeys(("dense", "sparse", "fulltext", "structured"), "ok")
    assert dict(found.reasons) == {}
    assert sum(found.weights.values()) == pytest.approx(1)
    first = {name: float(part[0]) for name, part in found.ranking.contributions.items()}
    assert first["structured"] == pytest.approx(PLAIN.weights.structured), "a symbol that is defined once counts 1"
    assert first["fulltext"] == pytest.approx(PLAIN.weights.fulltext)
    votes = math.fsum(part for name, part in first.items() if name != EXACT)
    assert first[EXACT] == pytest.approx((1 - votes) * (DEFINED - LEAST) / (1 - LEAST)), (
        "defined once, all of the query"
    )
    assert all(part > 0 for part in first.values())
    assert math.fsum(first.values()) == pytest.approx(found.ranking.scores[0])


@pytest.mark.parametrize("combine", ["convex", "rrf"])
@pytest.mark.parametrize(
    ("encoder", "reason"),
    [(Failing(64), "dense: the model is gone; start it again"), (Defective(64), "dense: ")],
    ids=["failing", "defective"],
)
def test_a_source_that_fails_is_named_and_the_others_answer(
    domains: dict[Domain, Index], pool: ThreadPoolExecutor, encoder: HashEncoder, reason: str, combine: Any
) -> None:
    plan = replace_plan(combine)
    generation = domains[Domain.CODE]
    healthy = search_all("payment error", generation, pool, plan=plan)
    found = search_all("payment error", generation, pool, encoder=encoder, plan=plan)
    assert dict(found.states) == {**healthy.states, "dense": "failed"}
    assert found.reasons["dense"].startswith(reason)
    assert set(found.findings) == {"sparse", "fulltext", "structured"}
    assert len(found.ranking) > 0
    assert "dense" not in found.ranking.contributions
    # What remains counts as much as it did: a half-blind domain does not look better than a whole one.
    for name in found.findings:
        mine = dict(zip(found.ranking.numbers.tolist(), found.ranking.contributions[name].tolist(), strict=True))
        theirs = dict(zip(healthy.ranking.numbers.tolist(), healthy.ranking.contributions[name].tolist(), strict=True))
        assert mine == {number: pytest.approx(theirs[number]) for number in mine}


def replace_plan(combine: Any) -> PlanSettings:
    return PlanSettings(combine=combine, document_share=0, function_words=1)


def test_a_query_without_words_leaves_every_source_empty_by_name(animals: Index, pool: ThreadPoolExecutor) -> None:
    found = search_all("🙂", animals, pool, encoder=HashEncoder(16))
    assert {name: state for name, state in found.states.items() if name != "dense"} == dict.fromkeys(
        ("sparse", "fulltext", "structured"), "empty"
    )
    assert found.states["dense"] in {"ok", "empty"}


def test_negative_similarity_is_no_evidence(animals: Index) -> None:
    query = EncodedQuery("cat cat dog", -HashEncoder(16).encode_query("cat cat dog"))
    hits = search_dense(query, animals, 10, None).hits
    assert (hits.scores > 0).all()
    assert 0 not in hits.numbers


def test_what_a_source_ranks_beyond_its_depth_still_counts(
    domains: dict[Domain, Index], pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Depth limits who is a candidate, not what is known of one."""
    generation = domains[Domain.CODE]
    deep = search_all("payment error ledger entry", generation, pool)
    monkeypatch.setattr("nornweave.ask.search.search.CANDIDATES", 1)
    shallow = search_all("payment error ledger entry", generation, pool)
    assert len(shallow.ranking) < len(deep.ranking)
    known = dict(zip(deep.ranking.numbers.tolist(), deep.ranking.scores.tolist(), strict=True))
    for number, score in zip(shallow.ranking.numbers.tolist(), shallow.ranking.scores.tolist(), strict=True):
        assert score == pytest.approx(known[number])


@settings(max_examples=30)
@given(st.sampled_from(["payment error", "handle_payment_error", '"shard 4"', "Dana", "422"]), st.data())
def test_filters_reach_every_source(
    domains: dict[Domain, Index], pool: ThreadPoolExecutor, text: str, data: st.DataObject
) -> None:
    """A filtered answer is the whole answer without what does not qualify."""
    generation = domains[data.draw(st.sampled_from(list(Domain)))]
    size = generation.chunk_count
    within = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)), np.bool_)
    whole = search_all(text, generation, pool)
    part = search_all(text, generation, pool, within=within)
    expected = [number for number in whole.ranking.numbers.tolist() if within[number]]
    assert part.ranking.numbers.tolist() == expected
    scores = dict(zip(whole.ranking.numbers.tolist(), whole.ranking.scores.tolist(), strict=True))
    assert part.ranking.scores.tolist() == pytest.approx([scores[number] for number in expected], abs=1e-6)


def test_a_similarity_is_one_at_most(domains: dict[Domain, Index], pool: ThreadPoolExecutor) -> None:
    """Single precision puts a vector's product with itself just above 1."""
    generation = domains[Domain.CODE]
    plan = PlanSettings(weights=SourceWeights(dense=1, sparse=0, fulltext=0, structured=0))
    numbers = np.arange(generation.chunk_count, dtype=np.int32)
    for text in generation.contents(numbers).values():
        assert search_all(text, generation, pool, plan=plan).ranking.scores.max() <= 1
