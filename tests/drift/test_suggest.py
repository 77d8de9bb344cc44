import pytest
from hypothesis import given
from hypothesis import strategies as st

from nornweave.core.types import Fact, Span
from nornweave.disagree.drift.suggest import with_value
from nornweave.disagree.facts.expressions import read_value
from nornweave.disagree.facts.values import Value


def fact(value: Value) -> Fact:
    return Fact(
        name="x", owner="", attribute="default", kind=value.kind, value=value.text, unit=value.unit,
        side="documentation", form="sentence", span=Span(0, 1),
    )  # fmt: skip


def literal(text: str) -> Value:
    value = read_value(text)
    assert value is not None
    return value


@pytest.mark.parametrize(("line", "stated", "wanted", "expected"), [
    ("It is 30 seconds.", "30 seconds", "20 seconds", "It is 20 seconds."),
    ("It is 20000 ms.", "20 seconds", "30 seconds", "It is 30000 ms."),
    ("It is 2 hours.", "2 hours", "1 hour", "It is 1 hour."),
    ("It is 1 hour.", "1 hour", "90 minutes", "It is 1.5 hours."),
    ("| `limit` | 10,000 | rows |", "10000", "25000", "| `limit` | 25,000 | rows |"),
    ("Up to 64 KiB.", "64 KiB", "1 MiB", "Up to 1024 KiB."),
    ("The default is `json`.", "'json'", "'text'", "The default is `text`."),
    ('The default is "json".', "'json'", "None", 'The default is "none".'),
    ("It is enabled by default.", "true", "false", "It is disabled by default."),
    ("Default: True", "True", "False", "Default: False"),
    ("Codes: [500, 502]", "[500, 502]", "[500, 503]", "Codes: [500, 503]"),
    ("Codes: ['a', 'b']", "['a', 'b']", "['a']", "Codes: ['a']"),
    ("Default: none.", "none", "30", "Default: 30."),
    ("Default: 30.", "30", "5 seconds", "Default: 5 seconds."),
])  # fmt: skip
def test_the_value_is_replaced_in_the_words_of_the_line(line: str, stated: str, wanted: str, expected: str) -> None:
    assert with_value(line, fact(literal(stated)), fact(literal(wanted))) == expected


def test_of_a_version_the_number_is_replaced() -> None:
    stated, wanted = fact(Value("version", ">=3.8")), fact(Value("version", ">=3.10"))
    assert with_value("Needs Python 3.8 or newer.", stated, wanted) == "Needs Python 3.10 or newer."


@pytest.mark.parametrize(("line", "stated", "wanted"), [
    ("It is 30 here and 30 there.", "30", "20"),
    ("It is 15%.", "15%", "0.05"),
    ("It is 30 seconds.", "30 seconds", "5000"),
    ("It is half a minute.", "30 seconds", "20 seconds"),
    ("It is `json` or what `json` means; `jsonl` is not.", "'xml'", "'text'"),
    ("It is 30.", "30", "'x'"),
    ("x" * 5000 + " 30", "30", "20"),
])  # fmt: skip
def test_what_is_not_found_once_is_not_replaced(line: str, stated: str, wanted: str) -> None:
    assert with_value(line, fact(literal(stated)), fact(literal(wanted))) is None


STATED = st.sampled_from(["30 seconds", "'a'", "true", "[1, 2]", "none", "7"])
WANTED = st.sampled_from(["20", "'b'", "false", "[]", "5 MB"])


@given(st.text(max_size=300), STATED, WANTED)
def test_any_line_is_looked_at_without_an_error(line: str, stated: str, wanted: str) -> None:
    changed = with_value(line, fact(literal(stated)), fact(literal(wanted)))
    assert changed is None or changed != line
