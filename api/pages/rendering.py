"""Templates to responses: this module makes every response of the pages, escaped and with its headers."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import Request
from fastapi.responses import FileResponse, Response
from markupsafe import Markup, escape

from api.access.door import VIEWER
from api.access.origins import prefix_of
from api.access.sessions import csrf_token, session_of
from api.errors import ProblemError
from api.pages.addresses import ASK, CONFLICTS, QUALITY, STATUS, age_of, day_of
from api.pages.text_runs import CITE, HIT, UNSEEN, TextRun, runs_of
from api.state import service_of
from nornweave.core.access import Viewer
from nornweave.core.types import present

if TYPE_CHECKING:
    from jinja2 import Environment

NAVIGATION = ((ASK, "Ask"), (CONFLICTS, "Conflicts"), (QUALITY, "Quality"), (STATUS, "Status"), ("/docs", "API"))
FOR_OPERATORS = frozenset({QUALITY, STATUS})
_AWAY = 'rel="noreferrer noopener nofollow" target="_blank"'
# Texts are escaped: a quotation mark before a slash is one of a template.
_OWN_ADDRESS = re.compile(r'(\s(?:href|action|src|data-(?:root|next|copy-link))=")(/(?!/))')
WEB = Path(__file__).parent.parent / "web"
FILES = {
    "/web/page.css": ("page.css", "text/css"),
    "/web/page.js": ("page.js", "text/javascript"),
}


def policy(form_action: str) -> str:
    """Return the content security policy of a page. ``form_action`` is where its forms may be sent."""
    own = ("style-src 'self'", "script-src 'self'", "img-src 'self' data:", "connect-src 'self'")
    nobody = ("base-uri 'none'", "frame-ancestors 'none'")
    return "; ".join(("default-src 'none'", *own, f"form-action {form_action}", *nobody))


HEADERS = {
    "Content-Security-Policy": policy("'self'"),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}
# A page depends on its viewer and on the moment; the same address answers HTML and JSON.
PAGE_HEADERS = {**HEADERS, "Cache-Control": "no-store", "Vary": "Accept, Cookie"}


def html_response(
    request: Request,
    template: str,
    context: Mapping[str, Any],
    status: int = 200,
    *,
    current: str = "",
    json_href: str = "",
) -> Response:
    """Return a whole page: navigation, session, and a link to its data as JSON.

    Args:
        request: for the page.
        current: address of the page in the navigation; empty for none.
        json_href: the address of the same data as JSON; empty for none.
    """
    service = service_of(request)
    session, secret = session_of(request.scope, service.door.secret), service.door.secret
    viewer: Viewer | None = request.scope.get(VIEWER)
    shown = NAVIGATION if viewer else ()
    text = (
        _environment()
        .get_template(template)
        .render(
            navigation=[one for one in shown if (viewer and viewer.operates) or one[0] not in FOR_OPERATORS],
            current=current,
            json_href=json_href,
            may_dismiss=bool(viewer and viewer.operates) and service.sources_file is not None,
            makes_tokens=bool(viewer and viewer.makes_tokens) and service.door.own_tokens is not None,
            csrf=csrf_token(session.value, secret) if session and secret else "",
            alone=service.alone.value if service.alone else "",
            **context,
        )
    )
    if prefix := prefix_of(request.scope):
        text = _OWN_ADDRESS.sub(rf"\1{prefix}\2", text)
    return Response(text, status_code=status, headers=PAGE_HEADERS, media_type="text/html")


def file_response(path: str) -> Response:
    """Return a file of the pages. Its address changes with its contents, so browsers may cache it for long.

    Raises:
        ProblemError: 404, there is no such part.
    """
    if path not in FILES:
        raise ProblemError(404, f"no such path: {path[:200]}")
    name, media_type = FILES[path]
    headers = {**HEADERS, "Cache-Control": "public, max-age=31536000, immutable"}
    return FileResponse(WEB / name, media_type=media_type, headers=headers)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(WEB / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["runs"] = printed
    environment.filters["day"] = day_of
    environment.filters["age"] = lambda moment: age_of(moment, present())
    environment.globals["assets"] = {
        name.partition(".")[2]: f"{path}?v={_version(name)}" for path, (name, _) in FILES.items()
    }
    return environment


def printed(runs: Iterable[TextRun] | str) -> Markup:
    """Return a text or runs as HTML. Neighbouring runs of the same style and link share one element."""
    runs = runs_of(runs) if isinstance(runs, str) else runs
    parts: list[str] = []
    for (style, href), group in groupby(runs, key=itemgetter(2, 3)):
        text = "".join(map(_printed_run, group))
        if style == CITE:
            parts.append(f'<a class="cite" href="{escape(href)}" data-passage>{text}</a>')
            continue
        text = f"<{style}>{text}</{style}>" if style else text
        parts.append(f'<a href="{escape(href)}" {_AWAY}>{text}</a>' if href else text)
    return Markup("".join(parts))  # noqa: S704 - every run is escaped


def _printed_run(run: TextRun) -> str:
    text = str(escape(run.text))
    if run.kind == HIT:
        return f"<mark>{text}</mark>"
    if run.kind == UNSEEN:
        return f'<span class="odd" title="a character that nobody sees">{text}</span>'
    return f'<span class="t-{run.kind}">{text}</span>' if run.kind else text


def _version(name: str) -> str:
    return hashlib.sha256((WEB / name).read_bytes()).hexdigest()[:12]
