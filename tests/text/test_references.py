"""Character references that no parser gets through are text, and raise nothing."""

from nornweave.core.text.inline_markup import unescaped, without_long_references

LONG = f"a &#{'9' * 5_000}; b &amp; &#8212;"


def test_a_reference_with_thousands_of_digits_stays() -> None:
    assert unescaped(LONG) == f"a & {'9' * 5_000}; b & —"
    assert len(without_long_references(LONG)) == len(LONG)
    assert unescaped("a &lt; b") == "a < b"
