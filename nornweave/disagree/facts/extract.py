"""Extract the facts of a passage, whatever its format: the public function of this package.

Code is read through its syntax tree, with comments and docstrings as documentation of the code beside them.
Configuration is read by its keys. Everything else is read through its structure and its sentences.

The help text of a program states defaults, too: ``" --pause <s> seconds (default: 5)\\n"``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Fact
from nornweave.disagree.facts.code import CodeReading, Comment, read_code, read_switched_off
from nornweave.disagree.facts.configuration import configuration_facts, is_configuration
from nornweave.disagree.facts.documentation import documentation_facts
from nornweave.disagree.facts.passage import Passage
from nornweave.read.chunking.languages import PROGRAMS, language_of

VERSION = "facts-53"
MAX_FACTS = 4_000
"""Of one passage: more is a table of constants."""
MAX_COMMENT = 60_000
"""Characters of one comment that are read: longer ones are licences and generated tables."""
# What people say lies in JSON files (exports of Slack, GitHub, Stack Exchange) and is no configuration.
_TALK = frozenset({"conversations", "research"})
_WORTH_READING = lazy_pattern(r"\d|default|none|null|true|false", re.IGNORECASE)

_DEFAULT = lazy_pattern(r"default", re.IGNORECASE)
_LINE = lazy_pattern(
    r"[ \t]*(?:[^\"'`\n]{0,60}[\"'`](?:\\[nt])*)?(?P<help>[ \t]*(?:-\w,?[ \t/|]+)?--[a-z][\w-]+(?:[ \t=<\[][^\n]*)?$)"
)
_GOES_ON = lazy_pattern(r"[ \t]*(?P<quote>[\"'`]?)(?P<help>[ \t]{2,}[^\s;{}][^;{}\n]*)")
_ENDS = lazy_pattern(r"(?:\\n)?[\"'`]?(?:[ \t]*+[,;)+\\])*+$")
_FENCE = "```\n"


@dataclass(frozen=True, slots=True)
class Extracted:
    """The facts of a passage and, if it is a program, the comments that document its declarations."""

    facts: tuple[Fact, ...]
    comments: tuple[Comment, ...] = ()


def extract_facts(passage: Passage) -> tuple[Fact, ...]:
    """Return the facts of a passage about named things.

    Returns:
        At most ``MAX_FACTS`` different facts, by place, then by name. Their spans lie inside the passage.
    """
    return extract(passage).facts


def extract(passage: Passage) -> Extracted:
    """Return the facts of a passage and, if it is a program, its comments."""
    language = _language(passage)
    is_talk = passage.domain in _TALK
    reading = read_code(passage, language) if language is not None and not is_talk else None
    found: Iterable[Fact] = _program(passage, reading) if reading else ()
    if language is not None and reading and passage.domain != "documentation":
        found = chain(found, read_switched_off(passage, language))
    if not is_talk and is_configuration(passage.format, passage.path):  # a program may be one: setup.py, Gemfile
        found = chain(found, configuration_facts(passage))
    elif reading is None:
        found = documentation_facts(passage)
    unique = {_key(fact): fact for fact in found if _inside(fact, passage)}
    facts = tuple(fact for _, fact in sorted(unique.items()))[:MAX_FACTS]
    return Extracted(facts, reading.comments) if reading else Extracted(facts)


def _key(fact: Fact) -> tuple[str | int | bool, ...]:
    return fact.span.start, fact.span.end, fact.name, fact.attribute, fact.kind, fact.value, fact.owner, fact.side


def _inside(fact: Fact, passage: Passage) -> bool:
    return passage.start <= fact.span.start <= fact.span.end <= passage.start + len(passage.text)


def _language(passage: Passage) -> str | None:
    if passage.language in PROGRAMS:
        return passage.language
    return passage.format if passage.format in PROGRAMS else language_of(passage.path)


def _program(passage: Passage, reading: CodeReading) -> Iterator[Fact]:
    """Yield the facts of a program and of its comments.

    A part of a source file shown as documentation is read for its comments and signatures.
    """
    if passage.domain == "documentation":
        yield from (replace(fact, side="documentation", form="signature") for fact in reading.facts)
        if not any(comment.subject for comment in reading.comments):
            yield from documentation_facts(passage)
            return
    else:
        yield from reading.facts
        yield from help_facts(passage)
    for comment in reading.comments:
        if comment.is_remark and passage.domain != "documentation":  # about the line below, not about a setting
            continue
        text = passage.text[comment.start : comment.end]
        if len(text) <= MAX_COMMENT and _WORTH_READING.search(text):
            yield from _within(passage, comment.start, comment.end, comment.subject, comment.owner)


def _within(passage: Passage, start: int, end: int, subject: str, owner: str) -> Iterator[Fact]:
    """Yield the facts of the comment from ``start`` to ``end``, read as documentation of ``subject`` of ``owner``.

    Offsets, spans and lines count from the start of the passage.
    """
    part = replace(
        passage,
        text=passage.text[start:end],
        start=passage.start + start,
        domain="documentation",
        format="",
        language=None,
        title=None,
        section=None,
    )
    first = passage.line_of(start)
    for fact in documentation_facts(part, subject=subject, owner=owner):
        # A comment says what one call needs, not the project; what it names in plain words is something else.
        if fact.attribute != "requires" and (fact.form != "topic" or fact.attribute == "status"):
            yield replace(fact, line=fact.line + first)


def help_facts(passage: Passage) -> Iterator[Fact]:
    """Yield the defaults of flags that a program states in its help strings. The side of these facts is ``code``."""
    if "--" not in passage.text or _DEFAULT.search(passage.text) is None:
        return
    is_help, lines = False, []
    for line in passage.text.split("\n"):
        found = _LINE.match(line) or (_GOES_ON.match(line) if is_help else None)
        is_help = found is not None
        lines.append(_only(line, found) if found else " " * len(line))
    text = "\n".join(lines)
    if _DEFAULT.search(text) is None:
        return
    part = replace(
        passage, text=f"{_FENCE}{text}\n{_FENCE}", start=passage.start - len(_FENCE), domain="documentation", format="",
        language=None, title=None, section=None,
    )  # fmt: skip
    for fact in documentation_facts(part):
        if fact.attribute == "default" and fact.form == "list":
            yield replace(fact, side="code", form="option", line=fact.line - 1)


def _only(line: str, found: re.Match[str]) -> str:
    """Return a line in which everything but the help text is replaced by blanks."""
    start, end = found.start("help"), len(line)
    is_quoted = line[:start].rstrip()[-1:] in {"'", '"', "`"}
    ending = _ENDS.search(line) if is_quoted else None
    if ending is not None and ending.start() > start:
        end = ending.start()
    return " " * start + line[start:end] + " " * (len(line) - end)
