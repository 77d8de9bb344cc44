"""Add the place of a passage to the address of the document that it stands in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from nornweave.config.addresses import is_web_address
from nornweave.core.types import ANCHOR, Metadata

_COMMIT = r"[0-9a-f]{40}(?:[0-9a-f]{24})?"


@dataclass(frozen=True, slots=True)
class _Form:
    """How a web page of repositories names lines.

    Attributes:
        place: what its addresses of a file of a commit have between host and path.
        one, several: the fragment for one line and for several.
        plain: what makes it show the text of a file that it renders otherwise.
    """

    place: re.Pattern[str]
    one: str
    several: str
    plain: str = ""


def _form(place: str, one: str, several: str, plain: str = "") -> _Form:
    return _Form(re.compile(rf"https?://[^/?#]+/[^?#]+/{place}/{_COMMIT}/[^?#]+"), one, several, plain)


# The first that fits: "/-/blob/" before "/blob/", "/src/commit/" before "/src/".
_FORMS: Sequence[_Form] = (
    _form("-/blob", "#L{0}", "#L{0}-{1}", "?plain=1"),  # GitLab
    _form("blob", "#L{0}", "#L{0}-L{1}", "?plain=1"),  # GitHub
    _form("src/commit", "#L{0}", "#L{0}-L{1}", "?display=source"),  # Gitea, Forgejo
    _form("src", "#lines-{0}", "#lines-{0}:{1}"),  # Bitbucket
)
# Files that are shown as they are meant to be read, where no line has a number.
_RENDERED = re.compile(
    r"\.(?:md|mdown|markdown|mkd|mdx|rst|adoc|asciidoc|org|textile|rdoc|mediawiki|wiki|pod|ipynb|svg)", re.IGNORECASE
)


# What RFC 3986 allows in a fragment.
_IN_FRAGMENT = "!$&'()*+,;=:@/?-._~%"


def passage_url(
    url: str | None, metadata: Metadata, *, line_range: tuple[int, int] | None = None, message_ids: Sequence[str] = ()
) -> str | None:
    """Return the address that opens a passage: at its first message, its lines or its section, as far as known.

    Args:
        metadata: of the chunk: ``permalink`` and ``thread_permalink`` are templates of the address of a message, in
            which ``{id}`` stands for its id and ``{digits}`` for the digits of that; ``anchor`` names the section.
        line_range: first and last line, from 1; ``None`` where the passage has no lines.
        message_ids: of the passage, in order.
    """
    own = metadata.get("url")  # of a part that has one, such as an answer to a question
    url = own if isinstance(own, str) and is_web_address(own) else url
    if url is None or "#" in url:
        return url
    if message_ids:
        return _of_message(message_ids[0], metadata) or url
    form = next((form for form in _FORMS if form.place.fullmatch(url)), None)
    if form is not None:
        return url if line_range is None else _with_lines(url, form, *line_range)
    anchor = metadata.get(ANCHOR)
    return f"{url}#{quote(anchor, safe=_IN_FRAGMENT)}" if isinstance(anchor, str) and anchor else url


def _of_message(identifier: str, metadata: Metadata) -> str | None:
    thread = metadata.get("thread_id")
    is_reply = isinstance(thread, str) and thread != identifier and "thread_permalink" in metadata
    template = metadata.get("thread_permalink" if is_reply else "permalink")
    if not isinstance(template, str) or not is_web_address(template):
        return None
    values = {"{id}": identifier, "{digits}": re.sub(r"\D", "", identifier), "{thread_id}": str(thread)}
    for name, value in values.items():
        template = template.replace(name, quote(value, safe="."))
    return template


def _with_lines(url: str, form: _Form, first: int, last: int) -> str:
    plain = form.plain if _RENDERED.fullmatch(url, url.rfind(".")) else ""
    return url + plain + (form.one if first == last else form.several).format(first, last)
