"""Read .docx with mammoth: headings by their styles, lists, tables, footnotes; pictures by their description.

Write the automatic numbers of a Word document's headings into them, and take hidden text out, before it is read.

Word counts as ISO/IEC 29500-1, 17.9, says: a paragraph's number is the counter of its level in its list's definition;
a number on a level starts the levels below it again.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from typing import Any
from zipfile import ZipFile

import mammoth
import mammoth.images
from defusedxml import ElementTree

from nornweave.core.text.inline_markup import one_line
from nornweave.core.types import freeze
from nornweave.read.blocks.unseen import alike, colour
from nornweave.read.formats.archive import open_office_archive, properties, read_xml, theme_colours
from nornweave.read.formats.html import markdown_of
from nornweave.read.parsed import Parsed

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_STRICT = "{http://purl.oclc.org/ooxml/wordprocessingml/main}"
_MAX_STYLES = 500
_MAX_BASES = 20
# What mammoth 1.13 says when it leaves something out.
_NOT_READ = {
    "formulas": "officeDocument/2006/math}oMath",
    "fields": "w:fldSimple",
    "an embedded document": "w:altChunk",
    "embedded objects": "OLEObject",
}
_TITLE = re.compile(r"# (.+)")

_DOCUMENT = "word/document.xml"
_PICTURES = "word/media/"
_ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"),
          (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))  # fmt: skip
_LEAST_HALF_POINTS = 2
_DARK = ("shd", "highlight")
_THEME = {"background1": "lt1", "light1": "lt1", "text1": "dk1", "dark1": "dk1"}
_WHITE = (255, 255, 255)


def read_docx(raw: bytes) -> Parsed:
    """Turn a Word document into Markdown.

    A paragraph is a heading if its style has an outline level. The style may inherit the level from the style on which
    it is based.
    """
    with open_office_archive(raw) as archive:
        title, modified, told = properties(archive)
        name, levels = _heading_levels(archive)
        styled, hidden = with_numbers(archive, raw, name, lambda paragraph: _style_of(paragraph, name) in levels)
    result = mammoth.convert_to_html(
        io.BytesIO(styled),
        style_map="\n".join(_style_map(levels)),
        include_embedded_style_map=False,
        convert_image=mammoth.images.img_element(lambda _: {"src": ""}),
    )
    lost = "\n".join(message.message for message in result.messages)
    left_out = tuple(f"{kind} (not read)" for kind, sign in _NOT_READ.items() if sign in lost)
    if hidden:
        left_out += (f"hidden text ({hidden:,} runs)",)
    text = markdown_of(result.value)
    first = _TITLE.match(text)
    return Parsed(
        text=text,
        title=(one_line(first[1]) if first else None) or title,
        updated_at=modified,
        metadata=freeze({**told, "left_out": left_out or None}),
    )


def _heading_levels(archive: ZipFile) -> tuple[str, Mapping[str, tuple[str, int]]]:
    """Return the namespace of the document. Return also the name and the level of each heading style, by style id."""
    styles = read_xml(archive, "word/styles.xml")
    if styles is None:
        return _W, {}
    name = _W if styles.tag.startswith(_W) else _STRICT
    known = {style.get(f"{name}styleId"): style for style in styles.iter(f"{name}style")}
    levels: dict[str, tuple[str, int]] = {}
    for identifier, style in list(known.items())[:_MAX_STYLES]:
        level, shown = _level(style, known, name), style.find(f"{name}name")
        title = str(shown.get(f"{name}val") or "") if shown is not None else ""
        if level is not None and title:
            levels[str(identifier)] = (title, level)
    return name, levels


def _style_of(paragraph: Any, name: str) -> str:
    style = paragraph.find(f"{name}pPr/{name}pStyle")
    return str(style.get(f"{name}val") or "") if style is not None else ""


def _style_map(levels: Mapping[str, tuple[str, int]]) -> list[str]:
    """Return mammoth's rules for titles and headings. A title becomes level 1, so headings begin at level 2."""
    rules = ["p[style-name='Title'] => h1:fresh", "p[style-name='Subtitle'] => p:fresh"]
    for title, level in levels.values():
        if title != "Title" and not set(title) & set("'\\\n"):
            rules.append(f"p[style-name='{title}'] => h{min(6, level + 2)}:fresh")
    return rules


def _level(style: Any, known: Mapping[str | None, Any], name: str) -> int | None:
    """Return the outline level of a style, from 0; ``None`` if it has none.

    If the style itself has no level, it inherits the level of its base style.
    """
    for _ in range(_MAX_BASES):
        stated = style.find(f"{name}pPr/{name}outlineLvl")
        if stated is not None:
            value = str(stated.get(f"{name}val") or "")
            return int(value) if value in {"0", "1", "2", "3", "4", "5"} else None
        base = style.find(f"{name}basedOn")
        following = known.get(base.get(f"{name}val")) if base is not None else None
        if following is None or style.get(f"{name}type") != "paragraph":
            return None
        style = following
    return None


