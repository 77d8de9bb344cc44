"""Stack Exchange JSON, and everything that can be wrong with it."""

import json
from pathlib import Path
from typing import Any

import pytest
from growth import assert_subquadratic
from hypothesis import given, settings
from hypothesis import strategies as st

from nornweave.connect.stackexchange.document import parse_stackexchange, text_of_html
from nornweave.core.errors import DocumentError
from nornweave.read.parsed import Parsed

GOLDEN = Path(__file__).parents[1] / "golden" / "papers"

API = {
    "items": [
        {
            "question_id": 11227809,
            "title": "Why is processing a sorted array faster than &quot;unsorted&quot;?",
            "body": "<p>Here is a piece of C++ code:</p>\n<pre class='lang-cpp'><code>for (int i = 0; i &lt; n; ++i)\n"
            "    if (data[i] &gt;= 128)\n\n        sum += data[i];\n</code></pre>\n<p>It takes <code>11.54</code> "
            "seconds.<br>Why?</p><ul><li>compiler: <strong>gcc</strong></li><li>cpu: x86</li></ul>",
            "tags": ["c++", "performance"],
            "score": 27000,
            "creation_date": 1340805096,
            "last_activity_date": 1700000000,
            "link": "https://stackoverflow.com/questions/11227809/why-is-it-faster",
            "owner": {"display_name": "GManNickG &amp; Co"},
            "accepted_answer_id": 11227902,
            "comments": [{"body": "Which &lt;flags&gt;?", "owner": {"display_name": "Bob"}}, {"comment_id": 3}],
            "answers": [
                {
                    "answer_id": 1,
                    "body": "<p>The cache.</p>",
                    "score": 40000,
                    "is_accepted": False,
                    "creation_date": 1340805200,
                },
                {
                    "answer_id": 11227902,
                    "body_markdown": "Branch prediction.\r\n\r\n```cpp\r\nif (x &lt; 3)\r\n```",
                    "score": 35000,
                    "is_accepted": True,
                    "creation_date": 1340805400,
                    "owner": {"display_name": "Mysticial"},
                },
            ],
        }
    ]
}


def _parse(value: Any) -> Parsed:
    return parse_stackexchange(json.dumps(value).encode())


def _render(parsed: Parsed) -> str:
    lines = [
        f"title: {parsed.title}",
        f"url: {parsed.url}",
        f"updated_at: {parsed.updated_at}",
        f"metadata: {dict(parsed.metadata)}",
    ]
    for section in parsed.sections:
        lines.append(f"=== level {section.level}, {section.kind}: {section.heading}")
        lines.append(f"context: {section.context}")
        lines += [f"{key}: {value}" for key, value in sorted(section.metadata.items())]
        lines.append(parsed.text[section.span.start : section.span.end].rstrip())
    return "\n".join(lines) + "\n"


def _assert_tiled(parsed: Parsed) -> None:
    end = 0
    for section in parsed.sections:
        assert section.span.start == end
        assert section.span.end > end
        end = section.span.end
    assert end == len(parsed.text)


def test_api_answer_reads_as_in_the_golden_file() -> None:
    assert _render(_parse(API)) == (GOLDEN / "stackexchange.txt").read_text(encoding="utf-8")


def test_context_is_shortened() -> None:
    value = {"title": "Long?", "body": "<p>" + "word " * 500 + "</p>", "answers": [{"answer_id": 1, "body": "Yes."}]}
    context = _parse(value).sections[1].context
    assert len(context.split()) == 81
    assert context.endswith("word …")


def test_the_same_question_alone_and_in_a_list() -> None:
    assert _parse(API["items"]).text == _parse(API["items"][0]).text == _parse(API).text


def test_several_questions_have_no_common_title() -> None:
    parsed = _parse(
        [{"title": "A?", "body": "a"}, {"title": "B?", "body": "b", "answers": [{"answer_id": 2, "body": "c"}]}]
    )
    assert parsed.title is None
    assert dict(parsed.metadata) == {"source_type": "stackoverflow"}
    assert [section.heading for section in parsed.sections] == ["A?", "B?", "Answer"]
    assert parsed.sections[2].metadata["title"] == "B?"


def test_answers_alone() -> None:
    (section,) = _parse({"items": [{"answer_id": 5, "question_id": 4, "body": "<p>So.</p>"}]}).sections
    assert section.kind == "answer"
    assert section.metadata["question_id"] == "4"


