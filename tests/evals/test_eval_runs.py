from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from word_searcher import Passage, WordSearcher

from evals.judgments import JudgedQuery, JudgedSet, Judgment, JudgmentError, parse_place
from evals.measures import DEEPEST, JudgedHits
from evals.results import ITEMS, ResultScope, SetResult
from evals.runs import evaluate
from evals.targets import domain_of_set
from nornweave.core.types import Domain

CODE, DOCS, CHAT = Domain.CODE, Domain.DOCUMENTATION, Domain.CONVERSATIONS


def judgment(doc_id: str, grade: int = 1, query_id: str = "q") -> Judgment:
    return Judgment(query_id, *parse_place(doc_id), grade)


def places(
    ranking: Sequence[Passage], *doc_ids: str, by_document: bool = False, own: Domain = CODE
) -> tuple[tuple[str, ...], ...]:
    hits = JudgedHits([judgment(doc_id) for doc_id in doc_ids], own, {})
    return hits.places([passage.citation for passage in ranking], by_document=by_document)


def judged(queries: Sequence[JudgedQuery], judgments: Sequence[Judgment], name: str = "set") -> JudgedSet:
    return JudgedSet(name, tuple(queries), tuple(judgments))


def means(result: SetResult, scope: ResultScope = ResultScope.DOMAIN, stage: str = "fused") -> dict[str, float]:
    run = result.scope(scope)
    assert run is not None
    measured = run.stage(stage)
    assert measured is not None
    return {name: metric.mean for name, metric in measured.metrics.items()}


# --- places -----------------------------------------------------------------------------------------------------


def test_equal_paths_in_two_sources_are_two_documents() -> None:
    ranking = [
        Passage(DOCS, "x.md", "", source="one"),
        Passage(DOCS, "x.md", "", source="two"),
        Passage(DOCS, "a.md", ""),
    ]
    assert places(ranking, "a.md", by_document=True, own=DOCS) == ((), (), ("a.md#",))


_ITEMS = st.lists(
    st.builds(
        Passage,
        st.sampled_from([CODE, DOCS]),
        st.sampled_from(["a", "b"]),
        st.just(""),
        lines=st.tuples(st.integers(1, 6), st.integers(6, 9)),
        messages=st.none() | st.lists(st.sampled_from("123"), max_size=3).map(tuple),
    ),
    max_size=30,
)
_JUDGMENTS = st.lists(
    st.tuples(st.sampled_from(["a", "b", "a#L2-4", "a#L3", "b#L8-9", "a#1", "a#2", "b#3"]), st.integers(1, 3)),
    min_size=1,
    unique_by=lambda one: one[0],
)


@given(_ITEMS, _JUDGMENTS, st.booleans())
def test_every_judgment_is_credited_once_where_it_is_first_hit(
    items: list[Passage], graded: list[tuple[str, int]], by_document: bool
) -> None:
    judgments = [judgment(doc_id, grade) for doc_id, grade in graded]
    found = JudgedHits(judgments, CODE, {}).places([one.citation for one in items], by_document=by_document)
    if by_document:
        firsts: dict[tuple[Domain, str], Passage] = {}
        for one in items:
            firsts.setdefault((one.domain, one.path), one)
        items = list(firsts.values())
    assert len(found) == min(len(items), DEEPEST)
    expected: dict[str, int] = {}
    for one in judgments:
        ranks = [rank for rank, item in enumerate(items[:DEEPEST]) if item.domain is CODE and one.hit_by(item.citation)]
        if ranks:
            expected[one.key] = ranks[0]
    assert {key: rank for rank, keys in enumerate(found) for key in keys} == expected
    assert sum(map(len, found)) == len(expected)


# --- a set against a corpus ---------------------------------------------------------------------------------------

CORPUS = (
    Passage(CHAT, "red/1.json", "lunch is at noon", messages=("1", "2")),
    Passage(CHAT, "red/2.json", "the deploy failed at noon", messages=("3",)),
    Passage(CHAT, "blue/1.json", "lunch is at one", messages=("4", "5")),
    Passage(DOCS, "lunch.md", "lunch is at noon every day in the canteen", lines=(1, 5)),
    Passage(DOCS, "deploy.md", "how to deploy", lines=(1, 5)),
    Passage(DOCS, "deploy.md", "when a deploy failed", lines=(6, 9)),
)
CHAT_SET = judged(
    [
        JudgedQuery("lunch red", "when is lunch", {"folder": "red/"}),
        JudgedQuery("lunch blue", "when is lunch", {"folder": "blue/"}),
        JudgedQuery("deploy", "deploy failed"),
    ],
    [
        judgment("red/1.json#1", query_id="lunch red"),
        judgment("red/1.json#2", query_id="lunch red"),
        judgment("blue/1.json#5", query_id="lunch blue"),
        judgment("red/2.json#3", query_id="deploy"),
    ],
    "chat",
)
DOCS_SET = judged(
    [JudgedQuery("lunch", "when is lunch"), JudgedQuery("deploy", "deploy failed")],
    [judgment("lunch.md", query_id="lunch"), judgment("deploy.md", query_id="deploy")],
    "docs",
)


