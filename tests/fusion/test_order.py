"""The order of the first places: by the question's words, words side by side, and the kind of a passage."""

from dataclasses import replace

import pytest
from fusion_support import day, fused, item, response

from nornweave.ask.fuse.order import PLACES, features, order
from nornweave.ask.fuse.pipeline import Stopwatch, fuse
from nornweave.ask.fuse.records import FusedItem, Recalled
from nornweave.ask.search.question import Question
from nornweave.config.workspace import FusionSettings
from nornweave.core.access import OPERATOR
from nornweave.disagree.conflicts.records import NO_NOTES

QUESTION = "Can visitors book a table without an account?"
ANSWER = "Visitors can book a table without an account if the switch for guests is on; the booking is kept for a day."


def scored(chunk: str, text: str, score: float, domain: str = "code", **metadata: str) -> FusedItem:
    return replace(fused(item(chunk, text, score, domain=domain, metadata=metadata)), score=score)


def ids(items: tuple[FusedItem, ...]) -> list[str]:
    return [one.chunk_id for one in items]


@pytest.mark.parametrize(
    "leader",
    [
        scored("leader", "export default Table;", 0.25),
        scored("leader", "class Account { table: Table; visitors: Visitor[]; }", 0.25, node_type="class_declaration"),
        scored("leader", "The table of an account is drawn anew for all visitors. " * 4, 0.23),
    ],
)
def test_what_says_little_does_not_lead(leader: FusedItem) -> None:
    ordered = order([leader, scored("answer", ANSWER, 0.22, "documentation")], QUESTION)
    assert ids(ordered) == ["answer", "leader"]
    assert [one.score for one in ordered] == [leader.score, 0.22], "a place keeps its score"
    assert ordered[0].signals["order"] == pytest.approx(leader.score - 0.22)


def test_a_score_that_is_clearly_better_leads() -> None:
    ordered = order([scored("named", "def book(table): ...", 0.9), scored("other", ANSWER, 0.35)], "book(table)")
    assert ids(ordered) == ["named", "other"]


def test_what_lost_a_conflict_passes_nothing() -> None:
    lost = replace(scored("lost", ANSWER, 0.22), lost=0.1)
    assert ids(order([scored("holds", "export default Table;", 0.25), lost], QUESTION)) == ["holds", "lost"]


@pytest.mark.parametrize("question", ["When was the table booking changed?", "What is new in the latest release?"])
def test_what_was_compared_by_time_keeps_its_order(question: str) -> None:
    items = [scored("newest", "Table.", 0.25), scored("other", f"{question} {ANSWER}", 0.24)]
    assert ids(order(items, question)) == ["newest", "other"]


@pytest.mark.parametrize("domain", ["conversations", "research"])
def test_items_of_other_domains_keep_their_places(domain: str) -> None:
    answer = scored("answer", ANSWER, 0.23, "documentation")
    items = [scored("leader", "Table;", 0.25), scored("kept", ANSWER, 0.24, domain), answer]
    assert ids(order(items, QUESTION)) == ["answer", "kept", "leader"]


def test_items_of_one_domain_keep_their_order() -> None:
    items = [scored("leader", "Table;", 0.25), scored("behind", ANSWER, 0.24)]
    page = scored("page", ANSWER, 0.23, "documentation")
    assert ids(order([*items, page], QUESTION)) == ["page", "leader", "behind"]


def test_only_the_first_places_change() -> None:
    items = [scored(f"c{place:02}", "export default Table;", 0.4 - place / 100) for place in range(PLACES)]
    assert ids(order([*items, scored("answer", ANSWER, 0.25, "documentation")], QUESTION))[PLACES] == "answer"


def test_words_side_by_side_count_beside_words() -> None:
    together, apart = (
        features(scored("a", text, 0.2), "phased restart") for text in ("A phased restart", "restart, phased")
    )
    assert together["words"] == apart["words"] == 1
    assert together["pairs"] == 0.5
    assert apart["pairs"] == 0


@pytest.mark.parametrize("domains", [("code", "documentation"), ("code",)])
def test_an_answer_of_one_domain_keeps_its_order(domains: tuple[str, ...]) -> None:
    found: dict[str, list[tuple[str, str, float]]] = {domain: [] for domain in domains}
    for chunk, text, score in (("leader", "Table;", 0.25), ("answer", ANSWER, 0.24)):
        found[domains[-1] if chunk == "answer" else "code"].append((chunk, text, score))
    responses = tuple(
        response(domain, *(item(chunk, text, score, domain=domain) for chunk, text, score in own), calibrated=True)
        for domain, own in found.items()
    )
    question = Question(text=QUESTION, now=day("2026-01-23"), viewer=OPERATOR)
    made = fuse(question, Recalled(asked={}, responses=responses), FusionSettings(), notes=NO_NOTES, clock=Stopwatch())
    assert ids(made.items) == (["answer", "leader"] if len(domains) > 1 else ["leader", "answer"])
    for one in made.items:
        assert sum(one.signals.values()) == pytest.approx(one.score)
