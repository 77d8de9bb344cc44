"""A source of meeting transcripts: WebVTT, SubRip and lines of ``Speaker: text``, with their cues and speakers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath

from nornweave.connect.conversation import clean, clean_name, conversation
from nornweave.connect.files.exports import FolderSource, split_speaker
from nornweave.core.errors import DocumentError, DocumentSkipped
from nornweave.core.text.decode import decode
from nornweave.core.text.inline_markup import unescaped
from nornweave.core.types import Document, Entry, Message, SourceId

_CLOCK = r"(?:\d{1,3}:)?\d{1,2}:\d{2}(?:[.,]\d{1,6})?"
_TIMING = re.compile(rf"\s*({_CLOCK})\s*-->\s*({_CLOCK})(?:\s.*)?")
_VOICE = re.compile(r"<v(?:\.[^\s<>]*)?\s+([^<>]*)>")
_VTT_TAG = re.compile(r"<[^<>]*>")
# SubRip does not escape "<", so only its own tags are taken for tags.
_SRT_TAG = re.compile(r"</?(?:i|b|u|s|font)\b[^<>]*>|\{\\an?\d\}", re.IGNORECASE)
_STAMP = re.compile(rf"\s*[\[(]?({_CLOCK})[\])]?\s*(?:-\s+)?")
# "Alice Smith  0:12" and "Alice Smith (00:01:02):", a line that says who speaks in the following ones.
_STAMPED_NAME = re.compile(
    rf"\s*(?P<name>[^\s\d\[(:][^:\[(\n]{{0,47}}?)\s*[\[(\s](?P<clock>{_CLOCK})[\])]?\s*:?\s*(?P<said>.*)"
)


def parse_vtt(text: str) -> Iterator[Message]:
    """Parse WebVTT. Comments, styles and regions are left out.

    Raises:
        DocumentError: the first line does not have ``WEBVTT``, or there is no cue with times.
    """
    if not re.match(r"WEBVTT(?:[ \t\n]|$)", text):
        first = text.split("\n", 1)[0][:40]
        raise DocumentError(f"line 1 is {first!r}; a .vtt file starts with 'WEBVTT'. Rename it, or export it again")
    blocks = _blocks(text)
    header = next(blocks, [])
    start = next((number for number, line in enumerate(header) if "-->" in line), None)
    cues = [header[start:]] if start is not None else []
    cues += [block for block in blocks if not re.match(r"(?:NOTE|STYLE|REGION)(?:\s|$)", block[0])]
    return _said_in_cues(cues, ".vtt")


def parse_srt(text: str) -> Iterator[Message]:
    """Parse SubRip.

    Raises:
        DocumentError: there is no cue with times.
    """
    return _said_in_cues(_blocks(text), ".srt")


def _blocks(text: str) -> Iterator[list[str]]:
    block: list[str] = []
    for line in text.split("\n"):
        if line.strip():
            block.append(line)
        elif block:
            yield block
            block = []
    if block:
        yield block


_ROLLING_LINES = 8  # lines on the screen at once, at most
_ROLLING = 0.3  # least share of cues that repeat shown text


@dataclass(slots=True)
class _Cue:
    id: str
    start: float
    end: float
    lines: list[str]


def _cues(blocks: Iterable[list[str]]) -> list[_Cue]:
    """Parse cues. A block without times continues the previous cue, because SubRip allows blank lines inside a cue."""
    cues: list[_Cue] = []
    for block in blocks:
        at = next((number for number, line in enumerate(block[:2]) if _TIMING.fullmatch(line)), None)
        if at is None:
            if cues:
                cues[-1].lines += block
            continue
        timing = _TIMING.fullmatch(block[at])
        if timing is not None:
            name = clean_name(block[0]) if at else str(len(cues) + 1)
            cues.append(_Cue(name, seconds(timing[1]), seconds(timing[2]), block[at + 1 :]))
    return cues


def _said_in_cues(blocks: Iterable[list[str]], kind: str) -> Iterator[Message]:
    cues = _cues(blocks)
    if not cues:
        expected = "00:00:01.000 --> 00:00:04.000" if kind == ".vtt" else "00:00:01,000 --> 00:00:04,000"
        raise DocumentError(f"no cue with times; a {kind} file has lines like '{expected}'. Export it again")
    return _by_speaker(_unroll(cues, kind), kind)


def _unroll(cues: Sequence[_Cue], kind: str) -> Sequence[_Cue]:
    """Remove repeated text from rolling captions. Their cues repeat earlier lines or grow word by word."""
    shown = [[" ".join(_without_tags(line, kind).split()) for line in cue.lines] for cue in cues]
    shown = [[line for line in lines if line] for lines in shown]
    fresh = [lines if number == 0 else _fresh(shown[number - 1], lines) for number, lines in enumerate(shown)]
    repeated = sum(len(new) < len(lines) or new[:1] != lines[:1] for new, lines in zip(fresh, shown, strict=True))
    if repeated < max(2, _ROLLING * len(cues)):
        return cues  # people say a word twice now and then
    return [replace(cue, lines=list(lines)) for cue, lines in zip(cues, fresh, strict=True)]


def _fresh(before: Sequence[str], lines: Sequence[str]) -> Sequence[str]:
    """Return the lines of a cue that the previous cue does not have."""
    for count in range(min(len(before), len(lines), _ROLLING_LINES), 0, -1):
        if list(before[-count:]) == list(lines[:count]):
            return lines[count:]
    if before and lines and lines[0].startswith(f"{before[-1]} "):
        return [lines[0].removeprefix(before[-1]).strip(), *lines[1:]]
    return lines


def _by_speaker(cues: Iterable[_Cue], kind: str) -> Iterator[Message]:
    speaker = ""
    for cue in cues:
        for name, body in _voices(cue.lines, kind):
            speaker = name or speaker  # long turns are spread over cues, and only the first may be labelled
            if body:
                yield Message(id=cue.id, speaker=speaker, body=body, offset=cue.start, end_offset=cue.end)


def _voices(lines: Iterable[str], kind: str) -> Iterator[tuple[str, str]]:
    """Split the text of a cue where the speaker changes. An empty name means that the speaker is unknown."""
    name, said = "", list[str]()
    for line in lines:
        for voice, part in _split_voices(line, kind):
            plain = _without_tags(part, kind)
            named = None if voice else split_speaker(plain)
            if voice or named:
                yield name, clean("\n".join(said))
                name, said = (
                    (clean_name(_without_tags(voice, kind)), [plain]) if named is None else (named[0], [named[1]])
                )
            else:
                said.append(plain)
    yield name, clean("\n".join(said))


def _split_voices(line: str, kind: str) -> Iterator[tuple[str, str]]:
    """Split a line at its voice tags into speaker and text. Only a ``kind`` of ``.vtt`` has such tags."""
    if kind != ".vtt":
        yield "", line
        return
    parts = _VOICE.split(line)
    if parts[0].strip():
        yield "", parts[0]
    yield from zip(parts[1::2], parts[2::2], strict=True)


def _without_tags(text: str, kind: str) -> str:
    return unescaped(_VTT_TAG.sub("", text)) if kind == ".vtt" else _SRT_TAG.sub("", text)


def parse_plain(text: str) -> Iterator[Message]:
    """Parse lines such as ``[00:01:02] Speaker: text``. A line without a speaker continues the previous one.

    Lines before the first speaker get an unknown speaker. The ids are line numbers from 1.
    """
    current: tuple[int, str, float | None] | None = None
    lines: list[str] = []
    for number, line in enumerate(text.split("\n"), start=1):
        start = _turn_start(line)
        if start is not None or (current is None and line.strip()):
            yield from _turn(current, lines)
            speaker, offset, said = start or ("", None, line)
            current, lines = (number, speaker or (current[1] if current else ""), offset), [said]
        else:
            lines.append(line)
    yield from _turn(current, lines)


def _turn(start: tuple[int, str, float | None] | None, lines: list[str]) -> Iterator[Message]:
    body = clean("\n".join(line.strip() for line in lines))
    if start is not None and body:
        number, speaker, offset = start
        yield Message(id=str(number), speaker=clean_name(speaker), body=body, offset=offset)


def _turn_start(line: str) -> tuple[str, float | None, str] | None:
    """Return the speaker, the time offset and the text if a line begins a turn, else ``None``.

    The speaker is empty if the line has a time stamp but no name.
    """
    stamp = _STAMP.match(line)
    rest = line[stamp.end() :] if stamp else line
    offset = seconds(stamp[1]) if stamp else None
    stamped = None if stamp else _STAMPED_NAME.fullmatch(line)
    if stamped is not None and split_speaker(f"{stamped['name'].strip()}:") is not None:
        return stamped["name"].strip(), seconds(stamped["clock"]), stamped["said"]
    named = split_speaker(rest)
    if named is not None:
        return named[0], offset, named[1]
    return ("", offset, rest) if stamp else None


def seconds(clock: str) -> float:
    """Return the seconds of a time ``[hh:]mm:ss[.fraction]``."""
    total = 0.0
    for part in clock.replace(",", ".").split(":"):
        total = total * 60 + float(part)
    return total


_READERS = {".vtt": parse_vtt, ".srt": parse_srt, ".txt": parse_plain}
# 2026-01-16-standup, standup_20260116, GMT20260116-143000_Recording, 2026-01-16T14-30 retro
_DATE = re.compile(
    r"(?<!\d)((?:19|20)\d{2})([-_.]?)(\d{2})\2(\d{2})"
    r"(?:[T_ -]{1,3}([01]\d|2[0-3])[-:.h]?([0-5]\d)(?:[-:.]?([0-5]\d))?)?(?!\d)"
)
# Repeat the speaker's name after a pause and at intervals, so that every passage names its speaker.
_PAUSE = 30.0
_NAME_AGAIN_CHARACTERS = 600


def parse_transcript(source_id: SourceId, entry: Entry, raw: bytes) -> Document:
    """Build the document of a transcript. If the file's name has a date, the messages get this date.

    Raises:
        DocumentError: the file is binary or empty, or is not in the format that its name says. The message says what
            was expected.
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


