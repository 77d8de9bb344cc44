import pytest
from hypothesis import given
from hypothesis import strategies as st

from nornweave.disagree.facts.comparison import FactComparison, compare
from nornweave.disagree.facts.values import Value
from nornweave.disagree.facts.versions import agree, read_requirement


@pytest.mark.parametrize(("text", "expected"), [
    (">=3.8", ">=3.8"), ("3.8+", ">=3.8"), ("3.9 or newer", ">=3.9"), ("at least 1.21", ">=1.21"),
    ("v18.2.0", "18.2.0"),
    ("18.x", "18"), ("^20.1", ">=20.1"), ("~> 2.7", ">=2.7"),
    (">=16 <23", ">=16"), ("16 || 18 || >=20", ">=16"), ("3.8 - 3.11", "3.8"),
    ("newer than 2.4", ">=2.4"), ("(1.2 and above)", ">=1.2"), (">= 2.0, != 2.1", ">=2.0"),
])  # fmt: skip
def test_requirements_are_read(text: str, expected: str) -> None:
    assert str(read_requirement(text)) == expected


@pytest.mark.parametrize(
    "text", ["", "*", "latest", "workspace:*", "lts/iron", "any", "==3.11", "=1.4", "<=4.1", "3 or older"]
)
def test_pins_and_what_names_no_version_are_no_requirement(text: str) -> None:
    assert read_requirement(text) is None


@pytest.mark.parametrize(("a", "b", "expected"), [
    ("22", ">=16", False), (">=3.8", ">=3.8", True), ("3.8+", ">=3.8", True), ("3.9 or newer", ">=3.8", False),
    ("3.8", ">=3.8.0", True), ("16", ">=16.14", True), (">=16", ">=16.14", None),
    (">=2.0", "==2.31", None), (">=3.8,<3.12", ">=3.8,<3.13", True), ("3", ">=3.9", True), ("1.20", "1.2", False),
    ("<4", ">=3", None),
])  # fmt: skip
def test_two_requirements_fit_or_not_whatever_their_order(a: str, b: str, expected: bool | None) -> None:
    assert agree(a, b) is expected
    assert agree(b, a) is expected


def test_versions_compare_as_values() -> None:
    assert compare(Value("version", "22"), Value("version", ">=16")) is FactComparison.DIFFER
    assert compare(Value("version", "<4"), Value("version", ">=3.8")) is FactComparison.UNDECIDED


@given(st.text(max_size=200))
def test_any_text_is_read_without_an_error_and_what_is_read_reads_the_same(text: str) -> None:
    requirement = read_requirement(text)
    if requirement is not None:
        again = read_requirement(str(requirement))
        assert again is not None
        assert again.least == requirement.least
