"""Answers as the API shows them, for what remembers and judges them; and what of that is in the file."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from nornweave.ask.feedback import FILE
from nornweave.ask.views.answer import FusionResult

Lines = tuple[int, int] | None


def item(chunk_id: str, path: str = "a.py", lines: Lines = (1, 9), messages: Sequence[str] | None = None) -> Any:
    citation = {
        "domain_id": "code",
        "source_id": "payments",
        "source_path": path,
        "line_range": list(lines) if lines else None,
        "message_ids": list(messages) if messages else None,
    }
    return {"chunk_id": chunk_id, "score": {"value": 0.5, "signals": {}}, "citation": citation, "content": "secret"}


def document(query_id: str, *items: Any) -> FusionResult:
    shown = items or (item("c-1"), item("c-2"))
    return cast("FusionResult", {"query_id": query_id, "domains_queried": ["code"], "items": list(shown)})


def stored(file: Path, statement: str) -> Any:
    connection = sqlite3.connect(file)
    try:
        return connection.execute(statement).fetchall()
    finally:
        connection.close()


def remembered(folder: Path) -> list[str]:
    return [row[0] for row in stored(folder / FILE, "select query_id from shown order by number")]
