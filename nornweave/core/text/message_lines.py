"""The text form of messages in a conversation, for writing and for reading.

Only the first line of a message begins at the margin, with its speaker or a dash. So nothing in the text of a message
can look like the beginning of another one.
"""

from __future__ import annotations

import re

INDENT = "  "
"""Before the lines on which a message, or the turn of a speaker, goes on."""
NOBODY = "— "
"""Before a message that nobody is known to have said."""
_COLON = ": "
_LINE_START = re.compile(r"\n(?=[^\n])")


def line_of(speaker: str, body: str) -> str:
    """Return the text of a message: ``speaker: body``, or ``— body`` if the speaker is unknown."""
    return f"{label_of(speaker)}{indented_body(body)}"


def label_of(speaker: str) -> str:
    """Return the label in front of a message's text: ``speaker: ``, or ``— `` if the speaker is unknown."""
    return f"{speaker}{_COLON}" if speaker else NOBODY


def indented_body(body: str) -> str:
    """Return the text of a message with all lines indented except the first."""
    return _LINE_START.sub(f"\n{INDENT}", body)


def split_line(line: str) -> tuple[str, str]:
    """Split a line into speaker and text. The speaker is empty if unknown or if the line continues a message."""
    speaker, colon, said = line.partition(_COLON)
    return (speaker, said) if colon and not line[:1].isspace() and not line.startswith(NOBODY) else ("", line)
