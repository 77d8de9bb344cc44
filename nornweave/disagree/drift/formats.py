"""Write reports for a terminal, for programs and for code hosts; foreign text is escaped for its reader.

A terminal gets sentences that the other formats share. A comment for a pull request has foreign text in code spans and
fences only. Workflow commands of GitHub Actions are a warning at each documentation line. GitHub, GitLab and Azure
DevOps read SARIF 2.1.0. Programs read one JSON document.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any
from urllib.parse import quote

from nornweave import __version__
from nornweave.core.text.terminal import legible
from nornweave.core.types import Origin
from nornweave.disagree.drift.records import (
    GONE,
    RULES,
    STALE,
    Coverage,
    DocumentedOption,
    DriftRule,
    Finding,
    Place,
    Report,
)

MAX_LINE = 240
ELLIPSIS = "…"
MANY = 10
"""Documented options of a repository of which a share says something."""

MARKER = "<!-- nornweave drift -->"
"""First line of the comment: by it a later run finds the comment to replace."""
MAX_CHARACTERS = 60_000
"""GitHub takes 65,536 characters a comment."""

# ``%`` first: the others are written with it.
_IN_MESSAGES = (("%", "%25"), ("\r", "%0D"), ("\n", "%0A"))
_IN_PROPERTIES = (*_IN_MESSAGES, (":", "%3A"), (",", "%2C"))

SCHEMA_VERSION = 1

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT = "%SRCROOT%"
FINGERPRINT = "nornweaveDrift/v1"
_ALL_RULES = (*dict.fromkeys(RULES.values()), GONE, STALE)
_PLACES = {rule.id: place for place, rule in enumerate(_ALL_RULES)}


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
    blocks = ["\n".join(_text_finding(one)) for one in report.findings]
    lead = [coverage_sentence(report.coverage)] if report.coverage and report.files else []
    return "\n\n".join([*lead, *blocks, summary(report)]) + "\n"


def _text_finding(finding: Finding) -> Iterator[str]:
    yield f"{where(finding.second)}  {one_line(finding.name)}  [{finding.rule}, {finding.confidence:.2f}]"
    for place in (finding.second, finding.first):
        yield f"  {place.side:<13} {where(place)}  {one_line(place.value)}"
        yield f"    | {one_line(place.text)}"
        if said := who(place.origin):
            yield f"    {said}"
    yield from (f"  {remark}" for remark in remarks(finding))
    for place in finding.also:
        yield f"  also {where(place)}  {one_line(place.value)}"


def markdown(report: Report) -> str:
    """Return the report as Markdown, at most ``MAX_CHARACTERS`` long."""
    head = f"{MARKER}\n### Documentation drift\n\n{_capital(summary(report))}.\n"
    if report.coverage and report.files:
        head += f"\n{_capital(coverage_sentence(report.coverage))}.\n"
    parts, size = [head], len(head)
    for count, finding in enumerate(report.findings):
        block = "\n" + "\n".join(_markdown_finding(finding))
        if size + len(block) > MAX_CHARACTERS:
            parts.append(f"\n… and {len(report.findings) - count} more.\n")
            break
        parts.append(block)
        size += len(block)
    return "".join(parts)


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _markdown_finding(finding: Finding) -> Iterator[str]:
    yield f"#### {code(finding.name)} ({finding.rule.rpartition('/')[2]}, {finding.confidence:.0%})"
    yield ""
    yield f"- {_side(finding.second)}"
    yield f"- {_side(finding.first)}"
    for place in finding.also:
        yield f"- also {_side(place)}"
    yield from (f"- {code(remark)}" for remark in remarks(finding))
    yield ""
    if edited := _edited(finding):
        before, after = (_fenced(text) for text in (finding.second.text, edited))
        fence = "`" * (max((len(run) for run in re.findall("`+", before + after)), default=0) + 3)
        yield f"Suggested edit of {code(f'{finding.second.path}:{finding.second.line}')}:"
        yield ""
        yield f"{fence}diff\n-{before}\n+{after}\n{fence}"
        yield ""


def _edited(finding: Finding) -> str:
    """Return the page's line with the code's value; empty if the line does not have its own value exactly once."""
    stated, wanted = finding.second.value, finding.first.value
    there = re.split(rf"(?i)(?<![\w.,-])({re.escape(stated)})(?![\w-]|[.,]\d)", finding.second.text)
    if len(there) != 3 or not wanted or "not " in (stated[:4], wanted[:4]):
        return ""
    return there[0] + (wanted.capitalize() if there[1][:1].isupper() else wanted) + there[2]


def _side(place: Place) -> str:
    written = who(place.origin)
    return f"{place.side} {code(f'{place.path}:{place.line}')} says {code(place.value)}" + (
        f" — {code(written)}" if written else ""
    )


def _fenced(line: str) -> str:
    return legible(line).replace("\n", " ")


def code(foreign: str) -> str:
    """Return foreign text as a code span. The text cannot end the span."""
    text = one_line(foreign).replace("|", "\\|") if "|" in foreign else one_line(foreign)
    fence = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    blank = " " if text.startswith("`") or text.endswith("`") or not text else ""
    return f"{fence}{blank}{text}{blank}{fence}"


def github(report: Report) -> str:
    """Return one ``::warning`` line for each finding, and a ``::notice`` with the count."""
    lines = [_warning(one) for one in report.findings]
    return "\n".join([*lines, f"::notice title=nornweave drift::{escaped(summary(report))}"]) + "\n"


def _warning(finding: Finding) -> str:
    also = [f"also: {', '.join(where(place) for place in finding.also)}"] if finding.also else []
    message = "\n".join(one_line(line, 1_000) for line in (finding.message, *remarks(finding), *also))
    properties = {
        "file": one_line(finding.marked.path, 1_024),
        "line": str(finding.marked.line),
        "title": f"{finding.rule} {one_line(finding.name, 80)}",
    }
    named = ",".join(f"{name}={escaped(value, in_property=True)}" for name, value in properties.items())
    return f"::warning {named}::{escaped(message)}"


def escaped(text: str, *, in_property: bool = False) -> str:
    """Return a text in which the signs are escaped that would end a workflow command, or a property of it."""
    for character, code in _IN_PROPERTIES if in_property else _IN_MESSAGES:
        text = text.replace(character, code)
    return text


def as_json(report: Report) -> str:
    """Return the report as one JSON document on one line; records become objects of their fields."""
    said = asdict(report)
    for finding in said["findings"]:
        finding["was"] = finding["was"] or None
        for place in (finding["first"], finding["second"], *finding["also"]):
            place["origin"] = place["origin"] and {name: one or None for name, one in place["origin"].items()}
    counts: dict[str, Any] = {"findings": len(report.findings)}
    counts |= {name: said[name] for name in ("known", "ignored", "files", "facts")}
    names = ("root", "compared", "findings", "coverage", "options", "not_held", "failed", "notices", "seconds")
    document = {"schema_version": SCHEMA_VERSION, "counts": counts, **{name: said[name] for name in names}}
    return json.dumps(document, ensure_ascii=False, default=datetime.isoformat) + "\n"


def sarif(report: Report) -> str:
    """Return the report as a SARIF log of one run."""
    run = {
        "tool": {
            "driver": {
                "name": "NornWeave drift",
                "version": __version__,
                "semanticVersion": __version__,
                "rules": [_rule(rule) for rule in _ALL_RULES],
            }
        },
        "columnKind": "utf16CodeUnits",
        "originalUriBaseIds": {ROOT: {"description": {"text": "The folder that was looked at."}}},
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": _notifications(report)}],
        "results": [_result(one, _state(report)) for one in report.findings],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, ensure_ascii=False, indent=1) + "\n"


def _rule(rule: DriftRule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "name": rule.name,
        "shortDescription": {"text": rule.description},
        "fullDescription": {"text": f"{rule.description} One of them is wrong, or they speak about two things."},
        "help": {"text": "Correct the side that is wrong, or put drift-ignore in a comment at either line."},
        "defaultConfiguration": {"level": "warning"},
        # Of ten alarms on repositories that nobody had looked at six to nine were right: docs/drift.md.
        "properties": {"tags": ["documentation", "maintainability"], "precision": "medium"},
    }


def _state(report: Report) -> dict[str, str]:
    return {"baselineState": "new"} if report.is_against_baseline or report.compared else {}


def _result(finding: Finding, state: dict[str, str]) -> dict[str, Any]:
    notes = [one_line(finding.message, 1_000), *remarks(finding)]
    related = [_location(place, number) for number, place in enumerate((_context(finding), *finding.also), 1)]
    return {
        "ruleId": finding.rule,
        "ruleIndex": _PLACES[finding.rule],
        "level": "warning",
        "message": {"text": ". ".join(notes)},
        "locations": [_location(finding.marked)],
        "relatedLocations": related,
        "partialFingerprints": {FINGERPRINT: finding.fingerprint},
        "rank": round(100 * finding.confidence, 2),
        **state,
    }


def _context(finding: Finding) -> Place:
    return finding.second if finding.marked is finding.first else finding.first


def _location(place: Place, number: int | None = None) -> dict[str, Any]:
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": _artifact(place.path),
            "region": {"startLine": place.line, "snippet": {"text": one_line(place.text)}},
        }
    }
    if number is not None:
        location |= {"id": number, "message": {"text": f"{place.side} says {one_line(place.value)}"}}
    return location


def _artifact(path: str) -> dict[str, str]:
    return {"uri": quote(path, errors="replace"), "uriBaseId": ROOT}


def _notifications(report: Report) -> list[dict[str, Any]]:
    failed = [
        {
            "level": "warning",
            "message": {"text": f"not read: {one_line(one.reason)}"},
            "locations": [{"physicalLocation": {"artifactLocation": _artifact(one.path)}}],
        }
        for one in report.failed
    ]
    return [*failed, *({"level": "note", "message": {"text": notice}} for notice in report.notices)]


FORMATS: Mapping[str, Callable[[Report], str]] = {
    "text": text,
    "json": as_json,
    "sarif": sarif,
    "github": github,
    "markdown": markdown,
}
"""Name of a format → what writes it; each ends with a line feed unless it is empty."""
