"""``/tokens``: the tokens that people make for their programs, as operations and as a page."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Literal, cast

from fastapi import APIRouter, Query, Response
from fastapi import Path as InPath
from pydantic import AfterValidator, Field, StringConstraints, ValidationError
from starlette.requests import Request
from starlette.routing import Route
from typing_extensions import TypedDict

from api.access.tokens import MAX_EACH, OwnToken, OwnTokens, Scope
from api.errors import ProblemError
from api.openapi import problem_responses
from api.pages.addresses import TOKENS, TOKENS_FORM
from api.pages.rendering import HtmlRoute, html_response, shown
from api.requests import Body
from api.routes.login import browsers_form
from api.schemas import json_response
from api.state import Served, Serving, serving_of
from nornweave.core.access import HELD, storable_groups
from nornweave.core.errors import QueryError
from nornweave.core.text.checked_values import textual


class TokenBody(Body):
    """The token that is wanted."""

    name: Annotated[
        str,
        StringConstraints(strip_whitespace=True, min_length=1, max_length=100),
        AfterValidator(textual),
        Field(description="What it is for."),
    ]
    scope: Annotated[Scope, Field(description="`operate` is for operators, and sees everything.")] = "ask"
    expires_in_days: Annotated[int, Field(ge=1, le=366, description="At most `max_days` of `GET /tokens`.")] = 30


class TokenDocument(TypedDict):
    """A token that was made, without its secret, which is not stored."""

    id: str
    name: str
    scope: Scope
    groups: list[str]
    maker: str
    made_at: str
    expires_at: str
    used_on: Annotated[str | None, Field(description="the last day, UTC")]


class MadeTokenDocument(TokenDocument):
    """A new token with its secret."""

    token: Annotated[str, Field(description="is shown this once")]


class TokensDocument(TypedDict):
    """Tokens, oldest first."""

    tokens: list[TokenDocument]
    max_days: int


class RevokedToken(TypedDict):
    """A token that is not valid any more."""

    id: str
    status: Literal["REVOKED"]


router = APIRouter(prefix=TOKENS, tags=["tokens"], responses=problem_responses(401, 403, 404, 421, 422, 500, 503))


@router.get("", response_model=TokensDocument)
async def tokens(
    serving: Served,
    everybodys: Annotated[bool, Query(alias="all", description="Those of everybody; for operators.")] = False,
) -> Response:
    """List the tokens that you made, without their secrets."""
    return json_response(await list_tokens(serving, everybodys=everybodys))


@router.post("", response_model=MadeTokenDocument, status_code=201, responses=problem_responses(400, 409, 413, 415))
async def make(body: TokenBody, serving: Served) -> Response:
    """Make a token for a program.

    It may ask with your present groups or, if you are an operator, operate the service. It is shown only once.
    """
    return json_response(await make_token(serving, body), 201)


@router.delete("/{token_id}", response_model=RevokedToken)
async def revoke(token_id: Annotated[str, InPath(description="As `GET /tokens` has it.")], serving: Served) -> Response:
    """Revoke a token of yours; operators may revoke any. It is refused from the next request on."""
    await revoke_token(serving, token_id)
    return json_response({"id": token_id, "status": "REVOKED"})


def own_tokens_of(serving: Serving) -> OwnTokens:
    """Return the store of people's tokens, if this viewer may make some.

    Raises:
        ProblemError: 404, nobody makes tokens here; 403, this viewer may not.
    """
    if serving.door.own_tokens is None:
        raise ProblemError(404, "nobody makes tokens here: configure `access:`, and no `max_token_days: 0` in it")
    if not serving.viewer.makes_tokens:
        raise ProblemError(403, "tokens are made by people; a token that somebody made makes no others")
    return serving.door.own_tokens


async def list_tokens(serving: Serving, *, everybodys: bool = False) -> TokensDocument:
    """Return the viewer's own tokens; with ``everybodys`` the tokens of everybody, which only operators may see."""
    own = own_tokens_of(serving)
    if everybodys:
        serving.viewer.check_operates()
    found = await serving.lookups.run(lambda: own.listed(None if everybodys else serving.viewer.name))
    return {"tokens": list(map(_document, found)), "max_days": serving.door.max_token_days}


async def make_token(serving: Serving, body: TokenBody) -> MadeTokenDocument:
    """Make a token for a viewer, and return it with its secret.

    Raises:
        NotPermittedError: an operator's token is wanted, and the viewer is not an operator.
        QueryError: the wanted lifetime is too long.
        ProblemError: 409, the viewer has too many tokens.
    """
    own, viewer, max_days = own_tokens_of(serving), serving.viewer, serving.door.max_token_days
    if body.scope == "operate":
        viewer.check_operates()
    if body.expires_in_days > max_days:
        raise QueryError("expires_in_days", f"at most {max_days} here (`access.max_token_days`)")
    new = await serving.writing.run(
        lambda: own.make(viewer.name, body.name, storable_groups(viewer.groups), body.scope, body.expires_in_days)
    )
    if new is None:
        raise ProblemError(409, f"you have {MAX_EACH} tokens; revoke one that nothing uses")
    secret, token = new
    return {**_document(token), "token": secret}


async def revoke_token(serving: Serving, token_id: str) -> None:
    """Revoke a token.

    Raises:
        ProblemError: 404, the viewer has no token with this id.
    """
    own, viewer = own_tokens_of(serving), serving.viewer
    maker = None if viewer.operates else viewer.name
    if not await serving.writing.run(lambda: own.revoke(token_id, maker)):
        raise ProblemError(404, f"you have no token {token_id[:80]!r}")


def _document(token: OwnToken) -> TokenDocument:
    shown = {name: each for name, each in asdict(token).items() if name != "hashed"}
    groups = [group for group in token.groups if not group.startswith(HELD)]
    return cast(TokenDocument, {**shown, "groups": groups})


async def page(request: Request, new: MadeTokenDocument | None = None) -> Response:
    """Show the viewer's tokens and a form for a new one. ``new`` and its secret are shown only this once."""
    serving = serving_of(request)
    context = {**await list_tokens(serving), "new": new, "operates": serving.viewer.operates}
    return html_response(request, "tokens.html", context, current=TOKENS)


async def change(request: Request) -> Response:
    """Make the form's token and show it, or revoke the token that the form names."""
    serving, fields = serving_of(request), await browsers_form(request)
    if token_id := fields.get("revoke"):
        await revoke_token(serving, token_id)
        return await page(request)
    return await page(request, await make_token(serving, _of_form(fields)))


def _of_form(fields: Mapping[str, str]) -> TokenBody:
    days = fields.get("expires_in_days", "")
    try:
        given = {"name": fields.get("name", ""), "scope": fields.get("scope", "ask")}
        return TokenBody(**given, expires_in_days=int(days) if re.fullmatch("[0-9]{1,4}", days) else 0)  # type: ignore[arg-type]
    except ValidationError as error:
        raise QueryError(str(error.errors()[0]["loc"][0]), error.errors()[0]["msg"]) from error


routes = [
    HtmlRoute(TOKENS, shown(page), methods=["GET"]),
    Route(TOKENS_FORM, shown(change), methods=["POST"]),
]
