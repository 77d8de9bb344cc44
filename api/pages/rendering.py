"""Templates to responses: everything that a page sends goes through here, escaped and with its headers."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi.responses import FileResponse, Response

from api.errors import ProblemError

if TYPE_CHECKING:
    from jinja2 import Environment

WEB = Path(__file__).parent.parent / "web"
FILES = {
    "/web/page.css": ("page.css", "text/css"),
    "/web/page.js": ("page.js", "text/javascript"),
}
POLICY = "; ".join(
    (
        "default-src 'none'",
        "style-src 'self'",
        "script-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}
# What is shown depends on who asks and on the moment; the same address answers HTML and JSON.
PAGE_HEADERS = {**HEADERS, "Cache-Control": "no-store", "Vary": "Accept, Cookie"}


def html_response(template: str, context: dict[str, Any], status: int = 200) -> Response:
    """Return a page."""
    text = _environment().get_template(template).render(**context)
    return Response(text, status_code=status, headers=PAGE_HEADERS, media_type="text/html")


def file_response(path: str) -> Response:
    """Return a part of the pages; its address changes with its contents, so it may be kept for long.

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
    environment.globals["assets"] = {
        name.partition(".")[2]: f"{path}?v={_version(name)}" for path, (name, _) in FILES.items()
    }
    return environment


def _version(name: str) -> str:
    return hashlib.sha256((WEB / name).read_bytes()).hexdigest()[:12]
