"""``/agents/{domain}/ingest``: documents handed in over HTTP, on disk before the answer."""

from __future__ import annotations

from fastapi import APIRouter, Response

from api.ingest_body import IngestBody, IngestDocument
from api.openapi import PROBLEMS, problem_responses
from api.routes.agents import DomainName
from api.schemas import json_response
from api.seen import SeenEngine
from api.state import Served
from nornweave.types import Domain

router = APIRouter(tags=["inbox"], responses={**PROBLEMS, **problem_responses(403)})


@router.post("/agents/{domain}/ingest", response_model=IngestDocument, status_code=202)
async def ingest(domain: DomainName, body: IngestBody, serving: Served) -> Response:
    """Hand documents in. The next sync of the domain indexes them; handing one in again replaces it.

    What is `ACCEPTED` is durable. What is `REJECTED` says why, `duplicate` what is there already; the others are kept.
    """
    serving.check_operates()
    served = serving.agent(domain).domain
    return await serving.writing.run(lambda: _deposited(serving.engine, served, body))


def _deposited(engine: SeenEngine, domain: Domain, body: IngestBody) -> Response:
    documents = engine.deposit(domain, [document.deposit() for document in body.documents])
    return json_response({"documents": documents}, 202)
