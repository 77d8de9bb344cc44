"""Hidden parts of a page: comments of Markdown, HTML, MDX and templates, hidden elements and fields."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from nornweave.core.text.inline_markup import FrontMatter
from nornweave.core.types import Span

FALLBACKS = frozenset({"audio", "canvas", "iframe", "meter", "object", "progress", "rp", "video"})
"""What stands in these is shown where they cannot be."""
NEVER_SHOWN = FALLBACKS | {"datalist", "script", "style", "template"}
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
    r"|(?P<never>\{\s*(?:false|null|undefined)\s*(?:&&|\?(?![?.])))|(?P<branch>\{%-?\s*(?:if\s+(?i:false|nil|none)|unless\s+true)\s*-?%\})"
    r"|(?P<mark><!--|(?<![\w%])%%(?=[^%\s{}]{0,80}[ \t][^%\n{}]{0,300}%%(?![\w%]))|(?<![^\n])%%(?=[ \t]*\n)"
    r"|(?<!\{)\{#(?=[-\s]|[^{}\n]*#\})|\{::comment\}|\{\{!--|<%--|<%\#)"
    r"|(?P<drawn><(?P<named>title|desc)\b[^<>]*>[^<]*</(?P=named)\s*>)|(?P<flag>\{\s*(?P<name>[A-Za-z_$][\w$]*)\s*(?:&&|\?(?![?.])))"
    r"|(?P<slashes>\{{1,2}-?\s*(?:[\w.]+\s*)?/\*)|(?P<liquid>\{%-?\s*comment\b[^%]*%\}|\{\{[<%]\s*comment\s*[>%]\}\})"
    r"|(?P<statement>\{%-?\s*[a-z_]\w*(?:[^%\n]|%(?!\}))*%\}|\{\{-?\s*(?:(?:site|page|layout|include)\.[^{}\n]+|content\s*)\}\}"
    r"|\{:[ \t]*(?:[.#]?[\w-]++(?:=(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s\"'{}]++))?[ \t]*+)++\})"
    r"|<(?P<tag>(?i:script|style|template)|[A-Za-z][\w.-]*(?=\s[^<>]*(?:(?i:hidden|display|style|popover|false|\bdata-)|/\*|(?<=\s)//))|(?i:dialog|datalist)|audio|canvas|iframe|meter|object|progress|rp(?=>[^<]*</rp)|video)(?P<attributes>(?:\s[^<>]*)?)>"
)
# A text without any of these hides nothing.
_HINT = re.compile(
    r"<!--|<%|%%|\{\s*(?:false|null|undefined)|\{[#:/]|\{[%{-]|\{\s*[\w.]*\s*/|<(?i:script|style|template|dialog|datalist)\b"
    r"|<(?:audio|canvas|iframe|meter|object|progress|rp|svg|video)\b|\{\s*[\w$]+\s*(?:&&|\?)|<[A-Za-z][\w.-]*\s[^<>]*(?:(?i:hidden|display|style|popover|false|\bdata-)|/\*|(?<=\s)//)"
)
_UNSEEN_ATTRIBUTE = re.compile(
    r"\s+(?:data-(?![\w-]*(?:ti(?:p|tle)|label|caption))[\w.:-]+\s*=\s*(?:\"[^\"]*\"|'[^']*')|/\*.*?\*/)"
    r"|(?:^|(?<=[\"'}]))[ \t]*//[^\n]*",
    re.DOTALL | re.MULTILINE,
)
"""What a program reads, unless it is called like something to be shown, and a comment between attributes."""
_OF_VAULT = re.compile(r"!?\[\[[^\W\d_][^\[\]\n,]*\]\](?!\()|[ \t]\^[\w-]+$|^cssclass(?:es)?:", re.MULTILINE)
"""What shows that a text is written for Obsidian, in which ``%%`` begins a comment."""
_ATTRIBUTE = re.compile(r"([^\s\"'=<>/]+)(?:\s*=\s*(\"[^\"]*\"|'[^']*'|\{\{?[^{}]*\}\}?|[^\s\"'>]+))?")
_STATED = r"(?<![\w-])(?i:{})['\"]?\s*:\s*['\"]?"
_ZERO = r"0(?:\.0*)?(?:px|r?em|pt|%)?(?![.\d])"
# Property → its values that nobody sees: far outside, without size, cut to nothing. A program may show what is
# transparent.
_HIDING = {
    name: re.compile(_STATED.format(name) + rf"(?i:{value})")
    for name, value in {
        "display": "none",
        "(?:content-?)?visibility": "hidden|collapse",
        "left|top|right|bottom|text-?indent": r"-\d{4,}",
        "font-?size": _ZERO,
        "clip": r"rect\((?:[01](?:px)?[,\s]*){4}\)",
        "clip-?path": r"inset\((?:50|100)%",
        "transform": r"scale\(\s*0(?:\.0+)?\s*\)",
        "(?:max-?)?(?:height|width)": _ZERO,
        "opacity": r"0(?:\.0*)?(?![.\d])",
        "filter": r"[^;{}]{0,200}?\bopacity\(\s*0(?:\.0*)?%?\s*\)",
        "color": r"transparent|#[\da-f]{3}0(?![\da-f])|#[\da-f]{6}00"
        r"|(?:rgb|hsl)a?\(\s*[^\s(),/]+(?:[,\s]+[^\s(),/]+){2}\s*[,/]\s*0(?:\.0*)?%?\s*\)",
    }.items()
}
_STATING = {name: re.compile(_STATED.format(name)) for name in _HIDING}
_SIGNS, _IMPORTANT = re.compile(r"\W+"), re.compile(r"[^;{}!]{0,200}!\s{0,9}important", re.IGNORECASE)
_SIZE, TRANSPARENT = "(?:max-?)?(?:height|width)", frozenset({"opacity", "color", "filter"})
_SEEN_THROUGH = re.compile(r"(?<![\w-])(?:-webkit-)?(?:background-?clip|text-?(?:shadow|stroke|fill))", re.IGNORECASE)
"""What shows letters without a colour of their own: a picture cut to them, a shadow."""
_CUT = re.compile(_STATED.format("overflow(?:-?[xy])?") + "(?:hidden|clip)", re.IGNORECASE)
COLOUR = re.compile(
    r"(?<![\w-])(background(?:-?color)?|color)['\"]?\s*:\s*['\"]?([#\w]+(?:\([^()]*\))?)", re.IGNORECASE
)
_ALIKE = 8
"""Steps between two shades of a colour that nobody tells apart."""
_SLASHES_END = re.compile(r"\*/\s*-?\}{1,2}")
_CONDITIONS = ("v-if", "v-show", "x-if", "x-show", "*ngif")
_BRANCH = re.compile(
    r"\{%-?\s*(?:(?P<opens>if|unless)|(?P<other>else|elsif|elif)|(?P<closes>endif|endunless))\b[^%]*%\}"
)
_NEXT_ITEM = re.compile(r"\n[ \t>]*(?:[-*+]|\d{1,9}[.)])[ \t]")
_NESTING = re.compile(
    r"[{}:]|(?<=[\s?(])(?:\"[^\"\n]*\"|'[^'\n]*'|`[^`]*`)|(?P<opens>[(\[]|<(?=[\w>]))|(?P<closes>[)\]]|/>|</[^<>]*>)"
)
_LIQUID_END = re.compile(r"\{%-?\s*endcomment\s*-?%\}|\{\{[<%]\s*/\s*comment\s*[>%]\}\}", re.IGNORECASE)
_RAW = re.compile(r"\{%-?\s*raw\s*-?%\}")
_RAW_END = re.compile(r"\{%-?\s*end(?:raw|verbatim)\s*-?%\}", re.IGNORECASE)
_NEVER_TRUE = re.compile(
    r"^export\s+(?:const|let|var)\s+([\w$]+)\s*=\s*(?:false|null|undefined)\s*;?[ \t]*$", re.MULTILINE
)
"""Of MDX: the name of a value under which nothing is shown."""
_DRAWING = 10_000
"""Characters that are looked back over for the drawing in which a title stands."""
_BLANK_LINE = re.compile(r"\n[ \t]*\n")


def is_hidden(attributes: Sequence[tuple[str, Any]], name: str = "", *, is_animated: bool = False) -> bool:
    """Tell whether an element with this name and these attributes is hidden.

    Args:
        is_animated: whether the page has programs. They may show a transparent element, so it is not hidden.
    """
    said = {name: value or "" for name, value in reversed(attributes)}
    is_found = said.get("hidden") == "until-found" or said.get("role") == "tabpanel"  # a reader may open these
    is_marked = "hidden" in said and said["hidden"].strip("{} ") != "false"
    is_marked |= said.get("popover") in {"", "auto", "hint", "manual"}
    is_marked |= any(said.get(condition) == "false" for condition in _CONDITIONS)
    is_closed = (name == "dialog" and "open" not in said) or (name == "input" and said.get("type") == "hidden")
    style = said.get("style", "")
    is_styled_away = bool(ways_hidden(style) - (TRANSPARENT if is_animated else set())) or _has_one_colour(style)
    return not is_found and (is_marked or is_closed or is_styled_away)


def ways_hidden(style: str) -> set[str]:
    """Return the properties in a style that each hide the element: ``display:none;top:0`` → ``{"display"}``."""
    ways = {name for name, pattern in _HIDING.items() if any(pattern.match(style, at) for at in _last(style, name))}
    ways -= set() if _CUT.search(style) else {_SIZE}
    return ways - {"color"} if ways and _SEEN_THROUGH.search(style) else ways


def _last(style: str, name: str) -> Collection[int]:
    """Return where each property in a style is stated that is called ``name``; of several the one that counts."""
    last: dict[str, int] = {}
    for stated in _STATING[name].finditer(style) if ":" in style else ():
        key = _SIGNS.sub("", stated[0]).lower()
        if key not in last or _IMPORTANT.match(style, stated.start()) or not _IMPORTANT.match(style, last[key]):
            last[key] = stated.start()
    return last.values()


def ways_stated(style: str) -> set[str]:
    """Return the properties in a style that may hide an element, or show an element that another style hides."""
    return {name for name, pattern in _STATING.items() if pattern.search(style)}


def _has_one_colour(style: str) -> bool:
    """Tell whether a style states the same colour, or nearly the same, for the text and for its background."""
    stated = {key.lower()[:5]: value.lower() for key, value in COLOUR.findall(style)}
    if len(stated) < 2 or stated["color"] == "inherit":
        return False
    return stated["color"] == stated["backg"] or alike(colour(stated["color"]), colour(stated["backg"]))


def colour(said: str) -> tuple[int, int, int] | None:
    """Return the red, green and blue of a colour; ``None`` if it is in no form that is known."""
    said = {"white": "#ffffff", "black": "#000000"}.get(said, said).lower()
    said = re.sub(r"^#(\w)(\w)(\w)$", r"#\1\1\2\2\3\3", said)
    if re.fullmatch(r"#[0-9a-f]{6}", said):
        return int(said[1:3], 16), int(said[3:5], 16), int(said[5:], 16)
    parts = re.fullmatch(r"rgba?\(\s*(\d{1,3})[,\s]+(\d{1,3})[,\s]+(\d{1,3})\s*(?:[,/]\s*1(?:\.0*)?\s*)?\)", said)
    return (int(parts[1]), int(parts[2]), int(parts[3])) if parts else None


def alike(one: tuple[int, int, int] | None, other: tuple[int, int, int] | None) -> bool:
    """Tell whether two colours are so alike that a text in one of them cannot be seen on the other.

    An unknown colour (``None``) is not alike with any colour.
    """
    return one is not None and other is not None and all(abs(a - b) <= _ALIKE for a, b in zip(one, other, strict=True))


_INTERNAL = re.compile(
    r"(?<![^\W_])(?:internal\w*|private|confidential|secret|drafts?|hidden|staff|nda|wip|todos?|unreleased|unpublished|embargo\w*"
    r"|(?:author|editor|reviewer)s?[-_]?(?:only|notes?|comments?))(?![^\W_])",
    re.IGNORECASE,
)


def is_internal(condition: str) -> bool:
    """Tell whether a condition is for text that readers do not get, such as ``internal`` or ``staff-only``."""
    return _INTERNAL.search(condition) is not None and not re.search(r"!=|\bnot\b", condition)


_OF_HTML = r"(?:(?:builder|format)_)?(?:html|singlehtml|dirhtml)"
# A tag that no builder of Sphinx sets, and one that only builders of other formats set; any other may say anything.
_UNSET_TAG = re.compile(rf"(?!{_OF_HTML}\b|(?:builder|format)_)\w+")
_OTHER_TAG = re.compile(
    r"(?:(?:builder|format)_)?(?:latex(?:pdf)?|pdf|text|man|epub3?|texinfo|xml|gettext|docx)|not\s+(?:(?:builder|format)_)?html"
)


def is_unset(expression: str) -> bool:
    """Tell whether the directive ``only`` or ``ifconfig`` of Sphinx hides its content because of this expression.

    A tag that the builders of HTML do not set hides it. One such tag of several with ``or`` does not.
    """
    ways = re.split(r"\s+or\s+", expression.strip())
    is_other = all(any(map(_OTHER_TAG.fullmatch, re.split(r"\s+and\s+", way))) for way in ways)
    return is_other or _UNSET_TAG.fullmatch(expression.strip()) is not None or is_internal(expression)


_UNSEEN_DIRECTIVES = frozenset(
    ["meta", "todo", "todolist", "index", "testsetup", "testcleanup", "tabularcolumns", "sectionauthor", "codeauthor"]
)
"""Directives that Sphinx shows nowhere unless a setting says so."""
_TESTED = frozenset({"testcode", "testoutput", "doctest"})
_HIDE = re.compile(r"^[ \t]*:hide:[ \t]*$", re.MULTILINE)
_REMOVED = re.compile(r"^[ \t]*:tags:.*\bremove[-_](?:cell|input)\b", re.MULTILINE)


def is_unseen_directive(name: str, argument: str, options: str = "") -> bool:
    """Tell whether the pages of Sphinx do not show the content of a directive.

    Args:
        options: the lines below the first one, as far as they may be options.
    """
    if name in {"only", "ifconfig"}:
        return is_unset(argument)
    is_of_other = name == "raw" and "html" not in argument.split()
    unseen = _HIDE if name in _TESTED else _REMOVED if name == "code-cell" else None
    return name in _UNSEEN_DIRECTIVES or is_of_other or (unseen is not None and unseen.search(options) is not None)


# A page shows what is written in sentences, whatever the field is called in full: ``seo_title``, ``metaDescription``.
_SHOWN_FIELD = re.compile(
    r"(?:[\w. -]*[_. -])?(?i:(?:sub)?title|heading|headline|description|summary|abstract|excerpt|intro|lead|tagline"
    r"|caption|text|details|question|answer|authors?|tags|keywords|topics|categories)|\w+(?:Title|Description|Summary|Text)"
)
_FIELD = re.compile(
    r"(?P<indent>[ \t]*+(?:-[ \t]++)*+)(?P<key>[\w.-][\w. -]*+|\"[^\"\n]+\"|'[^'\n]+')[ \t]*[:=](?=[ \t]|$)"
)
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
            is_shown = is_shown and line[field.end() :].strip() not in {"''", '""', "[]"} if field else False
            kept_above = len(field["indent"]) if field and is_shown else -1
            is_literal = re.search(r"[|>][+-]?\d?$", line) is not None
        remark = _REMARK.search(_QUOTED.sub(lambda quoted: "'" * len(quoted[0]), line))
        if kept_above < 0 or front.form == "json":
            hidden.append(Span(at, at + len(row)))
        else:
            has_any = has_any or bool(line[field.end() if field else 0 :].strip())
            if remark and front.form != "pairs" and not (goes_on and is_literal):
                hidden.append(Span(at + remark.start(), at + len(line)))
        at += len(row)
    if not has_any:
        hidden = [Span(0, front.end)]
    return hidden if has_any or text[front.end :].strip() else []


_INTERNAL_FIELD = re.compile(
    r"(?i:.*(?:internal|private|confidential|secret|editor|reviewer)s?[_. -]?(?:note|remark|comment|todo|memo)s?.*)"
)


def internal_fields(text: str, front: FrontMatter) -> list[Span]:
    """Return the spans of the front matter's fields that are called internal notes, with their indented lines."""
    at, hidden, is_below = text.rindex(front.head, 0, front.end) if front.head else 0, list[Span](), -1
    for row in front.head.splitlines(keepends=True):
        field, indent = _FIELD.match(row.rstrip()), len(row) - len(row.lstrip())
        goes_on = is_below >= 0 and (
            not row.strip() or indent > is_below or (indent == is_below and row.lstrip()[:1] == "-")
        )
        if not goes_on:
            is_below = indent if field and _INTERNAL_FIELD.fullmatch(field["key"].strip("\"' ")) else -1
        hidden += [Span(at, at + len(row))] if is_below >= 0 else []
        at += len(row)
    return hidden


