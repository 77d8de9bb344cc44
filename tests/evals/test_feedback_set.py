import random
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from questions import question_of
from shown_answers import document, item
from word_searcher import Passage, WordSearcher

from evals.feedback_set import sets_of_answers
from evals.judgments import JudgedSet, JudgmentOrigin, parse_place
from evals.runs import evaluate
from nornweave.ask.feedback import FeedbackBook, JudgedAnswer, ShownItem
from nornweave.core.types import Domain, freeze


def shown(
    path: str = "a.py",
    lines: tuple[int, int] | None = (1, 9),
    messages: tuple[str, ...] = (),
    domain: str = "code",
    chunk_id: str | None = None,
) -> ShownItem:
    return ShownItem(
        chunk_id=chunk_id or f"{domain}/{path}/{lines}/{messages}",
        rank=1,
        score=0.5,
        domain_id=domain,
        source_id="s",
        source_path=path,
        line_range=lines,
        message_ids=messages,
    )


def judged(text: str, said: dict[ShownItem, bool], **filters: Any) -> JudgedAnswer:
    return JudgedAnswer(
        query_id="q",
        at=datetime(2026, 1, 20, tzinfo=UTC),
        text=text,
        filters=MappingProxyType({domain: freeze(values) for domain, values in filters.items()}),
        domains=("code",),
        items=(*said, shown("never/judged.py")),
        votes=MappingProxyType({one.chunk_id: useful for one, useful in said.items()}),
    )


def grades(found: JudgedSet) -> dict[tuple[str, str], int]:
    """Return what a set says: by the text of the query and the place."""
    texts = {query.id: query.text for query in found.queries}
    return {(texts[one.query_id], one.key): one.grade for one in found.judgments}


def only(*answers: JudgedAnswer) -> JudgedSet:
    (found,) = sets_of_answers(answers).values()
    return found


def test_useful_is_1_and_not_useful_is_0() -> None:
    found = only(judged("why", {shown("a.py", (3, 8)): True, shown("b.py", None): False, shown("c.pdf", None): True}))
    assert grades(found) == {("why", "a.py#L3-8"): 1, ("why", "b.py#"): 0, ("why", "c.pdf#"): 1}
    assert (found.name, found.origin) == ("feedback", JudgmentOrigin.FEEDBACK)
    assert "Only what was shown can be judged" in found.note
    (query,) = found.queries
    assert query.answerable and len(query.id) == 12


def test_each_domain_has_a_set_of_its_own_with_its_own_filters() -> None:
    said = {shown(domain="documentation"): True, shown(): True, shown(domain="wiki"): True}
    sets = sets_of_answers([judged("why", said, code={"language": "python"}, research={"year": 2020})])
    assert list(sets) == [Domain.CODE, Domain.DOCUMENTATION], "in the order of the domains; foreign ones are not ours"
    code, documentation = (one.queries[0] for one in sets.values())
    assert (dict(code.filters), dict(documentation.filters)) == ({"language": "python"}, {})


def test_one_query_per_text_and_filters() -> None:
    item_a, item_b = shown("a.py"), shown("b.py")
    found = only(
        judged("why", {item_a: True}),
        judged(" why\n", {item_b: True}),
        judged("why", {item_a: True}, code={"language": "go"}),
        judged("Why", {item_a: True}),
        judged("why", {item_a: True}, documentation={"author": "Ada"}),
    )
    assert [(query.text, dict(query.filters)) for query in found.queries].count(("why", {})) == 1
    assert sorted((query.text, len(query.filters)) for query in found.queries) == [("Why", 0), ("why", 0), ("why", 1)]
    assert len({query.id for query in found.queries}) == 3
    assert len(found.judgments) == 4


@pytest.mark.parametrize(
    ("said", "grade"),
    [([True], 1), ([False, True, True], 1), ([True, False, False], 0), ([True, False], None), ([False], 0)],
)
def test_the_majority_of_answers_counts_and_a_tie_says_nothing(said: list[bool], grade: int | None) -> None:
    anchor = judged("why", {shown("anchor.py"): True})
    found = only(anchor, *(judged("why", {shown("a.py"): useful}) for useful in said))
    assert grades(found).get(("why", "a.py#L1-9")) == grade


