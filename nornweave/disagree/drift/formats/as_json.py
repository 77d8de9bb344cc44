"""Write a report as one JSON document."""

from __future__ import annotations

import json
from typing import Any

from nornweave.core.types import Origin
from nornweave.disagree.drift.records import Finding, Place, Report

SCHEMA_VERSION = 1


def as_json(report: Report) -> str:
    """Return the report as one JSON document on one line."""
    return json.dumps(report_document(report), ensure_ascii=False) + "\n"


def report_document(report: Report) -> dict[str, Any]:
    """Return the report as JSON values."""
    return {
        "schema_version": SCHEMA_VERSION,
        "root": report.root,
        "compared": list(report.compared) if report.compared else None,
        "findings": [_finding(one) for one in report.findings],
        "existing": [_finding(one) for one in report.existing],
        "counts": {
            "findings": len(report.findings),
            "known": report.known,
            "ignored": report.ignored,
            "files": report.files,
            "facts": dict(report.facts),
        },
        "coverage": report.coverage
        and {
            "read": report.coverage.read,
            "compared": report.coverage.compared,
            "agree": report.coverage.agree,
            "not_compared": dict(report.coverage.not_compared),
        },
        "failed": [{"path": one.path, "reason": one.reason} for one in report.failed],
        "notices": list(report.notices),
        "seconds": report.seconds,
    }


def _finding(finding: Finding) -> dict[str, Any]:
    suggestion = finding.suggestion
    return {
        "rule": finding.rule,
        "name": finding.name,
        "attribute": finding.attribute,
        "message": finding.message,
        "fingerprint": finding.fingerprint,
        "confidence": finding.confidence,
        "first": _place(finding.first),
        "second": _place(finding.second),
        "also": [_place(one) for one in finding.also],
        "newer": finding.newer,
        "since": finding.since.isoformat() if finding.since else None,
        "suggestion": suggestion
        and {
            "path": suggestion.path,
            "line": suggestion.line,
            "before": suggestion.before,
            "after": suggestion.after,
        },
        "moved": finding.moved,
        "was": finding.was or None,
        "verified": finding.verified,
        "verified_reason": finding.verified_reason,
    }


def _place(place: Place) -> dict[str, Any]:
    return {
        "path": place.path,
        "line": place.line,
        "side": place.side,
        "value": place.value,
        "text": place.text,
        "origin": _origin(place.origin),
    }


def _origin(origin: Origin | None) -> dict[str, Any] | None:
    if origin is None:
        return None
    return {
        "revision": origin.revision or None,
        "author": origin.author or None,
        "written_at": origin.written_at.isoformat() if origin.written_at else None,
    }
