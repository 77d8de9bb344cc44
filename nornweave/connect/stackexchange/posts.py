"""Read the questions and answers of Stack Exchange, as its API gives them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from nornweave.core.errors import DocumentError
from nornweave.core.text.dates import utc
from nornweave.core.text.inline_markup import unescaped
from nornweave.read.chunking.outlines.blocks import Kind
from nornweave.read.chunking.outlines.html import HtmlPolicy, read_html

COMMENTS = "\n\nComments:\n"
"""Stands between a post and what was commented on it."""

# Of the HTML of posts.
_POSTS = HtmlPolicy(skipped=frozenset({"script", "style"}), marks_code=True, shows_images=True)
_FENCE = "```"
_BLANK_LINES = re.compile(r"\n{3,}")

# NUL can stand in JSON and not in an index.
Text = Annotated[str, AfterValidator(lambda text: text.replace("\0", "\ufffd"))]
Identity = Annotated[Text, BeforeValidator(lambda value: str(value)[:40] if isinstance(value, int) else value)]


class _Owner(BaseModel):
    display_name: Text | None = None


class _Written(BaseModel):
    """What questions, answers and comments have in common; comments come without a body unless it was asked for."""

    body: Text | None = None
    body_markdown: Text | None = None
    owner: _Owner | None = None

    @property
    def text(self) -> str:
        # The API escapes Markdown as if it were HTML; undone, it is what the author typed, code blocks included.
        if self.body_markdown and self.body_markdown.strip():
            return unescaped(self.body_markdown).replace("\r\n", "\n").strip()
        return text_of_html(self.body or "")

    @property
    def author(self) -> str | None:
        return _line((self.owner and self.owner.display_name) or "") or None


class _Answer(_Written):
    answer_id: Identity | None = None
    question_id: Identity | None = None
    score: int | None = None
    creation_date: datetime | None = None
    last_activity_date: datetime | None = None
    link: Text | None = None
    share_link: Text | None = None
    is_accepted: bool | None = None
    comments: tuple[_Written, ...] | None = None

    @model_validator(mode="after")
    def _says_something(self) -> _Answer:
        if not (self.body or "").strip() and not (self.body_markdown or "").strip():
            raise ValueError("no body (or body_markdown)")
        return self


class _Question(_Answer):
    title: Annotated[Text, Field(min_length=1)]
    tags: tuple[Text, ...] | None = None
    accepted_answer_id: Identity | None = None
    answers: tuple[_Answer, ...] | None = None


def _kind(item: Any) -> str:
    return "answer" if isinstance(item, dict) and "title" not in item and "answer_id" in item else "question"


_ITEMS = TypeAdapter(
    list[Annotated[Annotated[_Question, Tag("question")] | Annotated[_Answer, Tag("answer")], Discriminator(_kind)]]
)


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
    """Yield the questions and answers of an export, in its order.

    Raises:
        DocumentError: something is missing or of another kind; the message says where.
    """
    if isinstance(value, dict) and "error_message" in value:
        message, code = value["error_message"], value.get("error_id")
        raise DocumentError(f"the API's answer is an error: {message!r} ({code!r}); fetch the questions again")
    items = value.get("items", [value]) if isinstance(value, dict) else value
    try:
        # Lone surrogates, which JSON can contain and UTF-8 cannot, are replaced.
        posts = _ITEMS.validate_json(json.dumps(items, ensure_ascii=False).encode("utf-8", "replace"))
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in problem["loc"] if part not in ("question", "answer"))
        found = f"{problem['msg']}, found {str(problem['input'])[:40]!r}"
        raise DocumentError(
            f"items.{place}: {found}; expected questions with title and body, as the API gives them"
        ) from error
    for number, item in enumerate(posts):
        # A question without an id still owns the answers inside it.
        own = item.question_id or f"(items.{number})" if isinstance(item, _Question) else None
        yield _post(item, own or item.question_id)
        for answer in (item.answers or ()) if isinstance(item, _Question) else ():
            yield _post(answer, own)


def _post(item: _Answer, question: str | None) -> Post:
    asked = item if isinstance(item, _Question) else None
    said = [(each.author or "someone", " ".join(each.text.split())) for each in item.comments or ()]
    lines = [f"- {author}: {text}" for author, text in said if text]
    return Post(
        id=question if asked else item.answer_id,
        parent=None if asked else question,
        is_question=asked is not None,
        title=_line(asked.title) if asked else "",
        text=item.text + (COMMENTS + "\n".join(lines) if lines else ""),
        author=item.author,
        score=item.score,
        created=utc(item.creation_date) if item.creation_date else None,
        active=utc(item.last_activity_date) if item.last_activity_date else None,
        tags=(asked.tags or ()) if asked else (),
        link=item.link or item.share_link or None,
        accepted_answer=asked.accepted_answer_id if asked else None,
        is_accepted=item.is_accepted,
    )


def _line(text: str) -> str:
    return " ".join(unescaped(text).split())


def text_of_html(source: str) -> str:
    """Render HTML as text: ``pre`` between fences, verbatim; list items after dashes; references resolved."""
    post = read_html(source, _POSTS)
    blocks = (_written(post.text[block.span.start : block.span.end], block.kind) for block in post.blocks)
    return "".join(blocks).strip()


def _written(text: str, kind: Kind) -> str:
    if kind == "code":
        return f"{_FENCE}\n{text.strip(chr(10)).rstrip()}\n{_FENCE}\n\n"
    return _BLANK_LINES.sub("\n\n", text)
