"""Parse Stack Exchange JSON into one document with a section per question and answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from nornweave.connect.conversation import load_json
from nornweave.connect.stackexchange.posts import COMMENTS, Post, posts_in
from nornweave.core.errors import DocumentError
from nornweave.core.text.decode import check_size
from nornweave.core.types import Document, Domain, Entry, JsonValue, Section, SectionKind, SourceId, Span, freeze
from nornweave.read.file import assemble
from nornweave.read.parsed import Parsed

VERSION = "stackexchange-2"

_CONTEXT_WORDS = 80


def stackexchange_document(
    source_id: SourceId, entry: Entry, raw: bytes, *, domain: Domain, is_dated: bool = False
) -> Document:
    """Turn a file of questions and answers into a document; see ``parse_stackexchange``.

    Args:
        is_dated: ``entry.updated_at`` is a statement, and goes before the date of the questions.

    Raises:
        DocumentError: too large, or no such file.
    """
    check_size(len(raw))
    return assemble(source_id, domain, entry, raw, parse_stackexchange(raw), "stackexchange", is_dated=is_dated)


def parse_stackexchange(raw: bytes) -> Parsed:
    """Read questions with their answers.

    Accepted are the API's ``{"items": [...]}``, a bare list, one question object, and the posts of a data dump
    (``Id``, ``PostTypeId``, ``ParentId``, …); answers come accepted first, then by score, then in the file's order.

    Returns:
        One section per question (level 1) and answer (level 2, the question as ``context``); their metadata: ``title``,
        ``authors``, ``publication_date``, ``tags``, ``score``, ``is_accepted``, ``question_id``, ``answer_id``,
        ``url``. The document's own title, url and metadata are the question's when there is only one.

    Raises:
        DocumentError: no JSON, or a question or answer lacks what it needs; the message names line or key.
    """
    # An answer that is only an image has no text to find.
    posts = [post for post in posts_in(load_json(raw, "the export")) if post.is_question or post.text.strip()]
    if not posts:
        raise DocumentError("no questions: found an empty list, expected Stack Exchange questions with title and body")
    text: list[str] = []
    sections: list[Section] = []
    questions = 0
    start = 0
    for question, answers in _threads(posts):
        questions += question is not None
        for post in ([question] if question else []) + answers:
            section = _section(post, question, start)
            sections.append(section)
            text.append(f"{post.title}\n\n{post.text}" if post.is_question else post.text)
            start += len(text[-1]) + 2
    return _parsed(text, sections, posts, sections[0] if questions == 1 and sections[0].kind == "question" else None)


def _parsed(texts: Sequence[str], sections: Sequence[Section], posts: Sequence[Post], only: Section | None) -> Parsed:
    text = "\n\n".join(texts)
    tiled = [
        replace(section, span=Span(section.span.start, following))
        for section, following in zip(sections, [*(s.span.start for s in sections[1:]), len(text)], strict=True)
    ]
    updated = [moment for post in posts for moment in (post.active, post.created) if moment]
    metadata: dict[str, JsonValue] = {"source_type": "stackoverflow"}
    if only:
        shared = ("title", "authors", "publication_date", "tags")
        metadata |= {key: only.metadata[key] for key in shared if key in only.metadata}
    url = only.metadata.get("url") if only else None
    return Parsed(
        text=text,
        sections=tuple(tiled),
        title=only.heading if only else None,
        updated_at=max(updated, default=None),
        url=str(url) if url else None,
        metadata=freeze(metadata),
    )


def _section(post: Post, question: Post | None, start: int) -> Section:
    kind: SectionKind = "question" if post.is_question else "answer"
    title = (question or post).title or None
    kind_of_answer = "Accepted answer" if _is_accepted(post, question) else "Answer"
    answered = f"{kind_of_answer} by {post.author}" if post.author else kind_of_answer
    metadata: dict[str, JsonValue] = {
        "source_type": "stackoverflow",
        "title": title,
        "authors": (post.author,) if post.author else None,
        "publication_date": post.created.date().isoformat() if post.created else None,
        "tags": (question or post).tags or None,
        "score": post.score,
        "is_accepted": None if post.is_question else _is_accepted(post, question),
        "question_id": post.id if post.is_question else post.parent,
        "answer_id": None if post.is_question else post.id,
        "url": _url(post, question),
    }
    return Section(
        span=Span(start, start),
        heading=post.title if post.is_question else answered,
        level=1 if post.is_question else 2,
        kind=kind,
        context=_shortened(question) if question and not post.is_question else "",
        metadata=freeze(metadata),
    )


def _is_accepted(post: Post, question: Post | None) -> bool:
    if post.is_accepted is not None:
        return post.is_accepted
    return question is not None and post.id is not None and question.accepted_answer == post.id


def _url(post: Post, question: Post | None) -> str | None:
    if post.is_question or post.link:
        return post.link
    if question is None or not question.link or post.id is None:
        return None
    try:
        site = urlsplit(question.link)
    except ValueError:
        return question.link
    return f"{site.scheme}://{site.netloc}/a/{post.id}" if site.netloc else question.link


def _shortened(question: Post) -> str:
    """Return title and the beginning of the body, at most 80 words in one line."""
    words = f"{question.title}\n{question.text.partition(COMMENTS)[0][:4000]}".split()
    return " ".join(words[:_CONTEXT_WORDS]) + (" …" if len(words) > _CONTEXT_WORDS else "")


def _threads(posts: Sequence[Post]) -> Iterator[tuple[Post | None, list[Post]]]:
    """Group answers with their question; answers whose question is not there come last."""
    questions = [post for post in posts if post.is_question]
    ids = {post.id for post in questions if post.id is not None}
    answers: dict[str | None, list[Post]] = {}
    for post in posts:
        if not post.is_question:
            answers.setdefault(post.parent if post.parent in ids else None, []).append(post)
    for question in questions:
        own = answers.pop(question.id, []) if question.id is not None else []
        yield question, sorted(own, key=lambda post: (not _is_accepted(post, question), -(post.score or 0)))
    for orphans in answers.values():
        yield None, orphans
