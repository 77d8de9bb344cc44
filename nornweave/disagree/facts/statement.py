"""Where code or configuration tells in words what a fact says: its lines, the call around them, the remark above."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from nornweave.core.text.analyzer import FUNCTION_TERMS, sequence
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
_OPENING, _BRACKETS = frozenset("([{"), frozenset("()[]{}")


def statement_at(text: str, start: int, end: int) -> tuple[int, int, bool]:
    """Return the lines of what stands at ``start`` to ``end``, with what describes it, and whether words do.

    Words stand in a string of those lines or of the call around them, or in the remark behind or right above. Without
    them these are the lines themselves, the first alone where they are too long.
    """
    first, last = lines_at(text, start, end)
    if _IN_WORDS.search(text, first, last) or _REMARK_BEHIND.search(text, first, last):
        return first, last, True
    opened, closed = lines_at(text, *_around(text, start, end))
    if opened <= first and last <= closed and _IN_WORDS.search(text, opened, closed):
        return opened, closed, True
    above = first
    while (
        above and _REMARK.match(text, before := text.rfind("\n", 0, above - 1) + 1) and last - before <= MAX_STATEMENT
    ):
        above = before
    return above, last, above < first


def is_declared(fact: Fact) -> bool:
    """Tell whether a fact says a default for everybody, no operand that one place falls back to."""
    return fact.attribute == "default" and fact.form != "fallback"


def told_terms(facts: Sequence[Fact], text: str, start: int) -> Iterator[tuple[Fact, frozenset[str]]]:
    """Yield each fact that says a value with the terms of its name and of the words that describe what it is of.

    In documentation these stand between its name, or the value of the fact before, and the value; where the value comes
    first below its name, they are the paragraph after it.

    Args:
        facts: by place.
        text: that they stand in, from the offset ``start`` on.
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
        said = ""
        if fact.side in {"code", "configuration"}:
            told_from, told_to, is_told = statement_at(text, first, end)
            said = text[told_from:told_to] if is_told else ""
        else:
            before = text[max(last, end - MAX_BEFORE) : end]
            name = r"[\W_]*".join(map(re.escape, fact.name.split()))
            lines = [*re.finditer(rf"^[^\w\n]*{name}\b", before, re.IGNORECASE | re.MULTILINE)]
            named = lines[-1] if lines else re.search(name, before, re.IGNORECASE)
            said = before[named.start() :] if named else ""
            after = _PARAGRAPH.match(text, end) if "\n" in said and said.count("\n") <= NEAR else None
            said = f"{said} {fact.statement} {after[1] if after else ''}"
            last = end
        terms = frozenset(sequence(f"{fact.name} {fact.owner} {said}")) - FUNCTION_TERMS
        yield fact, frozenset(term for term in terms if not term.isdigit())


def lines_at(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the lines of a stretch, or the first if they are too long."""
    first = text.rfind("\n", 0, start) + 1
    ends = [found if (found := text.find("\n", at)) >= 0 else len(text) for at in (start, max(start, end - 1))]
    return first, ends[1] if ends[1] - first <= MAX_STATEMENT else ends[0]


def _around(text: str, start: int, end: int) -> tuple[int, int]:
    """Return where the bracket around a stretch opens and closes; the stretch itself where it is not near."""
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
