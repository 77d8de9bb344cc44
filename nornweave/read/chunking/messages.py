"""``MESSAGE_BOUNDARY``: messages, small groups of them, and turns of transcripts.

A chunk never holds a part of one message together with another message. ``message_groups`` says which messages share a
chunk; a message above ``limit`` is cut at paragraphs, lines, sentences, and each piece carries its id.

Decide which messages share a chunk: small groups on one topic, turns of transcripts.

- Neighbours *on one topic* join while the group stays within ``GROUP_TOKENS``: messages of one thread, or messages
  outside threads at most ``GROUP_GAP`` apart (where times are unknown, neighbours count as close).
- A transcript has turns and pauses instead of topics: turns join up to ``GROUP_TOKENS``, longer ones are cut at cues,
  and a pause of more than ``TRANSCRIPT_GAP`` separates chunks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import timedelta
from typing import TypeAlias

from nornweave.core.text.dates import utc_text
from nornweave.core.text.messages import label_of, split_line
from nornweave.core.text.spans import TokenIndex, split, strip_lines
from nornweave.core.types import PERMALINKS, Chunk, Document, Message, Metadata, Span, freeze

VERSION = "messages-4"

# Earlier talk than this is another conversation, and would only lead the encoder astray.
CONTEXT_GAP = timedelta(hours=1)
CONTEXT_MESSAGES = 2
CONTEXT_TOKENS = 40
# About as many characters as CONTEXT_TOKENS of prose, for lines that no tokenizer has seen.
CONTEXT_CHARACTERS = 160

_CODE = re.compile(r"`[^`\n]+`|```")
_URL = re.compile(r"https?://\S")

# Measured on LoCoMo (2,868 turns, 805 questions, convex combination, nDCG@10 / recall within 1,000 tokens of results):
# one message a chunk .533 / .767, groups of 80 .601 / .783, of 160 .709 / .820, of 200 .715 / .807, of 256 .728 / .785.
# Larger groups always look better by rank, because each holds more; 160 is where a reader's budget finds most. It also
# leaves room for two lines of context in an encoder that reads 256 tokens.
GROUP_TOKENS = 160
GROUP_GAP = timedelta(minutes=15)
TRANSCRIPT_GAP = timedelta(seconds=30)
# How fast people speak; tells when somebody ended where only the start is noted.
CHARACTERS_PER_SECOND = 15


def chunk_messages(
    document: Document, index: TokenIndex, *, limit: int = 256, group_limit: int = 512
) -> Iterator[Chunk]:
    """Cut a conversation between its messages.

    Args:
        document: a conversation. Its messages cover all of its text.
        index: the token index of ``document.text``.
        limit: the maximum number of tokens of one message. A longer message is cut.
        group_limit: the maximum number of tokens of a group of messages.

    The context of a chunk consists of at most ``CONTEXT_MESSAGES`` earlier messages. In a thread these are the first
    message of the thread and the latest ones before the chunk. Otherwise they are the latest messages outside of
    threads within ``CONTEXT_GAP``. Chunk and context together have at most ``limit`` tokens, because encoders cut off a
    text of about this length. Context beyond the limit is left out.

    Yields:
        Chunks in order. Every message is in at least one chunk. A chunk holds whole messages, unless it is a piece of a
        long message.
    """
    talk = _Talk(document, index, limit)
    runs = group_messages(
        document.messages, index, is_transcript=document.format == "transcript", limit=limit, group_limit=group_limit
    )
    for run in runs:
        span = Span(document.messages[run[0]].span.start, document.messages[run[-1]].span.end)
        fits = index.count(span) <= (limit if len(run) == 1 else group_limit)
        for piece in [span] if fits else split(span, index, limit):
            inner = strip_lines(document.text, _with_indent(document.text, piece, span.start))
            if len(inner):
                yield talk.chunk(run, inner)


def _with_indent(text: str, piece: Span, first: int) -> Span:
    """Return a piece with the blanks before it, not before ``first``. They show that the piece continues a message."""
    before = text[first : piece.start]
    return Span(piece.start - len(before) + len(before.rstrip(" \t")), piece.end)


# A channel, and a thread in it or None for what stands outside threads.
_Lane: TypeAlias = tuple[str | None, str | None]


class _Talk:
    """The data about a conversation that its chunks need."""

    def __init__(self, document: Document, index: TokenIndex, limit: int) -> None:
        self._document = document
        self._index = index
        self._limit = limit
        self._lanes: dict[_Lane, list[int]] = {}
        self._people: dict[_Lane, set[str]] = {}
        self._rank: list[int] = []
        for position, message in enumerate(document.messages):
            lane = self._lanes.setdefault(self._lane(message), [])
            self._rank.append(len(lane))
            lane.append(position)
            people = self._people.setdefault(self._lane(message), set())
            people.update(name for name in (message.speaker, *(split_line(line)[0] for line in message.lead)) if name)

    def chunk(self, run: range, span: Span) -> Chunk:
        """Build the chunk of a run of messages, or of a piece of one long message."""
        messages = [self._document.messages[position] for position in run]
        content = self._document.text[span.start : span.end]
        tokens = self._index.count(span)
        return Chunk(
            span=span,
            content=content,
            token_count=tokens,
            context=self._context(run.start, span, self._limit - tokens),
            title=self._title(messages[0]),
            message_ids=tuple(dict.fromkeys(message.id for message in messages)),
            metadata=self._metadata(messages, content),
        )

    def _title(self, message: Message) -> str | None:
        """Return the title of the document. In a dump of many issues, return the title of the message's issue."""
        if self._document.format != "github" or message.thread_id is None:
            return self._document.title
        root = self._document.messages[self._lanes[self._lane(message)][0]]
        return root.lead[0] if root.lead else root.body.split("\n", 1)[0]

    def _context(self, position: int, span: Span, room: int) -> str:
        """Return the lines before a chunk, oldest first. If they do not all fit into ``room``, the latest are used."""
        lines: list[str] = []
        for line, tokens in reversed(self._lines_before(position, span)):
            room -= tokens
            if room < 0:
                break
            lines.append(f"[context] {line}")
        return "\n".join(reversed(lines))

    def _lines_before(self, position: int, span: Span) -> list[tuple[str, int]]:
        message = self._document.messages[position]
        if span.start > message.span.start:
            # A later piece of a long message: who says it, and how it began, is what it lacks.
            return [self._line(message)]
        leads = [_shortened(line) for line in message.lead][:CONTEXT_MESSAGES]
        before = self._before(position, CONTEXT_MESSAGES - len(leads))
        return [(line, CONTEXT_TOKENS) for line in leads] + [self._line(each) for each in before]

    def _before(self, position: int, count: int) -> list[Message]:
        message = self._document.messages[position]
        rank = self._rank[position]
        lane = self._lanes[self._lane(message)]
        if count < 1 or not rank:
            return []
        chosen = lane[max(0, rank - count) : rank]
        if message.thread_id is not None and not message.lead:
            chosen = sorted({lane[0], *lane[max(1, rank - count + 1) : rank]})
        found = [self._document.messages[each] for each in chosen]
        if message.thread_id is not None:
            return found
        return [each for each in found if are_close(each, message, CONTEXT_GAP)]

    def _line(self, message: Message) -> tuple[str, int]:
        """Return a message on one shortened line, and the estimated number of its tokens."""
        span = message.span
        end = min(span.end, self._index.offset_after(span.start, CONTEXT_TOKENS))
        said = " ".join(self._document.text[span.start : end].split())
        label = label_of(message.speaker)
        line = said if said.startswith(label) else label + said
        return (line if end == span.end else f"{line} …"), self._index.count(Span(span.start, end))

    def _metadata(self, messages: Sequence[Message], content: str) -> Metadata:
        first = messages[0]
        facts = self._document.metadata
        moments = [utc_text(each.timestamp, "seconds") for each in messages if each.timestamp is not None]
        return freeze(
            {
                "source_type": facts.get("source_type", self._document.format),
                "channel": self._channel(first),
                "speaker": _main_speaker(messages),
                "participants": self._participants(messages),
                "thread_id": first.thread_id,
                "message_timestamp": moments[0] if moments else None,
                "message_timestamps": tuple(sorted(set(moments))) if len(set(moments)) > 1 else None,
                "has_code_snippet": _CODE.search(content) is not None,
                "has_url": _URL.search(content) is not None,
                "reaction_count": sum(message.reactions for message in messages),
                **{key: facts.get(key) for key in PERMALINKS},
            }
        )

    def _lane(self, message: Message) -> _Lane:
        return self._channel(message), message.thread_id

    def _channel(self, message: Message) -> str | None:
        channel = message.channel or self._document.metadata.get("channel")
        return str(channel) if channel else None

    def _participants(self, messages: Sequence[Message]) -> tuple[str, ...]:
        people = {message.speaker for message in messages if message.speaker}
        first = messages[0]
        return tuple(sorted(people if first.thread_id is None else people | self._people[self._lane(first)]))


