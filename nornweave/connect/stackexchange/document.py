"""Parse Stack Exchange JSON into one document with a section per question and answer.

Read the questions and answers of Stack Exchange, as its API gives them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import Any
from urllib.parse import urlsplit

from nornweave.connect.conversation import as_is, load_json, mappings, parse_time
from nornweave.core.errors import DocumentError
from nornweave.core.text.decode import check_size
from nornweave.core.text.inline_markup import unescaped
from nornweave.core.types import Document, Domain, Entry, JsonValue, Section, SectionKind, SourceId, Span, freeze
from nornweave.read.blocks.block import Kind
from nornweave.read.blocks.html import HtmlPolicy, read_html
from nornweave.read.file import assemble
from nornweave.read.parsed import Parsed

COMMENTS = "\n\nComments:\n"
"""Stands between a post and what was commented on it."""

# Of the HTML of posts.
_POSTS = HtmlPolicy(skipped=frozenset({"script", "style"}), marks_code=True, shows_images=True)
_FENCE = "```"
_BLANK_LINES = re.compile(r"\n{3,}")


@dataclass(frozen=True, slots=True)
class Post:
    """A question or an answer."""

    id: str | None
    parent: str | None
    is_question: bool
    title: str
    text: str
    author: str | None
    score: int | None
    created: datetime | None
    active: datetime | None
    tags: tuple[str, ...]
    link: str | None
    accepted_answer: str | None
    is_accepted: bool | None


def posts_in(value: Any) -> Iterator[Post]:
    """Yield the questions and answers of an export in order. An optional field with a wrong type is ignored.

    Raises:
        DocumentError: a question has no title, or a post has no body. The message says where.
    """
    if isinstance(value, dict) and "error_message" in value:
        message, code = value["error_message"], value.get("error_id")
        raise DocumentError(f"the API's answer is an error: {message!r} ({code!r}); fetch the questions again")
    items = value.get("items", [value]) if isinstance(value, dict) else value
    for number, item in enumerate(_objects(items, "items")):
        place = f"items.{number}"
        if "title" not in item and "answer_id" in item:
            yield _post(item, place, _id(item, "question_id"), is_question=False)
            continue
        # A question without an id still owns the answers inside it.
        own = _id(item, "question_id") or f"({place})"
        yield _post(item, place, own, is_question=True)
        for at, answer in enumerate(_objects(item.get("answers") or [], f"{place}.answers")):
            yield _post(answer, f"{place}.answers.{at}", own, is_question=False)


def _objects(value: Any, place: str) -> list[dict[str, Any]]:
    objects = mappings(value)
    if not isinstance(value, list) or len(objects) < len(value):
        raise _unlike(place, f"a list of objects is expected, found {str(value)[:40]!r}")
    return objects


def _post(item: Mapping[str, Any], place: str, question: str | None, *, is_question: bool) -> Post:
    title = _line(_text(item, "title")) if is_question else ""
    if is_question and not title:
        raise _unlike(place, "no title")
    if not (_text(item, "body").strip() or _text(item, "body_markdown").strip()):
        raise _unlike(place, "no body (or body_markdown)")
    said = [(_author(each) or "someone", " ".join(_body(each).split())) for each in mappings(item.get("comments"))]
    lines = [f"- {author}: {text}" for author, text in said if text]
    tags = as_is(item.get("tags"), list) if is_question else None
    return Post(
        id=question if is_question else _id(item, "answer_id"),
        parent=None if is_question else question,
        is_question=is_question,
        title=title,
        text=_body(item) + (COMMENTS + "\n".join(lines) if lines else ""),
        author=_author(item),
        score=as_is(item.get("score"), int),
        created=parse_time(item.get("creation_date")),
        active=parse_time(item.get("last_activity_date")),
        tags=tuple(_storable(tag) for tag in tags or () if isinstance(tag, str)),
        link=_text(item, "link") or _text(item, "share_link") or None,
        accepted_answer=_id(item, "accepted_answer_id"),
        is_accepted=as_is(item.get("is_accepted"), bool),
    )


def _unlike(place: str, found: str) -> DocumentError:
    return DocumentError(f"{place}: {found}; expected questions with title and body, as the API gives them")


def _id(item: Mapping[str, Any], key: str) -> str | None:
    value = item.get(key)
    return _storable(str(value)[:40]) if isinstance(value, int | str) else None


def _text(item: Mapping[str, Any], key: str) -> str:
    return _storable(as_is(item.get(key), str) or "")


def _storable(text: str) -> str:
    """Replace characters that an index cannot store: NUL and lone surrogates."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _author(item: Mapping[str, Any]) -> str | None:
    return _line(_text(as_is(item.get("owner"), dict) or {}, "display_name")) or None