def raw_tags(text: str) -> Iterator[Span]:
    """Yield the spans of the tags ``{% raw %}`` and ``{% endraw %}`` of Jekyll, also of those in code."""
    at = 0
    while (opening := _RAW.search(text, at)) and (closing := _RAW_END.search(text, opening.end())):
        yield from (Span(*opening.span()), Span(*closing.span()))
        at = closing.end()


class UnseenParts:
    """Finds hidden spans in the blocks of one text. The end of an unclosed mark is searched only once.

    Attributes:
        text: the text, with line feeds at the ends of its lines.
        has_any: whether the text may have hidden parts at all.
    """

    def __init__(self, text: str, *, is_prose: bool = False) -> None:
        """Store the text. If ``is_prose``, ``<script>`` in a block is a word unless the same block closes it."""
        self.text = text
        self._is_prose = is_prose
        self._missing: set[str] = set()
        self._is_of_vault = is_prose and _OF_VAULT.search(text) is not None
        self.has_any = _HINT.search(text) is not None
        self._never_true = frozenset(_NEVER_TRUE.findall(text)) if self.has_any else frozenset()

    def within(self, span: Span) -> list[Span]:
        """Return the hidden spans of a block.

        A hidden span may continue after the block. The block is then extended to the end of the span.
        """
        found: list[Span] = []
        at = span.start
        ticks: set[int] = set()
        while self.has_any and (opening := _OPENING.search(self.text, at, span.end)):
            kind, at = opening.lastgroup, opening.end()
            if kind == "ticks":
                length = len(opening["ticks"])
                closing = None if length in ticks else _run_of(length).search(self.text, at, span.end)
                ticks |= set() if closing else {length}
                at = closing.end() if closing else at
                continue
            if kind == "raw":
                end = self._end("raw", _RAW_END, at)
                found += [Span(*opening.span()), Span(self.text.rfind("{%", at, end), end)] if end else []
                at = max(at, end)
                continue
            if kind == "flag" and opening["name"] not in self._never_true:
                continue
            if kind == "drawn" and not self._is_in_drawing(opening.start()):
                continue
            if kind in {"statement", "drawn"}:
                found.append(Span(*opening.span()))
                continue
            if kind is None or (kind == "mark" and opening["mark"] == "%%" and not self._is_of_vault):
                continue
            if kind == "attributes" and not self._is_hidden(opening):
                unseen = _UNSEEN_ATTRIBUTE.finditer(self.text, *opening.span()) if self._is_prose else ()
                found += [Span(*each.span()) for each in unseen]
                continue
            if kind == "attributes" and self._is_word(opening, span):
                continue
            end = self._end_of(opening, kind)
            if not end and opening["mark"] == "<!--":
                end = self._end_of_comment(opening.start(), span)
            if end > 0:
                # Of a film or a frame the tag with its address is kept.
                is_fallback = kind == "attributes" and opening["tag"] in FALLBACKS
                last = self.text.rfind("</", opening.end(), end) if is_fallback else end
                found += [Span(opening.end() if is_fallback else opening.start(), last)] if last > 0 else []
                at = end
        return found

    def _is_in_drawing(self, at: int) -> bool:
        start = max(0, at - _DRAWING)
        return self.text.rfind("<svg", start, at) > self.text.rfind("</svg", start, at)

    def _is_word(self, opening: re.Match[str], span: Span) -> bool:
        """Tell whether a tag in prose is only a word, because the block with the tag does not close the element."""
        if not self._is_prose or opening["tag"].lower() not in NEVER_SHOWN or opening["attributes"].endswith("/"):
            return False
        if not self.text[span.start : opening.start()].strip():
            return False
        closing = f"</{opening['tag'].lower()}"
        within = f"{closing} {span.end}"
        if within not in self._missing and re.compile(closing, re.I).search(self.text, opening.end(), span.end):
            return False
        self._missing.add(within)
        return True

    def _is_hidden(self, opening: re.Match[str]) -> bool:
        if opening["tag"].lower() in NEVER_SHOWN:
            return True
        pairs = [(name.lower(), value.strip("\"'")) for name, value in _ATTRIBUTE.findall(opening["attributes"])]
        return is_hidden(pairs, opening["tag"].lower())

    def _end_of_comment(self, start: int, span: Span) -> int:
        """Return the end of a comment that is never closed; 0 if it hides no text.

        As in CommonMark, a comment at the beginning of a line hides the rest of the text. In a list or a quotation it
        hides the rest of the item. A comment within a line hides no text.
        """
        before = self.text[self.text.rfind("\n", 0, start) + 1 : start]
        if not self._is_prose or before.strip("-*+>0123456789.) \t"):
            return 0
        if not before.strip() and len(before) < 4:
            return len(self.text)
        item = _NEXT_ITEM.search(self.text, start, span.end)
        return item.start() if item else span.end

    def _end_of_branch(self, start: int) -> int:
        depth = 1
        for tag in _BRANCH.finditer(self.text, start) if "branch" not in self._missing else ():
            depth += 1 if tag["opens"] else -1 if tag["closes"] or depth == 1 else 0
            if not depth:
                return tag.end()
        self._missing.add("branch")
        return 0

    def _end_of(self, opening: re.Match[str], kind: str) -> int:
        """Return the end of the hidden part that ``opening`` begins; 0 if the part is never closed."""
        if kind == "mark":
            closing = _CLOSING[opening["mark"].lower()]
            end = -1 if closing in self._missing else self.text.find(closing, opening.end() - (closing == "-->") * 2)
            self._missing |= {closing} if end < 0 else set()
            return end + len(closing) if end >= 0 else 0
        if kind in {"never", "flag"}:
            depth, within = 1, 0
            for sign in _NESTING.finditer(self.text, opening.end()) if kind not in self._missing else ():
                depth += {"{": 1, "}": -1}.get(sign[0], 0)
                within = max(0, within + (1 if sign["opens"] else -1 if sign["closes"] else 0))
                is_other = sign[0] == ":" and depth == 1 and not within and opening[0].endswith("?")
                if not depth or is_other:
                    return sign.end()
            self._missing.add(kind)
            return 0
        if kind == "branch":
            return self._end_of_branch(opening.end())
        if kind == "slashes":
            return self._end("slashes", _SLASHES_END, opening.end())
        if kind == "liquid":
            return self._end("liquid", _LIQUID_END, opening.end())
        tag = opening["tag"].lower()
        if tag in _VOID or opening["attributes"].endswith("/"):
            return opening.end()
        return self._end_of_element(tag, opening.end())

    def _end(self, name: str, closing: re.Pattern[str], start: int) -> int:
        found = None if name in self._missing else closing.search(self.text, start)
        self._missing |= set() if found else {name}
        return found.end() if found else 0

    def _end_of_element(self, tag: str, start: int) -> int:
        """Return the end of an element, which may contain other elements of the same name.

        If the element is not closed, it ends at the next blank line or at the end of the text.
        """
        depth = 1
        if tag not in self._missing:
            for each in re.compile(rf"<(/?){re.escape(tag)}\b[^<>]*>", re.IGNORECASE).finditer(self.text, start):
                depth += -1 if each[1] else 1
                if not depth:
                    return each.end()
            self._missing.add(tag)
        blank = _BLANK_LINE.search(self.text, start)
        return blank.start() if blank else len(self.text)


def _run_of(length: int) -> re.Pattern[str]:
    return re.compile(rf"(?<!`)`{{{length}}}(?!`)")
