"""Documents that are handed in: as JSON, or as files in ``multipart/form-data``, each read by the format its name says.

The parts of a form: ``file`` (repeated), whose file name is its place in the inbox; ``path``, a folder to put before
every name; ``metadata``, a JSON object that every file gets; ``source_updated_at``.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import Request
from pydantic import AfterValidator, Field, StringConstraints, ValidationError
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from typing_extensions import TypedDict

from api.errors import ProblemError, field_problem
from api.requests import Body, Parameters
from nornweave.ask.views.texts import Deposit, DepositDocument
from nornweave.core.errors import QueryError
from nornweave.core.text.checked_values import MAX_LINE_CHARACTERS, Moment, PlainJson, textual
from nornweave.core.types import freeze

MAX_DOCUMENTS = 1_000
MAX_DOCUMENT_BYTES = 10 * 1024 * 1024


class HandedInBody(Body):
    """A document to index."""

    source_path: Annotated[
        str,
        StringConstraints(max_length=MAX_LINE_CHARACTERS),
        AfterValidator(textual),
        Field(
            description="Its place and identity in the inbox, such as `runbooks/refunds.md`; the suffix is its format."
        ),
    ]
    content: Annotated[
        str,
        AfterValidator(textual),
        Field(description="Text. A body of JSON has 1 MiB at most; larger documents are sent as files."),
    ]
    metadata: Annotated[PlainJson, Field(description="Any JSON; `author`, `title`, `url`, `tags` are known.")] = {}
    source_updated_at: Annotated[
        Moment | None, Field(description="When it changed last; UTC unless it says otherwise.")
    ] = None

    def deposit(self) -> Deposit:
        """Return the document as a file for the inbox."""
        return Deposit(
            source_path=self.source_path,
            content=self.content,
            metadata=freeze(self.metadata),
            source_updated_at=self.source_updated_at,
        )


class IngestBody(Body):
    """Documents for the inbox of one domain."""

    documents: Annotated[list[HandedInBody], Field(min_length=1, max_length=MAX_DOCUMENTS)]


class IngestDocument(TypedDict):
    """The outcome of each document, in the order of the request."""

    documents: list[DepositDocument]


MEDIA_TYPE = "multipart/form-data"
MAX_FILES = 1_000
MAX_FIELDS = 10
MAX_FIELD_BYTES = 512 * 1024
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["file"],
    "properties": {
        "file": {
            "type": "array",
            "items": {"type": "string", "format": "binary"},
            "description": "Files of at most 10 MiB; the file name is the place in the inbox, its suffix the format.",
        },
        "path": {"type": "string", "description": "A folder to put before every file name."},
        "metadata": {"type": "string", "description": "A JSON object, for every file."},
        "source_updated_at": {"type": "string", "description": "When they changed last; UTC unless it says otherwise."},
    },
}


class _Fields(Parameters):
    path: Annotated[str, StringConstraints(max_length=MAX_LINE_CHARACTERS)] = ""
    metadata: PlainJson = Field(default_factory=dict)
    source_updated_at: Moment | None = None


def is_multipart(content_type: str) -> bool:
    """Tell whether a content type is ``multipart/form-data``."""
    return content_type.partition(";")[0].strip().lower() == MEDIA_TYPE


async def read_files(request: Request) -> list[Deposit]:
    """Return the files of a request, in order.

    Raises:
        ProblemError: 400, the body does not match its content type.
        QueryError: there is no file, a file is too large, or a field is wrong.
    """
    try:
        async with request.form(max_files=MAX_FILES, max_fields=MAX_FIELDS, max_part_size=MAX_FIELD_BYTES) as form:
            fields = _fields([(name, value) for name, value in form.multi_items() if isinstance(value, str)])
            files = [(name, value) for name, value in form.multi_items() if isinstance(value, UploadFile)]
            if not files:
                raise QueryError("file", "is missing; send at least one part `file` with a file name")
            return [await _deposit(name, value, number, fields) for number, (name, value) in enumerate(files)]
    except HTTPException as error:
        if isinstance(error, ProblemError):
            raise
        raise ProblemError(400, f"the body is not valid {MEDIA_TYPE}: {error.detail}") from error


def _fields(pairs: list[tuple[str, str]]) -> _Fields:
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            raise QueryError(name[:80], "given twice; it takes one value")
        values[name] = value
    try:
        if "metadata" in values:
            values["metadata"] = json.loads(values["metadata"])
        return _Fields.model_validate(values)
    except (json.JSONDecodeError, RecursionError) as error:
        raise QueryError("metadata", f"is not JSON: {error}; expected an object") from error
    except ValidationError as error:
        problem = field_problem({**error.errors()[0], "loc": ("body", *error.errors()[0]["loc"])})
        raise QueryError(problem["field"], problem["detail"]) from error


async def _deposit(name: str, file: UploadFile, number: int, fields: _Fields) -> Deposit:
    where = f"file.{number}"
    if name != "file":
        raise QueryError(name[:80], "unknown part; files are parts called `file`")
    if not file.filename:
        raise QueryError(where, "has no file name, which is its place in the inbox")
    if (file.size or 0) > MAX_DOCUMENT_BYTES:
        raise QueryError(where, f"{file.size:,} bytes; allowed are {MAX_DOCUMENT_BYTES:,}")
    folder = fields.path.strip("/")
    return Deposit(
        source_path=f"{folder}/{file.filename}" if folder else file.filename,
        content=await file.read(),
        metadata=freeze(fields.metadata),
        source_updated_at=fields.source_updated_at,
    )
