"""Write a report as a comment for a pull request; foreign text stands in code spans and fences only."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nornweave.core.text.legible import legible
from nornweave.disagree.drift.formats.as_text import coverage_sentence, one_line, remarks, summary, who
from nornweave.disagree.drift.records import Finding, Place, Report

MARKER = "<!-- nornweave drift -->"
"""First line of the comment: by it a later run finds the comment to replace."""
MAX_CHARACTERS = 60_000
"""GitHub takes 65,536 characters a comment."""


def markdown(report: Report) -> str:
    """Return the report as Markdown, at most ``MAX_CHARACTERS`` long."""
    head = f"{MARKER}\n### Documentation drift\n\n{_capital(summary(report))}.\n"
    if report.coverage and report.files:
        head += f"\n{_capital(coverage_sentence(report.coverage))}.\n"
    parts, size = [head], len(head)
    for count, finding in enumerate(report.findings):
        block = "\n" + "\n".join(_finding(finding))
        if size + len(block) > MAX_CHARACTERS:
            parts.append(f"\n… and {len(report.findings) - count} more.\n")
            break
        parts.append(block)
        size += len(block)
    return "".join(parts)


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _finding(finding: Finding) -> Iterator[str]:
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