def test_a_set_runs_in_its_domain_with_and_without_filters_and_in_all_domains() -> None:
    searcher = WordSearcher(CORPUS)
    result = evaluate(searcher, CHAT_SET)
    assert (result.name, result.domain, result.queries, result.measured, result.judgments) == ("chat", CHAT, 3, 3, 4)
    assert [run.scope for run in result.scopes] == [ResultScope.DOMAIN, ResultScope.UNFILTERED, ResultScope.EVERYWHERE]
    # With its folder each lunch comes first; without, the second lunch is second (ties as listed); everywhere, the
    # canteen's page names lunch in its path and pushes both down by one, the deploy pages push that one down by one.
    assert means(result)["RR@10"] == pytest.approx(1)
    assert means(result, ResultScope.UNFILTERED)["RR@10"] == pytest.approx((1 + 1 / 2 + 1) / 3)
    assert means(result, ResultScope.EVERYWHERE)["RR@10"] == pytest.approx((1 / 2 + 1 / 3 + 1 / 2) / 3)
    assert means(result, ResultScope.EVERYWHERE)["Recall@10"] == 1
    assert searcher.asked[0] == ("when is lunch", (CHAT,), {CHAT: {"folder": "red/"}}, 10)
    assert searcher.asked[2] == ("deploy failed", (CHAT,), {}, 10)
    assert searcher.asked[3] == ("when is lunch", (CHAT,), {}, 10)
    assert searcher.asked[6] == ("when is lunch", None, {}, 10)


def test_stages_come_in_the_order_of_the_query_path_each_with_its_own_measures() -> None:
    result = evaluate(WordSearcher(CORPUS), DOCS_SET)
    run = result.scopes[0]
    assert [stage.stage for stage in run.stages] == ["sparse", "structured", "fused"]
    assert [run.scope for run in result.scopes] == [ResultScope.DOMAIN, ResultScope.EVERYWHERE], "no query has filters"
    assert [stage.answered for stage in run.stages] == [2, 2, 2]
    chat = evaluate(WordSearcher(CORPUS), CHAT_SET)
    structured = chat.scopes[0].stage("structured")
    assert structured is not None
    assert (structured.answered, structured.metrics["Recall@10"].mean) == (0, 0), "no path of a chat names a word"
    assert ITEMS not in structured.metrics, "every item keeps its place where messages are judged"


def test_documents_are_counted_once_and_items_told_apart() -> None:
    corpus = [
        *(Passage(DOCS, "long.md", "deploy deploy", lines=(n, n)) for n in range(1, 12)),
        Passage(DOCS, "a.md", "deploy", lines=(1, 2)),
    ]
    set_ = judged([JudgedQuery("q", "deploy")], [judgment("a.md")])
    found = means(evaluate(WordSearcher(corpus), set_), stage="sparse")
    assert found["Recall@10"] == 1
    assert found["RR@10"] == pytest.approx(1 / 2)
    assert found[ITEMS] == 0, "eleven chunks of one document stand before it"


def test_a_query_with_a_place_in_a_document_keeps_items_in_their_places() -> None:
    """Queries differ: the first judges a whole document, the second a document and lines of another one."""
    corpus = [
        *(Passage(DOCS, "long.md", "deploy", lines=(n, n)) for n in range(1, 4)),
        Passage(DOCS, "a.md", "deploy", lines=(1, 2)),
    ]
    set_ = judged(
        [JudgedQuery("whole", "deploy"), JudgedQuery("lines", "deploy")],
        [
            judgment("a.md", query_id="whole"),
            judgment("a.md", query_id="lines"),
            judgment("long.md#L9", query_id="lines"),
        ],
    )
    stage = evaluate(WordSearcher(corpus), set_).scopes[0].stage("sparse")
    assert stage is not None
    assert stage.metrics["RR@10"].values == pytest.approx({"whole": 1 / 2, "lines": 1 / 4})


def test_queries_that_fail_are_listed_and_count_as_unanswered() -> None:
    set_ = judged(
        [
            JudgedQuery("blank", " "),
            JudgedQuery("lunch", "when is lunch"),
            JudgedQuery("filter", "lunch", {"speaker": "x"}),
        ],
        [judgment("lunch.md", query_id=query) for query in ("blank", "lunch", "filter")],
    )
    result = evaluate(WordSearcher(CORPUS), set_)
    failures = {run.scope: [(one.query_id, one.reason) for one in run.failures] for run in result.scopes}
    blank = ("blank", "query: blank; ask something")
    assert failures == {
        ResultScope.DOMAIN: [blank, ("filter", "filters.documentation.speaker: unknown; allowed: folder")],
        ResultScope.UNFILTERED: [blank],
        ResultScope.EVERYWHERE: [blank],
    }
    assert means(result)["RR@10"] == pytest.approx(1 / 3)
    assert means(result, ResultScope.UNFILTERED)["RR@10"] == pytest.approx(2 / 3)
    assert result.scopes[0].stages[-1].answered == 1


