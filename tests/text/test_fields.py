"""What chunks can be looked up by, and what a query asks for."""

from dataclasses import replace

import pytest
from growth import assert_subquadratic
from hypothesis import given
from hypothesis import strategies as st

from nornweave.config import FieldWeights
from nornweave.core.text.index_fields import (
    MAX_NAME_WORDS,
    MAX_VALUE_CHARACTERS,
    asked_keys,
    is_identifier,
    lookup_keys,
    terms_by_field,
)
from nornweave.core.types import (
    FIELDS,
    Chunk,
    ContentHash,
    Document,
    Domain,
    JsonValue,
    SourceId,
    Span,
    document_id,
    freeze,
)


def keys_of(path: str = "a.md", **known: JsonValue) -> set[str]:
    return lookup_keys(*indexed(path, **known))


def indexed(
    path: str = "a.md",
    *,
    title: str | None = None,
    section: str | None = None,
    document_title: str | None = None,
    document_metadata: dict[str, JsonValue] | None = None,
    document_format: str = "text",
    **metadata: JsonValue,
) -> tuple[Document, Chunk]:
    document = Document(
        id=document_id("source", path),
        domain=Domain.DOCUMENTATION,
        source_id=SourceId("source"),
        path=path,
        text="text",
        format=document_format,
        content_hash=ContentHash("0"),
        title=document_title,
        metadata=freeze(document_metadata or {}),
    )
    chunk = Chunk(
        content="text", span=Span(0, 4), token_count=1, title=title, section=section, metadata=freeze(metadata)
    )
    return document, chunk


def test_only_a_page_about_one_release_is_a_page_as_others_are() -> None:
    marks = {"place:release", "place:release page"}
    assert keys_of("docs/release-notes-2.1.txt", section="Upgrading") & marks == marks
    assert keys_of("docs/release-notes.txt", section="2.1 > Upgrading") & marks == {"place:release"}
    assert "name:2.1" in keys_of("docs/whatsnew/2.1.md", section="Upgrading")


@pytest.mark.parametrize(("content", "is_shell"), [
    ("#### Manifest\n\n<details>\n <summary>Show...</summary>\n", True),
    ("</details>", True),
    ("Manifest\n--------", True),
    ("<details><summary>Show</summary>\n\n`kiln fire`\n</details>", False),
    ("### Fire\n\nIt burns.", False),
    ("Fire <100 pots at once>", False),
])  # fmt: skip
def test_a_passage_of_markup_and_headings_is_a_shell(content: str, is_shell: bool) -> None:
    document, chunk = indexed()
    assert ("place:shell" in lookup_keys(document, replace(chunk, content=content))) == is_shell


def test_terms_are_counted_where_they_stand() -> None:
    document, chunk = indexed(
        "text/refund.py", document_title="Refunds", title="refund text", section="Text > Text", language="python"
    )
    found = terms_by_field(document, chunk)
    assert found["text"] == (1, 1, 2, 1)
    assert found["refund"] == (1, 2, 0, 0)
    assert found["python"] == (0, 1, 0, 0)
    assert len(FIELDS) == 4
    assert tuple(FieldWeights.model_fields) == FIELDS


def test_a_thread_is_found_by_its_number() -> None:
    found = terms_by_field(*indexed(document_format="github", thread_id="acme/payments#142"))
    assert found["142"] == (0, 1, 0, 0)


def test_every_tail_of_the_path() -> None:
    assert keys_of("src/payments/Handlers.py") == {
        "path:src/payments/handlers.py",
        "path:payments/handlers.py",
        "path:handlers.py",
    }


def test_symbols_names_and_dates_of_a_chunk() -> None:
    keys = keys_of(
        "a.md",
        document_title="The  Handbook",
        title="Limits",
        section="Handbook > Rate limits",
        function_name="Ledger.postEntry",
        participants=["Dana", "Éva Kovács"],
        channel="#Ops",
        tags=["PSD2"],
        message_timestamp="2026-01-16T23:30:00Z",
    )
    assert keys - {"path:a.md"} == {
        "name:the handbook",
        "name:limits",
        "name:handbook",
        "name:rate limits",
        "symbol:ledger.postentry",
        "name:dana",
        "name:éva kovács",
        "name:ops",
        "name:psd2",
        "date:2026-01-16",
        "date:2026-01",
    }


