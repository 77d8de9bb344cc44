"""Extract facts from source code by its syntax, and its comments as documentation.

Comments and docstrings are found with the declaration that each documents.
"""

from __future__ import annotations

import re
import time
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Fact, Span
from nornweave.disagree.facts.code.declarations import (
    name_groups,
    read_call,
    read_chains,
    read_fallback,
    read_fragments,
    read_givers,
    read_placeholders,
    read_statement,
    read_statuses,
    read_tags,
)
from nornweave.disagree.facts.code.reading import Base, Constants, Reading, base_of, owner_of
from nornweave.disagree.facts.code.sites import NAMED_ROLES, ValueSite, find_sites
from nornweave.disagree.facts.passage import Passage

SECONDS_AT_LEAST = 1.0
SECONDS_PER_MEGABYTE = 6.0
"""Of processor time; ordinary source takes a third of that."""
MINIFIED_BYTES = 50_000
MINIFIED_LINE = 1_000
"""Characters of an average line from which a long text counts as generated."""

_IS_CONFIGURATION = lazy_pattern(
    r"(?:^|[/_.-])(?:conf|config|configuration|settings?|options|defaults?|initializers)[/_.-][^/]*$",
    re.IGNORECASE,
)
_SWITCHED_OFF = lazy_pattern(
    r"^[ \t]*(?:#+|//+|--|;+)[ \t]*"
    r"(?P<said>[A-Za-z_$'\"][\w.$'\"\]\[>-]*[ \t]*(?:(?:=>|=(?![=>]))[ \t]*\S.*|:[ \t]+\S+))[ \t]*$",
    re.MULTILINE,
)
"""A line that is commented out and sets something."""

_READERS = {
    **dict.fromkeys(("param", "field", "const", "assign", "pair", "kwarg"), read_statement),
    "fallback": read_fallback,
}

MAX_BETWEEN = 600
"""Characters of annotations and modifiers between a comment and what it documents."""
_BETWEEN = lazy_pattern(
    r"(?:\s|@[\w.]{1,80}(?:\([^()\n]{0,200}\))?|#!?\[[^\]\n]{0,200}\]|\[[^\]\n]{0,200}\]"
    r"|\b(?:export|default|pub|public|private|protected|internal|static|final|const|var|let|val|async|abstract|override|"
    r"declare|readonly|type|open|inline|unsafe|local|data|sealed|extern|func|return|template\s?<[^<>\n]{0,100}>)\b|\(crate\))*"
)
_BELOW = lazy_pattern(r"\s{0,80}([A-Za-z_$][\w$]*)(?=[ \t]+[*\[\w]|\??:|\s?=)")


@dataclass(frozen=True, slots=True)
class CodeReading:
    """The facts and comments of a passage of code.

    Attributes:
        facts: the facts, in order of their start.
        comments: the comments, in order of their start.
    """

    facts: tuple[Fact, ...]
    comments: tuple[Comment, ...]


def read_code(passage: Passage, language: str, *, deadline_s: float | None = None) -> CodeReading:
    """Read the facts and the comments of a passage of code, which may be cut anywhere.

    Args:
        language: a key of ``chunking.languages.GRAMMARS``; for another language the result is empty.
        deadline_s: CPU seconds after which the reading stops; the default depends on the length of the text.
    """
    text = passage.text
    if not text.strip() or _is_minified(text):
        return CodeReading((), ())
    if deadline_s is None:
        deadline_s = SECONDS_AT_LEAST + SECONDS_PER_MEGABYTE * len(text) / 1e6
    deadline = time.thread_time() + deadline_s
    sites, has_errors = find_sites(text, language, passage.path, deadline)
    base = base_of(passage)
    reading = Reading(passage, language, base, sites, Constants(text, sites), deadline)
    _read_sites(reading)
    if has_errors and not reading.is_over:
        read_fragments(reading)
    facts = sorted(reading.facts.values(), key=lambda fact: (fact.span.start, fact.span.end))
    return CodeReading(tuple(facts), tuple(read_comments(text, sites, base)))


def _read_sites(reading: Reading) -> None:
    name_groups(reading)
    for site in reading.sites:
        if site.role == "call":
            read_call(site, reading)
    for number, site in enumerate(reading.sites):
        if number % 256 == 0 and reading.is_over:
            return
        reader = _READERS.get(site.role)
        if reader is not None:
            reader(site, reading)
    read_placeholders(reading)
    read_chains(reading)
    read_givers(reading)
    read_tags(reading)
    read_statuses(reading)


