"""Excerpts: the lines that say the most, with their numbers in the document."""

from __future__ import annotations

from api.pages.excerpts import MAX_LINES, Excerpt, code_excerpt, paragraphs_of, prose_excerpt, thread_excerpt
from api.pages.text_runs import query_terms_of


def shown(excerpt: Excerpt) -> list[tuple[int | None, str]]:
    return [(line.number, "".join(run.text for run in line.runs)) for line in excerpt.lines]


def test_the_window_with_the_most_terms_is_shown_with_its_line_numbers() -> None:
    lines = [f"line {number}" for number in range(40)]
    lines[30] = "the retry budget"
    found = code_excerpt("\n".join(lines), query_terms_of("retry budget"), first_line=100)
    assert len(found.lines) == MAX_LINES
    assert (130, "the retry budget") in shown(found)
    assert found.before + len(found.lines) + found.after == 40
    assert found.lines[0].number == 100 + found.before


def test_without_a_match_it_is_the_beginning() -> None:
    found = code_excerpt("\n".join(map(str, range(40))), query_terms_of("zebra"), None)
    assert shown(found)[0] == (None, "0")
    assert (found.before, found.after) == (0, 40 - MAX_LINES)


def test_nothing_is_cut_where_the_cut_takes_more_room() -> None:
    found = code_excerpt("\n".join(["x"] * (MAX_LINES + 2)), frozenset(), 1)
    assert (len(found.lines), found.before, found.after) == (MAX_LINES + 2, 0, 0)


def test_prose_reads_as_its_author_meant_it() -> None:
    text = (
        "Retries belong to the few parts of a payment system where\n"
        "doing less helps everybody.\n\n"
        "- the first entry of a list that was written by somebody who\n"
        "  wrapped it\n"
        "- the second\n"
        "```json\n"
        '{"a": 1}\n'
        "```\n"
        "Title\n=====\n"
    )
    assert paragraphs_of(text) == [
        "Retries belong to the few parts of a payment system where doing less helps everybody.",
        "- the first entry of a list that was written by somebody who",
        "  wrapped it",
        "- the second",
        '{"a": 1}',
        "Title",
    ]
    assert prose_excerpt("", frozenset()).lines == ()


def test_messages_stay_apart() -> None:
    said = "alice: Has anyone looked at the payment bug that was reported?\n\nbob: I saw it yesterday."
    assert [text for _, text in shown(thread_excerpt(said, frozenset()))] == said.split("\n\n")
