"""Hidden parts of a page: comments of Markdown, HTML, MDX and templates, hidden elements and fields."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from nornweave.core.text.inline_markup import FrontMatter
from nornweave.core.types import Span

NEVER_SHOWN = frozenset({"datalist", "script", "style", "template"})
_VOID = frozenset({"br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"})
_CLOSING: Mapping[str, str] = {
    "<!--": "-->",
    "{#": "#}",
    "{::comment}": "{:/comment}",
    "%%": "%%",
    "{{!--": "--}}",
    "<%--": "--%>",
    "<%#": "%>",
}
# A backslash, quotes, a code span or ``raw`` shows what stands in it; then the comments, then elements with attributes.
_OPENING = re.compile(
    r"\\[^\w\s]|\"<[\w.-]+>\"|'<[\w.-]+>'|(?P<ticks>`+)|(?P<raw>\{%-?\s*(?:raw|verbatim)\s*-?%\})"
    r"|(?P<never>\{\s*false\s*&&)"
    r"|(?P<mark><!--|(?<![\w%])%%(?=[^%\s{}]{0,80}[ \t][^%\n{}]{0,300}%%(?![\w%]))|(?<![^\n])%%(?=[ \t]*\n)"
    r"|(?<!\{)\{#(?=[-\s]|[^{}\n]*#\})|\{::comment\}|\{\{!--|<%--|<%\#)"
    r"|(?P<slashes>\{{1,2}-?\s*/\*)|(?P<liquid>\{%-?\s*comment\b[^%]*%\}|\{\{[<%]\s*comment\s*[>%]\}\})"
    r"|<(?P<tag>(?i:script|style|template)|[A-Za-z][\w.-]*(?=\s[^<>]*(?i:hidden|display|style))|(?i:dialog|datalist))(?P<attributes>(?:\s[^<>]*)?)>"
)
# A text without any of these hides nothing.
_HINT = re.compile(
    r"<!--|<%|%%|\{\s*false|\{[#:/]|\{[%{-]|\{\s+/|<(?i:script|style|template|dialog|datalist)\b|<[A-Za-z][\w.-]*\s[^<>]*(?i:hidden|display|style)"
)
_ATTRIBUTE = re.compile(r"([^\s\"'=<>/]+)(?:\s*=\s*(\"[^\"]*\"|'[^']*'|\{\{?[^{}]*\}\}?|[^\s\"'>]+))?")
_NOT_DISPLAYED = re.compile(r"display['\"]?\s*:\s*['\"]?none|visibility['\"]?\s*:\s*['\"]?hidden", re.IGNORECASE)
# Far outside, without size, cut to nothing; and transparent, which a program of the page may change.
_NOT_SEEN = re.compile(
    r"(?:left|top|right|bottom|indent)['\"]?\s*:\s*['\"]?-\d{4,}|font-?size['\"]?\s*:\s*['\"]?0(?![.\d])"
    r"|clip['\"]?\s*:\s*['\"]?rect\((?:[01](?:px)?[,\s]*){4}\)|clip-?path['\"]?\s*:\s*['\"]?inset\((?:50|100)%",
    re.IGNORECASE,
)
_TRANSPARENT = re.compile(r"(?<![\w-])opacity['\"]?\s*:\s*['\"]?0(?:\.0*)?(?![.\d])", re.IGNORECASE)
_COLOUR = re.compile(
    r"(?<![\w-])(background(?:-?color)?|color)['\"]?\s*:\s*['\"]?([#\w]+(?:\([^()]*\))?)", re.IGNORECASE
)
_SLASHES_END = re.compile(r"\*/\s*-?\}{1,2}")
_LIQUID_END = re.compile(r"\{%-?\s*endcomment\s*-?%\}|\{\{[<%]\s*/\s*comment\s*[>%]\}\}", re.IGNORECASE)
_RAW_END = re.compile(r"\{%-?\s*end(?:raw|verbatim)\s*-?%\}", re.IGNORECASE)
_BLANK_LINE = re.compile(r"\n[ \t]*\n")


def is_hidden(attributes: Sequence[tuple[str, Any]], name: str = "", *, is_animated: bool = False) -> bool:
    """Tell whether nobody sees an element with this name and these attributes; a program may show transparent ones."""
    said = {name: value or "" for name, value in reversed(attributes)}
    is_found = said.get("hidden") == "until-found" or said.get("role") == "tabpanel"  # a reader may open these
    is_marked = "hidden" in said and said["hidden"].strip("{} ") != "false"
    is_closed = name == "dialog" and "open" not in said
    style = said.get("style", "")
    is_styled_away = _NOT_DISPLAYED.search(style) or _NOT_SEEN.search(style) or _has_one_colour(style)
    is_transparent = not is_animated and _TRANSPARENT.search(style) is not None
    return not is_found and (is_marked or is_closed or bool(is_styled_away) or is_transparent)


def _has_one_colour(style: str) -> bool:
    """Tell whether a style states one colour for the text and what is behind it."""
    stated = {key.lower()[:5]: value.lower() for key, value in _COLOUR.findall(style)}
    full = {key: {"white": "#ffffff", "black": "#000000"}.get(value, value) for key, value in stated.items()}
    full = {key: re.sub(r"^#(\w)(\w)(\w)$", r"#\1\1\2\2\3\3", value) for key, value in full.items()}
    return len(full) == 2 and len(set(full.values())) == 1 and full["color"] != "inherit"


_STYLE = re.compile(r"<style\b(?![^<>]*\bmedia)[^<>]*>(.*?)</style", re.IGNORECASE | re.DOTALL)
_BRACE = re.compile(r"[{}]")
_SIMPLE = re.compile(r"(?:[a-zA-Z]\w*)?[.#][\w-]+")


def hidden_by_style(html: str) -> frozenset[str]:
    """Return the selectors that the style sheets of a page hide: ``.class``, ``#id``, ``tag.class``.

    Selectors that a program may show are left out, and so are those that ``@media`` or another rule decides about.
    """
    displayed: dict[str, bool] = {}
    for style in () if "<script" in html.lower() else _STYLE.finditer(html):
        css, at, depth, selectors = style[1], 0, 0, ""
        for brace in _BRACE.finditer(css):
            said, at = css[at : brace.start()], brace.end()
            if brace[0] == "{":
                depth, selectors = depth + 1, said
                continue
            if depth == 1 and ("display" in said or "visibility" in said):
                for each in selectors.split(","):
                    name = "".join(each.split()[-1:])
                    is_shown = not _NOT_DISPLAYED.search(said)
                    displayed[name] = is_shown or displayed.get(name, False)
            depth = max(0, depth - 1)
    return frozenset(name for name, is_shown in displayed.items() if not is_shown and _SIMPLE.fullmatch(name))


# A page shows what is written in sentences, whatever the field is called in full: ``seo_title``, ``metaDescription``.
_SHOWN_FIELD = re.compile(
    r"(?:[\w. -]*[_. -])?(?i:(?:sub)?title|heading|headline|description|summary|abstract|excerpt|intro|lead|tagline"
    r"|caption|text|details|question|answer|authors?|tags|keywords|topics|categories)|\w+(?:Title|Description|Summary|Text)"
)
_FIELD = re.compile(r"(?P<indent>[ \t]*(?:-[ \t]+)*)(?P<key>[\w. -]+|\"[^\"\n]+\"|'[^'\n]+')[ \t]*[:=](?=[ \t]|$)")
_REMARK = re.compile(r"(?:^|[ \t])#.*$")
_QUOTED = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'")


def unseen_front(text: str, front: FrontMatter) -> list[Span]:
    """Return the spans of front matter that no page shows. Titles, descriptions, tags and similar fields are shown.

    Comments are hidden. The fences are shown if any field is shown. A text that consists only of front matter is shown
    whole.
    """
    start = text.rindex(front.head, 0, front.end)
    fence = text.rfind("\n", 0, max(0, start - 1)) + 1
    hidden = [Span(0, fence)] if fence else []
    at, kept_above, has_any, is_literal = start, -1, False, False
    for row in front.head.splitlines(keepends=True):
        line = row.rstrip()
        field = _FIELD.match(line)
        indent = len(line) - len(line.lstrip())
        goes_on = kept_above >= 0 and (indent > kept_above or (indent == kept_above and line.lstrip().startswith("-")))
        if line and not goes_on:
            is_shown = field is not None and _SHOWN_FIELD.fullmatch(field["key"].strip("\"' ")) is not None
            kept_above = len(field["indent"]) if field and is_shown else -1
            is_literal = re.search(r"[|>][+-]?\d?$", line) is not None
        remark = _REMARK.search(_QUOTED.sub(lambda quoted: "'" * len(quoted[0]), line))
        if kept_above < 0 or front.form == "json":
            hidden.append(Span(at, at + len(row)))
        else:
            has_any = has_any or bool(line)
            if remark and front.form != "pairs" and not (goes_on and is_literal):
                hidden.append(Span(at + remark.start(), at + len(line)))
        at += len(row)
    if not has_any:
        hidden = [Span(0, front.end)]
    return hidden if has_any or text[front.end :].strip() else []


class UnseenParts:
    """Finds hidden spans in the blocks of one text. The end of an unclosed mark is searched only once.

    Attributes:
        has_any: whether the text may have hidden parts at all.
    """

    def __init__(self, text: str, *, is_prose: bool = False) -> None:
        """Store the text. In prose, ``<script>`` inside a block counts as a word unless the same block closes it."""
        self._text = text
        self._is_prose = is_prose
        self._missing: set[str] = set()
        self.has_any = _HINT.search(text) is not None

    def within(self, span: Span) -> list[Span]:
        """Return the hidden spans of a block.

        A hidden span may continue after the block. The block is then extended to the end of the span.
        """
        found: list[Span] = []
        at = span.start
        ticks: set[int] = set()
        while self.has_any and (opening := _OPENING.search(self._text, at, span.end)):
            kind, at = opening.lastgroup, opening.end()
            if kind == "ticks":
                length = len(opening["ticks"])
                closing = None if length in ticks else _run_of(length).search(self._text, at, span.end)
                ticks |= set() if closing else {length}
                at = closing.end() if closing else at
                continue
            if kind == "raw":
                at = max(at, self._end("raw", _RAW_END, at))
                continue
            if kind is None or (kind == "attributes" and not self._is_hidden(opening)):
                continue
            if kind == "attributes" and self._is_word(opening, span):
                continue
            end = self._end_of(opening, kind)
            if end > 0:
                found.append(Span(opening.start(), end))
                at = end
        return found

    def _is_word(self, opening: re.Match[str], span: Span) -> bool:
        """Tell whether prose only mentions an element, because the block with its tag does not close the element."""
        if not self._is_prose or opening["tag"].lower() not in NEVER_SHOWN or opening["attributes"].endswith("/"):
            return False
        if not self._text[span.start : opening.start()].strip():
            return False
        closing = f"</{opening['tag'].lower()}"
        within = f"{closing} {span.end}"
        if within not in self._missing and re.compile(closing, re.I).search(self._text, opening.end(), span.end):
            return False
        self._missing.add(within)
        return True

    def _is_hidden(self, opening: re.Match[str]) -> bool:
        if opening["tag"].lower() in NEVER_SHOWN:
            return True
        pairs = [(name.lower(), value.strip("\"'")) for name, value in _ATTRIBUTE.findall(opening["attributes"])]
        return is_hidden(pairs, opening["tag"].lower())

    def _end_of(self, opening: re.Match[str], kind: str) -> int:
        """Return the end of a hidden part; 0 if it does not end."""
        if kind == "mark":
            closing = _CLOSING[opening["mark"].lower()]
            end = -1 if closing in self._missing else self._text.find(closing, opening.end() - (closing == "-->") * 2)
            self._missing |= {closing} if end < 0 else set()
            return end + len(closing) if end >= 0 else 0
        if kind == "never":
            depth = 1
            for brace in _BRACE.finditer(self._text, opening.end()) if kind not in self._missing else ():
                depth += 1 if brace[0] == "{" else -1
                if not depth:
                    return brace.end()
            self._missing.add(kind)
            return 0
        if kind == "slashes":
            return self._end("slashes", _SLASHES_END, opening.end())
        if kind == "liquid":
            return self._end("liquid", _LIQUID_END, opening.end())
        tag = opening["tag"].lower()
        if tag in _VOID or opening["attributes"].endswith("/"):
            return opening.end()
        return self._end_of_element(tag, opening.end())

    def _end(self, name: str, closing: re.Pattern[str], start: int) -> int:
        found = None if name in self._missing else closing.search(self._text, start)
        self._missing |= set() if found else {name}
        return found.end() if found else 0

    def _end_of_element(self, tag: str, start: int) -> int:
        """Return the end of an element, which may contain others of the same name.

        If the element is not closed, it ends at the next blank line.
        """
        depth = 1
        if tag not in self._missing:
            for each in re.compile(rf"<(/?){re.escape(tag)}\b[^<>]*>", re.IGNORECASE).finditer(self._text, start):
                depth += -1 if each[1] else 1
                if not depth:
                    return each.end()
            self._missing.add(tag)
        blank = _BLANK_LINE.search(self._text, start)
        return blank.start() if blank else len(self._text)


def _run_of(length: int) -> re.Pattern[str]:
    return re.compile(rf"(?<!`)`{{{length}}}(?!`)")
