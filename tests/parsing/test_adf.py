from typing import Any

import pytest
from growth import assert_subquadratic
from hypothesis import given, settings
from hypothesis import strategies as st

from nornweave.connect.jira import text_of_adf


def node(kind: str, *content: Any, **attributes: Any) -> dict[str, Any]:
    return {"type": kind, "content": list(content), "attrs": attributes}


def text(said: str, *marks: dict[str, Any]) -> dict[str, Any]:
    return {"type": "text", "text": said, "marks": list(marks)}


def p(*content: Any) -> dict[str, Any]:
    return node("paragraph", *[text(each) if isinstance(each, str) else each for each in content])


def doc(*content: Any) -> dict[str, Any]:
    return {"version": 1, "type": "doc", "content": list(content)}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ([p("a"), p(), p("b")], "a\n\nb"),
        ([node("heading", text("Steps"), level=2), p("a")], "## Steps\n\na"),
        ([p("a", {"type": "hardBreak"}, "b")], "a\nb"),
        ([p(text("set "), text("x", {"type": "code"}), text(" y", {"type": "strong"}))], "set `x` y"),
        ([p(text("docs", {"type": "link", "attrs": {"href": "https://x.org/a"}}))], "docs (https://x.org/a)"),
        ([p(text("https://x.org", {"type": "link", "attrs": {"href": "https://x.org"}}))], "https://x.org"),
        ([node("codeBlock", text("if a:\n    b()\n"), language="python")], "```python\nif a:\n    b()\n```"),
        ([node("codeBlock", text("```\nx\n```"))], "````\n```\nx\n```\n````"),
        ([node("bulletList", node("listItem", p("a")), node("listItem", p("b"), p("c")))], "- a\n- b\n  c"),
        (
            [
                node(
                    "orderedList",
                    node("listItem", p("a"), node("bulletList", node("listItem", p("b")))),
                    node("listItem", node("codeBlock", text("x\ny"))),
                    order=3,
                )
            ],
            "3. a\n   - b\n4. ```\n   x\n   y\n   ```",
        ),
        (
            [
                node(
                    "taskList",
                    node("taskItem", text("a"), state="DONE"),
                    node("taskItem", text("b"), state="TODO"),
                    node("taskList", node("taskItem", text("c"), state="TODO")),
                )
            ],
            "- [x] a\n- [ ] b\n  - [ ] c",
        ),
        (
            [
                node(
                    "table",
                    node("tableRow", node("tableHeader", p("env")), node("tableHeader", p("limit"))),
                    node("tableRow", node("tableCell", p("prod")), node("tableCell", p("10"), p("per hour"))),
                )
            ],
            "env | limit\nprod | 10 per hour",
        ),
        ([node("panel", p("Careful"), panelType="warning")], "Careful"),
        ([node("expand", p("b"), title="a")], "a\n\nb"),
        ([node("blockquote", p("q")), node("rule")], "q"),
        ([p({"type": "mention", "attrs": {"id": "557058:ann", "text": "@Ann Lee"}}, " hi")], "@Ann Lee hi"),
        ([p({"type": "emoji", "attrs": {"shortName": ":tick:", "text": "✓"}})], "✓"),
        ([p({"type": "date", "attrs": {"timestamp": "1767571200000"}})], "2026-01-05"),
        ([p({"type": "status", "attrs": {"text": "LIVE", "color": "green"}})], "LIVE"),
        ([p({"type": "inlineCard", "attrs": {"url": "https://x.org"}})], "https://x.org"),
        ([node("mediaSingle", node("media", alt="Flow", id="1"), layout="center")], "Flow"),
        ([node("layoutSection", node("layoutColumn", p("a")), node("layoutColumn", p("b")))], "a\n\nb"),
        ([node("bodiedExtension", p("a"), extensionKey="noise")], "a"),
    ],
)
def test_what_a_reader_sees_stays(content: list[Any], said: str) -> None:
    assert text_of_adf(doc(*content)) == said


@pytest.mark.parametrize(("document", "said"), [(None, ""), ("plain", "plain"), ([], ""), ({}, ""), (7, "")])
def test_what_is_no_document_is_read_as_far_as_it_goes(document: object, said: str) -> None:
    assert text_of_adf(document) == said


_KINDS = st.sampled_from(
    [
        *("doc", "paragraph", "heading", "codeBlock", "bulletList", "orderedList", "listItem", "taskList", "taskItem"),
        *("table", "tableRow", "tableCell", "panel", "media", "inlineCard", "text", "date", "mention", "status", "x"),
    ]
)
_JUNK = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.lists(st.none(), max_size=2)
_NODES = st.recursive(
    _JUNK | st.fixed_dictionaries({"type": _KINDS, "text": _JUNK}),
    lambda inner: st.fixed_dictionaries(
        {
            "type": _KINDS | _JUNK,
            "content": st.lists(inner, max_size=4) | _JUNK,
            "attrs": st.dictionaries(st.sampled_from(["level", "order", "timestamp", "text", "state"]), _JUNK),
            "marks": st.lists(inner, max_size=2),
        }
    ),
    max_leaves=10,
)


@settings(max_examples=100, deadline=None)
@given(document=_NODES)
def test_anything_becomes_text(document: Any) -> None:
    assert isinstance(text_of_adf(document), str)


@pytest.mark.parametrize("kind", [[], {}, 1, None])
def test_a_type_that_is_no_text_is_no_block(kind: Any) -> None:
    strange = {"type": kind, "content": [{"type": kind, "text": "lost"}]}
    assert text_of_adf({"type": "doc", "content": [strange, p("kept")]}).endswith("kept")


def test_what_is_nested_too_deep_ends() -> None:
    deep = p("x")
    for _ in range(400):
        deep = node("bulletList", node("listItem", p("a"), deep))
    assert text_of_adf(doc(deep)).count("- a") in range(10, 60)


def test_the_time_is_linear_in_the_size() -> None:
    def wide(size: int) -> dict[str, Any]:
        items = (node("listItem", p(f"item {number}")) for number in range(size))
        return doc(node("bulletList", *items), *[p("text", "`" * 9) for _ in range(size)])

    assert_subquadratic(text_of_adf, wide, 4_000)
