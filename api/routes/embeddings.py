"""``/v1/embeddings``: vectors of questions, in OpenAI's shape.

Shape: https://platform.openai.com/docs/api-reference/embeddings.
"""

from __future__ import annotations

import base64
from typing import Annotated, Literal

import numpy as np
from fastapi import APIRouter, Response
from pydantic import BeforeValidator, ConfigDict, Field, StringConstraints
from typing_extensions import TypedDict  # pydantic refuses typing.TypedDict before Python 3.12

from api.errors import RETRY_SOON_S, unavailable
from api.openapi import problem_responses
from api.requests import Body
from api.requests.chat import ModelName, Text, model_domains, named
from api.schemas import json_response
from api.state import Served, arrive
from nornweave.ask.answer.context_budget import estimate_tokens
from nornweave.core.errors import EncoderError, QueryError
from nornweave.core.text.checked_values import MAX_QUERY_CHARACTERS
from nornweave.index.port import Vectors

router = APIRouter(prefix="/v1", tags=["chat"], responses=problem_responses(401, 421, 500))

MAX_INPUTS = 64
Input = Annotated[Text, StringConstraints(min_length=1, max_length=MAX_QUERY_CHARACTERS)]


class EmbeddingsBody(Body):
    """The texts to encode. Fields that are not used are ignored, and named in ``warnings``."""

    model_config = ConfigDict(extra="allow")

    model: ModelName
    input: Annotated[
        list[Input],
        BeforeValidator(
            lambda given: [given] if isinstance(given, str) else given, json_schema_input_type=str | list[str]
        ),
        Field(min_length=1, max_length=MAX_INPUTS, description="One text, or several; numbers of tokens are not read."),
    ]
    encoding_format: Annotated[
        Literal["float", "base64"] | None, Field(description="`base64` are 32-bit floats, little-endian.")
    ] = None
    dimensions: Annotated[int | None, Field(ge=1, description="Those of the model; no other number is made.")] = None


class EmbeddingDocument(TypedDict):
    """The vector of a text, of length 1."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class EmbeddingsDocument(TypedDict):
    """The vectors of all texts, in their order."""

    object: Literal["list"]
    data: list[EmbeddingDocument]
    model: str
    usage: Annotated[dict[str, int], Field(description="tokens, estimated at four characters each")]
    warnings: list[str]


@router.post(
    "/embeddings",
    response_model=EmbeddingsDocument,
    responses=problem_responses(400, 413, 415, 422, 429, 503),
)
async def embeddings(body: EmbeddingsBody, serving: Served) -> Response:
    """Encode texts with the encoder of a domain, as questions. The model `nornweave:code` is the encoder of `code`.

    The model `nornweave` is the encoder of all domains, if all have the same one.
    """
    models = model_domains(serving.domains)
    if body.model not in models:
        raise QueryError("model", f"{body.model!r} is not served; served: {', '.join(models)}")
    agents = [agent for agent in serving.agents if agent.domain in (models[body.model] or serving.domains)]

    def encode() -> Vectors:
        if len({agent.encoder_version for agent in agents}) > 1:
            raise QueryError("model", f"its domains have different encoders; name one: {', '.join([*models][1:])}")
        return agents[0].encode(body.input)

    question = arrive(serving.timeout_ms, serving.viewer)
    try:
        vectors = await serving.questions.run(encode, question.left_s)
    except EncoderError as error:
        raise unavailable("no-encoder", str(error), RETRY_SOON_S) from error
    if body.dimensions not in {None, vectors.shape[1]}:
        raise QueryError("dimensions", f"{body.dimensions}; the model has {vectors.shape[1]}")
    tokens = sum(map(estimate_tokens, body.input))
    ignored = [name for name, value in (body.model_extra or {}).items() if value is not None]
    document: EmbeddingsDocument = {
        "object": "list",
        "data": [
            {"object": "embedding", "index": place, "embedding": _written(vector, body.encoding_format)}
            for place, vector in enumerate(vectors)
        ],
        "model": body.model,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        "warnings": [f"ignored fields that are not used: {named(ignored)}"] if ignored else [],
    }
    return json_response(document)


def _written(vector: Vectors, encoding: str | None) -> list[float] | str:
    if encoding == "base64":
        return base64.b64encode(np.ascontiguousarray(vector, "<f4").tobytes()).decode()
    values: list[float] = vector.tolist()
    return values
