"""What leads in stays with what it leads in; lists are cut between their items, the outermost first."""

from __future__ import annotations

import pytest

from nornweave.core.text.spans import TokenIndex
from nornweave.core.types import Chunk, ContentHash, Document, DocumentId, Domain, SourceId
from nornweave.models.encoders.tokenizer import WORDS
from nornweave.read.chunking.sections import chunk_sections

BEFORE = "The relay keeps a ledger of what it has seen, and every hour it writes that ledger to disk. " * 2
ROWS = "".join(f"| row{n} | nine words about what the row with this number does |\n" for n in range(12))
CODE = "".join(f"step {n} of the program, which has words\n" for n in range(9))


def chunked(text: str, form: str = "markdown", limit: int = 60) -> list[Chunk]:
    document = Document(
        id=DocumentId("d"),
        domain=Domain.DOCUMENTATION,
        source_id=SourceId("s"),
        path="page",
        text=text,
        format=form,
        content_hash=ContentHash("h"),
    )
    return list(chunk_sections(document, TokenIndex(text, WORDS), h1_limit=limit, limit=limit))


def items(mark: str, count: int = 40, *, nested: str = "", gap: str = "") -> str:
    """Return items; each names itself, and what is nested in it says whose it is."""
    written = (
        f"{mark} pump{n}\n{gap}" + (f"{nested} unit of pump{n}\n{gap}{nested} text of pump{n}\n{gap}" if nested else "")
        for n in range(count)
    )
    return "".join(written)


LEADS = {
    "colon": ("The following options are supported:", "markdown", items("-")),
    "colon in bold": ("The **following are there:**", "markdown", items("1.")),
    "two lines": ("Of these options\none may be set:", "rst", items("-")),
    "bold": ("**Merged pull requests**", "markdown", items("*")),
    "bold above a paragraph": ("**Uninterruptible power**", "markdown", "It holds for nine minutes. " * 20),
    "no full stop": ("What's new in version 3.5.2", "text", items("*")),
    "table": ("The codes are these:", "markdown", "| a | b |\n|---|---|\n" + ROWS),
    "code": ("Do not forget to run this:", "markdown", f"```\n{CODE}```\n"),
    "wide colon": ("次のとおりです：", "asciidoc", items("*")),
}


@pytest.mark.parametrize(("lead", "form", "what"), LEADS.values(), ids=LEADS)
def test_what_leads_in_is_where_that_begins(lead: str, form: str, what: str) -> None:
    text = f"{BEFORE}\n\n{lead}\n\n{what}\n\nAn end."
    found = chunked(text, form)
    assert len(found) > 2
    assert all(not chunk.content.rstrip().endswith(lead) for chunk in found)
    of_it = [chunk for chunk in found if lead in chunk.content]
    assert len(of_it) == 1
    assert what.split("\n")[0][:20] in of_it[0].content


def test_the_later_chunks_of_a_list_say_what_led_it_in() -> None:
    found = chunked(f"{BEFORE}\n\n**These** can be [set](x.md):\n\n{items('-', 90)}\nAn end that is no item.\n")
    later = [chunk for chunk in found if chunk.content.startswith("- pump")]
    assert len(later) > 1
    assert {chunk.context for chunk in later} == {"These can be set:"}
    assert all(chunk.title is None for chunk in found)
    assert not found[0].context


def test_what_says_a_sentence_leads_nothing_in() -> None:
    one, two, *_ = chunked(f"{BEFORE}\n\nThe pump is off.\n\n{items('-')}")
    assert "pump is off" in one.content
    assert two.content.startswith("- pump")
    assert not two.context


NESTED = {
    "markdown": ("markdown", "-", "  -", ""),
    "numbered": ("markdown", "1.", "   *", ""),
    "four columns": ("markdown", "*", "    1.", ""),
    "loose": ("markdown", "-", "  -", "\n"),
    "rst": ("rst", "*", "  -", "\n"),
    "asciidoc": ("asciidoc", "*", "**", ""),
    "asciidoc steps": ("asciidoc", ".", "..", "\n"),
    "org": ("org", "-", "  +", ""),
    "text": ("text", "*", "  -", "\n"),
}


@pytest.mark.parametrize(("form", "mark", "nested", "gap"), NESTED.values(), ids=NESTED)
def test_an_item_stays_with_what_is_nested_in_it(form: str, mark: str, nested: str, gap: str) -> None:
    found = chunked(items(mark, nested=nested, gap=gap), form)
    assert len(found) > 2
    for chunk in found:
        words = chunk.content.split()
        assert {words.count(word) for word in words if word.startswith("pump")} == {3}


def test_an_item_stays_with_its_paragraphs_and_its_code() -> None:
    item = "- pump{0}\n\n  A paragraph of pump{0}.\n\n  ```\n  run pump{0}\n  - no item\n  ```\n\n  It ends pump{0}.\n"
    found = chunked("\n".join(item.format(n) for n in range(9)))
    assert len(found) > 2
    for chunk in found:
        words = [word.rstrip(".") for word in chunk.content.split()]
        assert {words.count(word) for word in words if word.startswith("pump")} == {4}
        assert chunk.metadata["has_code_blocks"]


def test_an_item_over_the_limit_is_cut_between_nested_ones_and_named_where_it_goes_on() -> None:
    nested = "".join(f"  - unit{n} has a sentence that is about nine words long\n" for n in range(12))
    first, *others = chunked(f"All of these:\n\n- the `pump`\n{nested}- the valve\n")
    assert first.content.startswith("All of these:\n\n- the `pump`\n  - unit0")
    assert others
    for chunk in others:
        assert chunk.content.startswith("  - unit")
        assert chunk.context == "All of these:\nthe pump"


def test_an_item_without_others_is_cut_between_sentences() -> None:
    found = chunked('- It says ("... 30/40")\n  and goes\n  on so. ' + "A sentence\n  of two lines. " * 30)
    assert len(found) > 2
    assert all(chunk.content.endswith(".") for chunk in found)


def test_a_list_that_fits_but_for_its_label_is_cut_between_items() -> None:
    items = "".join(f"- Is pump {number} on yet? [now](x)\n" for number in range(9))
    for limit in range(70, 140):
        found = chunked(f"# A\n\n## B\n\n{'Word ' * 40}\n\n**Fixed bugs:**\n\n{items}", limit=limit)
        assert all(chunk.content.endswith(("(x)", "Word", ":**")) for chunk in found)


def test_a_plus_joins_blocks_of_asciidoc() -> None:
    item = ". Run pump{0}:\n+\n[source,sql]\n----\nSELECT pump{0}\n----\n+\nIt says pump{0}.\n\n"
    found = chunked("".join(item.format(n) for n in range(9)), "asciidoc")
    assert len(found) > 2
    for chunk in found:
        words = [word.strip(".:") for word in chunk.content.split()]
        assert {words.count(word) for word in words if word.startswith("pump")} == {3}


def test_a_header_keeps_its_first_row_below_what_leads_in() -> None:
    found = chunked(
        f"{'The wide codes are told here so that they fill some room ' * 2}:\n\n| a | b |\n|---|---|\n{ROWS}"
    )
    assert "| row0 |" in found[0].content


def test_a_list_costs_what_its_lines_cost() -> None:
    """Each item was compared with each block of code: many of them took minutes."""
    item = "- a\n\n  ```\n  b\n  ```\n\n"
    assert sum(chunk.content.count("- a") for chunk in chunked(item * 4_000, limit=512)) == 4_000
