"""``/docs``: the API's description as a page, from files of this machine alone.

The page and its scripts are public software and open; what they show, ``/openapi.json``, asks for the token.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import FileResponse, Response

from api.errors import ProblemError
from api.pages import rendering
from api.pages.rendering import WEB, policy

PAGE = "/docs"
# Swagger UI 5 sets no inline scripts; its icons are `data:` pictures.
HEADERS = {**rendering.HEADERS, "Content-Security-Policy": policy("'none'"), "Cache-Control": "no-cache"}


def _swagger_folder() -> Path:
    """Return the folder with Swagger UI's files in the package ``fastapi-offline``."""
    found = find_spec("fastapi_offline")
    if found is None or found.origin is None:
        raise FileNotFoundError("the package fastapi-offline is not installed")
    return Path(found.origin).parent / "static"


FILES = {
    f"{PAGE}/docs.js": (WEB / "docs.js", "text/javascript"),
    f"{PAGE}/docs.css": (WEB / "docs.css", "text/css"),
    f"{PAGE}/swagger-ui-bundle.js": (_swagger_folder() / "swagger-ui-bundle.js", "text/javascript"),
    f"{PAGE}/swagger-ui.css": (_swagger_folder() / "swagger-ui.css", "text/css"),
    f"{PAGE}/favicon.png": (_swagger_folder() / "favicon.png", "image/png"),
}
OPEN_PATHS = frozenset({PAGE, *FILES})

router = APIRouter(include_in_schema=False)


@router.get(PAGE)
def page() -> Response:
    """Show the API's description."""
    return FileResponse(WEB / "docs.html", media_type="text/html", headers=HEADERS)


@router.get(PAGE + "/{name}")
def part(name: str) -> Response:
    """Return a file of the page. A name that is not one of its files gets a 404."""
    if f"{PAGE}/{name}" not in FILES:
        raise ProblemError(404, f"no such path: {PAGE}/{name}")
    path, media_type = FILES[f"{PAGE}/{name}"]
    return FileResponse(path, media_type=media_type, headers=HEADERS)
