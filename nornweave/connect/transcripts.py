"""Read who said what from text: meeting transcripts, which are a source, and logs of chats.

Transcripts are WebVTT, SubRip and lines of ``Speaker: text``, with their cues. Logs are WhatsApp's exports in the date
forms of its languages, IRC logs, lines with a time; a line without one goes on with the message above it, in WhatsApp's
exports also after a blank line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from pathlib import PurePosixPath

from nornweave.connect.conversation import clean, clean_name, conversation, parse_time
from nornweave.connect.files.source import FolderSource, split_speaker
from nornweave.core.errors import DocumentError, DocumentSkipped
from nornweave.core.text.decode import decode
from nornweave.core.text.inline_markup import unescaped
from nornweave.core.types import Document, Entry, Message, SourceId

_MARKS = str.maketrans("", "", "\u200e\u200f\u202a\u202b\u202c\ufeff")
_MOMENT = re.compile(
    r"\s*[\[(]?(\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,6})?)?(?:Z|[+-]\d{2}:?\d{2}| UTC)?)?)[\])]?"
    r"(?:\s*-\s+|\s*,?\s+)(?=\S)"
)
_CLOCK = re.compile(r"\s*[\[(]?([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?[\])]?\s+(?:-\s+)?(?=\S)")
# "[14/10/2025, 15:34:09] ", "10/14/25, 3:34 PM - ", "14.10.25, 15:34 - ", "2025. 10. 14. 오후 3:34, "
_LOCAL = re.compile(
    r"\s*\[?(\d{1,4})([./-])\s?(\d{1,2})\2\s?(\d{1,4})\.?,?\s+([^\W\d_]{1,3}\.?\s?)?(\d{1,2})[:.](\d{2})(?:[:.](\d{2}))?"
    r"(?:\s?([^\W\d_](?:\.\s?)?[^\W\d_]\.?))?(?:\]\s*|\s+[-–]\s+|,\s+|\s*:\s+)(?=\S)"
)
_AFTERNOON = frozenset(("pm", "下午", "오후", "午後", "μμ", "μ", "du", "nm", "ch"))
_MORNING = frozenset(("am", "上午", "오전", "午前", "πμ", "de", "fm", "sa"))
_IN_ANGLES = re.compile(r"<[ @+%&~!]*([^<>\s][^<>\n]{0,47})>\s*(.*)", re.DOTALL)
_ACTION = re.compile(r"\*\s+(\S{1,48})\s+(.+)", re.DOTALL)
_NOTICE = re.compile(r"(?:-!-|\*{3}|-->|<--|--|→|←)(?:\s|$)")
_DAY = re.compile(r"(?:---|\*{3,4}|Session).*?\b([A-Z][a-z]{2}) +(\d{1,2})(?: \d\d:\d\d(?::\d\d)?)?,? (\d{4})")
_NO_TEXT = re.compile(r"<[^<>\n]{3,40}>")  # <Media omitted>, in any language
_LABEL = re.compile(r"([^:\n]{1,60}?):\s+(.*)", re.DOTALL)


LEAST_MESSAGES = 3
"""Fewer messages do not show that a text is a chat."""


@dataclass(slots=True)
class _Line:
    """The first line of a message, and the lines that continue the message.

    ``parts`` has the three numbers of a date as written, and ``clock`` the time of day in seconds since midnight.
    """

    number: int
    said: list[str]
    moment: datetime | None = None
    parts: tuple[int, int, int] | None = None
    clock: int | None = None
    day: date | None = None


def is_chat(text: str) -> bool:
    """Tell whether a text is the log of a chat: most lines begin messages, which have a time and several speakers."""
    try:
        messages, notices = read_log(text, None)
    except ValueError:
        return False
    stamped = [each for each in messages if each.speaker and (each.timestamp or each.offset is not None)]
    lines = sum(bool(line.strip()) for line in text.splitlines())
    return len(stamped) >= LEAST_MESSAGES and 2 * (len(stamped) + notices) > lines


def read_log(text: str, began: date | None) -> tuple[list[Message], int]:
    """Read the messages of a log in order.

    Args:
        began: the day in the file's name, used for messages that have only a time of day; ``None`` if there is none.

    Returns:
        The messages, and the number of notices that are left out, such as who joined or what is not in the export.
    """
    lines = list(_lines(text, began))
    local = [line for line in lines if line.parts]
    order = _date_order(local)
    messages: list[Message] = []
    notices = 0
    for line in lines:
        moment, offset = line.moment, None
        if line.parts:
            moment = _local(line, order)
        elif line.clock is not None and line.day is not None:
            moment = datetime.combine(line.day, time(), UTC) + timedelta(seconds=line.clock)
        elif line.clock is not None:
            offset = float(line.clock)
        is_stamped = moment is not None or offset is not None
        said = _split_speaker("\n".join(line.said), is_export=line.parts is not None, is_stamped=is_stamped)
        if said is None:
            notices += 1
        elif body := clean(said[1]):
            name = clean_name(said[0])
            messages.append(Message(id=str(line.number), speaker=name, body=body, timestamp=moment, offset=offset))
    return messages, notices


def _lines(text: str, began: date | None) -> Iterator[_Line]:
    """Yield the lines of each message. ``began`` is the day of its first lines; ``None`` if it is unknown."""
    current: _Line | None = None
    is_apart = False
    for number, line in enumerate(text.translate(_MARKS).split("\n"), 1):
        if not line.strip():
            is_apart = True
            if current is not None:
                current.said.append("")
            continue
        if day := _DAY.match(line):
            began = _named_day(*day.groups()) or began
            continue
        begun = _split_moment(line, number, began)
        if begun is None and current is not None and not (is_apart and current.parts is None) and _has_time(current):
            current.said.append(line)
            continue
        if current is not None:
            yield current
        current, is_apart = begun or _Line(number, [line]), False
    if current is not None:
        yield current


def _has_time(line: _Line) -> bool:
    return line.moment is not None or line.parts is not None or line.clock is not None


def _named_day(month: str, day: str, year: str) -> date | None:
    moment = parse_time(f"{day} {month} {year} 00:00:00 +0000")
    return moment.date() if moment else None


def _split_moment(line: str, number: int, day: date | None) -> _Line | None:
    """Split off the date and time, or the time of day, at a line's start; ``None`` if there is none."""
    if (local := _LOCAL.match(line)) and (clock := _seconds(local)) is not None:
        return _Line(number, [line[local.end() :]], parts=(int(local[1]), int(local[3]), int(local[4])), clock=clock)
    stamped = _MOMENT.match(line)
    if stamped is not None and (moment := parse_time(stamped[1])) is not None:
        return _Line(number, [line[stamped.end() :]], moment=moment)
    at = _CLOCK.match(line)
    if at is None:
        return None
    clock = int(at[1]) * 3600 + int(at[2]) * 60 + int(at[3] or 0)
    return _Line(number, [line[at.end() :]], clock=clock, day=day)


