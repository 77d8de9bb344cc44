"""Read the questions and answers of Stack Exchange, as its API gives them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from nornweave.connect.conversation import as_is, mappings, parse_time
from nornweave.core.errors import DocumentError
from nornweave.core.text.inline_markup import unescaped
from nornweave.read.blocks.block import Kind
from nornweave.read.blocks.html import HtmlPolicy, read_html

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
    """Yield the questions and answers of an export, in its order; optional fields of another kind count as absent.

    Raises:
        DocumentError: a question without a title, or anything without a body; the message says where.
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
    """Replace what JSON can hold and an index cannot: NUL, and lone surrogates."""
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
    """Render HTML as text: ``pre`` between fences, verbatim; list items after dashes; references resolved."""
    post = read_html(source, _POSTS)
    starts = [*(block.span.start for block in post.written), len(post.text)]
    pieces = (post.text[start:end] for start, end in pairwise(starts))
    return "".join(_written(piece, block.kind) for piece, block in zip(pieces, post.written, strict=True)).strip()


def _written(text: str, kind: Kind) -> str:
    if kind == "code":
        return f"{_FENCE}\n{text.strip(chr(10)).rstrip()}\n{_FENCE}\n\n"
    return _BLANK_LINES.sub("\n\n", text)
