import base64
import math
import re
from datetime import UTC, datetime, timedelta, timezone
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evals.trend import LONGEST_INLINE, TrendPoint, trend

START = datetime(2026, 1, 5, 8, 30, tzinfo=UTC)
SVG = "{http://www.w3.org/2000/svg}"


def point(
    number: int, recall: float = 0.9, mrr: float = 0.8, *, at: datetime = START, refused: bool = False
) -> TrendPoint:
    at, generation = at + timedelta(hours=number), f"gen-{number:06}"
    return TrendPoint(at=at, generation=generation, recall=recall, mrr=mrr, refused=refused)


def drawn(markdown: str) -> ElementTree.Element:
    """Parse it as a browser does that shows it as an image: it must be well-formed."""
    found = re.fullmatch(r"!\[[^\]]*\]\(data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)\)", markdown)
    assert found
    return ElementTree.fromstring(base64.b64decode(found[1]))


def texts(*points: TrendPoint) -> list[str]:
    return [one.text or "" for one in drawn(trend(points)).iter(f"{SVG}text")]


def lines(*points: TrendPoint) -> list[list[int]]:
    """Return the heights of the lines of recall and MRR, counted from the top."""
    paths = [one.attrib["d"] for one in drawn(trend(points)).iter(f"{SVG}path") if "stroke-width" not in one.attrib]
    steps = [[int(number) for number in re.findall(r"-?\d+", path)][1::2] for path in paths]
    return [[sum(line[: place + 1]) for place in range(len(line))] for line in steps]


POINTS = st.lists(
    st.builds(point, st.integers(0, 10_000), st.floats(0, 1), st.floats(0, 1), refused=st.booleans()), max_size=80
)


def test_both_lines_run_through_every_published_generation() -> None:
    assert [len(line) for line in lines(point(0), point(1), point(2, 0.5, 0.3, refused=True), point(3))] == [3, 3]


def test_the_figures_of_the_newest_published_generation_are_shown() -> None:
    assert {"Recall@10 0.910", "MRR 0.800"} <= set(texts(point(0), point(1, 0.91), point(2, 0.2, refused=True)))


def test_higher_is_higher() -> None:
    recall, mrr = lines(point(0, 0.7, 0.2), point(1, 0.9, 0.1))
    assert recall[1] < recall[0] < mrr[0] < mrr[1]


def test_times_are_compared_in_utc() -> None:
    east = [point(0, at=START.astimezone(timezone(timedelta(hours=5)))), point(1, 0.7)]
    naive = [point(0, at=START.replace(tzinfo=None)), point(1, 0.7)]
    assert trend([point(0), point(1, 0.7)]) == trend(east) == trend(naive)


@pytest.mark.parametrize("value", [math.nan, math.inf, -0.01, 1.01])
def test_figures_that_are_none(value: float) -> None:
    for broken in (point(7, value), point(7, 0.5, value)):
        with pytest.raises(ValueError, match=r"gen-000007: .* expected figures in \[0, 1\]"):
            trend([point(0), broken])


@settings(max_examples=60)
@given(POINTS, st.data())
def test_whatever_the_points_it_is_the_same_and_short_enough_to_be_shown_at_once(
    points: list[TrendPoint], data: st.DataObject
) -> None:
    markdown = trend(points)
    assert len(markdown) <= LONGEST_INLINE
    assert bool(markdown) == bool(points)
    assert trend(data.draw(st.permutations(points))) == markdown
    if markdown:
        assert drawn(markdown).attrib["width"] == "380"
