"""Write reports for a terminal, for programs and for code hosts; foreign text is escaped for its reader."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nornweave.disagree.drift.formats.as_github import github
from nornweave.disagree.drift.formats.as_json import as_json
from nornweave.disagree.drift.formats.as_markdown import markdown
from nornweave.disagree.drift.formats.as_sarif import sarif
from nornweave.disagree.drift.formats.as_text import text
from nornweave.disagree.drift.records import Report

FORMATS: Mapping[str, Callable[[Report], str]] = {
    "text": text,
    "json": as_json,
    "sarif": sarif,
    "github": github,
    "markdown": markdown,
}
"""Name of a format → what writes it; each ends with a line feed unless it is empty."""
