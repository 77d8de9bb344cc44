from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nornweave.chunking.languages import LANGUAGES
from nornweave.claims.comments import comment_blocks
from nornweave.claims.extract import MAX_CLAIMS, extract_claims
from nornweave.claims.literals import quantity
from nornweave.claims.passage import Passage

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "nornweave").rglob("*.py"))[::7]
PAYMENTS = sorted(path for path in (ROOT / "examples/payments/code").rglob("*") if path.is_file())

MODULE = '''\
"""Webhooks. A failed delivery is retried at most 5 times."""

# OAuth removed in v3
WEBHOOK_TIMEOUT_SECONDS = 10


def deliver(event, retries=3):
    """Deliver one event; the endpoint answers 410 when it is gone."""
    return Response(status=202)
'''


def passage(text: str, **known: object) -> Passage:
    return Passage(text=text, **{"domain": "code", "path": "src/events/webhooks.py", **known})  # type: ignore[arg-type]


def test_code_and_the_comments_in_it() -> None:
    told = {(claim.attribute, claim.value) for claim in extract_claims(passage(MODULE, language="python"))}
    assert {("timeout", "10"), ("retries", "3"), ("http_status", "202")} <= told
    assert {("support", "removed"), ("retries", "5"), ("http_status", "410")} <= told


def test_claims_are_sorted_distinct_and_deterministic() -> None:
    found = extract_claims(passage(MODULE * 2, language="python"))
    places = [(claim.span.start, claim.span.end, claim.kind) for claim in found]
    assert places == sorted(places) and len(set(found)) == len(found)
    assert found == extract_claims(passage(MODULE * 2, language="python"))


def test_a_shifted_passage_has_shifted_spans() -> None:
    here = extract_claims(passage(MODULE, language="python"))
    there = extract_claims(passage(MODULE, language="python", start=1000))
    assert [claim.span.start + 1000 for claim in here] == [claim.span.start for claim in there]


def test_at_most_so_many() -> None:
    text = "".join(f"QUEUE_{at}_MAX_RETRIES = {at + 2}\n" for at in range(200))
    assert len(extract_claims(passage(text, language="python"))) == MAX_CLAIMS


@pytest.mark.parametrize(
    ("text", "path", "values"),
    [
        ("def send(timeout=30): ...", "", {"30"}),
        ("func f() { w.WriteHeader(http.StatusNotFound) }", "", {"404"}),
        ("return res.status(422).json({ok: false}); const x = () => {1}", "", {"422"}),
        ("raise HTTPException(403)", "", {"403"}),
        ("WEBHOOK_TIMEOUT_SECONDS = 10", "", {"10"}),
        ("retries: 3", "config/app.yaml", {"3"}),
        ("const retries = 3;", "web/client.ts", {"3"}),
    ],
)
def test_bare_snippets_of_agents_that_name_no_language(text: str, path: str, values: set[str]) -> None:
    assert {claim.value for claim in extract_claims(passage(text, path=path))} == values


def test_prose_in_a_code_repository_stays_prose() -> None:
    text = "# Webhooks\n\nThe webhook timeout is 10 seconds. Import it from the public interface.\n"
    (claim,) = extract_claims(passage(text, path="README.md", format="markdown"))
    assert (claim.attribute, claim.value, claim.unit) == ("timeout", "10", "s")


def test_fenced_code_is_an_example_where_it_stands() -> None:
    text = "Set it:\n\n```python\nclient = Client(timeout=7)\n```\n\nand\n\n```yaml\nwebhook:\n  retries: 4\n```\n"
    found = extract_claims(Passage(text=text, start=50, path="docs/client.md", format="markdown"))
    assert {(claim.attribute, claim.value, claim.mood) for claim in found} == {
        ("timeout", "7", "example"),
        ("retries", "4", "example"),
    }
    assert {text[claim.span.start - 50 : claim.span.end - 50] for claim in found} == {"timeout=7", "retries: 4"}