def test_an_issue_is_called_by_its_number_other_threads_are_not() -> None:
    assert "name:31" in keys_of(document_format="github", thread_id="31")
    assert "name:pay-12" in keys_of(document_format="jira", thread_id="PAY-12")
    assert "name:7" in keys_of(document_format="github", thread_id="acme/payments#7")
    assert keys_of(document_format="slack", thread_id="1768471200.000200") == keys_of()
    assert keys_of(document_format="github") == keys_of()
    assert {"name:31", "name:pr #31"} <= asked_keys("is PR #31 merged")


def test_what_the_chunk_says_goes_before_what_its_document_says() -> None:
    keys = keys_of(document_metadata={"authors": ["Ada"], "speaker": "Bob"}, speaker="Carol")
    assert {"name:ada", "name:carol"} <= keys
    assert "name:bob" not in keys


@pytest.mark.parametrize("date", ["", "soon", "2026-02-30", "20261", 7, None, ["2026-02-30"], {"on": "2026-01-01"}])
def test_a_date_that_is_none_gives_no_key(date: JsonValue) -> None:
    assert not any(key.startswith("date:") for key in keys_of(publication_date=date))


def test_long_values_are_cut_alike_on_both_sides() -> None:
    name = "Heading" + "x" * 200
    assert f"name:{name.lower()[:MAX_VALUE_CHARACTERS]}" in keys_of(title=name) & asked_keys(name)


@pytest.mark.parametrize(("query", "keys"), [
    ("what does handle_payment_error do", {"symbol:handle_payment_error"}),
    ("where is Ledger.postEntry called", {"symbol:ledger.postentry", "symbol:postentry"}),
    ("Ledger::post", {"symbol:ledger::post", "symbol:post"}),
    ("why does retry() fail", {"symbol:retry"}),
    ("retry", {"symbol:retry", "name:retry"}),
    ("what is in src/payments/handlers.py", {"path:src/payments/handlers.py"}),
    ("open handlers.py please", {"path:handlers.py"}),
    ("./src/payments/", {"path:src/payments"}),
    ("how do I configure rate limits?", {"name:rate limits", "name:configure rate limits"}),
    ("what did Dana say", {"name:dana"}),
    ("anything in #payments-oncall", {"name:payments-oncall"}),
    ("what happened on 2026-01-16", {"date:2026-01-16"}),
    ("what happened in 2026-1", {"date:2026-01"}),
    ("decisions of 3 March 2026", {"date:2026-03-03"}),
    ("decisions of March 3rd, 2026", {"date:2026-03-03"}),
    ("the 3rd of mar 2026", {"date:2026-03-03"}),
    ("Sept. 2026", set()),
    ("sep. 2026", {"date:2026-09"}),
    ("decisions in may 2026", {"date:2026-05"}),
])  # fmt: skip
def test_what_a_query_asks_for(query: str, keys: set[str]) -> None:
    assert keys <= asked_keys(query)


@pytest.mark.parametrize(("pasted", "keys"), [
    ("error in src/payments/handlers.py:42", {"path:src/payments/handlers.py"}),
    ("see handlers.py:42:7", {"path:handlers.py"}),
    ("handlers.py#L42", {"path:handlers.py"}),
    ("main.c:10: undefined reference to `foo_bar'", {"path:main.c", "symbol:foo_bar"}),
    ("FAILED src/handlers.py::test_refund", {"path:src/handlers.py", "symbol:test_refund"}),
    ("KeyError:handle_payment_error", {"symbol:handle_payment_error"}),
    ("std::vector<handle_error>::push_back", {"symbol:handle_error", "symbol:push_back"}),
    ("what is in go.mod", {"path:go.mod"}),
    ("unpack backup.tar.gz", {"path:backup.tar.gz"}),
    ("words " * 70 + "raised by handle_payment_error", {"symbol:handle_payment_error"}),
])  # fmt: skip
def test_what_tools_print_names_files_and_symbols(pasted: str, keys: set[str]) -> None:
    """Compilers add a line to a path, test runners a name, tracebacks end with what matters."""
    assert keys <= asked_keys(pasted)


@pytest.mark.parametrize("query", ["set the limit", "how to get it", "who is on call", "is the ledger up"])
def test_plain_words_are_no_names(query: str) -> None:
    """Every second heading is called "set" or "get"; a question's words ask for several in a row only."""
    single = {key for key in asked_keys(query) if " " not in key.removeprefix("name:")}
    assert single == set()