def _main_speaker(messages: Sequence[Message]) -> str | None:
    """Return the speaker with the most text; ``None`` if no speaker is known.

    If several speakers have equally much text, the first of them counts.
    """
    said: Counter[str] = Counter()
    for message in messages:
        if message.speaker:
            said[message.speaker] += len(message.body)
    return max(said, key=said.__getitem__, default=None)


def _shortened(line: str) -> str:
    line = " ".join(line.split())
    return line if len(line) <= CONTEXT_CHARACTERS else f"{line[:CONTEXT_CHARACTERS].rstrip()} …"


def group_messages(
    messages: Sequence[Message], index: TokenIndex, *, is_transcript: bool, limit: int, group_limit: int
) -> list[range]:
    """Group neighbouring messages. Return each group as a range of positions. The ranges cover all messages in order.

    Args:
        messages: the messages in the order of the text.
        is_transcript: whether turns and pauses decide the groups.
        limit: the maximum number of tokens of one message. A longer message forms a group alone.
        group_limit: the maximum number of tokens of a group.
    """
    pack = _Packer(messages, index, TRANSCRIPT_GAP if is_transcript else GROUP_GAP, limit=limit)
    target = min(GROUP_TOKENS, group_limit)
    joined: list[range] = []
    for unit in pack.turns(target) if is_transcript else pack.alone():
        if joined and pack.may_join(joined[-1], unit, target):
            joined[-1] = range(joined[-1].start, unit.stop)
        else:
            joined.append(unit)
    return joined


