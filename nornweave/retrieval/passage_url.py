"""Add the lines of a passage to the address of the file that it stands in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

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


def passage_url(url: str | None, line_range: tuple[int, int] | None) -> str | None:
    """Return the address that opens a passage: with its lines where the address is one of a file of a commit.

    Args:
        url: of the document.
        line_range: first and last line, from 1; ``None`` where the passage has no lines.
    """
    if url is None or line_range is None:
        return url
    form = next((form for form in _FORMS if form.place.fullmatch(url)), None)
    if form is None:
        return url
    first, last = line_range
    plain = form.plain if _RENDERED.fullmatch(url, url.rfind(".")) else ""
    return url + plain + (form.one if first == last else form.several).format(first, last)
