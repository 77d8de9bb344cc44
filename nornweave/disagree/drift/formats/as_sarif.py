"""Write a report as SARIF 2.1.0, which GitHub, GitLab and Azure DevOps read."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from nornweave import __version__
from nornweave.disagree.drift.formats.as_text import one_line, remarks
from nornweave.disagree.drift.records import GONE, RULES, STALE, DriftRule, Finding, Place, Report

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT = "%SRCROOT%"
FINGERPRINT = "nornweaveDrift/v1"
_ALL_RULES = (*dict.fromkeys(RULES.values()), GONE, STALE)
_PLACES = {rule.id: place for place, rule in enumerate(_ALL_RULES)}


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
