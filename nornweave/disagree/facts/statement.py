"""The lines of code or configuration that state a fact in words: its own, the call around it, the comment above."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from nornweave.core.types import Fact

MAX_STATEMENT = 400
"""Characters: longer ones are not read at a glance."""
MAX_BEFORE = 1_200
"""Characters between a name and its value: a row of a table is half blanks."""
NEAR = 4
"""Lines between a heading and the value right below it."""
_REMARK = re.compile(r"[^\S\n]*(?:#+|//+!?|--|;+|/?\*+)[^\S\n]*[^\s#/*;=-]")
# Three words in quotation marks, which are no list of values.
_IN_WORDS = re.compile(r"\"[^\"\n]*\w\s\w+\s[^\"\n]*\"|'[^'\n]*\w\s\w+\s[^'\n]*'")
# Three words behind a value, on its line.
_REMARK_BEHIND = re.compile(r"[^\S\n](?:#+|//+|--)[^\S\n]*\w[^\n]*?\w\s\w+\s\w")
_PARAGRAPH = re.compile(r"[^\n]*\n(?:[^\S\n]*\n)?((?!\s*(?:#|```|~~~))(?:[^\n]*\w[^\n]*(?:\n|\Z)){1,4})")
# The further rows of a table.
_ROWS = re.compile(r"[^\n]*(?:\n[^\S\n]*(?:[|+=]|\S+(?:[ ]\S+)*[ ]{2,}\S)[^\n]*)+")
# ``# pool_size = 10``: what is commented out is a setting of its own, and describes none below it.
_SWITCHED_OFF = re.compile(r"[^\S\n]*(?:#+|//+|--|;+)[^\S\n]*[\w.$'\"\]\[-]+[^\S\n]*(?:=(?!=)|:[^\S\n]+\S+[^\S\n]*\n)")
_DEFAULT_KEY = re.compile(r"[\"']?default[\"']?[ \t]*:")
MAX_DESCRIPTION = 300
_MARKS = re.compile(r"[^\w'-]+|-{3,}|(?<=[a-z])(?=[A-Z])|_+")
_EACH_LINE = re.IGNORECASE | re.MULTILINE
_OPENING, _BRACKETS = frozenset("([{"), frozenset("()[]{}")


def statement_at(text: str, start: int, end: int) -> tuple[int, int, bool]:
    """Return the start and end of the lines that state and describe a fact, and whether words describe it.

    The words may be in a string in these lines or in the call around them, in a comment after or directly above the
    lines, or beside a ``default`` that is indented below its setting. Without words the result is the fact's own lines,
    or only the first of them if they are too long.
    """
    first, last = lines_at(text, start, end)
    if definition := definition_at(text, start):
        return *definition, True
    if _IN_WORDS.search(text, first, last) or _REMARK_BEHIND.search(text, first, last):
        return first, last, True
    opened, closed = lines_at(text, *_around(text, start, end))
    if opened <= first and last <= closed and _IN_WORDS.search(text, opened, closed):
        return opened, closed, True
    above = first
    while (
        above
        and _REMARK.match(text, before := text.rfind("\n", 0, above - 1) + 1)
        and not _SWITCHED_OFF.match(text, before)
        and last - before <= MAX_STATEMENT
    ):
        above = before
    return above, last, above < first


def definition_at(text: str, start: int) -> tuple[int, int] | None:
    """Return the start and end of a setting with its indented lines, if its ``default: …`` begins at ``start``.

    Return ``None`` if no such default begins there, or if the lines are too long.
    """
    line = text.rfind("\n", 0, start) + 1
    deep = start - line
    if not deep or not _DEFAULT_KEY.match(text, start) or text[line:start].strip():
        return None
    first, last = line, lines_at(text, start, start)[1]
    while first and (text[first:line].isspace() or _indent(text, first) >= deep):
        first = text.rfind("\n", 0, first - 1) + 1
        if last - first > MAX_STATEMENT:
            return None
        line = text.find("\n", first)
    end = last
    while end < len(text):
        below = lines_at(text, end + 1, end + 1)[1]
        if text[end:below].strip():
            if _indent(text, end + 1) < deep or below - first > MAX_STATEMENT:
                break
            last = below
        end = below
    return first, last


MOST_OWNERS = 3


def called(fact: Fact) -> tuple[str, ...]:
    """Return the names by which people call a setting: first its own name, then with its owners before it."""
    owners = fact.owner.split()[-MOST_OWNERS:]
    return tuple(" ".join((*owners[at:], fact.name)) for at in range(len(owners), -1, -1))


def is_declared(fact: Fact) -> bool:
    """Tell whether a fact states a general default, not a fallback at one place."""
    return fact.attribute == "default" and fact.form != "fallback"


def described(facts: Sequence[Fact], text: str, start: int) -> Iterator[tuple[Fact, tuple[int, int]]]:
    """Yield each fact that has a value, and the range of the text that describes it; empty if no text describes it.

    In documentation the range runs from the fact's name, or else from the start of the line, to the end of the value's
    line. It includes the next paragraph if that is indented deeper, or if the value is just below the name
    or in a table below it.

    Args:
        facts: the facts, by place.
        text: the text with the facts, which begins at the offset ``start``.
    """
    last = 0
    for fact in facts:
        first, end = fact.span.start - start, fact.span.end - start
        if (
            fact.attribute not in {"default", "value", "setting"}
            or fact.kind in {"none", "symbol"}
            or not 0 <= first < len(text)
        ):
            continue
        if fact.side in {"code", "configuration"}:
            told_from, told_to, is_told = statement_at(text, first, end)
            yield fact, (told_from, told_to) if is_told else (first, first)
            continue
        lead = max(last, end - MAX_BEFORE)
        name = r"[\W_]*".join(map(re.escape, fact.name.split()))
        at = [lead + found.start() for found in re.finditer(rf"^[^\w\n]*{name}", text[lead:end], _EACH_LINE)][-1:]
        at = at or [lead + found.start() for found in re.finditer(name, text[lead:end], re.IGNORECASE)][:1]
        rows = _ROWS.match(text, end) if fact.form == "heading" else None
        end = rows.end() if rows else end
        told_from, behind = at[0] if at else lines_at(text, first, end)[0], text.find("\n", end)
        told_to, after = behind if behind >= 0 else len(text), _PARAGRAPH.match(text, end)
        deeper = _indent(text, after.start(1)) - _indent(text, text.rfind("\n", 0, first) + 1) if after else -1
        is_near = rows is not None or 0 < text.count("\n", told_from, first) <= NEAR
        if after and (deeper > 0 or (deeper == 0 and is_near)):
            told_to = after.end(1)
        last = end
        yield fact, (told_from, told_to)


def settings_in(facts: Sequence[Fact], text: str, start: int) -> Iterator[tuple[int, str]]:
    """Yield the index of each fact that words describe, and a text with its name, its owner and these words.

    A name alone is enough for the number of a constant, an option or a key (``#define MAX_NESTING 16``), but not for
    the first value of a variable. Lists are left out, because somebody who asks for a value does not want a list.

    Args:
        facts: the facts, by place.
        text: the text with the facts, which begins at the offset ``start``.
    """
    places = {fact: place for place, fact in enumerate(facts)}
    for fact, (first, last) in described(facts, text, start):
        is_named = fact.kind == "number" and (
            fact.attribute == "value" or fact.side == "configuration" or (fact.form == "option" and fact.owner != "")
        )
        if fact.kind != "list" and (first < last or is_named):
            said = _MARKS.sub(" ", f"{fact.name} {fact.owner} {text[first:last][: 2 * MAX_DESCRIPTION]}")
            yield places[fact], " ".join(said.split())[:MAX_DESCRIPTION]


def _indent(text: str, at: int) -> int:
    line = text[at : at + MAX_STATEMENT]
    return len(line) - len(line.lstrip(" \t"))


def lines_at(text: str, start: int, end: int) -> tuple[int, int]:
    """Return start and end of the whole lines of a range; of only the first line if they are too long."""
    first = text.rfind("\n", 0, start) + 1
    ends = [found if (found := text.find("\n", at)) >= 0 else len(text) for at in (start, max(start, end - 1))]
    return first, ends[1] if ends[1] - first <= MAX_STATEMENT else ends[0]


def _around(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the start and end of the bracket around a range; the range itself if there is none nearby."""
    deep = 0
    for at in range(start - 1, max(0, start - MAX_STATEMENT) - 1, -1):
        deep += (text[at] in _BRACKETS) * (-1 if text[at] in _OPENING else 1)
        if deep < 0:
            for to in range(at + 1, min(len(text), at + MAX_STATEMENT)):
                deep += (text[to] in _BRACKETS) * (-1 if text[to] in _OPENING else 1)
                if deep == 0:
                    return at, to + 1
            break
    return start, end
