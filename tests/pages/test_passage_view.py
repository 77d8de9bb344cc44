"""A passage in its document: the right lines are marked, colours span lines, a long document is cut."""

import time
from types import SimpleNamespace
from typing import Any

import pytest

from api.pages.markup import COLOURED_WITHIN_S, MAX_COLOURED_CHARACTERS, colours_of
from api.pages.passage_view import passage_view
from nornweave.ask.views.texts import ChunkDocument, DocumentDocument

CODE = '"""A module.\n\nOf two lines."""\n\n\ndef pay(amount):\n    return "paid"  # done\n'


def view(
    text: str,
    cited: str,
    *,
    domain: str = "code",
    kind: str = "python",
    context: int = 3,
    headings: Any = (),
    **citation: Any,
) -> SimpleNamespace:
    start = text.index(cited)
    first = text.count("\n", 0, start) + 1
    place: Any = {
        "domain_id": domain,
        "source_id": "shop",
        "source_path": "a.py",
        "timestamp": "2026-01-20T10:00:00Z",
        "line_range": [first, first + cited.count("\n")],
        "char_range": [start, start + len(cited)],
        "page": None,
        "section": None,
        "message_ids": None,
        "url": None,
        "title": "pay",
        "revision": None,
        "stale": False,
        **citation,
    }
    chunk: ChunkDocument = {
        "chunk_id": "b",
        "domain_id": domain,
        "content": cited,
        "citation": place,
        "metadata": {"language": "python"} if domain == "code" else {"participants": ["dana", "bob"]},
        "claims": [],
        "last_change": None,
        "about": [],
        "generation": "gen-000001",
    }
    document: DocumentDocument = {
        "domain_id": domain, "source_id": "shop", "source_path": "a.py", "title": None, "format": kind,
        "timestamp": None, "revision": None, "url": None, "stale": False, "metadata": {}, "text": text,
        "chunks": ["a", "b", "c"], "generation": "gen-000001",
    }  # fmt: skip
    return SimpleNamespace(**passage_view(chunk, document, context, headings=headings))


def texts(passage: SimpleNamespace) -> list[str]:
    return ["".join(run.text for run in line.runs) for line in passage.lines]


def test_the_cited_lines_are_marked_in_the_whole_document() -> None:
    passage = view(CODE, 'def pay(amount):\n    return "paid"  # done', context=99)
    assert texts(passage) == CODE.split("\n")
    assert [line.number for line in passage.lines if line.cited] == [6, 7]
    assert (passage.previous, passage.following) == ("/passages/a", "/passages/c")
    assert (passage.before, passage.after, passage.more) == (0, 0, "")


def test_a_passage_belongs_to_the_part_that_begins_before_it() -> None:
    headings = [
        {"title": name, "line": line, "chunk_id": chunk} for name, line, chunk in (("A", 1, "a"), ("C", 6, "c"))
    ]
    outline = view(CODE, "def pay", headings=headings).outline
    assert outline == [("A", "/passages/a", 1, True), ("C", "/passages/c", 6, False)]
    assert not view(CODE, "def pay", headings=headings[:1]).outline, "one part is no outline"
    assert not view("dana: a\nbob: b", "bob: b", domain="conversations", kind="slack", headings=headings).outline


def test_code_has_colours_that_go_on_over_lines() -> None:
    lines = view(CODE, "def pay", context=99).lines
    kinds = [[(run.text, run.kind) for run in line.runs if run.kind] for line in lines]
    assert kinds[0] == [('"""A module.', "comment")]
    assert kinds[2] == [('Of two lines."""', "comment")]
    assert kinds[5] == [("def", "keyword"), ("pay", "definition")]
    assert kinds[6] == [
        ("return", "keyword"), ('"', "string"), ("paid", "string"), ('"', "string"), ("# done", "comment"),
    ]  # fmt: skip


def test_a_long_document_is_cut_around_the_passage() -> None:
    text = "\n".join(f"x = {number}" for number in range(1000))
    passage = view(text, "x = 500\nx = 501")
    assert [line.number for line in passage.lines] == list(range(498, 506))
    assert (passage.before, passage.after) == (497, 1000 - 505)
    assert passage.more == "/passages/b?context=400"


def test_a_thread_names_who_speaks() -> None:
    text = "dana: backlog is 22 min\nbob: need help?\nit goes on: here and `x: y` there"
    passage = view(text, "bob: need help?", domain="conversations", kind="slack", line_range=None, message_ids=["2"])
    assert [(message.speaker, message.cited) for message in passage.messages] == [
        ("dana", False),
        ("bob", True),
        ("it goes on", False),
    ]
    assert (passage.kind, passage.numbered) == ("thread", False)
    assert passage.facts == (("participants", "dana, bob"),)


def test_markup_is_rendered_around_the_passage_with_the_numbers_of_its_lines() -> None:
    text = "\n\n".join(f"## Part {number}\n\nSays {number}." for number in range(40))
    passage = view(text, "## Part 20\n\nSays 20.", domain="documentation", kind="markdown")
    assert (passage.kind, passage.lines, passage.numbered) == ("doc", (), True)
    assert [block.lines[0] for block in passage.blocks] == [79, 81, 83, 85]
    assert [block.lines[0] for block in passage.blocks if block.cited] == [81, 83]
    assert (passage.before, passage.after) == (77, 159 - 86)


def test_a_page_of_a_pdf_is_named() -> None:
    passage = view("Budgets help.", "Budgets", domain="research", kind="pdf", line_range=None, page=3)
    assert passage.place.detail == "page 3"
    assert not passage.numbered


def test_windows_line_ends_move_nothing() -> None:
    passage = view("a = 1\r\nb = '2'\r\nc = 3\r\n", "b = '2'", context=99)
    assert [line.number for line in passage.lines if line.cited] == [2]
    assert texts(passage)[:3] == ["a = 1", "b = '2'", "c = 3"]


@pytest.mark.parametrize(
    ("language", "text"),
    [("csharp", "x\n"), ("java", "x x\n"), ("rust", "("), ("c", "1"), ("json", '"""\n'), ("terraform", "<<E\n")],
)
def test_colours_of_hostile_text_end_in_time(language: str, text: str) -> None:
    """C#'s lexer alone would take minutes; each regular expression by itself takes some ms."""
    hostile = text * (MAX_COLOURED_CHARACTERS // len(text))
    if "\n" not in text:
        hostile = "\n".join(hostile[start : start + 900] for start in range(0, 36_000, 900))
    started = time.thread_time()
    colours_of(hostile, language)
    assert time.thread_time() - started < 20 * COLOURED_WITHIN_S


def test_what_is_not_read_in_time_has_no_colours() -> None:
    text = "def f(): pass\n" * 500
    assert len(colours_of(text, "python", within_s=60)) == 1500
    assert len(colours_of(text, "python", within_s=-1)) == 0


def test_long_texts_and_unknown_languages_have_none() -> None:
    assert colours_of("x = 1\n" * MAX_COLOURED_CHARACTERS, "python") == []
    assert colours_of("x = 1" * 1000, "python") == []
    assert colours_of("x = 1", "brainfuck") == []
    assert colours_of("", "python") == []
