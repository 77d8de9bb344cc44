"""Components in one file (``.vue``, ``.svelte``, ``.astro``, ``.html``): its parts with their languages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from nornweave.core.types import Span
from nornweave.read.chunking.languages import C_FAMILY

_BEGUN = re.compile(r"BEGIN|START")
_LAST_LINES = 400
"""Characters at the end of a piece in which namespaces may end."""
FORMATS = frozenset({"vue", "svelte", "astro", "marko", "webpage"})

_ATTRIBUTES = r"""(?P<attributes>(?:"[^"]*"|'[^']*'|[^>"'])*+)"""
_TAG = re.compile(
    rf"<!--.*?-->|<(?P<tag>script|style)\b{_ATTRIBUTES}>(?P<inner>.*?)(?P<end></(?P=tag)\s*>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_CLOSING = re.compile(r"</script\s*>\s*\Z", re.IGNORECASE)
_SCOPE_END = re.compile(
    r"^(?:\}[ \t]*(?://+|/\*)[ \t]*(?:end[ \t]+(?:of[ \t]+)?)?(?:\w+[ \t]+)?namespace\b[^\n]*"
    r"|_*(?:[A-Z\d]+_)*END(?:_[A-Z\d]+)*_*(?:\([\w:, ]*\))?;?[ \t]*(?://[^\n]*)?)\n?"
    r"(?:#[ \t]*endif\b[^\n]*|//[^\n]*|\s)*\Z",
    re.MULTILINE,
)
"""The last line of a namespace of C++, which a macro may write."""
_LANGUAGE = re.compile(r"""\blang\s*=\s*["']?(\w+)""")
_TYPE = re.compile(r"""\btype\s*=\s*["']?(?:\w+/)?(?:\w+\+)?(\w+)""")
_FENCED = re.compile(r"\s*---[^\n]*\n(?P<inner>.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)
_LANGUAGES = {
    "script": {"": "javascript", "ts": "typescript", "tsx": "tsx", "js": "javascript", "jsx": "javascript",
               "module": "javascript", "javascript": "javascript", "babel": "javascript", "importmap": "json",
               "json": "json"},
    "style": {"": "css", "css": "css", "postcss": "css"},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a document that is written in one language.

    Attributes:
        span: the span of the part, including the tags that open and close it. The parts of a document cover all of its
            text.
        inner: the span to parse, without the tags.
        language: the language, as ``languages.GRAMMARS`` names it.
    """

    span: Span
    inner: Span
    language: str


def name_of(path: str) -> str:
    """Return the name of a component, which is the name of its file.

    For a file called ``index`` or ``+page`` it is the name of the folder.
    """
    file = PurePosixPath(path)
    is_folder = file.stem.lower() == "index" or file.stem.startswith("+")
    return file.parent.name if is_folder and file.parent.name else file.stem


def parts_of(text: str, format_: str) -> list[Part]:
    """Cut a component into its parts, in order."""
    parts: list[Part] = []
    end = 0
    for part in _embedded(text, format_):
        before = Span(end, part.span.start)
        if text[before.start : before.end].strip():
            parts.append(Part(before, before, "html"))
        parts.append(replace(part, span=Span(parts[-1].span.end if parts else 0, part.span.end)))
        end = part.span.end
    rest = Span(end, len(text))
    if not parts or text[rest.start :].strip():
        return [*parts, Part(rest, rest, "html")]
    return [*parts[:-1], replace(parts[-1], span=Span(parts[-1].span.start, rest.end))]


def closing_tag(text: str, span: Span, format_: str) -> Span:
    """Return the span of the closing tag of a script (``</script>``) or the end of namespaces at the end of a piece.

    If the piece does not end with such a line, return an empty span at the end of the piece.
    """
    if format_ in C_FAMILY:
        return _scope_ends(text, span)
    found = _CLOSING.search(text, span.start, span.end) if format_ in FORMATS else None
    return Span(found.start() if found else span.end, span.end)


def _scope_ends(text: str, span: Span) -> Span:
    """Return the span of the lines at the end of a piece that close a namespace which began in an earlier piece."""
    end = span.end
    while (found := _SCOPE_END.search(text, max(span.start, end - _LAST_LINES), end)) is not None:
        said = text[span.start : end]
        is_own = said.count("{") >= said.count("}") if found[0].startswith("}") else _BEGUN.search(said) is not None
        if is_own or not said[: found.start() - span.start].strip():
            break
        end = found.start()
    return Span(end, span.end)


def _embedded(text: str, format_: str) -> Iterator[Part]:
    fenced = _FENCED.match(text) if format_ == "astro" else None
    if fenced is not None:
        yield Part(Span(0, fenced.end()), Span(*fenced.span("inner")), "typescript")
    for tag in _TAG.finditer(text, fenced.end() if fenced is not None else 0):
        if not (tag["inner"] or "").strip():  # a comment, and a script that lies elsewhere
            continue
        kind = tag["tag"].lower()
        told = _LANGUAGE.search(tag["attributes"]) or _TYPE.search(tag["attributes"])
        language = _LANGUAGES[kind].get(told[1].lower() if told else "", "")
        if kind == "script" and format_ == "astro" and not told:
            language = "typescript"
        yield Part(Span(*tag.span()), Span(*tag.span("inner")), language)
