"""Read .docx with mammoth: headings by their styles, lists, tables, footnotes; pictures by their description."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from typing import Any
from zipfile import ZipFile

import mammoth
import mammoth.images

from nornweave.core.text.inline_markup import one_line
from nornweave.core.types import freeze
from nornweave.read.formats.archive import open_office_archive, properties, read_xml
from nornweave.read.formats.html import markdown_of
from nornweave.read.formats.word_numbers import with_numbers
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
