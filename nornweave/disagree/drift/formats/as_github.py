"""Write a report as workflow commands of GitHub Actions: a warning at each documentation line."""

from __future__ import annotations

from nornweave.disagree.drift.formats.as_text import one_line, remarks, summary, where
from nornweave.disagree.drift.records import Finding, Report

# ``%`` first: the others are written with it.
_IN_MESSAGES = (("%", "%25"), ("\r", "%0D"), ("\n", "%0A"))
_IN_PROPERTIES = (*_IN_MESSAGES, (":", "%3A"), (",", "%2C"))


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
