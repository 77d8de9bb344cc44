"""The style sheets of a page: which of its elements nobody sees. A program of the page may show them again.

A sheet or a program that lies beside the page is put into it first (``with_own_files``), so that the text of a document
says the same wherever it is read. Nothing is fetched from other hosts and no program runs.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from posixpath import dirname, join, normpath
from typing import Any, NamedTuple, Self
from urllib.parse import unquote

from nornweave.read.blocks.unseen import COLOUR, TRANSPARENT, alike, colour, ways_hidden, ways_stated

_STYLE = re.compile(
    r"<style\b(?![^<>]*\bmedia\s*=\s*[\"']?(?!(?:all|screen)\s*[\"'>]))[^<>]*>(.*?)</style", re.IGNORECASE | re.DOTALL
)
_SCRIPT = re.compile(r"<script\b([^<>]*)>(.*?)(?:</script|\Z)", re.IGNORECASE | re.DOTALL)
# What asks for a file: a sheet for screens, a script.
_LINKED = re.compile(
    r"<(?:link\b(?=[^<>]*\brel\s*=\s*[\"']?stylesheet\b)(?![^<>]*\bmedia\s*=\s*[\"']?(?!all\b|screen\b))|script\b)[^<>]*>",
    re.IGNORECASE,
)
_TARGET = re.compile(r"\b(?:href|src)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>]+))", re.IGNORECASE)
_OTHER_HOST = re.compile(r"(?:[a-z][a-z0-9+.-]*:|//)", re.IGNORECASE)
_TYPE = re.compile(r"\btype\s*=\s*[\"']?([^\s\"'>]*)", re.IGNORECASE)
_PROGRAM = re.compile(r"|.*(?:javascript|ecmascript|babel|typescript).*|module", re.IGNORECASE)
"""Types of scripts that run; others are data and templates."""
_HANDLER = re.compile(r"\son[a-z]+\s*=\s*(?:\"([^\"]*)\"|'([^']*)')", re.IGNORECASE)
_IMPORT = re.compile(r"(?:^|[;\s])import\b|\brequire\(")
_SHOWS = re.compile(r"\.style\b|\.hidden\b|(?:show|toggle|fade\w+|slide\w+|removeAttribute|remove)\(")
_WALKS = re.compile(r"sibling|parent(?:node|element)?\b|\.(?:children|next|prev|closest)\b", re.IGNORECASE)
_NAMES = re.compile(r"\b(?:class|id)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>]+))", re.IGNORECASE)
_WORD = re.compile(r"[\w-]+")
_PAGES = (".html", ".htm", ".xhtml")
_BRACE = re.compile(r"[{}]")
_ALWAYS = re.compile(
    r"@(?:media\s+(?:only\s+)?(?:screen|all)|layer\s+[\w.-]+|supports\s+\([^{}]*\))\s*\{", re.IGNORECASE
)
_ON_ANY_SCREEN = re.compile(
    r"@media\s+(?:only\s+)?(?:(?:screen|all)\s+and\s+)?\(\s*min-(?:device-)?width\s*:\s*[01](?:px|r?em)?\s*\)\s*\{",
    re.IGNORECASE,
)
_CSS_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_MARK = re.compile(r"[.#](?:\\.|[\w-])+|\[[\w-]+(?:=(?:\"[^\"\]]*\"|'[^'\]]*'|[\w-]*))?\]")
_COMPOUND = re.compile(rf"([a-zA-Z][\w-]*|\*)?((?:{_MARK.pattern})*)")
_NOT = re.compile(r":not\(([^()]*)\)")
_PROPERTY = re.compile(r"(--[\w-]+)\s*:\s*([^;{}]+)")
_VARIABLE = re.compile(r"var\(\s*(--[\w-]+)\s*(?:,([^()]*))?\)")
_PAINTED = re.compile(r"(?<![\w-])background(?:-?(?:color|image))?['\"]?\s*:", re.IGNORECASE)
_TELLING = re.compile(rf"--[\w-]+\s*:|overflow|shadow|clip|stroke|fill|{_PAINTED.pattern}", re.IGNORECASE)
_PAGE_PAINTED = re.compile(r"<link\b[^<>]*stylesheet|<body\b[^<>]*\s(?:background|class)\s*=", re.IGNORECASE)
_BODY = re.compile(
    r"<body\b[^<>]*?\s(?:style|(bgcolor))\s*=\s*(?:\"([^\"<>]*)\"|'([^'<>]*)'|([^\s\"'<>]+))", re.IGNORECASE
)
_WHITE = (255, 255, 255)
_MOST_RULES, _MOST_NESTED, DEEPEST = 500, 5, 100
"""Rules of a page, variables in variables, and elements above another one that are looked at."""
_MOST_FILES, MAX_OWN_BYTES = 20, 512 * 1024
"""Files beside a page, and the size of each, that are looked into."""


class Element(NamedTuple):
    """An element of a page.

    Attributes:
        marks: its classes, its id and its attributes as selectors: ``.note``, ``#intro``, ``[lang]``, ``[lang=en]``.
        is_painted: whether the element itself states a background.
    """

    tag: str
    marks: frozenset[str]
    style: str
    is_painted: bool

    @classmethod
    def of(cls, tag: str, attributes: Sequence[tuple[str, Any]]) -> Self:
        """Return the element with a name and attributes. The value of ``class`` may be a text or a list of names."""
        said = {name: value or "" for name, value in reversed(attributes)}
        classes = said.get("class", "")
        names = classes.split() if isinstance(classes, str) else classes
        own = [f"[{name}{of}]" for name, value in said.items() for of in ("", f"={value}")]
        marks = frozenset([*(f".{name}" for name in names), *([f"#{said['id']}"] if said.get("id") else []), *own])
        style = (
            f"{said.get('style', '')};color:{said['color']}"
            if tag == "font" and "color" in said
            else said.get("style", "")
        )
        return cls(tag, marks, style, bool(said.get("bgcolor")) or _PAINTED.search(style) is not None)


class _Compound(NamedTuple):
    tag: str
    marks: frozenset[str]
    others: tuple[_Compound, ...] = ()

    def means(self, element: Element) -> bool:
        is_meant = self.tag in {"", "*", element.tag} and self.marks <= element.marks
        return is_meant and not any(other.means(element) for other in self.others)

    @property
    def names(self) -> frozenset[str]:
        """The words by which a program would call the classes, the id and the attributes."""
        words = [mark.strip(".#[]").partition("=")[0] for one in (self, *self.others) for mark in one.marks]
        return frozenset([*words, *(word.removeprefix("data-") for word in words)])


class _Rule(NamedTuple):
    selector: tuple[_Compound, ...]
    style: str

    def fits(self, path: Sequence[Element]) -> bool:
        """Tell whether the rule is for the last element of a path, which begins with the outermost element."""
        *above, subject = self.selector
        around = iter(path[:-1])
        return subject.means(path[-1]) and all(any(one.means(each) for each in around) for one in above)


def _rules_of(css: str) -> Iterator[tuple[str, str, int]]:
    """Yield the selectors, the style and the depth of each rule: 1, or 2 inside ``@media`` and the like.

    A condition that always holds on a screen is no such level, and neither is a rule around a rule.
    """
    css, at, opened = _CSS_COMMENT.sub("", css), 0, list[str]()
    css = _ALWAYS.sub("", _ON_ANY_SCREEN.sub("", css))
    for brace in _BRACE.finditer(css):
        said, at = css[at : brace.start()], brace.end()
        own, _, begun = said.rpartition(";") if brace[0] == "{" else (said, "", "")
        if own.strip() and (selectors := _nested([each for each in opened if not each.startswith("@")])):
            yield selectors, own, 1 + sum(each.startswith("@") for each in opened)
        if brace[0] == "{":
            opened.append(begun.strip())
        elif opened:
            opened.pop()


def _nested(rules: Sequence[str]) -> str:
    """Return the selectors of a rule inside others: ``.a`` and ``.b, &.c`` → ``.a .b,.a.c``; empty if it has none."""
    selectors = [""]
    for rule in rules:
        inner = [each.strip() for each in rule.split(",")]
        selectors = [
            each.replace("&", around) if "&" in each else f"{around} {each}".strip()
            for around in selectors
            for each in inner[: _MOST_NESTED if selectors != [""] else None]
        ][:_MOST_RULES]
    return ",".join(filter(None, selectors))


def _compound(part: str) -> _Compound:
    """Return the name, the classes and the id that one part of a selector demands: ``p.note`` → ``p`` and ``.note``."""
    told, others = _COMPOUND.match(_NOT.sub("", part)), tuple(_compound(each) for each in _NOT.findall(part))
    marks = (re.sub(r"[\\\"']", "", mark) for mark in _MARK.findall(told[2])) if told else ()
    return _Compound(((told[1] if told else "") or "").lower(), frozenset(marks), others)


class PageStyles:
    """The elements that the style sheets in a page hide.

    A rule inside ``@media`` or the like does not hide an element, and neither does a rule if another rule shows the
    same elements. An element or a rule does not count if a program names its class or id, because the program may show
    the element. No rule counts if a program shows elements that it reaches by walking, or if a program of the same host
    cannot be read. Programs of other hosts are ignored.
    """

    def __init__(self, html: str) -> None:
        """Read the style sheets."""
        self._rules: defaultdict[str, list[_Rule]] = defaultdict(list)
        self._shown: list[tuple[_Compound, set[str]]] = []
        self._ground = None
        self._values: dict[str, str] = {}
        programs = [(attributes, said) for attributes, said in _SCRIPT.findall(html) if _is_program(attributes)]
        told = "\n".join([*(said for _, said in programs), *map("".join, _HANDLER.findall(html))])
        self._named = frozenset(_WORD.findall(told))
        self._ways_of_programs = TRANSPARENT if programs else frozenset[str]()
        is_unknown = any((address := _address(each)) and not _OTHER_HOST.match(address) for each, _ in programs)
        if is_unknown or _IMPORT.search(told) or (_SHOWS.search(told) and _WALKS.search(told)):
            return
        rules = [rule for style in _STYLE.findall(html) for rule in _rules_of(style)]
        for colours, *said in _BODY.findall(html):
            rules.append(("body", f"{'background:' if colours else ''}{''.join(said)}", 1))
        stated = [each for _, style, _ in rules for each in _PROPERTY.findall(style)]
        self._values = {name: value for name, value in stated if sum(one == name for one, _ in stated) == 1}
        grounds: list[str] = []
        is_ground_known = not _PAGE_PAINTED.search(html)
        for selectors, written, depth in rules:
            style = self._resolved(written)
            ways = ways_hidden(style)
            for each in selectors.split(","):
                parts = each.replace(">", " ").split()
                if not parts:
                    continue
                subject = _compound(parts[-1].partition(":not(")[0])
                self._shown += [(subject, seen)] if (seen := ways_stated(style) - ways) else []
                if depth == 1 and subject.tag in {"html", "body"} and _PAINTED.search(style):
                    said = [value for key, value in COLOUR.findall(style) if key.lower() != "color"]
                    is_ground_known &= len(said) == len(_PAINTED.findall(style))
                    grounds += said
                if depth == 1 and (ways or COLOUR.search(style) or _PAINTED.search(style)):
                    self._add(parts, style)
        if is_ground_known:
            self._ground = colour(grounds[-1]) if grounds else _WHITE

    def _add(self, parts: Sequence[str], style: str) -> None:
        selector = tuple(_compound(part) for part in parts if _COMPOUND.fullmatch(_NOT.sub("", part)))
        is_whole = len(selector) == len(parts) and sum(map(len, self._rules.values())) < _MOST_RULES
        if is_whole and self._named.isdisjoint(word for one in selector for word in one.names):
            self._rules[min(selector[-1].marks, default=selector[-1].tag)].append(_Rule(selector, style))

    def _resolved(self, style: str) -> str:
        """Return a style in which each variable is replaced by its value, if the page gives it only one value."""
        for _ in range(_MOST_NESTED if "var(" in style else 0):
            style = _VARIABLE.sub(lambda name: self._values.get(name[1], name[2] or name[0]), style)
        return style

    @property
    def has_rules(self) -> bool:
        """Tell whether the style sheets of the page have a rule that may hide an element."""
        return bool(self._rules)

    def _fitting(self, path: Sequence[Element]) -> list[_Rule]:
        keys = (*path[-1].marks, path[-1].tag, "*", "")
        return [rule for key in keys for rule in self._rules.get(key, ()) if rule.fits(path)]

    def hides(self, path: Sequence[Element]) -> bool:
        """Tell whether the style sheets hide the last element of a path, which begins with the outermost element."""
        element = path[-1]
        if "var(" in element.style and ways_hidden(self._resolved(element.style)) - self._ways_of_programs:
            return True
        if any(mark[1:] in self._named for mark in element.marks if mark[0] != "["):
            return False
        own = ways_stated(element.style) - ways_hidden(element.style)  # it counts more than a rule
        fitting = self._fitting(path)
        for rule in fitting:
            ways = ways_hidden(rule.style) - self._ways_of_programs
            ways -= set() if "!" in rule.style else own
            is_named = any(compound.marks for compound in rule.selector)
            if is_named and any(not self._is_shown(element, rule.selector[-1], way) for way in ways):
                return True
        if self._ground is None or element.tag in {"body", "html"}:
            return False
        styles = (*(rule.style for rule in fitting), element.style)
        said = [value for style in styles for key, value in COLOUR.findall(style) if key.lower() == "color"]
        is_lost = bool(said) and alike(colour(said[-1]), self._ground)
        return is_lost and not any(self._is_painted(path[: at + 1]) for at in range(len(path)))

    def _is_shown(self, element: Element, hidden: _Compound, way: str) -> bool:
        """Tell whether another rule shows an element that the rule ``hidden`` hides by the property ``way``.

        The other rule fits the element as it is, or once a program adds a class to the element.
        """
        return any(
            way in ways
            and subject.marks
            and (subject.means(element) or (hidden.marks and hidden.marks <= subject.marks))
            for subject, ways in self._shown
        )

    def _is_painted(self, path: Sequence[Element]) -> bool:
        if path[-1].tag in {"html", "body"}:
            return False
        return path[-1].is_painted or any(_PAINTED.search(rule.style) for rule in self._fitting(path))


def _address(tag: str) -> str:
    target = _TARGET.search(tag)
    return next(filter(None, target.groups()), "").strip() if target else ""


def has_programs(html: str) -> bool:
    """Tell whether a page runs a program. A ``<script>`` that holds only data or a template is not a program."""
    return any(_is_program(attributes) for attributes, _ in _SCRIPT.findall(html))


def _is_program(attributes: str) -> bool:
    kind = _TYPE.search(attributes)
    return _PROGRAM.fullmatch(kind[1] if kind else "") is not None


def with_own_files(path: str, raw: bytes, beside: Callable[[str], bytes | None]) -> bytes:
    """Return a page in which the content of the files beside it replaces the links to them. Its lines stay.

    The content of a style sheet is reduced to the rules that may hide or show an element of the page. The content of a
    program is reduced to the classes and ids of the page that it names. The link stays if the program imports others,
    or if the file is too large or missing.

    Args:
        path: the path of the page below the root of its source. Links that begin with ``/`` start at this root.
        beside: a function that returns the file at a path below the same root; ``None`` if there is no file.
    """
    if not path.lower().endswith(_PAGES):
        return raw
    page = raw.decode("latin-1")
    names = frozenset(word for found in _NAMES.findall(page) for each in found for word in each.split())
    left = [_MOST_FILES]

    def put_in(tag: re.Match[str]) -> str:
        address = _address(tag[0]).partition("?")[0].partition("#")[0]
        is_script = tag[0][1:7].lower() == "script"
        if not address or _OTHER_HOST.match(address) or not left[0] or (is_script and not _is_program(tag[0])):
            return tag[0]
        left[0] -= 1
        read = beside(normpath(join("/", dirname(path), unquote(address))).lstrip("/"))
        said = read.decode("latin-1") if read is not None and len(read) <= MAX_OWN_BYTES else ""
        if read is None or (read and not said) or "</" in (said if not is_script else "") or _IMPORT.search(said):
            return tag[0]
        if not is_script:
            return f"<style>{' '.join(_told(said, names))}</style>"
        walks = " .style .next" if _SHOWS.search(said) and _WALKS.search(said) else ""
        return f"<script>{' '.join(sorted(names.intersection(_WORD.findall(said))))}{walks}"

    return _LINKED.sub(put_in, page).encode("latin-1")


def _told(css: str, names: frozenset[str]) -> Iterator[str]:
    """Yield the rules of a style sheet that may hide or show an element with some of these classes and ids."""
    for selectors, style, depth in _rules_of(css):
        meant = [
            each for each in selectors.split(",") if {mark[1:] for mark in _marks_of(each) if mark[0] != "["} <= names
        ]
        told = [each for each in style.split(";") if ways_stated(each) or _TELLING.search(each)] if meant else ()
        if told:
            rule = f"{','.join(meant)}{{{';'.join(told)}}}"
            yield " ".join((f"@media x{{{rule}}}" if depth > 1 else rule).split())


def _marks_of(selector: str) -> frozenset[str]:
    return _compound(selector.replace(">", " ").split()[-1]).marks if selector.strip() else frozenset()
