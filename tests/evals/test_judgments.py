import json
import re
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from evals.judged_files import read_judgments
from evals.judgments import HiddenText, JudgedQuery, JudgedSet, Judgment, JudgmentError, JudgmentOrigin, parse_place
from nornweave.ask.search.records import Citation
from nornweave.core.types import Domain

HEADER = "query_id\tdoc_id\tgrade\n"
ONE_QUERY = '{"id": "q1", "text": "where"}\n'


def write(folder: Path, queries: str | bytes, qrels: str | bytes) -> Path:
    folder.mkdir(exist_ok=True)
    for name, content in (("queries.jsonl", queries), ("qrels.tsv", qrels)):
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def item(path: str, *, lines: tuple[int, int] | None = None, messages: tuple[str, ...] | None = None) -> Citation:
    return Citation(
        domain_id=Domain.CODE,
        source_id="s",
        source_path=path,
        timestamp=None,
        line_range=lines,
        char_range=(0, 1),
        page=None,
        section=None,
        message_ids=messages,
        url=None,
        title=None,
        revision=None,
        stale=False,
    )


@pytest.mark.parametrize(("doc_id", "path", "lines", "message_id"), [
    ("src/a.py", "src/a.py", None, None),
    ("src/a.py#L12-40", "src/a.py", (12, 40), None),
    ("src/a.py#L12-L40", "src/a.py", (12, 40), None),
    ("src/a.py#L12", "src/a.py", (12, 12), None),
    ("Makefile#L3", "Makefile", (3, 3), None),
    ("general/2023-01-20.json#1674230700.000001", "general/2023-01-20.json", None, "1674230700.000001"),
    ("standup.vtt#14", "standup.vtt", None, "14"),
    ("issues/12#998", "issues/12", None, "998"),
    ("mail.jsonl#<7@mail.example.com>", "mail.jsonl", None, "<7@mail.example.com>"),
    ("mail.jsonl#7@mail.example.com", "mail.jsonl", None, "7@mail.example.com"),
    ("mail.jsonl#threads/7", "mail.jsonl", None, "threads/7"),
    ("a.json#Lunch", "a.json", None, "Lunch"),
    ("a.json#L", "a.json", None, "L"),
    ("a.json#l12", "a.json", None, "l12"),
    # A # of the path itself.
    ("C#/intro.md", "C#/intro.md", None, None),
    ("C#/intro.md#L2-3", "C#/intro.md", (2, 3), None),
    ("notes/c#-tips.md", "notes/c#-tips.md", None, None),
    ("notes/c#-tips.md#L7", "notes/c#-tips.md", (7, 7), None),
    ("c#.cs#L7", "c#.cs", (7, 7), None),
    ("team#4/log", "team#4/log", None, None),
    ("v1.x#/notes.md", "v1.x#/notes.md", None, None),
    ("#general/2023-01-20.json#16.01", "#general/2023-01-20.json", None, "16.01"),
    # What the rules would take for a message id is settled by a # at the end.
    ("v1.x#notes.md", "v1.x", None, "notes.md"),
    ("v1.x#notes.md#", "v1.x#notes.md", None, None),
    ("src/a.py#", "src/a.py", None, None),
])  # fmt: skip
def test_places(doc_id: str, path: str, lines: tuple[int, int] | None, message_id: str | None) -> None:
    assert parse_place(doc_id) == (path, lines, message_id)