def with_numbers(archive: ZipFile, raw: bytes, name: str, is_heading: Callable[[Any], bool]) -> tuple[bytes, int]:
    """Return a Word file with numbers in its headings and without hidden text, and the number of hidden runs.

    Args:
        name: the namespace of the elements, in braces.
        is_heading: a function that tells whether a paragraph is a heading.
    """
    document = read_xml(archive, _DOCUMENT)
    if document is None:
        return raw, 0
    numbers = _Numbers(archive, name)
    vanishing = numbers.vanishing()
    hidden, is_hidden = 0, False
    # Cells, boxes, shaded paragraphs and marked text may be dark.
    dark = [box for kind in ("tbl", "txbxContent", "p") for box in document.iter(f"{name}{kind}")]
    dark = [box for box in dark if box.tag != f"{name}p" or any(True for at in _DARK for _ in box.iter(f"{name}{at}"))]
    on_dark = {run for box in dark for run in box.iter(f"{name}r")}
    is_dark = any(True for _ in document.iter(f"{name}background")) or numbers.has_shaded_styles()
    style = ""
    for parent in document.iter():
        if parent.tag == f"{name}p":
            style = numbers._value(parent, "pPr/pStyle")
            is_hidden = style in vanishing
        for run in parent.findall(f"{name}r"):
            own = run.find(f"{name}rPr/{name}vanish")
            ink, shade = numbers.ink(run, style), run.find(f"{name}rPr/{name}shd")
            is_white = alike(ink, _WHITE) and not is_dark and run not in on_dark
            is_white |= shade is not None and alike(ink, colour(f"#{numbers._of(shade, 'fill')}"))
            is_tiny = 0 < _whole(numbers._value(run, "rPr/sz")) <= _LEAST_HALF_POINTS
            is_styled_away = own is None and (is_hidden or numbers._value(run, "rPr/rStyle") in vanishing)
            if _is_on(own, name) or is_styled_away or is_white or is_tiny:
                parent.remove(run)
                hidden += 1
    is_numbered = False
    for paragraph in document.iter(f"{name}p"):
        label = numbers.next_of(paragraph)
        if label and is_heading(paragraph):
            run, text = (paragraph.makeelement(f"{name}{tag}", {}) for tag in ("r", "t"))
            text.text = f"{label} "
            text.set("{http://www.w3.org/XML/1998/namespace}space", "preserve")
            run.append(text)
            properties = paragraph.find(f"{name}pPr")
            paragraph.insert(0 if properties is None else list(paragraph).index(properties) + 1, run)
            is_numbered = True
    if not hidden and not is_numbered:
        return raw, 0
    written = io.BytesIO()
    with ZipFile(written, "w") as copy:
        for member in archive.namelist():
            if not member.startswith(_PICTURES):
                content = ElementTree.tostring(document) if member == _DOCUMENT else archive.read(member)
                copy.writestr(member, content)
    return written.getvalue(), hidden


def _is_on(switch: Any | None, name: str) -> bool:
    return switch is not None and switch.get(f"{name}val") not in {"0", "false", "off"}


