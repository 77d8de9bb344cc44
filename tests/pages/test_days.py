"""Days are of one zone, whatever zone a document states its time in."""

import pytest

from api.pages.addresses import day_of


@pytest.mark.parametrize(("stated", "day"), [
    ("2026-01-22T23:30:00-05:00", "2026-01-23"),
    ("2026-01-22T00:30:00+02:00", "2026-01-21"),
    ("2026-01-22T23:59:59Z", "2026-01-22"),
    ("2026-01-22T23:59:59", "2026-01-22"),
    ("2026-01-22", "2026-01-22"),
    ("someday", "someday"),
    ("", ""),
    (None, ""),
])  # fmt: skip
def test_a_day_is_that_of_utc(stated: str | None, day: str) -> None:
    assert day_of(stated) == day
