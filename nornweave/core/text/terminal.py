"""Consoles and log handlers that remove control characters from foreign text.

Documents, file names and messages of other programs are foreign text. On a terminal an escape sequence in them could
clear the screen or fill the clipboard, and text in square brackets would be taken for rich's markup. The commands print
through ``Terminal``, ``print_text`` and ``print_json``; log lines go through ``LogFormatter``.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import IO, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from nornweave.core.text.legible import UNSEEN, legible


class Terminal(Console):
    """A rich console that prints plain text. Markup, emoji codes and control characters in the text have no effect."""

    def __init__(self, file: IO[str] | None = None, *, stderr: bool = False, width: int | None = None) -> None:
        super().__init__(file=file, stderr=stderr, width=width, markup=False, emoji=False, highlight=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render as rich does. Remove control characters that are in the text, but not those that rich adds."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(legible(segment.text), segment.style)


class LogFormatter(logging.Formatter):
    """Formats a record without control characters. A traceback keeps its line ends."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record's line, and its traceback if it has one."""
        return legible(super().format(record))


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of JSON: time, level, logger, message and, if known, trace_id and exception."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as JSON, with invisible characters escaped."""
        document = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if trace_id := getattr(record, "trace_id", ""):
            document["trace_id"] = trace_id
        if record.exc_info:
            document["exception"] = self.formatException(record.exc_info)
        return json.dumps(document)


def configure_logging(
    environment: Mapping[str, str], *, line: str = "%(levelname)s %(message)s", added: logging.Filter | None = None
) -> None:
    """Send log records to stderr, from the level in ``LOG_LEVEL`` on.

    Args:
        environment: may have ``LOG_LEVEL`` (default ``WARNING``) and ``NORNWEAVE_LOG_FORMAT`` (``text`` or ``json``).
        line: the format of a line of text.
        added: adds further fields to records. If it is given, earlier handlers are replaced.
    """
    handler = logging.StreamHandler()
    as_json = environment.get("NORNWEAVE_LOG_FORMAT", "").strip().lower() == "json"
    handler.setFormatter(JsonFormatter() if as_json else LogFormatter(line))
    if added:
        handler.addFilter(added)
    level = environment.get("LOG_LEVEL", "WARNING").upper()
    logging.basicConfig(level=level, handlers=[handler], force=added is not None)


def print_text(text: str) -> None:
    """Print text on stdout without wrapping and without control characters."""
    sys.stdout.write(f"{legible(text)}\n")
    sys.stdout.flush()


def print_json(document: Any) -> None:
    """Print one JSON document on stdout. Control characters that JSON allows in strings are escaped."""
    sys.stdout.write(UNSEEN.sub(_escaped, json.dumps(document, ensure_ascii=False, default=str)) + "\n")
    sys.stdout.flush()


def _escaped(unseen: re.Match[str]) -> str:
    return json.dumps(unseen[0])[1:-1]
