"""Read .pptx with python-pptx: a page for each slide, with tables, charts, diagrams and the speaker's notes."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Any

from defusedxml import ElementTree
from pptx import Presentation
from pptx.enum.shapes import PP_PLACEHOLDER
from pptx.opc.constants import RELATIONSHIP_TYPE

from nornweave.core.errors import DocumentError
from nornweave.core.text.inline_markup import one_line
from nornweave.core.types import freeze
from nornweave.read.blocks.unseen import alike, colour
from nornweave.read.formats.archive import open_office_archive, properties, theme_colours
from nornweave.read.formats.markdown import heading, joined, plain, table
from nornweave.read.parsed import Parsed

MAX_SLIDES = 2_000
MAX_NESTING = 20
_EVERY_SLIDE = frozenset({PP_PLACEHOLDER.SLIDE_NUMBER, PP_PLACEHOLDER.DATE, PP_PLACEHOLDER.FOOTER})
_DIAGRAM = "http://schemas.openxmlformats.org/drawingml/2006/diagram"
_RELATIONSHIP = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_RUN, _LEAST_SIZE = "{http://schemas.openxmlformats.org/drawingml/2006/main}r", 100
_TEXT = "{http://schemas.openxmlformats.org/drawingml/2006/main}t"


def read_pptx(raw: bytes) -> Parsed:
    """Turn a presentation into Markdown. ``page_starts`` has the start of each slide.

    ``metadata["left_out"]`` names the parts of slides that cannot be read.
    """
    with open_office_archive(raw) as archive:
        title, modified, told = properties(archive)
    slides = list(Presentation(io.BytesIO(raw)).slides)
    if len(slides) > MAX_SLIDES:
        raise DocumentError(f"too long: {len(slides):,} slides, at most {MAX_SLIDES:,} are read; split the file")
    left_out: list[str] = []
    text, starts = "", list[int]()
    for number, slide in enumerate(slides, 1):
        starts.append(len(text) + 2 if text else 0)
        if slide.element.get("show") in {"0", "false"}:
            left_out.append(f"slide {number}: hidden")
        else:
            if unseen := _drop_unseen(slide):
                left_out.append(f"slide {number}: hidden text ({unseen:,} runs)")
            text = joined((text, _slide(slide, number, left_out)))
    return Parsed(
        text=text,
        page_starts=tuple(min(start, len(text)) for start in starts),
        title=(_title(slides[0]) if slides else "") or title,
        updated_at=modified,
        metadata=freeze({**told, "left_out": tuple(left_out) or None}),
    )


def _slide(slide: Any, number: int, left_out: list[str]) -> str:
    title, name = slide.shapes.title, _title(slide)
    shapes = [shape for shape in slide.shapes if title is None or shape.shape_id != title.shape_id]
    blocks = [heading(1, name or f"Slide {number}"), *_blocks(shapes, number, left_out)]
    if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
        notes = slide.notes_slide.notes_text_frame.text.strip()
        blocks += ["Notes:", plain(notes)] if notes else []
    return joined(blocks)


def _drop_unseen(slide: Any) -> int:
    """Remove the runs that nobody sees and return their number.

    They have at most one point, no colour, or the colour of their background.
    """
    master = slide.slide_layout.slide_master
    names = dict(master.element.find("{*}clrMap").items())
    theme = theme_colours(master.part.part_related_by(RELATIONSHIP_TYPE.THEME).blob)

    def colour_in(fill: Any) -> tuple[int, int, int] | None:
        told = next(iter(fill), None) if fill is not None else None
        if told is None or len(told):
            return None
        said = told.get("val") or ""
        return colour(f"#{said}") if told.tag.endswith("srgbClr") else theme.get(names.get(said, said))

    grounds = (each.element.find(".//{*}cSld/{*}bg/*") for each in (slide, slide.slide_layout, master))
    ground = next((each for each in grounds if each is not None), None)
    is_plain = ground is not None and ground.tag.endswith("bgRef")
    behind_all = colour_in(ground if is_plain else ground.find("{*}solidFill") if ground is not None else None)
    painted = [
        each for owner in (slide, slide.slide_layout, master) for each in owner.shapes if _fill(each) is not None
    ]

    def is_clear(look: Any) -> bool:
        """Tell whether letters have no colour, or one that one sees through."""
        alpha = look.find("{*}solidFill/*/{*}alpha")
        is_unfilled = look.find("{*}noFill") is not None and look.find("{*}ln") is None
        return is_unfilled or (alpha is not None and alpha.get("val") in {"0", "0%"})

    removed = 0
    for shape in slide.shapes:
        own = _fill(shape)
        is_bare = own is None and not any(each is not shape and _overlap(each, shape) for each in painted)
        behind = behind_all if is_bare else colour_in(own)
        for run in shape._element.iter(_RUN):
            look = run.find("{*}rPr")
            size = look.get("sz", "") if look is not None else ""
            is_lost = look is not None and (is_clear(look) or alike(colour_in(look.find("{*}solidFill")), behind))
            if is_lost or (size.isdigit() and int(size) <= _LEAST_SIZE):
                run.getparent().remove(run)
                removed += 1
    return removed


def _fill(shape: Any) -> Any | None:
    """Return the XML element that fills a shape; ``None`` if the shape is transparent.

    If only its style fills the shape, return the element of the shape.
    """
    look, style = shape._element.find("{*}spPr"), shape._element.find("{*}style/{*}fillRef")
    fills = [] if look is None else [each for each in look if each.tag.endswith(("Fill", "noFill"))]
    if fills:
        return None if fills[0].tag.endswith("}noFill") else fills[0]
    is_plain = look is not None and (style is None or style.get("idx") == "0")
    return None if is_plain else shape._element


def _overlap(one: Any, other: Any) -> bool:
    places = [(each.left, each.top, each.width, each.height) for each in (one, other)]
    if any(None in place for place in places):
        return True
    (left, top, width, height), (x, y, w, h) = places
    return bool(left < x + w and x < left + width and top < y + h and y < top + height)


def _is_hidden(shape: Any) -> bool:
    properties = shape._element.find(".//{*}cNvPr")  # the first one is of the shape itself, of a group too
    return properties is not None and properties.get("hidden") in {"1", "true"}


def _is_beside_slide(shape: Any) -> bool:
    """Tell whether a shape lies outside of its slide, where only its author sees it."""
    slides = shape.part.package.presentation_part.presentation
    places = ((shape.left, shape.width, slides.slide_width), (shape.top, shape.height, slides.slide_height))
    return any(at is not None and (at >= most or at + (size or 0) < 0) for at, size, most in places)


def _title(slide: Any) -> str:
    title = slide.shapes.title
    is_shown = title is not None and title.has_text_frame and not _is_hidden(title)
    return one_line(title.text_frame.text) if is_shown else ""


def _blocks(shapes: Sequence[Any], number: int, left_out: list[str], depth: int = 0) -> Iterator[str]:
    """Yield the text of shapes from top to bottom, and from left to right. Add what cannot be read to ``left_out``."""
    for shape in sorted(shapes, key=lambda shape: (shape.top or 0, shape.left or 0)):
        try:
            if _is_hidden(shape) or (depth == 0 and _is_beside_slide(shape)):
                left_out.append(f"slide {number}: a hidden shape")
            elif hasattr(shape, "shapes"):
                if depth < MAX_NESTING:
                    yield joined(_blocks(list(shape.shapes), number, left_out, depth + 1))
                else:
                    left_out.append(f"slide {number}: groups nested deeper than {MAX_NESTING}")
            else:
                yield _shape(shape)
        # python-pptx raises whatever a broken shape makes it stumble over.
        except (AttributeError, KeyError, ValueError, TypeError, IndexError, NotImplementedError) as error:
            left_out.append(f"slide {number}: a shape that cannot be read ({type(error).__name__})")


def _shape(shape: Any) -> str:
    if shape.is_placeholder and shape.placeholder_format.type in _EVERY_SLIDE:
        return ""
    if getattr(shape, "has_table", False):
        return table([[cell.text for cell in line.cells] for line in shape.table.rows])
    if getattr(shape, "has_chart", False):
        return _chart(shape.chart)
    if shape.has_text_frame:
        return "\n".join(_paragraphs(shape.text_frame))
    properties = shape._element.find(".//{*}cNvPr")
    described = one_line(properties.get("descr") or "") if properties is not None else ""
    return joined((described, _diagram(shape)))


def _paragraphs(frame: Any) -> Iterator[str]:
    """Yield the paragraphs of a text frame. If there are several, they become a list that is indented by level."""
    lines = [(paragraph.level, one_line(paragraph.text)) for paragraph in frame.paragraphs]
    lines = [(level, line) for level, line in lines if line]
    if len(lines) == 1:
        yield plain(lines[0][1])
        return
    lowest = min((level for level, _ in lines), default=0)
    for level, line in lines:
        yield f"{'  ' * (level - lowest)}- {line}"


def _chart(chart: Any) -> str:
    """Return a chart as a table with a row for each category and a column for each series."""
    title = chart.chart_title.text_frame.text if chart.has_title and chart.chart_title.has_text_frame else ""
    rows: list[list[str]] = []
    for plot in chart.plots:
        series = list(plot.series)
        categories = [str(category) for category in plot.categories]
        columns = [["" if value is None else f"{value:.10g}" for value in curve.values] for curve in series]
        length = max([len(categories), *map(len, columns)])
        rows.append(["", *(str(curve.name) for curve in series)])
        for line in range(length):
            named = categories[line] if line < len(categories) else ""
            rows.append([named, *(column[line] if line < len(column) else "" for column in columns)])
    width = max(map(len, rows), default=0)
    return joined((one_line(title), table([cells + [""] * (width - len(cells)) for cells in rows])))


def _diagram(shape: Any) -> str:
    """Return the texts of a SmartArt diagram. The file stores them in a separate part."""
    found = shape._element.find(f".//{{{_DIAGRAM}}}relIds")
    if found is None:
        return ""
    part = shape.part.related_part(found.get(f"{_RELATIONSHIP}dm"))
    texts = (one_line(element.text or "") for element in ElementTree.fromstring(part.blob).iter(_TEXT))
    return "\n".join(f"- {text}" for text in texts if text)
