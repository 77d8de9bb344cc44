import base64
import math
import re
from datetime import UTC, datetime, timedelta, timezone
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evals.trend import LAST, LONGEST_INLINE, Range, TrendPoint, as_markdown_image, small_trend, trend_svg

START = datetime(2026, 1, 5, 8, 30, tzinfo=UTC)
SVG = "{http://www.w3.org/2000/svg}"


def point(number: int, recall: float = 0.9, mrr: float = 0.8, *, refused: bool = False) -> TrendPoint:
    return TrendPoint(
        at=START + timedelta(hours=number),
        generation=f"gen-{number:06}",
        recall=Range(recall, max(0, recall - 0.1), min(1, recall + 0.05)),
        mrr=Range(mrr, max(0, mrr - 0.1), min(1, mrr + 0.05)),
        refused=refused,
    )


def drawn(svg: bytes) -> ElementTree.Element:
    """Parse it as a browser does that shows it as an image: it must be well-formed."""
    root = ElementTree.fromstring(svg)
    assert root.tag == f"{SVG}svg"
    return root


def texts(svg: bytes) -> list[str]:
    return [one.text or "" for one in drawn(svg).iter(f"{SVG}text")]


def lines(svg: bytes) -> list[str]:
    return [one.attrib["d"] for one in drawn(svg).iter(f"{SVG}path") if one.get("fill") == "none"]


def within(markdown: str) -> bytes:
    found = re.fullmatch(r"!\[[^\]]*\]\(data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)\)", markdown)
    assert found
    return base64.b64decode(found[1])


POINTS = st.lists(
    st.builds(
        lambda hours, generation, recall, mrr, refused: TrendPoint(
            at=START + timedelta(hours=hours),
            generation=generation,
            recall=Range(*sorted(recall)),
            mrr=Range(*sorted(mrr)),
            refused=refused,
        ),
        st.integers(0, 10_000),
        st.text(max_size=30),
        st.tuples(*[st.floats(0, 1)] * 3),
        st.tuples(*[st.floats(0, 1)] * 3),
        st.booleans(),
    ),
    max_size=80,
)


def test_both_lines_run_through_every_published_generation() -> None:
    svg = trend_svg([point(0), point(1), point(2, 0.5, 0.3, refused=True), point(3)], "documentation · golden")
    assert [len(line.removeprefix("M").split("L")) for line in lines(svg)] == [3, 3]
    shown = texts(svg)
    assert {"documentation · golden", "Recall@10 0.900", "MRR 0.800", "refused by the gate"} <= set(shown)
    assert {f"gen-{number:06}" for number in range(4)} <= set(shown)
    assert "2026-01-05 08:30" in shown


def test_the_figures_of_the_newest_published_generation_are_shown() -> None:
    assert "Recall@10 0.910" in texts(trend_svg([point(0), point(1, 0.91), point(2, 0.2, refused=True)]))
    assert "Recall@10" in texts(trend_svg([point(0, refused=True)])), "nothing was published, there is no figure"


def test_higher_is_higher() -> None:
    recall, mrr = lines(trend_svg([point(0, 0.7, 0.2), point(1, 0.9, 0.1)]))
    rows = [[float(spot.split()[1]) for spot in line.removeprefix("M").split("L")] for line in (recall, mrr)]
    assert rows[0][1] < rows[0][0] < rows[1][0] < rows[1][1], "rows are counted from the top"


def test_a_text_from_outside_stays_text() -> None:
    hostile = '</text><script>alert("1")</script>&amp;\0\x1b\ud800'
    svg = trend_svg([TrendPoint(at=START, generation=hostile, recall=Range(1, 1, 1), mrr=Range(1, 1, 1))], hostile)
    assert texts(svg)[0] == '</text><script>alert("1")</script>&amp;���'
    assert "</text><script>…" in texts(svg), "a long name is cut before it is escaped"
    assert {one.tag for one in drawn(svg).iter()} <= {
        f"{SVG}{tag}" for tag in ("svg", "style", "text", "path", "circle")
    }
    assert "](" not in as_markdown_image(svg, "a](javascript:alert(1))").partition("](data:")[0]


def test_only_the_newest_are_shown_and_only_some_are_named() -> None:
    svg = trend_svg([point(number) for number in range(LAST + 40)])
    assert [len(line.split("L")) for line in lines(svg)] == [LAST, LAST]
    named = [text for text in texts(svg) if text.startswith("gen-")]
    assert 3 <= len(named) <= 6
    assert f"gen-{LAST + 39:06}" in named


def test_names_never_meet() -> None:
    """At 11 pixels a digit is some 7 wide: sixteen characters of a time take 112 at most."""
    for count in range(1, LAST + 1):
        root = drawn(trend_svg([point(number) for number in range(count)]))
        centres = sorted(
            float(one.attrib["x"]) for one in root.iter(f"{SVG}text") if (one.text or "").startswith("gen-")
        )
        assert all(after - before >= 112 for before, after in zip(centres, centres[1:], strict=False))
        assert centres[0] >= 56
        assert centres[-1] <= 760 - 56


def test_times_are_shown_in_utc() -> None:
    east = timezone(timedelta(hours=5))
    same = [point(0), TrendPoint(**{**_fields(point(0)), "at": START.astimezone(east)})]
    naive = TrendPoint(**{**_fields(point(0)), "at": START.replace(tzinfo=None)})
    assert trend_svg(same[:1]) == trend_svg(same[1:]) == trend_svg([naive])


def _fields(of: TrendPoint) -> dict[str, object]:
    return {name: getattr(of, name) for name in TrendPoint.__slots__}


def test_nothing_to_show() -> None:
    assert texts(trend_svg([], "code")) == ["code", "not evaluated yet"]
    assert not small_trend([])


@pytest.mark.parametrize("value", [math.nan, math.inf, -0.01, 1.01])
def test_figures_that_are_none(value: float) -> None:
    for broken in (Range(value, 0, 1), Range(0.5, value, 1), Range(0.5, 0, value)):
        for spoilt in ({"recall": broken}, {"mrr": broken}):
            one = TrendPoint(**{**_fields(point(7)), **spoilt})
            for draw in (trend_svg, small_trend):
                with pytest.raises(ValueError, match=r"gen-000007: .* expected figures in \[0, 1\]"):
                    draw([point(0), one])


@settings(max_examples=60)
@given(POINTS, st.text(max_size=20), st.data())
def test_whatever_the_points_the_picture_is_well_formed_and_the_same(
    points: list[TrendPoint], title: str, data: st.DataObject
) -> None:
    svg = trend_svg(points, title)
    root = drawn(svg)
    assert trend_svg(data.draw(st.permutations(points)), title) == svg
    for one in root.iter(f"{SVG}circle"):
        assert 0 <= float(one.attrib["cx"]) <= 760
        assert 0 <= float(one.attrib["cy"]) <= 270
    published = [one for one in sorted(points, key=lambda one: one.at)[-LAST:] if not one.refused]
    if len(points) <= LAST:
        assert len(list(root.iter(f"{SVG}circle"))) == 2 * len(published)


@settings(max_examples=60)
@given(POINTS)
def test_the_small_one_is_always_short_enough_to_be_shown_at_once(points: list[TrendPoint]) -> None:
    markdown = small_trend(points)
    assert len(markdown) <= LONGEST_INLINE
    assert bool(markdown) == bool(points)
    if markdown:
        assert drawn(within(markdown)).attrib["width"] == "380"
