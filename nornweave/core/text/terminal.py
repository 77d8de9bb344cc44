"""Text for people: legible characters, names and numbers; consoles and logs without control characters.

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

LINE_ENDS = re.compile("\r\n?|[\v\f\x1c-\x1e\x85\u2028\u2029]")
# Control characters, marks that reverse the direction of text, and the tag characters that nobody sees but a model.
UNSEEN = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")

# Unicode's default ignorable code points, except those above, joiners and variation selectors.
JOINERS = "\u200c\u200d\ufe0e\ufe0f"
IGNORABLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff"
    "\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)


def legible(text: str) -> str:
    """Return foreign text without invisible characters or lone surrogates; its line ends are ``\\n``."""
    return UNSEEN.sub("", LINE_ENDS.sub("\n", text.encode("utf-8", "replace").decode()))


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is 1."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


_BETWEEN_WORDS = re.compile(r"[\s.-]+")


def field_key(name: str) -> str:
    """Return the name of a front matter field in the form for comparison: lower case, ``_`` between words."""
    return _BETWEEN_WORDS.sub("_", name.strip().lower())


def lines_of(text: str) -> list[str]:
    """Split a text into lines, without their ends, as ``spans.line_starts`` counts them."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


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