def _messages(said: Iterable[Message], began: datetime | None) -> Iterator[Message]:
    before: Message | None = None
    unnamed = 0
    for each in said:
        goes_on = before is not None and _goes_on(before, each) and unnamed < _NAME_AGAIN_CHARACTERS
        unnamed = unnamed + len(each.body) if goes_on else 0
        before = each
        moment = began + timedelta(seconds=each.offset or 0.0) if began is not None else None
        yield replace(each, timestamp=moment, is_labelled=not goes_on)


def _goes_on(before: Message, after: Message) -> bool:
    """Tell whether a cue continues the previous turn. A line of a plain file is always a complete turn."""
    if before.speaker != after.speaker or before.end_offset is None or after.offset is None:
        return False
    return after.offset - before.end_offset <= _PAUSE


def date_of(path: PurePosixPath) -> datetime | None:
    """Return the date in a path, with the time if there is one; ``None`` without a date.

    The file's name is searched before its folders.
    """
    for part in reversed(path.parts):
        for match in _DATE.finditer(part):
            year, _, month, day, hour, minute, second = (part or "0" for part in match.groups())
            try:
                return datetime(int(year), int(month), int(day), int(hour), int(minute), int(second), tzinfo=UTC)
            except ValueError:
                continue
    return None


class TranscriptSource(FolderSource):
    """A folder of transcripts, including its subfolders."""

    version = "transcripts-2"
    suffixes = tuple(_READERS)
    parser = staticmethod(parse_transcript)
