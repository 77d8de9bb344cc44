"""``/hooks/{service}``: events of services about changes. They are authenticated by a signature, not by a token.

Nothing is read or synced here: an event is checked and stored (``connect/hooks.py``); the process that runs syncs
(``orchestration/webserver.py``) finds it there.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from pydantic import Field
from typing_extensions import TypedDict

from api.errors import ProblemError, encodable, unavailable
from api.openapi import OPEN_OPERATION, problem_responses
from api.schemas import json_response
from api.state import service_of
from nornweave.connect.hooks import SERVICES, HookKeys, HookQueue, ReplayedError, find_sources, marks_of

OPEN_PATHS = frozenset(f"/hooks/{service}" for service in SERVICES)
# Slack repeats a refused event three times, unless this header forbids it.
REFUSED = {"WWW-Authenticate": 'Signature realm="nornweave"', "X-Slack-No-Retry": "1"}
RETRY_REPLICA_S = 3_600

router = APIRouter(tags=["hooks"], responses=problem_responses(400, 401, 404, 409, 413, 421, 422, 500, 503))


class HookDocument(TypedDict):
    """The outcome of an event."""

    sources: Annotated[int, Field(description="that will be synced; 0 where the event is about none of them")]
    waiting: Annotated[int, Field(description="of these, how many waited for a sync already")]


class ChallengeDocument(TypedDict):
    """The reply that Slack expects when the address is configured."""

    challenge: str


@router.post(
    "/hooks/{service}",
    response_model=HookDocument,
    status_code=202,
    responses={200: {"model": ChallengeDocument, "description": "Slack's check of the address"}},
    openapi_extra={
        **OPEN_OPERATION,
        "requestBody": {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}},
    },
)
async def hook(
    service: Annotated[str, Path(description="`github`, `gitlab`, `slack`, `confluence` or `jira`.")], request: Request
) -> Response:
    """Take an event that a service posts when something changed, as JSON; its sources are synced within seconds.

    It is signed with the secret that `webhook_secret_env` of a source names. An event with another or an old signature
    (Slack) is refused with 401; a repeated event with 409. An accepted event is stored.
    """
    if service not in SERVICES:
        raise ProblemError(404, f"no service {service[:80]!r}; expected {', '.join(SERVICES)}")
    outcomes = request.app.state.metrics.hooks
    try:
        document, outcome = await _take_event(service, request)
    except ProblemError as error:
        outcomes.labels(service, {401: "refused", 409: "replayed"}.get(error.status_code, "invalid")).inc()
        raise
    outcomes.labels(service, outcome).inc()
    return json_response(document, 200 if "challenge" in document else 202)


async def _take_event(service: str, request: Request) -> tuple[HookDocument | ChallengeDocument, str]:
    """Check an event and store it. Return the answer, and the name of the outcome for metrics.

    Raises:
        ProblemError: 401, 409, 413 or 422; 503, this is a replica, or too many events wait.
        StoreError: the event cannot be written.
    """
    keys: HookKeys = request.app.state.hook_keys
    if keys.settings.replica_of:
        raise unavailable("replica", "a replica takes no events; send them where it is published", RETRY_REPLICA_S)
    body = await request.body()
    signers = keys.signers(service, request.headers, body, time.time())
    if not signers:
        detail = "the signature is missing, wrong or too old, or no source has a secret for this service"
        raise ProblemError(401, detail, headers=REFUSED)
    event = _read_event(body)
    if service == "slack" and event.get("type") == "url_verification":
        return {"challenge": encodable(str(event.get("challenge", "")))}, "accepted"
    sources = find_sources(service, event, signers)
    put = partial(HookQueue(keys.settings.data_dir).put, marks_of(service, request.headers, body), sources)
    try:
        added = await service_of(request).writing.run(put)
    except ReplayedError as error:
        raise ProblemError(409, str(error), kind="replayed", headers={"X-Slack-No-Retry": "1"}) from error
    outcome = "coalesced" if sources and not added else "accepted"
    return {"sources": len(sources), "waiting": len(sources) - added}, outcome


def _read_event(body: bytes) -> Mapping[str, Any]:
    """Return the event in a body.

    Raises:
        ProblemError: 422, the body is not a JSON object.
    """
    try:
        event = json.loads(body)
    except (ValueError, RecursionError):
        event = None
    if not isinstance(event, dict):
        raise ProblemError(422, "the body is no JSON object; choose application/json where the webhook is configured")
    return event