class _Numbers:
    """The counters of the numbered lists in a document."""

    def __init__(self, archive: ZipFile, name: str) -> None:
        self._name = name
        numbering, styles = read_xml(archive, "word/numbering.xml"), read_xml(archive, "word/styles.xml")
        self._levels: dict[str, Mapping[int, Any]] = {}
        self._lists: dict[str, tuple[str, Mapping[int, int]]] = {}
        self._styles = (
            {} if styles is None else {self._of(each, "styleId"): each for each in styles.iter(f"{name}style")}
        )
        names = [each for each in archive.namelist() if each.startswith("word/theme/")]
        self._theme = theme_colours(archive.read(names[0])) if names else {}
        self._counters: dict[str, dict[int, int]] = {}
        self._begun: set[str] = set()
        for each in () if numbering is None else numbering.findall(f"{name}abstractNum"):
            levels = {_whole(self._of(level, "ilvl")): level for level in each.findall(f"{name}lvl")}
            self._levels[self._of(each, "abstractNumId")] = levels
        for each in () if numbering is None else numbering.findall(f"{name}num"):
            starts = {
                _whole(self._of(level, "ilvl")): _whole(self._value(level, "startOverride"))
                for level in each.findall(f"{name}lvlOverride")
                if level.find(f"{name}startOverride") is not None
            }
            self._lists[self._of(each, "numId")] = (self._value(each, "abstractNumId"), starts)

    def _of(self, element: Any, attribute: str) -> str:
        return str(element.get(f"{self._name}{attribute}") or "")

    def _value(self, element: Any, path: str) -> str:
        found = element.find("/".join(f"{self._name}{part}" for part in path.split("/")))
        return self._of(found, "val") if found is not None else ""

    def vanishing(self) -> frozenset[str]:
        """Return the styles that hide their text. A style may inherit this from its base style."""
        found = set()
        for style in self._styles:
            at, switch = style, None
            for _ in range(_MAX_BASES):
                if switch is None and at in self._styles:
                    switch = self._styles[at].find(f"{self._name}rPr/{self._name}vanish")
                    at = self._value(self._styles[at], "basedOn")
            found |= {style} if _is_on(switch, self._name) else set()
        return frozenset(found)

    def ink(self, run: Any, style: str) -> tuple[int, int, int] | None:
        """Return the red, green and blue of a run's text; ``None`` if no colour is stated or it is not known."""
        said = run.find(f"{self._name}rPr/{self._name}color")
        for stated in (self._value(run, "rPr/rStyle"), style):
            at = stated
            for _ in range(_MAX_BASES):
                if said is not None or at not in self._styles:
                    break
                said = self._styles[at].find(f"{self._name}rPr/{self._name}color")
                at = self._value(self._styles[at], "basedOn")
        if said is None:
            return None
        if theme := self._of(said, "themeColor"):
            is_plain = not (self._of(said, "themeTint") or self._of(said, "themeShade"))
            return self._theme.get(_THEME.get(theme, theme)) if is_plain else None
        return colour(f"#{self._of(said, 'val')}")

    def has_shaded_styles(self) -> bool:
        """Tell whether a style of paragraphs or characters sets a background. Styles of tables do not count."""
        styles = (style for style in self._styles.values() if self._of(style, "type") != "table")
        return any(style.find(f".//{self._name}shd") is not None for style in styles)

    def next_of(self, paragraph: Any) -> str:
        """Count a numbered paragraph, and return its number as Word shows it; empty if it is not numbered."""
        identifier, level = self._place(paragraph)
        abstract, starts = self._lists.get(identifier, ("", {}))
        levels = self._levels.get(abstract, {})
        if level not in levels:
            return ""
        counters = self._counters.setdefault(abstract, {})
        if identifier not in self._begun:
            self._begun.add(identifier)
            counters.update({at: start - 1 for at, start in starts.items()})
        first = _whole(self._value(levels[level], "start"), 1)
        counters[level] = counters.get(level, first - 1) + 1
        for deeper in [at for at in counters if at > level]:
            del counters[deeper]
        return self._shown(levels, level, counters)

    def _shown(self, levels: Mapping[int, Any], level: int, counters: Mapping[int, int]) -> str:
        text = self._value(levels[level], "lvlText")
        if self._value(levels[level], "numFmt") in {"bullet", "none"}:
            return ""
        is_legal = _is_on(levels[level].find(f"{self._name}isLgl"), self._name)
        for at in range(level + 1):
            if at in levels:
                number = counters.get(at, _whole(self._value(levels[at], "start"), 1))
                text = text.replace(
                    f"%{at + 1}", _written(number, "" if is_legal else self._value(levels[at], "numFmt"))
                )
        return " ".join(text.split())

    def _place(self, paragraph: Any) -> tuple[str, int]:
        """Return the list of a paragraph (empty if it is in no list) and its level, by the paragraph or its style."""
        identifier, level = self._value(paragraph, "pPr/numPr/numId"), self._value(paragraph, "pPr/numPr/ilvl")
        style = self._value(paragraph, "pPr/pStyle")
        for _ in range(_MAX_BASES):
            if identifier or style not in self._styles:
                break
            identifier = self._value(self._styles[style], "pPr/numPr/numId")
            level = level or self._value(self._styles[style], "pPr/numPr/ilvl") or self._level_of(identifier, style)
            style = self._value(self._styles[style], "basedOn")
        return identifier, _whole(level)

    def _level_of(self, identifier: str, style: str) -> str:
        levels = self._levels.get(self._lists.get(identifier, ("", {}))[0], {})
        return next((str(at) for at, level in levels.items() if self._value(level, "pStyle") == style), "")


def _whole(text: str, default: int = 0) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else default


def _written(number: int, form: str) -> str:
    """Return a number in the format of a list. If the format is unknown, return it in digits."""
    if form.endswith("Roman") and 0 < number < 4000:
        written = ""
        for value, letters in _ROMAN:
            written += letters * (number // value)
            number %= value
    elif form.endswith("Letter") and number > 0:
        written = chr(97 + (number - 1) % 26) * ((number - 1) // 26 + 1)  # z, aa, bb, as Word counts
    else:
        return f"{number:02d}" if form == "decimalZero" else str(number)
    return written.upper() if form.startswith("upper") else written
