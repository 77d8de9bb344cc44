"""A source of meeting transcripts: ``.vtt``, ``.srt`` and plain text, one document per file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath

from nornweave.connect.conversation import RawMessage, conversation
from nornweave.connect.exports.folder import FolderSource
from nornweave.connect.transcripts.subtitles import Said, parse_plain, parse_srt, parse_vtt
from nornweave.core.errors import DocumentSkipped
from nornweave.core.text.decode import decode
from nornweave.core.types import Document, Entry, SourceId

_READERS = {".vtt": parse_vtt, ".srt": parse_srt, ".txt": parse_plain}
# 2026-01-16-standup, standup_20260116, GMT20260116-143000_Recording, 2026-01-16T14-30 retro
_DATE = re.compile(
    r"(?<!\d)((?:19|20)\d{2})([-_.]?)(\d{2})\2(\d{2})"
    r"(?:[T_ -]{1,3}([01]\d|2[0-3])[-:.h]?([0-5]\d)(?:[-:.]?([0-5]\d))?)?(?!\d)"
)
# A speaker who goes on is named again after a pause, or now and then, so that any stretch of text says who speaks.
_PAUSE = 30.0
_NAME_AGAIN_CHARACTERS = 600


def parse_transcript(source_id: SourceId, entry: Entry, raw: bytes) -> Document:
    """Build the document of a transcript; the date in the file's name, if any, gives its messages their times.

    Raises:
        DocumentError: binary, empty, or not what the file's name says; the message says what was expected.
    """
    text = decode(raw).replace("\r\n", "\n").replace("\r", "\n")
    path = PurePosixPath(entry.path)
    said = list(_READERS.get(path.suffix.lower(), parse_plain)(text))
    if not said:
        raise DocumentSkipped("nobody says anything in it; only cues without text")
    began = date_of(path)
    return conversation(
        source_id,
        entry,
        raw,
        list(_messages(said, began)),
        format="transcript",
        title=path.stem,
        metadata={"source_type": "transcripts"},
    )


def _messages(said: Iterable[Said], began: datetime | None) -> Iterator[RawMessage]:
    before: Said | None = None
    unnamed = 0
    for each in said:
        goes_on = before is not None and _goes_on(before, each) and unnamed < _NAME_AGAIN_CHARACTERS
        unnamed = unnamed + len(each.body) if goes_on else 0
        before = each
        yield RawMessage(
            id=each.id,
            speaker=each.speaker,
            body=each.body,
            timestamp=began + timedelta(seconds=each.offset or 0.0) if began is not None else None,
            offset=each.offset,
            end_offset=each.end_offset,
            labelled=not goes_on,
        )


def _goes_on(before: Said, after: Said) -> bool:
    """Say whether a cue continues the turn of the one before; lines of plain files are turns already."""
    if before.speaker != after.speaker or before.end_offset is None or after.offset is None:
        return False
    return after.offset - before.end_offset <= _PAUSE


def date_of(path: PurePosixPath) -> datetime | None:
    """Return the date, and the time if there is one, in a path; the file's name counts before its folders."""
    for part in reversed(path.parts):
        for match in _DATE.finditer(part):
            year, _, month, day, hour, minute, second = (part or "0" for part in match.groups())
            try:
                return datetime(int(year), int(month), int(day), int(hour), int(minute), int(second), tzinfo=UTC)
            except ValueError:
                continue
    return None


class TranscriptSource(FolderSource):
    """A folder of transcripts, searched with everything below it."""

    version = "transcripts-1"
    suffixes = tuple(_READERS)
    parser = staticmethod(parse_transcript)
