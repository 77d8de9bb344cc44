"""Read the posts in Stack Exchange JSON: API answers, single questions, data-dump rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NoReturn

from nornweave.core.errors import DocumentError
from nornweave.core.text.dates import utc
from nornweave.core.text.inline_markup import unescaped
from nornweave.read.chunking.outlines.blocks import Kind
from nornweave.read.chunking.outlines.html import HtmlPolicy, read_html

COMMENTS = "\n\nComments:\n"
"""Stands between a post and what was commented on it."""

_DUMP_TAG = re.compile(r"[<|]([^<>|]{1,64})(?=[>|])")
_UNSTORABLE = re.compile("[\ud800-\udfff\x00]")
_LISTS = ("items", "questions", "posts", "rows")
# Of the HTML of posts.
_POSTS = HtmlPolicy(skipped=frozenset({"script", "style"}), marks_code=True, shows_images=True)
_FENCE = "```"
_BLANK_LINES = re.compile(r"\n{3,}")


@dataclass(frozen=True, slots=True)
class Post:
    """A question or an answer, whichever of the two JSON styles it comes from."""

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
    """Yield the questions and answers of an export, in its order, naming the key of what is missing."""
    if isinstance(value, Mapping):
        if "error_message" in value:
            message, code = value["error_message"], value.get("error_id")
            raise DocumentError(f"the API's answer is an error: {message!r} ({code!r}); fetch the questions again")
        key = next((name for name in _LISTS if isinstance(value.get(name), list)), None)
        items, where = (value[key], key) if key else ([value], "$")
    elif isinstance(value, list):
        items, where = value, "$"
    else:
        _refuse("$", value, "an object with items or a list of questions")
    for number, item in enumerate(items):
        place = f"{where}[{number}]"
        if not isinstance(item, Mapping):
            _refuse(place, item, "a question or answer object")
        yield from _dump_post(item, place) if "PostTypeId" in item or "Id" in item else _api_posts(item, place)


def _api_posts(item: Mapping[str, Any], where: str) -> Iterator[Post]:
    if "title" not in item and "answer_id" in item:
        yield _api_post(item, where, parent=_id(item, "question_id", where))
        return
    question = _id(item, "question_id", where)
    # A question without an id still owns the answers inside it.
    own = question if question is not None else f"({where})"
    yield _api_post(item, where, parent=None, known_id=own)
    answers = item.get("answers") or []
    if not isinstance(answers, list):
        _refuse(f"{where}.answers", answers, "a list")
    for number, answer in enumerate(answers):
        place = f"{where}.answers[{number}]"
        if not isinstance(answer, Mapping):
            _refuse(place, answer, "an answer object")
        yield _api_post(answer, place, parent=own)


def _api_post(item: Mapping[str, Any], where: str, *, parent: str | None, known_id: str | None = None) -> Post:
    is_question = known_id is not None
    owner = item.get("owner")
    return Post(
        id=known_id if is_question else _id(item, "answer_id", where),
        parent=parent,
        is_question=is_question,
        title=_line(_required(item, "title", where)) if is_question else "",
        text=_body(item, where) + _comments(item, where),
        author=_author(owner.get("display_name")) if isinstance(owner, Mapping) else None,
        score=_integer(item, "score", where),
        created=_moment(item, "creation_date", where),
        active=_moment(item, "last_activity_date", where),
        tags=_tags(item.get("tags"), f"{where}.tags"),
        link=_optional(item, "link") or _optional(item, "share_link"),
        accepted_answer=_id(item, "accepted_answer_id", where),
        is_accepted=item["is_accepted"] if isinstance(item.get("is_accepted"), bool) else None,
    )


def _dump_post(item: Mapping[str, Any], where: str) -> Iterator[Post]:
    kind = str(item.get("PostTypeId", "2" if item.get("ParentId") else "1"))
    if kind not in {"1", "2"}:  # wiki pages of tags, moderators' nominations: nothing to answer with
        return
    is_question = kind == "1"
    yield Post(
        id=_id(item, "Id", where) or f"({where})",
        parent=_id(item, "ParentId", where),
        is_question=is_question,
        title=_line(_required(item, "Title", where)) if is_question else "",
        text=text_of_html(_storable(_required(item, "Body", where))),
        author=_author(item.get("OwnerDisplayName")),
        score=_integer(item, "Score", where),
        created=_moment(item, "CreationDate", where),
        active=_moment(item, "LastActivityDate", where),
        tags=_tags(item.get("Tags"), f"{where}.Tags"),
        link=None,
        accepted_answer=_id(item, "AcceptedAnswerId", where),
        is_accepted=None,
    )


def _body(item: Mapping[str, Any], where: str) -> str:
    # The API escapes Markdown as if it were HTML; undone, it is what the author typed, code blocks included.
    markdown = item.get("body_markdown")
    if isinstance(markdown, str) and markdown.strip():
        return unescaped(_storable(markdown)).replace("\r\n", "\n").strip()
    return text_of_html(_storable(_required(item, "body", where, "body (or body_markdown)")))


def _comments(item: Mapping[str, Any], where: str) -> str:
    comments = item.get("comments") or []
    if not isinstance(comments, list):
        _refuse(f"{where}.comments", comments, "a list")
    lines = []
    for comment in comments:
        if isinstance(comment, Mapping) and (comment.get("body") or comment.get("body_markdown")):
            owner = comment.get("owner")
            name = _author(owner.get("display_name")) if isinstance(owner, Mapping) else None
            lines.append(f"- {name or 'someone'}: {' '.join(_body(comment, where).split())}")
    return COMMENTS + "\n".join(lines) if lines else ""


def _refuse(where: str, found: Any, expected: str) -> NoReturn:
    kind = "nothing" if found is None else f"{type(found).__name__} {str(found)[:40]!r}"
    raise DocumentError(f"{where}: found {kind}, expected {expected}; export it with that field")


def _required(item: Mapping[str, Any], key: str, where: str, name: str = "") -> str:
    value = item.get(key)
    if not isinstance(value, str) or not value.strip():
        _refuse(f"{where}.{key}", value, f"the text of {name or key}")
    return value


def _optional(item: Mapping[str, Any], key: str) -> str | None:
    value = item.get(key)
    return _storable(value) if isinstance(value, str) and value else None


def _id(item: Mapping[str, Any], key: str, where: str) -> str | None:
    value = item.get(key)
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, int | str):
        _refuse(f"{where}.{key}", value, "a number")
    return _storable(str(value))[:40]


def _integer(item: Mapping[str, Any], key: str, where: str) -> int | None:
    value = item.get(key)
    if value is None or value == "":
        return None
    try:
        return max(-(2**53), min(int(value), 2**53))
    except (TypeError, ValueError, OverflowError):
        _refuse(f"{where}.{key}", value, "a whole number")


def _moment(item: Mapping[str, Any], key: str, where: str) -> datetime | None:
    """Read seconds since 1970 (API) or an ISO date in UTC (dump)."""
    value = item.get(key)
    if value is None or value == "":
        return None
    try:
        if isinstance(value, str) and not value.isdigit():
            moment = datetime.fromisoformat(value)
            return utc(moment)
        return datetime.fromtimestamp(float(value), UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        _refuse(f"{where}.{key}", value, "seconds since 1970 or an ISO 8601 date")


def _tags(value: Any, where: str) -> tuple[str, ...]:
    if not value:
        return ()
    if isinstance(value, str):
        return tuple(_DUMP_TAG.findall(_storable(value))) or tuple(_storable(value).split())
    if isinstance(value, Iterable) and not isinstance(value, Mapping):
        return tuple(_storable(str(tag)) for tag in value)
    _refuse(where, value, "a list of tags")


def _author(name: Any) -> str | None:
    return _line(name) or None if isinstance(name, str) else None


def _line(text: str) -> str:
    return " ".join(unescaped(_storable(text)).split())


def _storable(text: str) -> str:
    """Replace lone surrogates, which JSON can contain and UTF-8 cannot."""
    return _UNSTORABLE.sub("\ufffd", text)


def text_of_html(source: str) -> str:
    """Render HTML as text: ``pre`` between fences, verbatim; list items after dashes; references resolved."""
    post = read_html(source, _POSTS)
    blocks = (_written(post.text[block.span.start : block.span.end], block.kind) for block in post.blocks)
    return "".join(blocks).strip()


def _written(text: str, kind: Kind) -> str:
    if kind == "code":
        return f"{_FENCE}\n{text.strip(chr(10)).rstrip()}\n{_FENCE}\n\n"
    return _BLANK_LINES.sub("\n\n", text)