@dataclass(frozen=True, slots=True)
class _Packer:
    messages: Sequence[Message]
    index: TokenIndex
    gap: timedelta
    _: KW_ONLY
    limit: int

    def alone(self) -> Iterator[range]:
        """Yield a range for each message."""
        yield from (range(position, position + 1) for position in range(len(self.messages)))

    def turns(self, target: int) -> Iterator[range]:
        """Yield a range for each turn, which is everything that one speaker says without a pause.

        A turn of more than ``target`` tokens is split between messages.
        """
        start = 0
        for position in range(1, len(self.messages) + 1):
            if position < len(self.messages) and self._goes_on(position):
                continue
            turn = range(start, position)
            yield from [turn] if self.tokens(turn) <= target else (range(each, each + 1) for each in turn)
            start = position

    def _goes_on(self, position: int) -> bool:
        return self.messages[position - 1].speaker == self.messages[position].speaker and self._related(position)

    def tokens(self, run: range) -> int:
        return self.index.count(Span(self.messages[run.start].span.start, self.messages[run.stop - 1].span.end))

    def may_join(self, before: range, after: range, target: int) -> bool:
        """Tell whether two neighbouring ranges are complete, on one topic, and within ``target`` tokens together."""
        return (
            self.tokens(range(before.start, after.stop)) <= target
            and max(self._longest(before), self._longest(after)) <= self.limit
            and self._related(after.start)
        )

    def _related(self, position: int) -> bool:
        """Tell whether a message is on the same topic as the one before it."""
        before, after = self.messages[position - 1], self.messages[position]
        return before.channel == after.channel and _on_one_topic(before, after, self.gap)

    def _longest(self, run: range) -> int:
        return max(self.index.count(self.messages[each].span) for each in (run.start, run.stop - 1))


def _on_one_topic(before: Message, after: Message, gap: timedelta) -> bool:
    if before.thread_id is not None or after.thread_id is not None:
        return before.thread_id == after.thread_id
    if before.offset is not None and after.offset is not None:
        return after.offset - _ended(before) <= gap.total_seconds()
    return are_close(before, after, gap)


def _ended(message: Message) -> float:
    if message.end_offset is not None:
        return message.end_offset
    return (message.offset or 0.0) + len(message.body) / CHARACTERS_PER_SECOND


def are_close(before: Message, after: Message, gap: timedelta) -> bool:
    """Tell whether two messages are close enough in time. Unknown times count as close."""
    if before.timestamp is None or after.timestamp is None:
        return True
    return after.timestamp - before.timestamp <= gap