def test_a_damaged_domain_gives_zeros_and_reasons_not_an_end() -> None:
    result = evaluate(WordSearcher(CORPUS, damaged={CODE}), DOCS_SET)
    own, everywhere = result.scopes
    assert not own.failures
    assert [one.reason for one in everywhere.failures] == ["code: cannot be read"] * 2
    assert [(stage.stage, stage.answered) for stage in everywhere.stages] == [("fused", 0)]
    assert set(means(result, ResultScope.EVERYWHERE).values()) == {0}
    assert (everywhere.p50_ms, everywhere.p95_ms) == (None, None)
    assert own.p50_ms is not None
    assert own.p95_ms is not None
    assert 0 <= own.p50_ms <= own.p95_ms


def test_unjudged_queries_are_not_run_and_missing_documents_are_misses_on_request() -> None:
    set_ = judged(
        [JudgedQuery("lunch", "when is lunch"), JudgedQuery("nobody judged", "x"), JudgedQuery("only wrong", "y")],
        [
            judgment("lunch.md", query_id="lunch"), judgment("gone.md", query_id="lunch"),
            judgment("red/1.json", query_id="lunch"), judgment("never.md", grade=0, query_id="only wrong"),
        ],
    )  # fmt: skip
    searcher = WordSearcher(CORPUS)
    result = evaluate(searcher, set_, domains=(DOCS,), scopes=(ResultScope.DOMAIN,), count_missing=True)
    assert (result.queries, result.measured) == (3, 1)
    assert result.unjudged == ("nobody judged", "only wrong")
    assert result.missing == ("gone.md",)
    assert result.elsewhere == ("red/1.json",)
    assert [text for text, *_ in searcher.asked] == ["when is lunch"]
    assert means(result)["Recall@10"] == pytest.approx(1 / 3)
    left_out = evaluate(searcher, set_, domains=(DOCS,), scopes=(ResultScope.DOMAIN,))
    assert (left_out.missing, left_out.measured, left_out.judgments) == (("gone.md",), 1, 2)
    assert means(left_out)["Recall@10"] == pytest.approx(1 / 2)
    assert left_out.digests != result.digests, "values over other judgments cannot be compared"


def test_questions_without_an_answer_are_run_and_told_by_their_scores() -> None:
    set_ = judged(
        [
            JudgedQuery("lunch", "when is lunch", kind="easy"),
            JudgedQuery("deploy", "deploy failed", kind="hard"),
            JudgedQuery("nothing", "zebra", answerable=False),
            JudgedQuery("little", "zebra parade is", answerable=False),
        ],
        [judgment("lunch.md", query_id="lunch"), judgment("deploy.md", query_id="deploy")],
    )
    searcher = WordSearcher(CORPUS)
    run = evaluate(searcher, set_, scopes=(ResultScope.DOMAIN,)).scopes[0]
    assert {text for text, *_ in searcher.asked} == {query.text for query in set_.queries}
    assert run.confidence is not None
    assert (run.confidence.answerable, run.confidence.unanswerable, run.confidence.auc.value) == (2, 2, 1)
    assert [(kind.kind, kind.queries, kind.metrics["RR@10"].mean) for kind in run.kinds] == [
        ("easy", 1, 1),
        ("hard", 1, 1),
    ]


# --- whose set is it ----------------------------------------------------------------------------------------------


def test_a_set_belongs_where_most_of_its_documents_lie() -> None:
    held = {"a": CODE, "b": DOCS, "c": DOCS}
    assert domain_of_set("s", ["a", "b", "c", "d"], held) is DOCS
    assert domain_of_set("s", ["a", "b", "c", "d"], held, (CODE, CHAT)) is CODE
    assert domain_of_set("s", ["a", "b", "c", "d"], held, (CHAT,)) is CHAT, "named, so it holds, whatever is published"
    assert domain_of_set("s", ["a", "b"], {"a": DOCS, "b": CODE}) is CODE, "ties by the order of the domains"


def test_a_set_for_another_corpus_is_refused() -> None:
    paths = ["x.md", "y.md", "z.md", "zz.md"]
    with pytest.raises(JudgmentError, match=r"'s'.*none of its 4 judged documents.*x.md, y.md, z.md, ….*--domain"):
        domain_of_set("s", paths, {})
    with pytest.raises(JudgmentError, match=r"published generation of code, conversations "):
        domain_of_set("s", paths, {"x.md": DOCS}, (CODE, CHAT))
