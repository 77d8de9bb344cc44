"""Messages for people: speaker, time and text."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from zlib import crc32

from api.pages.markup import Block, blocks_of
from nornweave.core.text.legible import lines_of
from nornweave.core.text.messages import INDENT, NOBODY, split_line

HUES = 6
_NO_NAME = frozenset("`\"'(){}[]<>=/#*|")


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageView:
    """A message, or lines before the first message, which have no speaker.

    Attributes:
        speaker: the name of the speaker; empty if unknown.
        letter: the letter shown as the avatar.
        hue: the colour of the avatar, the same number for the same speaker.
        time: the time of day in UTC; empty if unknown.
        blocks: the text, as markup.
        number: the number of its first line in the document.
        cited: whether it is in the cited part.
    """

    speaker: str
    letter: str
    hue: int
    blocks: tuple[Block, ...]
    number: int
    cited: bool
    time: str = ""


def messages_of(
    text: str, terms: Collection[str], *, first_line: int = 1, cited: range = range(0), ids: Sequence[str] = ()
) -> tuple[MessageView, ...]:
    """Return the messages of a text.

    Args:
        text: the text of a conversation.
        terms: the words to mark.
        first_line: the number of the text's first line.
        cited: the numbers of the cited lines.
        ids: the ids of the cited messages, or of all messages if no lines are cited. Ids of Slack give the time.
    """
    messages = tuple(_messages(text, terms, first_line, cited))
    dated = [message.number for message in messages if message.speaker and (message.cited or not cited)]
    if len(dated) != len(ids):
        return messages
    times = dict(zip(dated, map(_time_of, ids), strict=True))
    return tuple(replace(message, time=times.get(message.number, "")) for message in messages)


def _messages(text: str, terms: Collection[str], first_line: int, cited: range) -> Iterator[MessageView]:
    groups: list[tuple[int, str, list[str]]] = []
    for number, line in enumerate(lines_of(text), first_line):
        speaker, said = _spoken(line)
        if speaker or not groups or line.startswith(NOBODY):
            groups.append((number, speaker, [said.removeprefix(NOBODY)]))
        else:
            groups[-1][2].append(line.removeprefix(INDENT))
    for number, speaker, lines in groups:
        name = speaker.strip()
        yield MessageView(
            speaker=name,
            letter=name[:1].upper(),
            hue=crc32(name.casefold().encode()) % HUES,
            blocks=blocks_of("\n".join(lines), terms, first_line=number, breaks=True),
            number=number,
            cited=number < cited.stop and cited.start < number + len(lines),
        )


def _spoken(line: str) -> tuple[str, str]:
    """Return the speaker and the text of a line. The speaker is empty if the line does not begin with a name."""
    speaker, said = split_line(line)
    is_name = 0 < len(speaker) <= 40 and not set(speaker) & _NO_NAME
    return (speaker, said) if is_name and len(speaker.split()) <= 4 else ("", line)


def _time_of(message_id: str) -> str:
    """Return the time of a Slack message from its id (``1768211090.000100``); empty for other ids."""
    seconds, dot, fraction = message_id.partition(".")
    if not (dot and seconds.isdecimal() and fraction.isdecimal() and len(seconds) == 10):
        return ""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%H:%M")
