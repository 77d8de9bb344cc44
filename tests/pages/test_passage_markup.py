"""Markup of documents: an allow-list of blocks, the numbers of their lines, and nothing that runs."""

import time
from collections.abc import Iterator

import pytest

from api.pages.markup import Block, blocks_of, messages_of, sentence_runs
from api.pages.text_runs import Mark, TextRun, marked_code, query_terms_of

RST = """\
=====
Title
=====

:Severity: high
A :ref:`link <target>`, `a site <https://example.org>`_ and ``code :ref:`x` ``.

.. code-block:: python
   :linenos:

   x = 1

Like this::

    $ run

.. note:: Careful
   with this.

===== =====
key   value
===== =====
a     1
      one
b     2
===== =====

+----+-----+
| h  | i   |
+====+=====+
| j  | k   |
+----+-----+

Below
-----

.. _hidden:

End.
"""


def tree(blocks: tuple[Block, ...]) -> list[object]:
    return [(block.tag, "".join(run.text for run in block.runs), tree(block.blocks)) for block in blocks]


def every(blocks: tuple[Block, ...]) -> Iterator[Block]:
    for block in blocks:
        yield block
        yield from every(block.blocks)


def test_markdown_is_read_with_the_numbers_of_its_lines() -> None:
    prose = "# Head\n\nA **bold** `word`\nand more\n\n- one\n  - two\n\n"
    text = f"{prose}```python\ndef f(): pass\n```\n\n| a |\n|---|\n| b |\n"
    blocks = blocks_of(text, query_terms_of("word"), first_line=10, cited=range(18, 20))
    assert [(block.tag, block.lines) for block in blocks] == [
        ("heading", (10, 10)), ("p", (12, 13)), ("ul", (15, 16)), ("pre", (19, 19)), ("table", (22, 24)),
    ]  # fmt: skip
    assert blocks[1].runs[1] == TextRun("bold", style="strong")
    assert blocks[1].runs[3] == TextRun("word", "hit", "code")
    assert [run.kind for run in blocks[3].blocks[0].runs][:3] == ["keyword", "", "definition"]
    assert [block.lines for block in every(blocks) if block.cited] == [(19, 19)]
    assert [row.lines for row in blocks[4].blocks] == [(22, 22), (24, 24)]


def test_front_matter_is_no_heading() -> None:
    front, head = blocks_of("---\ntitle: x\n---\n# Head\n", frozenset())
    assert (front.tag, head.tag, head.lines) == ("pre", "heading", (4, 4))


def test_restructured_text_reads_as_markdown_does() -> None:
    blocks = blocks_of(RST, frozenset(), format="rst")
    said = {block.tag: block for block in reversed(blocks)}
    assert [(block.level, block.lines[0]) for block in blocks if block.tag == "heading"] == [(1, 2), (2, 34)]
    runs = said["p"].runs
    assert TextRun("a site", href="https://example.org") in runs
    assert [run.text for run in runs if run.style == "code"] == ["link", "code :ref:`x` "]
    assert [[line.runs[0].text for line in block.blocks] for block in blocks if block.tag == "pre"] == [
        ["x = "],
        ["$ run"],
    ]
    assert [block.blocks[0].lines for block in blocks if block.tag == "pre"] == [(11, 11), (15, 15)]
    assert "note Careful" in "".join(run.text for run in said["quote"].blocks[0].runs)
    simple, grid = (
        [[cell.runs[0].text for cell in row.blocks] for row in block.blocks] for block in blocks if block.tag == "table"
    )
    assert simple == [["key", "value"], ["a", "1 one"], ["b", "2"]]
    assert grid == [["h", "i"], ["j", "k"]]
    assert "hidden" not in str(tree(blocks))


def test_html_is_read_with_the_numbers_of_its_lines() -> None:
    text = (
        "<title>no</title><script>no</script><nav>no</nav>\n<h2>Head</h2>\n<p>A *<code>x[1]</code></p>\n"
        "<ul><li>one\n<li>two<ul><li>in</ul></ul><table>\n<tr><th>a<th>b</tr>\n<tr><td>1<td>2</table>\n"
        "<pre>\ndef f():\n    g()\n</pre>"
    )
    blocks = blocks_of(text, frozenset(), format="html", first_line=11)
    assert [(block.tag, block.lines[0]) for block in blocks] == [
        ("heading", 12), ("p", 13), ("ul", 14), ("table", 16), ("pre", 19),
    ]  # fmt: skip
    assert [(run.text, run.style) for run in blocks[1].runs] == [("A *", ""), ("x[1]", "code")]
    assert [block.runs[0].text for block in every(blocks[2:3]) if block.tag == "li"] == ["one", "two", "in"]
    assert [[cell.runs[0].text for cell in row.blocks] for row in blocks[3].blocks] == [["a", "b"], ["1", "2"]]
    assert [row.lines[0] for row in blocks[3].blocks] == [16, 17]
    assert [(line.lines[0], line.runs[0].text) for line in blocks[4].blocks] == [(19, "def f():"), (20, "    g()")]