def test_documentation_and_conversations_go_to_prose_and_tables() -> None:
    said = datetime(2026, 1, 20, tzinfo=UTC)
    talk = Passage(
        text="ana: the webhook timeout is 10 seconds", domain="conversations", format="slack", timestamp=said
    )
    table = Passage(text="| Limit | Value |\n|---|---|\n| Webhook timeout | 10 seconds |\n", path="docs/limits.md")
    for one in (talk, table):
        assert {(claim.attribute, claim.value, claim.unit) for claim in extract_claims(one)} == {("timeout", "10", "s")}


@pytest.mark.parametrize("path", [*SOURCES, *PAYMENTS], ids=lambda path: str(path.relative_to(ROOT)))
def test_real_files(path: Path) -> None:
    text = path.read_text(encoding="utf-8", errors="replace")
    relative = path.relative_to(ROOT).as_posix()
    for start in range(0, len(text), 1500):
        piece = text[start : start + 1500]
        found = extract_claims(Passage(text=piece, start=start, domain="code", path=relative))
        for claim in found:
            assert start <= claim.span.start < claim.span.end <= start + len(piece)
            assert 0 < len(claim.statement) <= 240
            assert claim.topics == tuple(sorted(set(claim.topics))) and len(claim.topics) <= 12
            assert claim.value and claim.attribute


_WORDS = """
timeout max_retries = : ( ) { } [ ] , ; 30 422 1_000 0.5 'x' "v2.1" status_code def f return class if else # // /* */
\'\'\' ``` ```yaml True false http.StatusNotFound * 1024 ttl: -> => | --- seconds removed supports §é
"""
WORDS = st.sampled_from([*_WORDS.split(), "\n", "\n\n", '"""'])


@given(
    st.lists(WORDS, max_size=60), st.sampled_from([*LANGUAGES, None]), st.sampled_from(["a.md", "a.yaml", "a.json", ""])
)
def test_nothing_raises_and_spans_stay_inside(words: list[str], language: str | None, path: str) -> None:
    text = " ".join(words)
    for claim in extract_claims(Passage(text=text, start=3, domain="code", language=language, path=path)):
        assert 3 <= claim.span.start <= claim.span.end <= 3 + len(text)


@given(st.text(max_size=400))
def test_any_text_is_read(text: str) -> None:
    for known in ({"domain": "code"}, {"domain": "documentation"}, {"domain": "code", "language": "go"}):
        extract_claims(Passage(text=text, **known))  # type: ignore[arg-type]


def test_comments_lose_marks_and_indentation_and_keep_their_places() -> None:
    docstring = '    """Say\n    it.\n\n      more\n    """\n'
    text = f'X = "# no comment"\n# one\n# two\n\ndef f():\n{docstring}    return 1  # three\n'
    found = list(comment_blocks(text, "python"))
    assert [remark.text.strip() for remark in found] == ["one\ntwo", "Say\nit.\n\n  more", "three"]
    for remark in found:
        for at, letter in enumerate(remark.text):
            if letter.strip():
                assert text[remark.place(at)] == letter
    said = [remark.text.strip() for remark in comment_blocks('int x; // one\n/* two */ char *s = "// no";', "c")]
    assert said == ["one", "two"]


@pytest.mark.parametrize(
    ("text", "number", "unit"),
    [
        ("10 * 1024 * 1024", "10485760", None),
        ("(2 + 3) * 4 - 1", "19", None),
        ("24*60*60", "86400", None),
        ("2 ** 10", "1024", None),
        ("30_000L", "30000", None),
        ("1e-3", "0.001", None),
        ("time.Second * 30", "30", "seconds"),
        ('"512Mi"', "512", "mib"),
        ('"30s"', "30", "seconds"),
        ("5.minutes", "5", "minutes"),
    ],
)
def test_literals(text: str, number: str, unit: str | None) -> None:
    found = quantity(text)
    assert found is not None and (found.number, found.unit) == (number, unit)


@pytest.mark.parametrize(
    "text", ["-1", "1/0", "2 ** 4000", "9 ** 9 ** 9", "f(3)", "x * 2", "3 +", "", "1 2", "Math.min(3)"]
)
def test_what_is_no_literal(text: str) -> None:
    assert quantity(text) is None
