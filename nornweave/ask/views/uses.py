"""The uses of a name, and the imports of a file, as JSON."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict  # pydantic refuses typing.TypedDict before Python 3.12

from nornweave.read.chunking.references import ReferenceKind


class NamedDefinitionDocument(TypedDict):
    """A definition with this name."""

    source_id: str
    path: str
    line: int
    name: Annotated[str, Field(description="with what is around it: `Ledger.add`")]


class ReferenceDocument(TypedDict):
    """Places in a document that use the name in one way."""

    source_id: str
    path: str
    lines: list[int]
    kind: ReferenceKind
    certainty: Annotated[
        Literal["resolved", "by_name"], Field(description="`by_name`: it is called so, and may be something else")
    ]
    definition: Annotated[str | None, Field(description="`path:line` of the one that is meant, where that is certain")]


class NotLookedAtDocument(TypedDict):
    """Documents that hold the name and were not read."""

    documents: Annotated[int | None, Field(description="how many; null: nobody knows")]
    reason: str


class UsesDocument(TypedDict):
    """Uses of a name in source code, by source, path and line."""

    name: str
    definitions: list[NamedDefinitionDocument]
    references: list[ReferenceDocument]
    resolved: Annotated[int, Field(description="lines whose reference is certain")]
    by_name: Annotated[int, Field(description="lines that have the name, and perhaps mean another one")]
    documents: Annotated[int, Field(description="that were looked at: all that hold the word, but those below")]
    not_looked_at: list[NotLookedAtDocument]
    more: Annotated[int, Field(description="references that are left out to keep this short")]


class DependencyDocument(TypedDict):
    """A file at the other end of an import."""

    path: str
    lines: Annotated[list[int], Field(description="of the statements, in the file that imports")]
    names: Annotated[list[str], Field(description="that are taken from there")]


class GraphDocument(TypedDict):
    """The imports of a file, and the files that import it."""

    source_id: str
    path: str
    depends_on: list[DependencyDocument]
    used_by: list[DependencyDocument]
    outside: Annotated[list[str], Field(description="modules that are no file of the source, or not certainly one")]
    not_looked_at: list[NotLookedAtDocument]