def read_switched_off(passage: Passage, language: str) -> Iterator[Fact]:
    """Yield what the settings of a configuration written as code would be that are commented out (``# POOL = 10``).

    The form of such a fact is ``example``, because it is not in force.
    """
    if not _IS_CONFIGURATION.search(passage.path) or not (off := [*_SWITCHED_OFF.finditer(passage.text)]):
        return
    shifted = {passage.line_of(match.start()): match.start("said") - match.start() for match in off}
    lines = [
        f"{line[shifted[number] :]}{' ' * shifted[number]}" if number in shifted else " " * len(line)
        for number, line in enumerate(passage.text.split("\n"))
    ]
    for fact in read_code(replace(passage, text="\n".join(lines)), language).facts:
        if fact.line in shifted and fact.form == "definition" and fact.attribute in {"default", "value"}:
            at = shifted[fact.line]
            span = Span(fact.span.start + at, fact.span.end + at)
            said = passage.lines_between(span.start - passage.start, span.end - passage.start)
            yield replace(fact, attribute="setting", side="configuration", form="example", span=span, statement=said)


def _is_minified(text: str) -> bool:
    return len(text) > MINIFIED_BYTES and len(text) / (text.count("\n") + 1) > MINIFIED_LINE


__all__ = ["CodeReading", "Comment", "read_code", "read_switched_off"]


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment block or a docstring.

    Attributes:
        start: the offset of its first character in the passage's text. ``end`` is the offset after its last character.
        subject: the written name of the declaration that it documents; empty for a class, which is in ``owner``.
        owner: the definitions around the declaration, outermost first.
        is_remark: whether it documents no declaration that the grammar knows. Its subject is then the name below it.
    """

    start: int
    end: int
    subject: str = ""
    owner: str = ""
    is_remark: bool = False


def read_comments(text: str, sites: list[ValueSite], base: Base) -> Iterator[Comment]:
    """Yield the comments of a text in order.

    Adjacent line comments are one comment. A comment belongs to the declaration directly after it, a docstring to the
    definition that it opens. All others are remarks; a comment after code on the same line is left out.
    """
    declared = [site for site in sites if site.role in NAMED_ROLES and site.name]
    starts = [site.start for site in declared]
    for block in _blocks(text, sites):
        of = _docstring_subject if block.role == "doc" else _subject
        subject = of(text, block, declared, starts)
        if subject is None:
            if _is_alone(text, block):
                below = _BELOW.match(text, block.end)
                yield Comment(block.start, block.end, below[1] if below else "", base.owner, is_remark=True)
        elif subject.role == "class":  # what it says of values is said of its members
            yield Comment(block.start, block.end, "", f"{owner_of(subject, base)} {subject.bare_name}".strip())
        else:
            yield Comment(block.start, block.end, subject.bare_name, owner_of(subject, base).strip())


def _blocks(text: str, sites: list[ValueSite]) -> Iterator[ValueSite]:
    """Yield docstrings, and runs of comments as one block each."""
    block: ValueSite | None = None
    for site in sites:
        if block is not None and site.role == "comment" and _goes_on(text, block, site):
            block.end = max(block.end, site.end)
        elif site.role in {"comment", "doc"}:
            if block is not None:
                yield block
            block = ValueSite(site.role, site.start, site.end, parent=site.parent)
    if block is not None:
        yield block


def _goes_on(text: str, block: ValueSite, site: ValueSite) -> bool:
    """Tell whether the comment ``site`` continues the run of line comments ``block`` on the next line."""
    between = text[block.end : site.start] if site.start - block.end < MAX_BETWEEN else "x"
    is_next = not between.strip() and between.count("\n") <= 1 and not text.startswith("/*", site.start)
    return is_next and block.role == "comment" and _is_alone(text, block)


def _is_alone(text: str, site: ValueSite) -> bool:
    """Tell whether only blank space is before a comment on its line."""
    line = text.rfind("\n", 0, site.start) + 1
    return not text[max(line, site.start - 400) : site.start].strip()


def _subject(text: str, block: ValueSite, declared: list[ValueSite], starts: list[int]) -> ValueSite | None:
    if not _is_alone(text, block):
        return None
    at = bisect_left(starts, block.end)
    between = text[block.end : declared[at].start] if at < len(declared) else "x"
    # What starts behind the comment, or around what its annotations belong to.
    is_next = len(between) <= MAX_BETWEEN and "\n\n" not in between and _BETWEEN.fullmatch(between)
    return declared[at] if is_next else None


def _docstring_subject(text: str, block: ValueSite, declared: list[ValueSite], starts: list[int]) -> ValueSite | None:
    """Return the definition or assignment that a docstring documents; ``None`` if the string documents neither."""
    around = block.parent
    while around is not None and around.role not in {"class", "function"}:
        around = around.parent
    at = bisect_left(starts, block.start) - 1
    before = declared[at] if at >= 0 else None
    if before is not None and before.role in {"assign", "field"} and before.end <= block.start:
        return before if not text[before.end : block.start].strip() and before.parent is around else None
    if around is None:
        return None
    header = text[max(around.start, block.start - 200) : block.start].rstrip()
    return around if header.endswith(":") or header.rpartition("\n")[2].lstrip().startswith("#") else None