@pytest.mark.parametrize(("raw", "reason"), [
    (b"", "the export: line 1 column 1"),
    (b'{"items": [\n{"title": }]}', "the export: line 2 column 11"),
    (b'"text"', "items: a list of objects is expected, found 'text'; expected questions with title and body"),
    (b"[]", "no questions: found an empty list"),
    (b'{"items": []}', "no questions"),
    (b"[3]", "items: a list of objects is expected, found '[3]'"),
    (b'{"items": [{"title": "A", "body": "a"}, {"title": "B"}]}', "items.1: no body (or body_markdown)"),
    (b'{"items": [{"body": "a"}]}', "items.0: no title"),
    (b'[{"title": "A", "body": "a", "answers": [{"answer_id": 1}]}]', "items.0.answers.0: no body"),
    (b'[{"title": "A", "body": "a", "answers": 3}]', "items.0.answers: a list of objects is expected, found '3'"),
    (b'{"error_id": 502, "error_message": "too many requests"}', "the API's answer is an error: 'too many requests'"),
    (b'{"items": "\xff"}', "the export: byte 11 is not UTF-8"),
    (b"[" * 100_000, "nested too deeply"),
    (b"[" + b"9" * 5000 + b"]", "not readable as JSON"),
])  # fmt: skip
def test_what_is_wrong_is_named(raw: bytes, reason: str) -> None:
    with pytest.raises(DocumentError) as caught:
        parse_stackexchange(raw)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    "field", ['"creation_date": "yesterday"', '"creation_date": 1e300', '"score": [1]', '"tags": 3']
)
def test_a_field_of_another_kind_costs_its_value(field: str) -> None:
    parsed = parse_stackexchange(f'[{{"title": "A", "body": "a", {field}}}]'.encode())
    assert (parsed.text, parsed.updated_at) == ("A\n\na", None)
    assert parsed.sections[0].metadata.keys() & {"score", "tags", "publication_date"} == set()


def test_text_can_always_be_stored() -> None:
    parsed = parse_stackexchange(b'{"title": "A\\ud800", "body": "b\\u0000&#xD800;&#' + b"9" * 5000 + b';"}')
    parsed.text.encode("utf-8")
    assert "\x00" not in parsed.text


@pytest.mark.parametrize(("html", "text"), [
    ("a < b and <b>c</b>", "a < b and c"),
    ("<p>one</p><p>two<br>three</p>", "one\n\ntwo\nthree"),
    ("<!-- language: lang-js --><pre><code>x  =  1;\n\n  y</code></pre>", "```\nx  =  1;\n\n  y\n```"),
    ("<pre>unclosed\n  code", "```\nunclosed\n  code\n```"),
    ("<script>evil()</script>good", "good"),
    ("see <img src='x' alt='a graph'> here", "see a graph here"),
    ("<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>", "a | b\n1 | 2"),
    ("<ul><li>a<pre>x\n y</pre></li><li>b<ul><li>c</li></ul></li></ul>", "- a\n\n```\nx\n y\n```\n\n- b\n  - c"),
    ("<blockquote><p>said</p></blockquote>answer", "said\n\nanswer"),
    ("&lt;div&gt; is a tag", "<div> is a tag"),
])  # fmt: skip
def test_html(html: str, text: str) -> None:
    assert text_of_html(html) == text


@pytest.mark.parametrize("piece", ["<!--", "<a ", "<![", "<pre>", "&", "<p>", "</", "-->", "<a b='"])
def test_hostile_html_takes_linear_time(piece: str) -> None:
    assert_subquadratic(text_of_html, lambda size: piece * (size // len(piece)), 160_000)


FIELDS = st.sampled_from(
    [
        "title", "body", "body_markdown", "answers", "items", "score", "tags", "owner", "comments",
        "question_id", "answer_id", "creation_date", "is_accepted", "link",
    ]
)  # fmt: skip
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["1", "<p>x</p>", "2020-01-01"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=6),
    max_leaves=20,
)


@settings(max_examples=150, deadline=None)
@given(VALUES)
def test_any_json_is_read_or_refused(value: Any) -> None:
    try:
        parsed = _parse(value)
    except DocumentError as error:
        assert len(str(error)) > 10
    else:
        _assert_tiled(parsed)
        parsed.text.encode("utf-8")


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    try:
        _assert_tiled(parse_stackexchange(raw))
    except DocumentError as error:
        assert len(str(error)) > 10


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="<>&\x00"), max_size=30)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(WORDS.filter(str.strip), WORDS.filter(str.strip)), min_size=1, max_size=5))
def test_no_word_is_lost(answers: list[tuple[str, str]]) -> None:
    value = {
        "title": "Q",
        "body": "b",
        "answers": [{"answer_id": n, "body": f"<p>{a}</p>{b}"} for n, (a, b) in enumerate(answers)],
    }
    text = "".join(_parse(value).text.split())
    for first, second in answers:
        assert "".join(first.split()) in text
        assert "".join(second.split()) in text
