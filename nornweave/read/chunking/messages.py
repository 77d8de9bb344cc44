"""``MESSAGE_BOUNDARY``: messages, small groups of them, and turns of transcripts.

A chunk never holds a part of one message together with another message. ``message_groups`` says which messages share a
chunk; a message above ``limit`` is cut at paragraphs, lines, sentences, and each piece carries its id.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import TypeAlias

from nornweave.core.text.dates import utc_text
from nornweave.core.text.messages import label_of, split_line
from nornweave.core.text.spans import TokenIndex, split, strip_lines
from nornweave.core.types import PERMALINKS, Chunk, Document, Message, Metadata, Span, freeze
from nornweave.read.chunking.message_groups import are_close, group_messages

VERSION = "messages-4"

# Earlier talk than this is another conversation, and would only lead the encoder astray.
CONTEXT_GAP = timedelta(hours=1)
CONTEXT_MESSAGES = 2
CONTEXT_TOKENS = 40
# About as many characters as CONTEXT_TOKENS of prose, for lines that no tokenizer has seen.
CONTEXT_CHARACTERS = 160

_CODE = re.compile(r"`[^`\n]+`|```")
_URL = re.compile(r"https?://\S")


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
