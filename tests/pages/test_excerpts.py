"""Excerpts: the lines that say the most, with their numbers in the document."""

from api.pages.answer_view import (
    MAX_CHARACTERS,
    MAX_LINES,
    MAX_PARAGRAPHS,
    Excerpt,
    code_excerpt,
    markup_excerpt,
    paragraphs_of,
    prose_excerpt,
)
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


def test_plain_text_reads_as_its_author_meant_it() -> None:
    text = (
        "Retries belong to the few parts of a payment system where\n"
        "doing less helps everybody.\n\n"
        "- the first entry of a list that was written by somebody who\n"
        "  wrapped it\n"
        "- the second\n"
    )
    assert paragraphs_of(text) == [
        "Retries belong to the few parts of a payment system where doing less helps everybody.",
        "- the first entry of a list that was written by somebody who",
        "  wrapped it",
        "- the second",
    ]
    assert prose_excerpt("", frozenset()).blocks == ()


def test_of_a_long_list_and_a_long_table_the_matching_part_is_shown() -> None:
    entries = "\n".join(f"{number}. {'needle' if number == 17 else 'hay'}" for number in range(1, 21))
    (shown_list,) = markup_excerpt(entries, query_terms_of("needle")).blocks
    assert (shown_list.tag, len(shown_list.blocks), shown_list.level) == ("ol", MAX_PARAGRAPHS, 13)
    rows = "| limit | value |\n|---|---|\n" + "\n".join(f"| l{number} | {number} |" for number in range(20))
    found = markup_excerpt(rows, query_terms_of("l15"))
    (table,) = found.blocks
    assert [cell.runs[0].text for cell in table.blocks[0].blocks] == ["limit", "value"], "the head stays"
    assert len(table.blocks) == 1 + MAX_PARAGRAPHS
    assert found.before + MAX_PARAGRAPHS + found.after == 20


def test_headings_are_not_said_twice() -> None:
    for text, form in (("# API\n\n## Errors\n\nText", "markdown"), ("Errors\n======\n\nText", "rst")):
        (only,) = markup_excerpt(text, frozenset(), title="Errors", format=form).blocks
        assert only.runs[0].text == "Text"
    assert markup_excerpt("## Errors", frozenset(), title="Errors").blocks[0].tag == "heading"
    assert prose_excerpt("2 Results\n\nText", frozenset(), title="2 Results").blocks[0].runs[0].text == "Text"


def test_a_long_paragraph_is_cut_around_its_match() -> None:
    text = f"{'before ' * 200}needle {'after ' * 200}"
    (block,) = prose_excerpt(text, query_terms_of("needle")).blocks
    said = "".join(run.text for run in block.runs)
    assert said.startswith("… ") and said.endswith(" …") and "needle" in said
    assert len(said) <= MAX_CHARACTERS + 4
