"""Values are read the same from code of any language and from documentation, and compared by what they mean."""

import pytest
from fact_support import fact
from hypothesis import given
from hypothesis import strategies as st

from nornweave.core.types import ValueKind
from nornweave.disagree.facts.comparison import FactComparison, compare
from nornweave.disagree.facts.expressions import as_written, read_value
from nornweave.disagree.facts.values import Value, measured_in, show, stated

AGREE, DIFFER, UNDECIDED = FactComparison.AGREE, FactComparison.DIFFER, FactComparison.UNDECIDED


def value(text: str) -> Value:
    read = read_value(text)
    assert read is not None, text
    return read


@pytest.mark.parametrize(
    ("text", "kind", "canonical", "unit"),
    [
        ("30 * time.Second", "number", "30", "s"),
        ("timedelta(hours=24)", "number", "86400", "s"),
        ("timedelta(days=1)", "number", "86400", "s"),
        ("SECONDS.toMillis(30)", "number", "30", "s"),
        ("30 * units.ms", "number", "3/100", "s"),
        ("lufs_to_db(-23)", "symbol", "lufs_to_db", None),
        ("Duration.ofSeconds(30)", "number", "30", "s"),
        ("std::time::Duration::from_millis(500)", "number", "1/2", "s"),
        ("TimeSpan.FromMinutes(5)", "number", "300", "s"),
        ("5.minutes", "number", "300", "s"),
        ("1h30m", "number", "5400", "s"),
        ("five seconds", "number", "5", "s"),
        ('check.array().items(check.string()).default(["a"])', "list", '["a"]', None),
        ("20 seconds", "number", "20", "s"),
        ("128 * 1024", "number", "131072", None),
        ("1 << 20", "number", "1048576", None),
        ("2**16", "number", "65536", None),
        ("10e3", "number", "10000", None),
        ("1_000_000", "number", "1000000", None),
        ("1,000,000", "number", "1000000", None),
        ("0x1F", "number", "31", None),
        ("100_000L", "number", "100000", None),
        ("1.5f", "number", "3/2", None),
        ("-1", "number", "-1", None),
        ("64 KiB", "number", "65536", "byte"),
        ("64KB", "number", "64000", "byte"),
        ("15%", "number", "15", "percent"),
        ("'json'", "string", "json", None),
        ("Option('json', old={'x'})", "string", "json", None),
        ("'config.ru'.freeze", "string", "config.ru", None),
        ('String::from("x")', "string", "x", None),
        ("pointerOf(true)", "boolean", "true", None),
        ("Some(30)", "number", "30", None),
        ("Optional.absent()", "none", "none", None),
        ("(none)", "none", "none", None),
        ("nullptr", "none", "none", None),
        ("Integer.MAX_VALUE", "unlimited", "unlimited", None),
        ("no limit", "unlimited", "unlimited", None),
        ("[500, 502]", "list", '["500", "502"]', None),
        ('[]string{"a", "b"}', "list", '["a", "b"]', None),
        ('List.of("a", "b")', "list", '["a", "b"]', None),
        ("{}", "list", "[]", None),
        ("params.fetch('backlog', 1024).to_i", "number", "1024", None),
        ("os.environ.get('PORT', '80')", "string", "80", None),
        ("Integer(ENV['P'] || 0)", "number", "0", None),
        ("allow != null ? allow : true", "boolean", "true", None),
        ("opts?.limit && isFinite(opts.limit) ? opts.limit : 4 * 1024", "number", "4096", None),
        ("100 if size is None else size", "number", "100", None),
        ("config && config.timeout || 2500", "number", "2500", None),
    ],
)
def test_expressions_of_many_languages_are_folded(text: str, kind: str, canonical: str, unit: str | None) -> None:
    read = value(text)
    assert (read.kind, read.text, read.unit) == (kind, canonical, unit)


@pytest.mark.parametrize("text", ["1 << 999999999", "MRI ? 5 : 16", "compute()", "a + b", "Foo.BAR", "{'a': 1}"])
def test_what_is_not_known_is_a_symbol(text: str) -> None:
    assert not value(text).is_literal


@pytest.mark.parametrize("text", ["", ";", "if (x) {", "9" * 5000, "(" * 500 + ")" * 500, "1e999999", "5 freeze"])
def test_what_is_no_value_or_far_too_large_is_none(text: str) -> None:
    assert read_value(text) is None


def test_constants_are_followed() -> None:
    known = {"DAY": value("86400"), "LIMIT": value("10")}
    read = read_value("7 * DAY", known.get)
    assert read is not None
    assert read.text == "604800"


