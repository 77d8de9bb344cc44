"""Write a report for a terminal, in sentences that the other formats share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from nornweave.core.text.legible import legible
from nornweave.core.types import Origin
from nornweave.disagree.drift.records import Coverage, DocumentedOption, Finding, Place, Report

MAX_LINE = 240
ELLIPSIS = "…"
MANY = 10
"""Documented options of a repository of which a share says something."""


def one_line(foreign: str, limit: int = MAX_LINE) -> str:
    """Return foreign text as one line without control characters, cut to ``limit`` characters."""
    line = " ".join(legible(foreign[: 4 * limit]).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}{ELLIPSIS}"


def where(place: Place) -> str:
    """Return the place as ``docs/a.md:12``."""
    return f"{one_line(place.path)}:{place.line}"


def who(origin: Origin | None) -> str:
    """Return the date, author and commit: ``2026-01-20 by Ann (3f2a91c)``; empty if ``origin`` is ``None``."""
    if origin is None:
        return ""
    if not origin.is_committed:
        return "not committed yet"
    day = f"{origin.written_at:%Y-%m-%d}" if origin.written_at else ""
    author = f"by {one_line(origin.author, 60)}" if origin.author else ""
    return " ".join(filter(None, (day, author, f"({origin.revision[:9]})")))


def remarks(finding: Finding) -> Iterator[str]:
    """Yield sentences that say which side changed since both agreed, which side is newer, and since when."""
    if finding.moved:
        side = finding.first.side if finding.moved == "first" else finding.second.side
        yield f"both said {one_line(finding.was)}; then the {side} changed"
    if finding.newer:
        place = finding.first if finding.newer == "first" else finding.second
        yield f"the {place.side} is newer" + (f", since {_when(finding.since, place)}" if finding.since else "")
    elif finding.since:
        yield f"written at once, {_when(finding.since, finding.first)}"


def _when(since: datetime, place: Place) -> str:
    """Return the day of a line, and the first line of its commit's message."""
    subject = one_line(place.origin.subject, 72) if place.origin else ""
    return f"{since:%Y-%m-%d}" + (f" ({subject})" if subject else "")


LITTLE = 0.3
"""Below this share of held options a clean report says little."""


def coverage_sentence(coverage: Coverage) -> str:
    """Return sentences that count the documented options (compared, held, not compared and why) and other values."""
    count, names = sum(coverage.unread.values()), ", ".join(sorted(coverage.unread))
    share = f"{count:,} of {count + coverage.programs:,}"
    unread = f"{share} programs are in languages that are not read ({names}); " if count else ""
    values = f"{coverage.agree:,} of {coverage.read:,} values that are read are held to the code"
    if stated := {kind: counts for kind, counts in coverage.others.items() if counts[0]}:
        silent = stated.pop("statuses", None)
        watched = ", ".join(f"{known:,} of {count:,} {kind}" for kind, (count, known) in stated.items())
        values += f"; beside values, the code has as written {watched}: only these can --diff report" if watched else ""
        values += f"; {silent[0]:,} statuses are stated, of which nothing is reported" if silent else ""
    if not coverage.documented:
        return unread + values
    left = coverage.documented - coverage.options_compared
    why = ", ".join(f"of {count:,} {reason}" for reason, count in coverage.options_not_compared.items())
    differ = coverage.options_compared - coverage.options_held
    said = (
        f"{coverage.options_compared:,} of {coverage.documented:,} documented options are compared, "
        f"{coverage.options_held:,} held"
        + (f"; {differ:,} differ from what code gives that name (--list)" if differ else "")
        + (f"; {left:,} are not: {why}" if left else "")
    )
    held = coverage.held_share
    little = held is not None and held < LITTLE and coverage.documented > MANY
    return f"{unread}{said}; {values}" + (
        "; most options are registered in a way that is not read: that nothing is reported says little"
        if little
        else ""
    )


def listing(report: Report) -> str:
    """Return a line for each documented option, and then for each value that was read and is not held."""
    count = len(report.not_held)
    said = f"{count:,} {'value is' if count == 1 else 'values are'} read and not held to the code:\n" if count else ""
    return f"{_table(report.options)}{said}{_table(report.not_held)}"


def _table(options: Sequence[DocumentedOption]) -> str:
    """Return options by line: place, name, value, state, reason."""
    rows = [
        (f"{one_line(one.path)}:{one.line}", one_line(one.name, 60), one_line(one.value, 40) or "-",
         one.state.replace("_", " "), "; ".join(filter(None, (one_line(one.reason), one_line(one.code)))))
        for one in options
    ]  # fmt: skip
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(4)]
    return "".join(
        "  ".join((*(text.ljust(width) for text, width in zip(row, widths, strict=False)), row[4])).rstrip() + "\n"
        for row in rows
    )


def summary(report: Report) -> str:
    """Return a sentence about the findings of a run."""
    count = len(report.findings)
    if report.is_against_lock and report.coverage and not report.files:
        return f"{report.coverage.agree:,} agreements of the lock hold, {report.seconds:.1f} s"
    new = "new " if report.is_against_baseline or report.compared else ""
    found = f"{count or 'no'} {new}disagreement{'' if count == 1 else 's'}"
    between = f" between {report.compared[0]} and {report.compared[1]}" if report.compared else ""
    aside = "; ".join(_aside(report))
    return f"{found}{between} in {report.files:,} files, {report.seconds:.1f} s" + (f" ({aside})" if aside else "")


def _aside(report: Report) -> Iterator[str]:
    if report.known:
        yield f"{report.known} known from the baseline"
    if report.ignored:
        yield f"{report.ignored} ignored by drift-ignore"
    if report.failed:
        yield f"{len(report.failed)} files not read"


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
    yield from (f"  {remark}" for remark in remarks(finding))
    for place in finding.also:
        yield f"  also {where(place)}  {one_line(place.value)}"
