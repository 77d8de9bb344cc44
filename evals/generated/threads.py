"""Conversations, and questions with answers: the question → the place of its answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby, takewhile

from evals.generated.drafts import Draft, DraftCandidate, by_document, lines_of, short_hash
from evals.generated.query_words import (
    content_words,
    is_about_something,
    is_askable,
    normalised,
    sentences,
    without_marks,
)
from evals.judgments import HiddenText
from nornweave.core.types import Span
from nornweave.index.index import Index
from nornweave.index.searching.generation_file import ChunkPlace

# After this long somebody talks of something else, outside a thread.
MAX_PAUSE = timedelta(minutes=15)
# Messages after a question in which the answer is looked for.
REACH = 5
# A reply of fewer content words ("yes", "on it") cannot be found by what it says.
MIN_REPLY_WORDS = 4
_ISSUES = "github"
_BOT = re.compile(r"\[bot\]$|-bot$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Said:
    """A message in its document's text. ``span`` includes the speaker's label."""

    id: str
    speaker: str
    span: Span
    body: Span
    chunk: ChunkPlace


class PostedAnswers:
    """Stack Exchange: the title of a question → its accepted answer, else the answer with the highest score."""

    kind = "answer"
    distinct = False

    def candidates(self, generation: Index) -> Sequence[DraftCandidate]:
        """Return the questions with an answer."""
        posts: dict[tuple[int, str], list[ChunkPlace]] = {}
        for chunk in generation.chunk_places():
            if question := chunk.metadata.get("question_id"):
                posts.setdefault((chunk.document_no, str(question)), []).append(chunk)
        found = []
        for (_, question), chunks in posts.items():
            title = chunks[0].metadata.get("title")
            best = _best_answer(chunks)
            if best and "answer_id" not in chunks[0].metadata and isinstance(title, str):
                wording = without_marks(title)
                found.append(
                    DraftCandidate(
                        kind=self.kind, key=question, chunks=(chunks[0], *best), wording=wording, heading=title
                    )
                )
        return found

    def draft(self, candidate: DraftCandidate, text: str) -> Draft | None:
        """Return the question's title as a query."""
        asked, *answer = candidate.chunks
        start = text.find(candidate.heading, asked.span.start, asked.span.end)
        if start < 0 or not is_askable(candidate.wording):
            return None
        return Draft(
            kind=self.kind,
            text=candidate.wording,
            hidden=HiddenText(candidate.path, start, start + len(candidate.heading)),
            lines=lines_of(text, answer[0].span.start, answer[-1].span.end),
        )


def _best_answer(posts: Sequence[ChunkPlace]) -> list[ChunkPlace]:
    answers = [chunk for chunk in posts if "answer_id" in chunk.metadata]
    if not answers:
        return []
    # As they come they are ordered: accepted first, then by score.
    best = max(answers, key=lambda chunk: (chunk.metadata.get("is_accepted") is True, _number(chunk, "score")))
    return [chunk for chunk in answers if chunk.metadata["answer_id"] == best.metadata["answer_id"]]


class IssueAnswers:
    """Issues: their title → the comment with most reactions, else the first comment by another person."""

    kind = "answer"
    distinct = False

    def candidates(self, generation: Index) -> Sequence[DraftCandidate]:
        """Return the threads."""
        found = []
        for chunks in by_document(generation.chunk_places()):
            issues = (chunk for chunk in chunks if _source(chunk) == _ISSUES and chunk.message_ids)
            for thread, group in groupby(issues, key=_lane):
                found.append(DraftCandidate(kind=self.kind, key=str(thread), chunks=tuple(group)))
        return found

    def draft(self, candidate: DraftCandidate, text: str) -> Draft | None:
        """Return an issue's title as a query, if the document has the issue itself and an answer."""
        messages = list(_messages(candidate.chunks, text))
        if not messages or messages[0].id != candidate.chunks[0].message_ids[0]:
            return None
        opening = messages[0]
        title = text[opening.body.start : opening.body.end].split("\n", 1)[0]
        wording = without_marks(title)
        answer = _find_most_liked(messages[1:], opening.speaker, text)
        if answer is None or not is_askable(wording) or normalised(title) not in normalised(opening.chunk.title or ""):
            return None
        start = opening.body.start
        hidden = HiddenText(candidate.path, start, start + len(title))
        return Draft(kind=self.kind, text=wording, hidden=hidden, message_id=answer.id)


def _find_most_liked(messages: Sequence[_Said], asker: str, text: str) -> _Said | None:
    """Return the comment with most reactions. They are known only for messages with a chunk of their own."""
    others = [
        message
        for message in messages
        if message.speaker != asker and not _BOT.search(message.speaker) and _says_something(message, text)
    ]
    return max(others, key=_likes, default=None)