@pytest.mark.parametrize("format_", ["markdown", "rst"])
def test_nothing_of_a_document_becomes_markup_that_runs(format_: str) -> None:
    text = (
        "<script>x</script>\n\n[a](javascript:x) [b](data:text/html,x) <https://ok.example> ![i](http://evil/x.png)\n\n"
        "<iframe src=x>\n\n.. raw:: html\n\n   <b>x</b>\n"
    )
    blocks = list(every(blocks_of(text, frozenset(), format=format_)))
    assert {block.tag for block in blocks} <= {"p", "pre", "line", "quote"}
    runs = [run for block in blocks for run in block.runs]
    assert {run.href for run in runs} == {"", "https://ok.example"}
    assert {run.style for run in runs} <= {"", "em", "strong", "code", "del"}
    said = "".join(run.text for run in runs)
    assert "<iframe src=x>" in said
    assert format_ == "rst" or "<script" not in said


@pytest.mark.parametrize("text", [
    "> " * 9_000, "[" * 20_000, "* " * 10_000, "`" * 20_000, "- \n" * 9_000, "|" * 20_000, "+--" * 9_000,
    "<b>" * 9_000, "<!--" * 9_000,
])  # fmt: skip
@pytest.mark.parametrize("format_", ["markdown", "rst", "html"])
def test_hostile_markup_ends_in_time(text: str, format_: str) -> None:
    started = time.thread_time()
    blocks_of(text, frozenset(), format=format_)
    assert time.thread_time() - started < 5


@pytest.mark.parametrize(("sentence", "words"), [
    ("- The **limit** is `3`.", "The limit is 3."), ("| 429 | too many |", "429 · too many"),
    ("## Errors", "Errors"), ("2. Two", "Two"), ("| a<br/>b |  | c \\| d | |", "a, b · c | d"),
])  # fmt: skip
def test_a_sentence_loses_its_marks(sentence: str, words: str) -> None:
    assert "".join(run.text for run in sentence_runs(sentence, frozenset())) == words


def test_a_cell_breaks_its_lines_and_other_html_stays_text() -> None:
    (table,) = blocks_of("| a |\n|---|\n| `x`<br/>y <b>z</b> `<br>` |\n", frozenset())
    (cell,) = table.blocks[1].blocks
    assert "".join(run.text for run in cell.runs) == "x\ny <b>z</b> <br>"


def test_matches_lie_over_colours() -> None:
    (first, second) = marked_code(
        ["def pay():", "x"], [Mark(0, 3, "keyword"), Mark(4, 12, "string")], query_terms_of("pay")
    )
    assert first == (TextRun("def", "keyword"), TextRun(" "), TextRun("pay", "hit"), TextRun("():", "string"))
    assert second == (TextRun("x", "string"),)


def test_messages_name_who_spoke_and_when() -> None:
    text = "dana: `x` works\n  and\n\n  - more\nbob: fine"
    first, second = messages_of(text, frozenset(), first_line=5, cited=range(5, 9), ids=["1768211090.000100"])
    assert (first.speaker, first.letter, first.time, first.number, first.cited) == ("dana", "D", "09:44", 5, True)
    assert [block.tag for block in first.blocks] == ["p", "ul"]
    assert (second.time, second.cited, second.number) == ("", False, 9)
    assert [each.time for each in messages_of(text, frozenset(), ids=["12", "14"])] == ["", ""]
    assert messages_of("it is: `x: y`\nz", frozenset())[0].speaker == "it is"


def test_code_in_a_chat_begins_and_ends_beside_its_fence() -> None:
    text = "bob: it says: ```File x.py\n  raise y```\n  really\nann: ```go\n  func main()\n  ```"
    (said, code, after), (other,) = (message.blocks for message in messages_of(text, frozenset()))
    assert ["".join(run.text for run in line.runs) for line in code.blocks] == ["File x.py", "raise y"]
    assert [line.lines[0] for line in code.blocks] == [1, 2]
    assert (said.runs[0].text, after.runs[0].text, other.blocks[0].lines[0]) == ("it says:", "really", 5)
