"""Turn conflicts into findings: both sides, dates, fingerprint."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.text.terminal import lines_of
from nornweave.core.types import Fact, Origin, digest
from nornweave.disagree.conflicts import FactConflict, LocatedFact
from nornweave.disagree.conflicts.decision import CandidatePair
from nornweave.disagree.drift.agreements import BrokenAgreement
from nornweave.disagree.drift.records import GONE, RULES, STALE, Finding, Place, Which
from nornweave.disagree.facts.expressions import as_written
from nornweave.disagree.facts.names import read_name

MAX_ALSO = 10
"""Other places that are named."""
SHOWN_OF_PAGE = 8
"""Values that are named of a page of which most differ."""
STALE_CONFIDENCE = 0.8
SHOWN_VALUE = 120
MAX_LINE = 2_000
"""Characters of a line in which a mark is looked for."""
_MARK = lazy_pattern(r"\bdrift-ignore(?![\w-])(?:[ \t]{0,4}:[ \t]{0,4}(?P<names>[^\s,*#;<>\-][^*#;<>]{0,200}))?")
_WORDS = {"status": "HTTP status", "requires": "required version"}
"""What people call an attribute, where it is another word."""

TextOf = Callable[[str], str]
"""Path → the text of the file as it was read."""


def fingerprint(conflict: FactConflict) -> str:
    """Return the identity of a disagreement: paths, name, property and values, without lines."""
    sides = [(one.path, *_value(one.fact)) for one in (conflict.first, conflict.second)]
    return digest("drift-1", conflict.name, conflict.second.fact.attribute, *(part for side in sides for part in side))


def _value(fact: Fact) -> tuple[str, str, str, str]:
    return fact.kind, fact.value, fact.unit or "", "not" if fact.negated else ""


def is_suppressed(conflict: FactConflict, text_of: TextOf) -> bool:
    """Tell whether a ``drift-ignore`` comment is on the line of either side or on the line above."""
    names = {conflict.name, conflict.first.fact.name, conflict.second.fact.name}
    for one in (conflict.first, conflict.second):
        lines = lines_of(text_of(one.path))
        if any(_ignores(line, names) for line in lines[max(0, one.fact.line - 1) : one.fact.line + 1]):
            return True
    return False


def _ignores(line: str, names: Collection[str]) -> bool:
    """Tell whether a line has a ``drift-ignore`` for one of the names, or for all names if it gives no name."""
    if "drift-ignore" not in line:
        return False
    for match in _MARK.finditer(line[:MAX_LINE]):
        written = (match["names"] or "").replace("--", " ").split(",")
        if not match["names"] or any((name := read_name(one.strip())) and name.name in names for one in written):
            return True
    return False


def is_ignored(finding: Finding) -> bool:
    """Tell whether a ``drift-ignore`` is on the documented line of a finding."""
    return _ignores(finding.second.text, {finding.name})


def stale_finding(share: float, differing: Sequence[CandidatePair], text_of: TextOf) -> Finding:
    """Return one finding for a page whose values mostly differ from one file. ``share`` is the part that differs."""
    pages, code = ([_place(side, text_of) for side in sides] for sides in
                   ([pair.other for pair in differing], [pair.code for pair in differing]))  # fmt: skip
    said = "; ".join(
        f"{pair.other.fact.name} {one.value}, {other.value}"
        for pair, one, other in zip(differing[:SHOWN_OF_PAGE], pages, code, strict=False)
    )
    page, file = pages[0].path, code[0].path
    return Finding(
        rule=STALE.id,
        name=page,
        attribute="page",
        message=f"{page}: {len(differing)} values differ from {file}, {share:.0%} of those that it names: {said}",
        fingerprint=digest("drift-1", "page", page, file),
        confidence=STALE_CONFIDENCE,
        first=code[0],
        second=pages[0],
        also=tuple(pages[1 : MAX_ALSO + 1]),
    )


def broken_finding(one: BrokenAgreement, text_of: TextOf) -> Finding:
    """Return a broken agreement as a finding, without line authors."""
    found = finding_of(one.conflict, text_of)
    was = found.second.value if one.moved == "first" else found.first.value  # as the side writes it that still says so
    return replace(found, moved=one.moved, was=was)


def finding_of(conflict: FactConflict, text_of: TextOf) -> Finding:
    """Return a conflict as a finding, without line authors."""
    first, second = (_place(one, text_of) for one in (conflict.first, conflict.second))
    attribute = conflict.second.fact.attribute
    message = (
        f"{conflict.name} ({_WORDS.get(attribute, attribute)}): {second.path}:{second.line} says {second.value}, "
        f"{first.path}:{first.line} says {first.value}"
    )
    return Finding(
        rule=RULES.get(attribute, RULES["value"]).id,
        name=conflict.name,
        attribute=conflict.attribute,
        message=message,
        fingerprint=fingerprint(conflict),
        confidence=conflict.confidence,
        first=first,
        second=second,
        also=tuple(_place(one, text_of) for one in conflict.also[:MAX_ALSO]),
    )


def _place(one: LocatedFact, text_of: TextOf) -> Place:
    lines = lines_of(text_of(one.path))
    line = one.fact.line + 1
    fact = one.fact
    shown = as_written(fact, text_of(one.path)[fact.span.start : fact.span.end])
    return Place(
        path=one.path,
        line=line,
        side=fact.side,
        value=" ".join(shown.split())[:SHOWN_VALUE],
        text=lines[fact.line] if fact.line < len(lines) else fact.statement,
    )


def lines_whose_writer_matters(findings: Sequence[Finding]) -> dict[tuple[str, int], str]:
    """Return a mapping from path and line number to the text of each line whose author is to be found.

    These are the lines of both sides of every finding, except for a line of code that no longer exists.
    """
    places = [
        place
        for finding in findings
        for place in ((finding.second,) if _is_removed(finding) else (finding.first, finding.second))
    ]
    return {(place.path, place.line): place.text for place in places}


def _is_removed(finding: Finding) -> bool:
    """Tell whether the code's line existed only at the base. Its value then names the commit that removed it."""
    return finding.rule == GONE.id and finding.moved == "first"


def with_origins(finding: Finding, origins: Mapping[tuple[str, int], Origin]) -> Finding:
    """Return a finding with the authors of its lines, which line is newer, and since when the two disagree."""
    first, second = (
        replace(place, origin=origins.get((place.path, place.line))) for place in (finding.first, finding.second)
    )
    if _is_removed(finding):  # another finding may be about what stands there now
        first = finding.first
    newer = _newer(first.origin, second.origin)
    latest = None if newer is None else (first if newer == "first" else second).origin
    both_at_once = first.origin == second.origin and first.origin is not None
    since = latest.written_at if latest else first.origin.written_at if both_at_once and first.origin else None
    return replace(finding, first=first, second=second, newer=newer, since=since)


def _newer(first: Origin | None, second: Origin | None) -> Which | None:
    if first is None or second is None:
        return None
    if first.is_committed != second.is_committed:  # what is not committed yet was written last
        return "second" if first.is_committed else "first"
    if first.written_at is None or second.written_at is None or first.written_at == second.written_at:
        return None
    return "first" if first.written_at > second.written_at else "second"