def test_a_path_is_no_symbol() -> None:
    assert "symbol:handlers.py" not in asked_keys("see src/payments/handlers.py")


@given(
    st.sampled_from(["Rate limits", "Größe der Warteschlange", "支付 失败", "Éva Kovács", "#ops", "PSD2"]),
    st.sampled_from(["{}", "  {}\n", "{} "]),
)
def test_a_heading_is_found_by_itself(name: str, written: str) -> None:
    assert {key for key in keys_of(title=name) if key.startswith("name:")} <= asked_keys(written.format(name))


@given(st.from_regex(r"(?:[a-z_]{1,8}/){0,3}[a-z_]{1,8}\.(?:py|md|go)", fullmatch=True))
def test_every_tail_of_a_path_is_found_by_itself(path: str) -> None:
    parts = path.split("/")
    for start in range(len(parts)):
        tail = "/".join(parts[start:])
        assert f"path:{tail}" in keys_of(path) & asked_keys(f"what is in {tail} now")


ODD = st.text(
    st.one_of(
        st.sampled_from(list("aA_.:/-+~@#()[]{}'\"`>0 9\n\t ,;")),
        st.sampled_from(list("ſKİß٣²中支é\u0301\u200b\u2028🙂")),
    ),
    max_size=40,
)
MONTHS = st.sampled_from(["sep", "ſep", "Auguſt", "SEPTEMBER", "may", "octobre"])


@given(ODD, MONTHS, ODD, st.sampled_from(["2026", "٢٠٢٦", "0000", ""]))
def test_any_text_asks_for_well_formed_keys(before: str, month: str, after: str, year: str) -> None:
    keys = asked_keys(f"{before} {month} {year} {after}")
    assert all(key.split(":")[0] in {"symbol", "path", "name", "date"} for key in keys)
    assert all(len(key) <= MAX_VALUE_CHARACTERS + 10 for key in keys)
    assert all(key.count(" ") < MAX_NAME_WORDS for key in keys if key.startswith("name:"))


def test_a_month_written_with_a_long_s() -> None:
    """With ``re.IGNORECASE`` "s" matches "ſ" (U+017F), which is no "s" in lower case."""
    assert asked_keys("ſep 2026") is not None


@pytest.mark.parametrize("text", [
    "a" * 4096, "." * 4096, "A" * 4096, "支付" * 2048, "_" * 4096, "-+~" * 1365, "9." * 2048, "aA_" * 1365,
    "a." * 2048, "a/" * 2048,
], ids=lambda text: repr(text[:4]))  # fmt: skip
def test_the_longest_query_is_read_in_linear_time(text: str) -> None:
    """Every domain reads the query, while no other thread runs: half a second each is an outage, a few ms is fine."""
    assert_subquadratic(asked_keys, lambda size: text[:size], len(text))


@pytest.mark.parametrize("word", ["snake_case", "camelCase", "HTTPError", "a.b", "Ledger::post", "p->next", "_private"])
def test_written_as_names_in_code_are(word: str) -> None:
    assert is_identifier(word)


@pytest.mark.parametrize("word", ["payments", "Payments", "API", "_", "3.5", "well-known", "", "支付"])
def test_written_as_words_are(word: str) -> None:
    assert not is_identifier(word)


@pytest.mark.parametrize(("path", "is_aside"), [
    ("src/main/java/poet/MethodSpec.java", False), ("src/test/java/poet/PoetTest.java", True),
    ("src/spec/UserSpec.scala", True), ("lib/UserSpec.kt", True), ("mux_test.go", True), ("src/contest.py", False),
    ("src/attr/filters.pyi", True), ("types/ipc.d.ts", True), ("src/grid.ts", False),
])  # fmt: skip
def test_a_specification_of_a_method_is_no_test(path: str, is_aside: bool) -> None:
    assert ("place:aside" in keys_of(path)) == is_aside


def test_a_definition_is_spelled_with_what_stands_around_it() -> None:
    keys = keys_of("db/table.py", defines=["Table.Row.upsert_all", "connect"])
    assert {key for key in keys if key.startswith("spelled:")} == {
        "spelled:upsert_all",
        "spelled:Row.upsert_all",
        "spelled:connect",
        "spelled:table.connect",
        "spelled:db.connect",
    }