@pytest.mark.parametrize(
    ("doc_id", "said"),
    [("", "path is missing"), ("#L3", "path is missing"), ("#1.0", "path is missing"), ("#", "path is missing"),
     ("a#L0", "count from 1"), ("a#L5-4", "lines 5 to 4"), ("a#L0-L3", "lines 0 to 3")],
)  # fmt: skip
def test_places_that_are_none(doc_id: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_place(doc_id)


@given(st.text(st.characters(exclude_characters="\t\r\n", exclude_categories=("Cs",)), min_size=1, max_size=30))
def test_any_path_can_be_judged_as_a_whole_and_by_lines(path: str) -> None:
    assert parse_place(f"{path}#") == (path, None, None)
    assert parse_place(f"{path}#L3-9") == (path, (3, 9), None)


@given(st.text("aC#./L1-2", min_size=1, max_size=12), st.text("aC#./L1-2", min_size=1, max_size=12))
def test_a_place_is_one_key_and_a_key_one_place(one: str, other: str) -> None:
    judgments = []
    for doc_id in (one, other):
        try:
            judgments.append(Judgment("q", *parse_place(doc_id), 1))
        except ValueError:
            assume(False)
    first, second = judgments
    same = (first.path, first.lines, first.message_id) == (second.path, second.lines, second.message_id)
    assert (first.key == second.key) == same


def test_a_set_is_read(tmp_path: Path) -> None:
    queries = (
        '{"id": "q1", "text": "wo ist ö?", "filters": {"channel": "#x"}, "kind": "semantic"}\n\n{"id": 2, "text": ""}\n'
    )
    qrels = f"{HEADER}q1\ta.py#L1-3\t2\nq1\tb.py\t0\n\n2\tc.json#7\t1\n"
    judged = read_judgments(write(tmp_path / "mine", queries, qrels))
    assert judged == JudgedSet(
        "mine",
        (JudgedQuery("q1", "wo ist ö?", {"channel": "#x"}, "semantic"), JudgedQuery("2", "")),
        (
            Judgment("q1", "a.py", (1, 3), None, 2),
            Judgment("q1", "b.py", None, None, 0),
            Judgment("2", "c.json", None, "7", 1),
        ),
    )
    assert list(judged.relevant) == ["q1", "2"]
    assert [judgment.path for judgment in judged.relevant["q1"]] == ["a.py"]


def test_files_as_other_programs_write_them(tmp_path: Path) -> None:
    """Byte order marks, CRLF, more columns in another order, grades from a spreadsheet, rows that come twice."""
    queries = "\ufeff" + '{"id": "q1", "text": "one\u2028line"}\r\n'
    qrels = "\ufeffgrade\tnote\tdoc_id\tquery_id\r\n1.0\tx\ta b.py\tq1\r\n1\ty\ta b.py\tq1\r\n-1\t\tz.py\tq1\r\n"
    judged = read_judgments(write(tmp_path, queries, qrels))
    assert judged.queries[0].text == "one\u2028line"
    assert judged.judgments == (Judgment("q1", "a b.py", None, None, 1), Judgment("q1", "z.py", None, None, -1))


def test_queries_without_a_relevant_judgment_are_known(tmp_path: Path) -> None:
    queries = "".join(json.dumps({"id": name, "text": name}) + "\n" for name in ("none", "q1", "only wrong ones"))
    judged = read_judgments(write(tmp_path, queries, f"{HEADER}q1\ta\t1\nonly wrong ones\ta\t0\n"))
    assert [query.id for query in judged.queries if query.id not in judged.relevant] == ["none", "only wrong ones"]


@pytest.mark.parametrize(("queries", "qrels", "said"), [
    (ONE_QUERY, "", r"qrels.tsv:1: found '', without 'query_id'; expected a header line"),
    (ONE_QUERY, "q1\ta.py\t1\n", r"qrels.tsv:1: found 'q1\\ta.py\\t1', without 'query_id'"),
    (ONE_QUERY, "query-id\tcorpus-id\tscore\n", r"qrels.tsv:1: .* query_id, doc_id, grade"),
    (ONE_QUERY, "query_id doc_id grade\n", r"qrels.tsv:1: .* tab-separated columns"),
    (ONE_QUERY, f"{HEADER}q1\ta.py\n", r"qrels.tsv:2: found 2 tab-separated columns"),
    (ONE_QUERY, f"{HEADER}q1\ta.py\tnan\n", r"qrels.tsv:2: grade 'nan'; expected a whole number"),
    (ONE_QUERY, f"{HEADER}q1\ta.py\tinf\n", r"qrels.tsv:2: grade 'inf'"),
    (ONE_QUERY, f"{HEADER}q1\ta.py\t0.5\n", r"qrels.tsv:2: grade '0.5'"),
    (ONE_QUERY, f"{HEADER}q1\ta.py\t\n", r"qrels.tsv:2: grade ''"),
    (ONE_QUERY, f"{HEADER}q1\ta.py\t1e300\n", r"qrels.tsv:2: grade '1e300'"),
    (ONE_QUERY, f"{HEADER}q1\ta.py\tyes\n", r"qrels.tsv:2: grade 'yes'"),
    (ONE_QUERY, f"{HEADER}q1\ta.py\t1\nq2\ta.py\t1\n", r"qrels.tsv:3: query 'q2' is not in queries.jsonl"),
    (ONE_QUERY, f"{HEADER}q1\t#L3\t1\n", r"qrels.tsv:2: doc_id '#L3': the path is missing; expected 'path'"),
    (ONE_QUERY, f"{HEADER}q1\ta#L9-3\t1\n", r"qrels.tsv:2: doc_id 'a#L9-3': lines 9 to 3"),
    (ONE_QUERY, f"{HEADER}q1\ta#L3\t1\nq1\ta#L3-3\t2\n", r"qrels.tsv:3: 'a#L3-3' has grades 1 and 2 for query 'q1'"),
    (ONE_QUERY, f"{HEADER}q1\ta.py\t0\n", r"no query has a judgment with a grade above 0"),
    (ONE_QUERY, HEADER, r"no query has a judgment"),
    (ONE_QUERY, b"query_id\tdoc_id\tgrade\nq1\t\xff\t1\n", r"qrels.tsv: cannot be read as UTF-8 text"),
    ("", HEADER, r"queries.jsonl: holds no query"),
    ("{\n", HEADER, r"queries.jsonl:1: not JSON"),
    ("\n[]\n", HEADER, r"queries.jsonl:2: found \[\]; expected an object"),
    ("[" * 100_000, HEADER, r"queries.jsonl:1: not JSON"),
    ('{"text": "x"}', HEADER, r"queries.jsonl:1: 'id' is missing"),
    ('{"id": true, "text": "x"}', HEADER, r"queries.jsonl:1: 'id' is True"),
    ('{"id": " ", "text": "x"}', HEADER, r"queries.jsonl:1: 'id' is ' '"),
    ('{"id": "q"}', HEADER, r"queries.jsonl:1: 'text' of query 'q' is missing"),
    ('{"id": "q", "text": 5}', HEADER, r"queries.jsonl:1: 'text' of query 'q' is 5"),
    ('{"id": "q", "text": "x", "filters": []}', HEADER, r"queries.jsonl:1: 'filters' of query 'q' are \[\]"),
    (ONE_QUERY + '{"id": "q1", "text": "y"}', HEADER, r"queries.jsonl:2: query id 'q1' is used twice"),
    (b'{"id": "q", "text": "\xff"}', HEADER, r"queries.jsonl: cannot be read as UTF-8 text"),
])  # fmt: skip
def test_broken_sets(tmp_path: Path, queries: str | bytes, qrels: str | bytes, said: str) -> None:
    with pytest.raises(JudgmentError, match=said):
        read_judgments(write(tmp_path, queries, qrels))


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(JudgmentError, match=r"queries.jsonl: no such file; a judged set is a folder with"):
        read_judgments(tmp_path / "nowhere")
    folder = write(tmp_path, ONE_QUERY, HEADER)
    (folder / "qrels.tsv").unlink()
    with pytest.raises(JudgmentError, match=r"qrels.tsv: no such file"):
        read_judgments(folder)
    (folder / "qrels.tsv").mkdir()
    with pytest.raises(JudgmentError, match=r"qrels.tsv: cannot be read"):
        read_judgments(folder)


@pytest.mark.parametrize(
    ("lines", "hit"),
    [((1, 11), False), ((1, 12), True), ((20, 30), True), ((12, 40), True), ((40, 99), True), ((41, 99), False),
     ((1, 99), True), (None, False)],
)  # fmt: skip
def test_an_item_hits_lines_that_it_overlaps(lines: tuple[int, int] | None, hit: bool) -> None:
    judgment = Judgment("q", "a.py", (12, 40), None, 1)
    assert judgment.hit_by(item("a.py", lines=lines)) is hit
    assert not judgment.hit_by(item("b/a.py", lines=lines))


def test_an_item_hits_a_message_that_it_holds() -> None:
    judgment = Judgment("q", "a.json", None, "1.2", 1)
    assert judgment.hit_by(item("a.json", messages=("1.1", "1.2")))
    assert not judgment.hit_by(item("a.json", messages=("1.1", "1.20")))
    assert not judgment.hit_by(item("a.json"))
    assert not judgment.hit_by(item("b.json", messages=("1.2",)))


def test_any_item_hits_its_whole_document() -> None:
    judgment = Judgment("q", "a.json", None, None, 1)
    assert judgment.hit_by(item("a.json", messages=("1.1",)))
    assert judgment.hit_by(item("a.json", lines=(3, 4)))
    assert not judgment.hit_by(item("a.jsonl"))


def test_a_set_is_read_as_it_is_written(tmp_path: Path) -> None:
    asked = '{"id": "q1", "text": "wo ist ö?", "filters": {"channel": "#x"}, "kind": "semantic", "hide": %s}'
    queries = [asked % '{"path": "C#/a.py", "start": 3, "end": 17}', '{"id": "q2", "text": "x", "answerable": false}']
    rows = ["q1\tC#/a.py\t1", "q1\tv1.x#notes.md#\t1", "q1\tb.py#L1-3\t2", "q2\tc.json#7\t0"]
    folder = write(tmp_path / "mine", "\n".join(queries), HEADER + "\n".join(rows))
    (folder / "set.yaml").write_text("origin: generated\nnote: 'one line: ö'", encoding="utf-8")
    assert read_judgments(folder) == JudgedSet(
        "mine",
        (
            JudgedQuery("q1", "wo ist ö?", {"channel": "#x"}, "semantic", True, HiddenText("C#/a.py", 3, 17)),
            JudgedQuery("q2", "x", answerable=False),
        ),
        (
            Judgment("q1", "C#/a.py", None, None, 1),
            Judgment("q1", "v1.x#notes.md", None, None, 1),
            Judgment("q1", "b.py", (1, 3), None, 2),
            Judgment("q2", "c.json", None, "7", 0),
        ),
        JudgmentOrigin.GENERATED,
        "one line: ö",
    )


@pytest.mark.parametrize(("query", "about", "message"), [
    ('{"id": "q", "text": "", "answerable": false}', "", "marked as unanswerable"),
    ('{"id": "q", "text": "", "answerable": "no"}', "", "expected true or false"),
    ('{"id": "q", "text": "", "kind": 3}', "", "'kind' of query 'q' is 3"),
    ('{"id": "q", "text": "", "hide": {"path": "a", "start": 3, "end": 2}}', "", "'hide' is"),
    ('{"id": "q", "text": ""}', "origin: nobody", "one of people, public, generated, feedback"),
    ('{"id": "q", "text": ""}', "[", "set.yaml: cannot be read"),
])  # fmt: skip
def test_what_a_set_says_of_itself_is_checked(tmp_path: Path, query: str, about: str, message: str) -> None:
    folder = write(tmp_path / "mine", f"{query}\n", f"{HEADER}q\ta.py\t1\n")
    (folder / "set.yaml").write_text(about or "origin: public")
    with pytest.raises(JudgmentError, match=re.escape(message)):
        read_judgments(folder)