@pytest.mark.parametrize(("left", "right", "expected"), [
    ("20 seconds", "65", DIFFER), ("72 seconds", "72000", AGREE), ("5 seconds", "2500", DIFFER),
    ("64 KB", "65536", AGREE), ("64 KB", "64 KiB", AGREE), ("64 KB", "32 KiB", DIFFER), ('"5m"', "2m", DIFFER),
    ('"300s"', "5m", AGREE), ("0.85", "85%", AGREE), ("true", "'true'", AGREE), ("true", "0", DIFFER),
    ("none", "0", UNDECIDED), ("none", "10", DIFFER), ("no limit", "none", AGREE), ("no limit", "1024", DIFFER),
    ("[400, 500]", "[500, 400]", AGREE), ("[400, 500]", "[400]", DIFFER),
    ("[2 * time.Millisecond]", "['2ms']", AGREE), ("['']", "[]", AGREE), ("'{}'", "[]", AGREE),
    ("[]", "none", UNDECIDED), ("0.5", "'min_time:%0.3f'", UNDECIDED),
    ("'INFO'", "'info'", AGREE), ("'pickle'", "'json'", DIFFER), ("Mode.STRICT", "'lax'", DIFFER),
    ("Mode::STRICT", "'strict'", AGREE), ("HASH_FNV1A_64", "'fnv1a_64'", AGREE), ("Mode.STRICT", "7", UNDECIDED),
    ("10 seconds", "10 MB", UNDECIDED), ("0o770", "0770", AGREE),
    ("0644", "644", AGREE), ("0644", "420", AGREE), ("0o022", "'22'", AGREE), ("0600", "644", DIFFER),
])  # fmt: skip
def test_values_are_compared_by_what_they_mean(left: str, right: str, expected: FactComparison) -> None:
    assert compare(value(left), value(right)) is expected
    assert compare(value(right), value(left)) is expected


def test_a_name_lends_its_unit_to_a_plain_number() -> None:
    assert show(*_parts(measured_in(value("1500"), "ms"))) == "1500 ms"
    assert measured_in(value("5 minutes"), "ms") == value("5 minutes")
    huge = value("9" * 150)
    assert measured_in(huge, "days") == huge


def _parts(one: Value) -> tuple[ValueKind, str, str | None]:
    return one.kind, one.text, one.unit


@pytest.mark.parametrize(
    ("text", "shown"),
    [("48 hours", "2 days"), ("90 seconds", "90 seconds"), ("65536 bytes", "64 KiB"), ("0.5", "0.5"),
     ("'x'", '"x"'), ("[1, 2]", "[1, 2]"), ("15%", "15%"), ("0o644", "0644")],
)  # fmt: skip
def test_values_are_shown_as_people_write_them(text: str, shown: str) -> None:
    assert show(*_parts(value(text))) == shown


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    read = read_value(text)
    if read is not None and read.is_literal:
        assert compare(read, read) in {AGREE, UNDECIDED}


@given(st.integers(min_value=-(10**12), max_value=10**12), st.integers(min_value=-(10**12), max_value=10**12))
def test_plain_numbers_differ_exactly_if_they_are_different(left: int, right: int) -> None:
    expected = AGREE if left == right else DIFFER
    assert compare(value(str(left)), value(str(right))) is expected


@pytest.mark.parametrize(("written", "statement", "shown"), [
    ("8 MiB", "The part size is 8 MiB by default, at most 5 GiB.", "8 MiB"),
    ("8388608 bytes", "part_size: 8M # at least 5M", "8M"),
    ("10 minutes", "Sessions end after ten minutes, not after 5 minutes.", "10 minutes"),
    ("1500 ms", "RETRY_MS = 1_500", "1500 ms"),
    ("1500", "BATCH = 1_500  # up to 15000", "1_500"),
    ("0.5", "ratio of 0.5.", "0.5"),
    ("25%", "25 % of the heap", "25 %"),
    ("'json'", "format is `json`", '"json"'),
    ("true", "on by default", "true"),
])  # fmt: skip
def test_a_value_is_shown_as_its_statement_writes_it(written: str, statement: str, shown: str) -> None:
    assert as_written(fact("part_size", written, statement=statement)) == shown


def test_a_stated_number_is_no_fraction() -> None:
    assert [stated(fact("tls_version", written)) for written in ("1.2", "30", "0.0003")] == ["1.2", "30", "0.0003"]
    assert stated(fact("tls_version", "1.3", negated=True)) == "not 1.3"


def test_a_denied_value_says_so() -> None:
    assert as_written(fact("part_size", "8 MiB", statement="never 8 MiB", negated=True)) == "not 8 MiB"
    assert as_written(fact("gzip", "true", statement="does not compress", negated=True)) == "false"
