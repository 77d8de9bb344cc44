"""Find the places in a source file that may state a fact, with tree-sitter queries."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast, get_args

from tree_sitter import Node, Query, QueryCursor, Tree

from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.facts.code.options import default_behind_name
from nornweave.disagree.facts.code.queries import LANGUAGES, query_of
from nornweave.read.chunking.languages import grammar_of
from nornweave.read.chunking.parsing import mask, parse

MAX_SITES = 60_000
WINDOW_BYTES = 1 << 19
"""The deadline is looked at between windows; a window takes about 0.1 s."""
MAX_NAME = 160
MAX_ARGUMENTS = 12
MAX_ARGUMENT = 400
MAX_MATCHES = 256
"""Of unfinished matches inside tree-sitter; more make long lists quadratic, and no real file needs them."""

Role: TypeAlias = Literal[
    "class", "function", "param", "field", "const", "assign", "pair", "kwarg", "call", "group", "if", "fallback",
    "comment", "doc", "error",
]  # fmt: skip
"""What a place is: ``group`` is a literal with members, ``fallback`` an ``a or b``."""

_ROLES = frozenset(get_args(Role))
NAMED_ROLES = frozenset({"class", "function", "param", "field", "const", "assign", "pair", "kwarg"})
_KEYWORD_SIGNS = {"python": "=", "ruby": ":=", "php": ":", "csharp": ":", "swift": ":", "kotlin": "="}
_SELF = lazy_pattern(r"^(?:self|this|cls|\$this)(?:\.|->|\?\.)|^@@?")


@dataclass(slots=True, eq=False)
class ValueSite:
    """A place in the text. All offsets count characters of the text.

    Attributes:
        name: its name as it is written, without quotes.
        value: the start and end of its value; ``None`` if it has no value.
        tag: the name that a member gives to its call or group (``key: 'sameSite'``); empty without such a member.
        arguments: the arguments of a call, as they are written.
        parent: the smallest place that contains this place; ``None`` if no place does.
    """

    role: Role
    start: int
    end: int
    name: str = ""
    name_start: int = -1
    value: tuple[int, int] | None = None
    tag: str = ""
    arguments: tuple[str, ...] = ()
    parent: ValueSite | None = None

    @property
    def bare_name(self) -> str:
        """The name without ``self.``, ``this.`` or ``@``."""
        return _SELF.sub("", self.name)

    def ancestors(self) -> Iterator[ValueSite]:
        """Yield the places that contain this place, innermost first."""
        place = self.parent
        while place is not None:
            yield place
            place = place.parent


_queries: dict[str, Query] = {}


def _query(grammar: str, tree: Tree) -> Query:
    query = _queries.get(grammar)
    if query is None:
        query = _queries[grammar] = Query(tree.language, query_of(grammar, tree.language))
    return query


def find_sites(text: str, language: str, path: str, deadline: float) -> tuple[list[ValueSite], bool]:
    """Find the places that may state facts.

    Args:
        language: a key of ``chunking.languages.GRAMMARS``.
        deadline: the CPU time of this thread (``time.thread_time``) after which the search stops.

    Returns:
        The places in order of their start, outer places first, and whether the grammar could not parse some part.
    """
    grammar = grammar_of(language, path, text)
    if grammar is None or grammar.name not in LANGUAGES:
        return [], False
    # A part of a PHP file has no opening tag, without which all of it is text.
    lead = "<?php\n" if grammar.name == "php" and "<?" not in text else ""
    tree = parse(grammar, mask(lead + text))
    if tree is None:
        return [], True
    reader = _Reader(text, len(lead), _query(grammar.name, tree), _KEYWORD_SIGNS.get(grammar.name, ""))
    reader.read(tree, deadline)
    return _nested(reader.sites.values()), reader.has_errors


class _Reader:
    """Turns the matches of one tree into places. A place that several patterns match is one place."""

    def __init__(self, text: str, shift: int, query: Query, keyword: str) -> None:
        self.text = text
        self.keyword = keyword
        self.shift = shift
        self.query = query
        self.sites: dict[tuple[str, int], ValueSite] = {}
        self.has_errors = False
        self.roles: dict[int, Role] = {}

    def read(self, tree: Tree, deadline: float) -> None:
        """Read all windows until the deadline or the limit."""
        length = len(self.text) + self.shift
        for start in range(0, max(length, 1), WINDOW_BYTES):
            cursor = QueryCursor(self.query, match_limit=MAX_MATCHES)
            if length > WINDOW_BYTES:
                cursor.set_byte_range(start, min(start + WINDOW_BYTES, length))
            # No progress_callback: with one, tree_sitter 0.26.1 crashes now and then.
            for pattern, captures in cursor.matches(tree.root_node):
                self._add(pattern, captures)
            if len(self.sites) > MAX_SITES or time.thread_time() > deadline:
                return

    def _role(self, pattern: int, captures: dict[str, list[Node]]) -> Role:
        role = self.roles.get(pattern)
        if role is None:
            role = self.roles[pattern] = cast(Role, next(name for name in captures if name in _ROLES))
        return role

    def _add(self, pattern: int, captures: dict[str, list[Node]]) -> None:
        role = self._role(pattern, captures)
        node = captures[role][0]
        start, end = node.start_byte - self.shift, node.end_byte - self.shift
        if role == "error":
            self.has_errors = True
            return
        site = ValueSite(role, max(start, 0), end)
        if "value" in captures:
            value = captures["value"][0]
            site.value = (value.start_byte - self.shift, value.end_byte - self.shift)
            site.end = max(end, site.value[1])
        if role == "call":
            if not self._may_declare(captures):
                return
            given = [one for one in captures["value"][0].named_children[:MAX_ARGUMENTS] if "comment" not in one.type]
            site.arguments = tuple(self._text(one)[:MAX_ARGUMENT].strip() for one in given)
        if "name" in captures and not self._name(site, captures["name"][0]):
            return
        if "owner" in captures:
            site.name = f"{self._text(captures['owner'][0]).strip('*& ')}.{site.name}"
        self._keep(site)

    def _may_declare(self, captures: dict[str, list[Node]]) -> bool:
        """Tell quickly whether a call may declare something."""
        node, end = captures["value"][0], captures["name"][0].end_byte - self.shift
        start = node.start_byte - self.shift
        text = self.text[start : min(node.end_byte - self.shift, start + 1000)]
        if "default" in text or any(sign in text for sign in self.keyword):
            return True
        begin = max(captures["call"][0].start_byte - self.shift, end - MAX_NAME, 0)
        return default_behind_name(self.text[begin:end]) is not None

    def _text(self, node: Node) -> str:
        return self.text[node.start_byte - self.shift : node.end_byte - self.shift]

    def _name(self, site: ValueSite, node: Node) -> bool:
        """Set the name of a place. Return ``False`` if the name is too long, so that the place is left out."""
        start, end = node.start_byte - self.shift, node.end_byte - self.shift
        site.name_start = start
        if site.role == "call":  # of some grammars the name has what the method is called on, of others it has not
            site.name_start = max(start, self.text.rfind(".", start, end) + 1)
            start = site.start
        if end - start > MAX_NAME:
            if site.role not in {"call", "fallback"}:
                return False
            start = end - MAX_NAME if site.role == "call" else start
            end = min(end, start + MAX_NAME)
        site.name = self.text[start:end].strip("'\"`: \n") if site.role != "call" else self.text[start:end]
        return True

    def _keep(self, site: ValueSite) -> None:
        key = (site.role, site.name_start if site.name_start >= 0 else site.start)
        known = self.sites.get(key)
        if known is None:
            self.sites[key] = site
            return
        known.value = known.value or site.value
        known.end = max(known.end, site.end)


_OUTERMOST = {"class": 0, "function": 0, "assign": 1, "field": 1, "const": 1, "param": 1, "pair": 1, "kwarg": 1}


def _nested(sites: Iterable[ValueSite]) -> list[ValueSite]:
    """Return places in order of their start, and set the ``parent`` of each."""
    ordered = sorted(sites, key=lambda site: (site.start, -site.end, _OUTERMOST.get(site.role, 2)))
    around: list[ValueSite] = []
    for site in ordered:
        while around and around[-1].end <= site.start:
            around.pop()
        if around:
            site.parent = around[-1]
        if site.role not in {"comment", "doc"}:
            around.append(site)
    return ordered