def _likes(message: _Said) -> int:
    return _number(message.chunk, "reaction_count") if len(message.chunk.message_ids) == 1 else 0


class Replies:
    """Chats and meetings: a question → the first reply by another person.

    People look for answers, so the reply is judged. The question is hidden, so that only the words of the
    answer can be found.
    """

    kind = "reply"
    distinct = False

    def candidates(self, generation: Index) -> Sequence[DraftCandidate]:
        """Return each chunk with a question mark, together with the next chunk."""
        asking = {chunk.chunk_no for chunk in generation.chunk_places(holding=("?",))}
        places = {chunk.chunk_no: chunk for chunk in generation.chunk_places()} if asking else {}
        found = []
        for number in sorted(asking & places.keys()):
            chunk = places[number]
            if chunk.message_ids and _source(chunk) != _ISSUES:
                following = places.get(number + 1)
                chunks = (chunk, following) if following and _goes_on(chunk, following) else (chunk,)
                found.append(DraftCandidate(kind=self.kind, key=chunk.message_ids[0], chunks=chunks))
        return found

    def draft(self, candidate: DraftCandidate, text: str) -> Draft | None:
        """Return a question of the chunk that has a reply."""
        messages = list(_messages(candidate.chunks, text))
        own = [at for at, message in enumerate(messages) if message.chunk is candidate.chunks[0]]
        for at in sorted(own, key=lambda at: short_hash(candidate.path, messages[at].id)):
            question = _question(text[messages[at].body.start : messages[at].body.end])
            reply = _reply(messages, at, text) if question else None
            if question and reply:
                span = messages[at].span
                hidden = HiddenText(candidate.path, span.start, span.end)
                return Draft(kind=self.kind, text=question, hidden=hidden, message_id=reply.id)
        return None


def _question(body: str) -> str | None:
    """Return the last question of a message, if it names its subject."""
    asked = [sentence for sentence in sentences(body) if sentence.rstrip("\"')”’").endswith("?")]
    wording = without_marks(asked[-1]) if asked else ""
    return wording if wording and is_about_something(wording) else None


def _reply(messages: Sequence[_Said], at: int, text: str) -> _Said | None:
    """Return the first message of another person with content, before the asker speaks again."""
    asker = messages[at].speaker
    others = takewhile(lambda message: message.speaker != asker, messages[at + 1 : at + 1 + REACH])
    return next((message for message in others if _says_something(message, text)), None)


def _says_something(message: _Said, text: str) -> bool:
    return len(content_words(text[message.body.start : message.body.end])) >= MIN_REPLY_WORDS


def _messages(chunks: Sequence[ChunkPlace], text: str) -> Iterator[_Said]:
    """Yield the messages of chunks; none of a chunk if it is not clear where each begins."""
    for chunk in chunks:
        people = chunk.metadata.get("participants")
        names = [str(name) for name in people] if isinstance(people, list | tuple) else []
        if not names:
            continue
        label = re.compile(rf"^({'|'.join(map(re.escape, sorted(names, key=len, reverse=True)))}): ", re.MULTILINE)
        begun = list(label.finditer(text, chunk.span.start, chunk.span.end))
        if len(begun) != len(chunk.message_ids) or begun[0].start() != chunk.span.start:
            continue
        ends = [*(match.start() - 1 for match in begun[1:]), chunk.span.end]
        for identifier, match, end in zip(chunk.message_ids, begun, ends, strict=True):
            yield _Said(identifier, match[1], Span(match.start(), end), Span(match.end(), end), chunk)


def _lane(chunk: ChunkPlace) -> tuple[str, str]:
    return str(chunk.metadata.get("channel", "")), str(chunk.metadata.get("thread_id", ""))


def _goes_on(chunk: ChunkPlace, following: ChunkPlace) -> bool:
    """Tell whether a chunk continues the conversation of the chunk before."""
    if chunk.document_no != following.document_no or _lane(chunk) != _lane(following):
        return False
    if "thread_id" in chunk.metadata:
        return True
    last, first = _moments(chunk)[-1:], _moments(following)[:1]
    return bool(last and first) and timedelta() <= first[0] - last[0] <= MAX_PAUSE


def _moments(chunk: ChunkPlace) -> list[datetime]:
    several = chunk.metadata.get("message_timestamps")
    written = list(several) if isinstance(several, list | tuple) else [chunk.metadata.get("message_timestamp")]
    return [datetime.fromisoformat(moment) for moment in written if isinstance(moment, str)]


def _source(chunk: ChunkPlace) -> str:
    return str(chunk.metadata.get("source_type", ""))


def _number(chunk: ChunkPlace, key: str) -> int:
    value = chunk.metadata.get(key)
    return value if isinstance(value, int) else 0
