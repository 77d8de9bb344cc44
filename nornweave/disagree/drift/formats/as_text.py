"""Write a report for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from nornweave.disagree.drift.formats.words import (
    age,
    coverage_sentence,
    one_line,
    second_opinion,
    side_that_moved,
    summary,
    where,
    who,
)
from nornweave.disagree.drift.records import Finding, Report


def text(report: Report) -> str:
    """Return the report as plain text."""
    blocks = ["\n".join(_finding(one)) for one in report.findings]
    lead = [coverage_sentence(report.coverage)] if report.coverage and report.files else []
    return "\n\n".join([*lead, *blocks, summary(report)]) + "\n"


def _finding(finding: Finding) -> Iterator[str]:
    yield f"{where(finding.second)}  {one_line(finding.name)}  [{finding.rule}, {finding.confidence:.2f}]"
    for place in (finding.second, finding.first):
        yield f"  {place.side:<13} {where(place)}  {one_line(place.value)}"
        yield f"    | {one_line(place.text)}"
        if said := who(place.origin):
            yield f"    {said}"
    for note in filter(None, (side_that_moved(finding), age(finding), second_opinion(finding))):
        yield f"  {note}"
    if finding.suggestion:
        yield f"  suggested: {one_line(finding.suggestion.after)}"
    for place in finding.also:
        yield f"  also {where(place)}  {one_line(place.value)}"