def test_a_document_of_which_one_of_several_chunks_is_useful_is_useful_once() -> None:
    first, second = shown("a.pdf", None, chunk_id="1"), shown("a.pdf", None, chunk_id="2")
    found = only(judged("why", {first: False, second: True}), judged("why", {first: True, second: True}))
    assert grades(found) == {("why", "a.pdf#"): 1}
    settled = only(
        judged("why", {shown("b.py"): True}),
        judged("why", {first: True, second: True}),
        judged("why", {first: False}),
        judged("why", {first: False}),
    )
    assert grades(settled)["why", "a.pdf#"] == 0, "two answers against one, whatever number of chunks"


def test_a_domain_without_anything_useful_has_no_set() -> None:
    assert sets_of_answers([judged("bad", {shown(): False})]) == {}
    assert sets_of_answers([judged("tie", {shown(): True}), judged("tie", {shown(): False})]) == {}
    assert sets_of_answers([]) == {}


def test_a_query_of_which_nothing_is_settled_is_left_out() -> None:
    tie = [judged("tie", {shown("b.py"): useful}) for useful in (True, False)]
    assert [query.text for query in only(judged("why", {shown(): True}), *tie).queries] == ["why"]


@pytest.mark.parametrize(
    ("path", "messages"), [("a\tb.md", ()), (" a.md", ()), ("a\n.md", ()), ("\udc80.md", ()), ("a.json", ("L12",))]
)
def test_a_place_that_judged_files_cannot_name_is_left_out(path: str, messages: tuple[str, ...]) -> None:
    found = only(judged("why", {shown(path, None, messages): True, shown("a.py"): True}))
    assert grades(found) == {("why", "a.py#L1-9"): 1}


NAMES = st.text(st.sampled_from("ab#/. \t\né\u00a0L1"), min_size=1, max_size=6)
SHOWN = st.builds(
    shown,
    NAMES,
    st.none() | st.tuples(st.integers(1, 5), st.integers(5, 9)),
    st.lists(NAMES, max_size=2).map(tuple),
    st.sampled_from(["code", "research"]),
)
ANSWERS = st.lists(
    st.builds(judged, st.sampled_from(["x", "y", "x "]), st.dictionaries(SHOWN, st.booleans(), max_size=4)), max_size=6
)


@settings(max_examples=60)
@given(ANSWERS, st.randoms(use_true_random=False))
def test_whatever_was_said_the_sets_are_the_same_in_any_order_and_can_be_written(
    answers: list[JudgedAnswer], order: random.Random
) -> None:
    sets = sets_of_answers(answers)
    mixed = list(answers)
    order.shuffle(mixed)
    assert sets_of_answers(mixed) == sets
    for found in sets.values():
        keys = [(one.query_id, one.key) for one in found.judgments]
        assert len(keys) == len(set(keys)), "one place has one grade"
        assert (found.name, found.origin) == ("feedback", JudgmentOrigin.FEEDBACK)
        for one in found.judgments:
            assert one.key.strip() == one.key and not set(one.key) & set("\t\r\n"), "a cell of a table holds it"
            assert parse_place(one.key) == (one.path, one.lines, one.message_id)


def test_from_what_users_said_to_a_measure(tmp_path: Path) -> None:
    book = FeedbackBook(tmp_path)
    for text, path in (("found", "a.py"), ("missed", "b.py"), ("useless", "a.py")):
        book.shown(question_of(text), document(text, item("c-1", path), item("c-2", "c.py")))
        book.add(text, "c-1", useful=text != "useless")
    (found,) = sets_of_answers(book.judged()).values()
    passages = [Passage(Domain.CODE, "a.py", "found", (5, 30)), Passage(Domain.CODE, "b.py", "else", (5, 30))]
    result = evaluate(WordSearcher(passages), found, domains=(Domain.CODE,))
    assert (result.queries, result.measured) == (3, 2)
    stage = result.scopes[0].stage("fused")
    assert stage
    assert stage.metrics["Recall@10"].mean == 0.5, "1 of 1 and 0 of 1"
