"""Whatever ``/openapi.json`` allows or forbids: no answer is a 5xx, and every answer is one that it declares."""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, find, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.python.asgi import ASGIClient, get_client
from schemathesis.schemas import BaseSchema
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from scripted_engine import ScriptedEngine, copied

from api.app import create_app
from nornweave.ask.engine import Engine
from nornweave.config import Settings
from nornweave.core.types import Domain

# Every kind of input has come by the 16th: empty, null, nested, long, large, of other alphabets, of wrong types.
EXAMPLES = 30
LONGER = settings(max_examples=2000, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
OPERATIONS = 45
# What is right starts a process that looks everywhere, for longer than a fuzzer waits: test_receipts_route.py asks.
SLOW = ("/receipts",)
# The schema does not know the keys of each kind of source.
OF_A_KIND = ("/sources",)
# Nobody can join this app, for no configuration allows a made-up address, and no answer has a made-up id: what is right
# is answered with 404.
UNKNOWN = ("/agents/register", "/agents/{agent_id}/heartbeat", "/feedback", "/why", "/tokens")
# No source of this app has a secret, so nothing is signed: test_hooks_route.py signs.
SIGNED = ("/hooks/{service}",)
CHECKS: list[Any] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


class RunningEngine(ScriptedEngine):
    """Runs for as long as the fixture, however often the app starts and ends: schemathesis does so for each request."""

    def start(self, **_: bool) -> None:
        """Has started."""

    def close(self) -> None:
        """Is closed by the fixture."""


@pytest.fixture(scope="module")
def served(published: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[BaseSchema, ASGIClient]]:
    """The description of an app, and a client that runs it."""
    settings = copied(published, tmp_path_factory.mktemp("fuzzed"))
    engine = RunningEngine(settings)
    Engine.start(engine, watch=False)
    app = create_app(settings, engine, environment={}, agent=Domain.CODE)
    with get_client(app) as client:
        yield schemathesis.openapi.from_asgi("/openapi.json", app), client
    Engine.close(engine)


@pytest.mark.slow
@pytest.mark.parametrize("place", range(OPERATIONS))
def test_every_answer_is_declared(served: tuple[BaseSchema, ASGIClient], place: int) -> None:
    schema, client = served
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) == OPERATIONS
    operation = operations[place]
    cases = operation.as_strategy(
        generation_mode=GenerationMode.NEGATIVE if operation.path in SLOW else GenerationMode.POSITIVE
    )
    if operation.body or operation.query or operation.path_parameters:  # else there is nothing to get wrong
        cases |= operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)

    @given(case=cases)
    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
    def check(case: Case) -> None:
        statuses.add(answer(case))

    def answer(case: Case) -> int:
        response = case.call(session=client)
        case.validate_response(response, checks=CHECKS)
        return response.status_code

    statuses: set[int] = set()
    check()
    if operation.path in SIGNED:
        right, declared = {401}, {401, 404, 405}
    else:
        right = {404} if operation.path in UNKNOWN else {422} if operation.path in (*SLOW, *OF_A_KIND) else {200, 202}
        # 413: what is drawn for /fuse is now and then larger than a body may be, which is declared.
        declared = {200, 201, 202, 204, 400, 404, 405, 409, 413, 422}
    assert statuses <= declared
    if operation.body:
        assert operation.path in SIGNED or 422 in statuses, "what is wrong was tried"
        if not statuses & right:  # what is drawn depends on the modules that are loaded: a right body may come late
            find(cases, lambda case: answer(case) in right, settings=LONGER)
