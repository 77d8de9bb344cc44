"""An answer as a page shows it: nothing found is not the same as not searched, and every side says where it stands."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from api.pages.addresses import place_of
from api.pages.answer_view import answer_view, entry_of
from api.pages.catalogue import DomainChoice, FilterChoice, facets_of
from api.pages.question_form import QuestionForm

CATALOGUE = tuple(
    DomainChoice(
        domain=domain,
        name=domain,
        description="",
        state="READY",
        generation="gen-000001",
        indexed_at=None,
        documents=1,
        passages=10,
        filters=(),
    )
    for domain in ("code", "documentation", "research")
)
FOUND = {"searched": True, "total_searched": 10, "retrieval": {"dense": "ok", "sparse": "timeout"}}
EMPTY = {"searched": True, "total_searched": 10, "retrieval": {"dense": "empty"}}
CITATION = {
    "domain_id": "code", "source_id": "shop", "source_path": "src/a.py", "timestamp": "2026-01-20T10:00:00Z",
    "line_range": [4, 6], "char_range": [0, 9], "page": None, "section": None, "message_ids": None,
    "url": "javascript:alert(1)", "title": "pay", "revision": "abc1234", "stale": True, "agent_id": None,
}  # fmt: skip
ITEM = {
    "chunk_id": "one",
    "content": "def pay():\n    return error",
    "score": {"value": 0.5, "signals": {"score": 0.4, "recency": 0.1, "corroboration": 0.0}},
    "citation": CITATION,
    "sources": {"dense": {"rank": 1, "score": 0.7}},
    "rerank_score": 0.9,
    "metadata": {},
    "explanation": {
        "weights": {"dense": 0.6, "sparse": 0.4},
        "contributions": {"dense": 0.42, "sparse": 0.0},
        "combined": 0.42,
        "bonuses": {"symbol_match": 0.15},
        "model_score": None,
    },
    "corroborated_by": [{**CITATION, "domain_id": "documentation"}],
    "conflict": {"index": 0, "role": "holds"},
    "shortened": False,
}
SIDE = {
    "chunk_id": "one", "domain_id": "code", "source_path": "src/a.py", "agent_id": None, "timestamp": None,
    "kind": "number", "name": "retention", "owner": "", "attribute": "value", "value": "604800", "unit": "s",
    "written": "7 days", "qualifiers": [], "statement": "RETENTION = 604800", "char_range": [0, 3], "role": "holds",
    "updated_at": "2026-01-20T10:00:00Z", "revision": "abc1234", "author": "Dana",
}  # fmt: skip


def shown(*items: Any, coverage: dict[str, Any], **fields: Any) -> SimpleNamespace:
    document: Any = {
        "query_id": "q",
        "query": "pay errors",
        "items": list(items),
        "extract": [],
        "nearest": [],
        "conflicts": [],
        "coverage": coverage,
        "coverage_gaps": [],
        "merged": [],
        "answerable": {"probability": 0.9, "unknown_words": [], "words": ""},
        "duplicates_removed": 0,
        "total_latency_ms": 12.4,
        **fields,
    }
    return SimpleNamespace(**answer_view(document, CATALOGUE, QuestionForm(text="pay")))


def test_every_served_domain_says_how_it_was_searched() -> None:
    late = {"searched": False, "reason": "timeout after 5000ms"}
    answer = shown(ITEM, coverage={"code": FOUND, "documentation": late})
    states = {one["domain"]: (one["state"], one["summary"]) for one in answer.coverage}
    assert states == {
        "code": ("found", "1 passage of 10 shown"),
        "documentation": ("late", "timeout after 5000ms"),
        "research": ("left out", "not asked"),
    }
    assert answer.coverage[0]["retrievers"] == [("meaning", "ok", "found"), ("words", "timeout", "late")]
    assert answer.not_searched == [("timeout after 5000ms", ["documentation"])]
    assert answer.summary == "1 of 2 domains searched · 12 ms"


def test_sentences_that_answer_name_their_result_and_have_their_words_marked() -> None:
    sentence = {"text": "return\n  error", "chunk_id": "one", "char_range": [15, 28]}
    (quoted,) = shown(ITEM, coverage={"code": FOUND}, extract=[sentence]).extract
    assert (quoted["result"]["number"], "".join(run.text for run in quoted["result"]["title"])) == (1, "pay")
    assert [(run.text, run.kind) for run in quoted["runs"]] == [("return ", ""), ("error", "hit")]


def test_a_doubtful_answer_shows_what_comes_nearest_and_says_so() -> None:
    near = [{"text": "return error", "chunk_id": "one", "char_range": [15, 27]}]
    answer = shown(ITEM, coverage={"code": FOUND}, nearest=near)
    assert (len(answer.extract), answer.is_unsure) == (1, True)
    assert not shown(ITEM, coverage={"code": FOUND}, extract=near).is_unsure


def test_a_line_of_fenced_code_is_shown_as_code() -> None:
    text = "Pay:\n```\npay(*cents*)\n```\nThen *return*."
    item = {**ITEM, "content": text, "citation": {**CITATION, "domain_id": "documentation"}}
    for line, is_code, runs in (("pay(*cents*)", True, "pay(*cents*)"), ("Then *return*.", False, "Then return.")):
        at = text.index(line)
        extract = [{"text": line, "chunk_id": "one", "char_range": [at, at + len(line)]}]
        (quoted,) = shown(item, coverage={"code": FOUND}, extract=extract).extract
        assert (quoted["is_code"], "".join(run.text for run in quoted["runs"])) == (is_code, runs)


@pytest.mark.parametrize(("coverage", "words"), [
    ({"code": EMPTY, "research": EMPTY}, "Every domain that was asked was searched, 20 passages in all"),
    ({"code": EMPTY, "research": {"searched": False, "reason": "timeout after 1ms"}}, "research: not searched"),
    ({"code": {"searched": False, "reason": "nothing is published yet"}}, "No domain was searched"),
])  # fmt: skip
def test_nothing_found_is_not_nothing_searched(coverage: dict[str, Any], words: str) -> None:
    answer = shown(coverage=coverage)
    assert words in answer.nothing
    assert answer.headline == "Nothing found"


def test_a_result_says_where_it_stands_and_why_it_is_there() -> None:
    merged = [{"kept": "one", "dropped": "two", "reason": "same_text", "similarity": 1.0}]
    (result,) = shown(ITEM, coverage={"code": FOUND}, merged=merged).results
    place = result["place"]
    assert place.original is None, "no link that runs a script"
    assert (place.detail, place.day, place.stale) == ("lines 4–6", "2026-01-20", True)
    assert [line.number for line in result["excerpt"].lines] == [4, 5]
    notes = {name: (note, value) for name, note, value in result["steps"]}
    assert notes["meaning (dense)"] == ("rank 1, 0.70 × weight 0.60", "0.420")
    assert notes["words (sparse)"] == ("did not find it", "0.000")
    assert notes["symbol match"] == ("bonus", "+0.150")
    assert notes["recency"][1] == "+0.100" and "corroboration" not in notes, "what gave nothing is not a reason"
    assert notes["cross-encoder"][1] == "0.900"
    assert result["merged"] == [("the same text, 100% alike", "/passages/two")]
    assert [place.domain for place in result["corroborated_by"]] == ["documentation"]
    assert result["conflict"] == {"index": 0, "role": "holds"}


def test_a_conflict_shows_both_sides_and_which_holds() -> None:
    other = {
        **SIDE,
        "chunk_id": "two",
        "domain_id": "documentation",
        "role": "differs",
        "value": "30",
        "written": "30 d",
        "author": None,
    }
    conflict = {
        "items": ["one", "two"], "detector": "same_entity_divergence", "entity": "retention",
        "attribute": "http_status", "claims": [SIDE, other], "resolution": "RECENCY", "resolved_to": "one",
        "reason": "newer", "explanation": "", "confidence": 0.9,
    }  # fmt: skip
    (shown_conflict,) = shown(ITEM, coverage={"code": FOUND}, conflicts=[conflict]).conflicts
    assert shown_conflict["subject"] == "retention · http status"
    assert shown_conflict["verdict"] == "Code probably holds."
    assert shown_conflict["certainty"] == "probably disagree · confidence 0.90"
    first, second = shown_conflict["sides"]
    assert (first["holds"], first["value"], first["author"]) == (True, "7 days", "Dana")
    assert (second["holds"], second["place"].href) == (False, "/passages/two")
    flagged = {**conflict, "resolved_to": None, "reason": "may disagree", "confidence": 0.6}
    (open_conflict,) = shown(ITEM, coverage={"code": FOUND}, conflicts=[flagged]).conflicts
    assert (open_conflict["verdict"], open_conflict["reason"]) == ("", "May disagree")


def test_of_an_entry_of_the_ledger_one_side_holds_also_where_a_comment_differs() -> None:
    code = {**SIDE, "source_id": "shop", "line_range": [1, 1]}
    comment = {**code, "value": "", "unit": None, "written": '""'}
    entry: Any = {
        "entry_id": "e",
        "entity": "retention",
        "attribute": "default",
        "sides": [code, comment],
        "also": [],
        "suggested": "code",
        "reason": "authority",
        "confidence": 0.3,
        "first_seen": "2026-01-20",
        "settled": None,
    }
    sides = entry_of(entry)["sides"]
    assert [(side["holds"], side["role"]) for side in sides] == [(True, "probably holds"), (False, "says")]
    assert sides[1]["value"] == '""'


def test_what_is_quoted_first_is_not_folded() -> None:
    items = [{**ITEM, "chunk_id": f"c{place}", "score": {"value": value, "signals": {}}}
             for place, value in enumerate((0.9, 0.2, 0.19))]  # fmt: skip
    quoted = [{"text": "return error", "chunk_id": "c1", "char_range": [0, 9]}]
    assert len(shown(*items, coverage={"code": FOUND}).results) == 1
    answer = shown(*items, coverage={"code": FOUND}, extract=quoted)
    assert len(answer.results) == 2
    assert answer.results[1]["excerpt"].lines and not answer.tail[0]["excerpt"].lines, "what is folded has no excerpt"


def test_facets_count_what_is_shown_and_can_be_taken_back() -> None:
    declared = (
        FilterChoice(key="language", type="string", values=()),
        FilterChoice(key="node_type", type="string", values=()),
    )
    catalogue = [replace(CATALOGUE[0], filters=declared)]
    nodes = ("function_definition", "class_definition", "function_definition")
    items: Any = [{**ITEM, "metadata": {"language": "python", "node_type": node}} for node in nodes]
    ((name, kinds),) = facets_of(items, catalogue, QuestionForm(text="pay"))
    assert (name, [(each.label, each.count) for each in kinds]) == ("Kind", [("function", 2), ("class", 1)])
    assert kinds[0].href == "/?q=pay&domain=code&code.node_type=function"
    chosen = QuestionForm(text="pay", domains=("code",), filters=(("code.language", "python"),))
    other: Any = {**ITEM, "metadata": {"language": "ruby", "node_type": "class_declaration"}}
    kinds = dict(facets_of([*items, other], catalogue, chosen))["Kind"]
    assert [(each.label, each.count) for each in kinds] == [("class", 2), ("function", 2)], "in every grammar"
    ((_, languages), _) = facets_of(items, catalogue, chosen)
    assert (languages[0].is_on, languages[0].href) == (True, "/?q=pay&domain=code")


def test_an_original_on_a_forge_opens_at_its_lines() -> None:
    for host, ending in (
        ("github.com/a/b/blob", "#L4-L6"),
        ("gitlab.com/a/b/-/blob", "#L4-6"),
        ("codeberg.org/a/b/src/commit", "#L4-L6"),
    ):
        place = place_of({**CITATION, "url": f"https://{host}/abc/a.py"})
        assert place.original == f"https://{host}/abc/a.py{ending}"
    assert (place.opens, place.spot) == ("Open on Codeberg", "src/a.py:4")
    assert place_of({**CITATION, "url": "https://example.org/a"}).original == "https://example.org/a"
