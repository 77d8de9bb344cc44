"""Extract facts from source code by its syntax, and its comments as documentation."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Fact, Span
from nornweave.disagree.facts.code.calls import read_call, read_chains, read_fallback, read_givers, read_placeholders
from nornweave.disagree.facts.code.comments import Comment, read_comments
from nornweave.disagree.facts.code.constants import Constants
from nornweave.disagree.facts.code.definitions import read_statement
from nornweave.disagree.facts.code.fragments import read_fragments
from nornweave.disagree.facts.code.members import name_groups
from nornweave.disagree.facts.code.reading import Reading, base_of
from nornweave.disagree.facts.code.sites import find_sites
from nornweave.disagree.facts.code.statuses import read_statuses
from nornweave.disagree.facts.code.tags import read_tags
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
