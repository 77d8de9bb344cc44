"""Read text logs of chats: WhatsApp's exports in the date forms of its languages, IRC logs, lines with a time.

A line without a time goes on with the message above it, in WhatsApp's exports also after a blank line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise

from nornweave.connect.conversation import clean, clean_name, parse_time
from nornweave.connect.files.exports import split_speaker
from nornweave.core.types import Message

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
