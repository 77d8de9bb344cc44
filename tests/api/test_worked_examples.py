"""The worked examples are requests that are right, or wrong as they say, and answers of the declared shape."""

import re
from typing import Any

import pytest
from api_support import Ask, conforms, declared_routes

from api.app import create_app
from api.errors import Problem
from api.openapi import Worked, worked_examples
from lab.record_examples import shortened, with_ids
from nornweave.config import Settings
from nornweave.core.types import Domain

by_name = pytest.mark.parametrize("example", worked_examples(), ids=lambda example: example.name)


@pytest.fixture(scope="module")
def routes(published: Settings) -> dict[tuple[str, str], Any]:
    """Routes with what they declare, by method and path."""
    app = create_app(published, agent=Domain.CODE, environment={})
    found = {}
    for path, route in declared_routes(app.router.routes):
        if getattr(route, "response_model", None):
            found.update(
                dict.fromkeys(((method.lower(), path.replace(":path}", "}")) for method in route.methods), route)
            )
    return found


@by_name
def test_its_body_is_one_that_is_taken(routes: dict[tuple[str, str], Any], example: Worked) -> None:
    # The keys of a source are known to its connector alone, those of an event to the service that sends it.
    if example.body is not None and example.status < 400 and example.path not in {"/sources", "/hooks/{service}"}:
        (body,) = routes[example.method, example.path].dependant.body_params
        body.field_info.annotation.model_validate(example.body)


@by_name
def test_its_answer_has_the_declared_shape(routes: dict[tuple[str, str], Any], example: Worked) -> None:
    if example.status >= 400:
        conforms(Problem, example.answer)
    elif example.media_type == "text/plain":
        assert isinstance(example.answer, str) and example.answer
    else:
        conforms(routes[example.method, example.path].response_model, example.answer)


def test_every_operation_has_one_with_its_request_and_answer(look: Ask) -> None:
    document = look("GET", "/openapi.json", app={"agent": Domain.CODE}).json()
    for path, operations in document["paths"].items():
        for operation in operations.values():
            kinds = [
                kind for status, answer in operation["responses"].items() if status < "300"
                for kind in answer.get("content", {}).values()
            ]  # fmt: skip
            assert any(kind.get("examples") for kind in kinds), path
            if "requestBody" in operation:
                assert operation["requestBody"]["content"]["application/json"]["examples"], path
            for parameter in operation.get("parameters", ()):
                assert "example" in parameter or not parameter["required"], (path, parameter["name"])


def test_a_later_request_names_the_ids_of_todays_answers() -> None:
    judged = next(example for example in worked_examples() if example.name == "useful")
    ids = {str(judged.body[key]): f"new {key}" for key in ("query_id", "chunk_id")}  # type: ignore[index,call-overload]
    assert with_ids(judged, ids).body == {"query_id": "new query_id", "chunk_id": "new chunk_id", "useful": True}
    assert with_ids(judged, {}) == judged


def test_nothing_of_the_machine_that_recorded_is_in_them() -> None:
    for example in worked_examples():
        assert not re.search(r"/(?:home|root|tmp|Users|work)/", str(example.answer)), example.name


def test_the_first_shows_a_conflict_and_its_resolution() -> None:
    first: Any = worked_examples()[0].answer
    assert any(conflict["resolved_to"] in conflict["items"] for conflict in first["conflicts"])


def test_long_texts_and_lists_are_shortened() -> None:
    assert shortened({"a": "x" * 500, "b": list(range(20)), "c": ["y"]}) == {
        "a": "x" * 400 + " …", "b": list(range(8)), "c": ["y"],
    }  # fmt: skip
