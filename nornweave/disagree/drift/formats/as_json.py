"""Write a report as one JSON document."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime
from typing import Any

from nornweave.disagree.drift.records import Report

SCHEMA_VERSION = 1


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