def _seconds(local: re.Match[str]) -> int | None:
    """Return the time of day in seconds; ``None`` if it is invalid."""
    half = "".join(filter(str.isalnum, (local[9] or local[5] or "").casefold()))  # or a word: "à 15:34"
    hour, minute, second = int(local[6]), int(local[7]), int(local[8] or 0)
    if hour > 23 or minute > 59 or second > 59:
        return None
    if half in _AFTERNOON | _MORNING and hour <= 12:
        hour = hour % 12 + 12 * (half in _AFTERNOON)
    return hour * 3600 + minute * 60 + second


_ORDERS = ((2, 1, 0), (2, 0, 1), (0, 1, 2))  # where year, month and day stand: 14/10/2025, 10/14/2025, 2025/10/14


def _date_order(lines: Sequence[_Line]) -> tuple[int, int, int]:
    """Return the order of day, month and year in which the most dates are valid and ascending.

    If several orders are equally good, the day is first.
    """

    def wrong(order: tuple[int, int, int]) -> tuple[int, int]:
        moments = [_local(line, order) for line in lines]
        known = [moment for moment in moments if moment is not None]
        return len(moments) - len(known), sum(after < before for before, after in pairwise(known))

    return min(_ORDERS, key=wrong)


def _local(line: _Line, order: tuple[int, int, int]) -> datetime | None:
    parts = line.parts or (0, 0, 0)
    year, month, day = (parts[place] for place in order)
    if (order[0] == 0) != (parts[0] > 31):  # a year of four digits stands first, or last
        return None
    year += 2000 * (year < 100) - 543 * (year > 2400)  # of the Buddhist era
    try:
        return datetime(year, month, day, tzinfo=UTC) + timedelta(seconds=line.clock or 0)
    except ValueError:
        return None


def _split_speaker(text: str, *, is_export: bool, is_stamped: bool) -> tuple[str, str] | None:
    """Split the rest of a line into speaker and text; ``None`` for a notice.

    If ``is_export`` (of a messenger), any text before a colon is a name, and a line without a name is a notice. If
    ``is_stamped``, the line begins with a time, and the names and notices of chat programs are recognised.
    """
    plain = text.lstrip()
    if is_stamped and (match := _IN_ANGLES.match(plain) or _ACTION.match(plain)):
        return match[1], match[2]
    if is_stamped and _NOTICE.match(plain):
        return None
    if is_stamped and "\t" in plain:  # WeeChat: prefix, tab, text
        name, _, said = plain.partition("\t")
        if _NOTICE.match(f"{name.strip()} "):
            return None
        action = _ACTION.match(f"* {said}") if name.strip() == "*" else None
        return (action[1], action[2]) if action else (name.strip(" @+%&~!"), said)
    if is_export:
        match = _LABEL.match(plain)
        return (
            None
            if match is None or _NO_TEXT.fullmatch(match[2].strip())
            else (match[1].strip("~ \u202f\xa0"), match[2])
        )
    speaker, said = split_speaker(text) or ("", text)
    return (speaker, said) if clean(said) else ("", text)  # "Open questions:" is all that the line says


_CUE_CLOCK = r"(?:\d{1,3}:)?\d{1,2}:\d{2}(?:[.,]\d{1,6})?"
_TIMING = re.compile(rf"\s*({_CUE_CLOCK})\s*-->\s*({_CUE_CLOCK})(?:\s.*)?")
_VOICE = re.compile(r"<v(?:\.[^\s<>]*)?\s+([^<>]*)>")
_VTT_TAG = re.compile(r"<[^<>]*>")
# SubRip does not escape "<", so only its own tags are taken for tags.
_SRT_TAG = re.compile(r"</?(?:i|b|u|s|font)\b[^<>]*>|\{\\an?\d\}", re.IGNORECASE)
_STAMP = re.compile(rf"\s*[\[(]?({_CUE_CLOCK})[\])]?\s*(?:-\s+)?")
# "Alice Smith  0:12" and "Alice Smith (00:01:02):", a line that says who speaks in the following ones.
_STAMPED_NAME = re.compile(
    rf"\s*(?P<name>[^\s\d\[(:][^:\[(\n]{{0,47}}?)\s*[\[(\s](?P<clock>{_CUE_CLOCK})[\])]?\s*:?\s*(?P<said>.*)"
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