def _body(item: Mapping[str, Any]) -> str:
    # The API escapes Markdown as if it were HTML; undone, it is what the author typed, code blocks included.
    markdown = _text(item, "body_markdown")
    return unescaped(markdown).replace("\r\n", "\n").strip() if markdown.strip() else text_of_html(_text(item, "body"))


def _line(text: str) -> str:
    return " ".join(unescaped(text).split())


def text_of_html(source: str) -> str:
    """Render HTML as text: ``pre`` between fences, list items after dashes, and character references resolved."""
    post = read_html(source, _POSTS)
    starts = [*(block.span.start for block in post.written), len(post.text)]
    pieces = (post.text[start:end] for start, end in pairwise(starts))
    return "".join(_written(piece, block.kind) for piece, block in zip(pieces, post.written, strict=True)).strip()


def _written(text: str, kind: Kind) -> str:
    if kind == "code":
        return f"{_FENCE}\n{text.strip(chr(10)).rstrip()}\n{_FENCE}\n\n"
    return _BLANK_LINES.sub("\n\n", text)


VERSION = "stackexchange-2"

_CONTEXT_WORDS = 80


def stackexchange_document(
    source_id: SourceId, entry: Entry, raw: bytes, *, domain: Domain, is_dated: bool = False
) -> Document:
    """Parse a file of questions and answers in one of the forms that ``parse_stackexchange`` accepts.

    Args:
        is_dated: whether ``entry.updated_at`` was stated by a person or a commit. It then overrides the date of the
            questions.

    Raises:
        DocumentError: the file is too large, or it has no questions and answers.
    """
    check_size(len(raw))
    return assemble(source_id, domain, entry, raw, parse_stackexchange(raw), "stackexchange", is_dated=is_dated)


def parse_stackexchange(raw: bytes) -> Parsed:
    """Parse questions with their answers.

    Four forms are accepted: the API's ``{"items": [...]}``, a plain list, one question object, and the posts of a data
    dump (``Id``, ``PostTypeId``, ``ParentId``, …). The accepted answer comes first. The other answers are sorted by
    score, then by their order in the file.

    Returns:
        One section for each question (level 1) and each answer (level 2, with the question as ``context``). The
        metadata of a section may have ``title``, ``authors``, ``publication_date``, ``tags``, ``score``,
        ``is_accepted``, ``question_id``, ``answer_id`` and ``url``. If there is only one question, its title, url and
        metadata are those of the document.

    Raises:
        DocumentError: the content is not JSON, or a question or an answer lacks a required field. The message names the
            line or the key.
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
        context=_shorten(question) if question and not post.is_question else "",
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


def _shorten(question: Post) -> str:
    """Return the title of a question and the beginning of its body on one line, at most 80 words."""
    words = f"{question.title}\n{question.text.partition(COMMENTS)[0][:4000]}".split()
    return " ".join(words[:_CONTEXT_WORDS]) + (" …" if len(words) > _CONTEXT_WORDS else "")


def _threads(posts: Sequence[Post]) -> Iterator[tuple[Post | None, list[Post]]]:
    """Yield each question with its answers. The last question is ``None`` if some answers have no question."""
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
