"""A linear map of query vectors, learnt from a domain's commits and stored in a generation's manifest."""

from __future__ import annotations

import base64
import json
import logging
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from nornweave.core.files.writing import write_whole
from nornweave.index.port import Vectors

log = logging.getLogger(__name__)

RANK = 32
"""Directions that a map changes; what is beyond them adds nothing to what answers."""


class QueryMap(BaseModel):
    """The map ``q → q + up · down · q`` of query vectors. The result is normalised.

    Attributes:
        encoder: the version of the encoder whose vectors it maps.
        shape: rank and dimensions.
        factors: ``down``, then the transpose of ``up``, in half precision, in base64.
        fitted_at: when it was learnt, as ISO 8601 in UTC.
        examples: the number of commits that it was learnt from.
        tested: the number of commits that tested maps learnt from older commits.
        before, after: the share of tested commits for which a changed file is among the first three results, without
            a map and with one.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    encoder: str
    shape: tuple[Annotated[int, Field(ge=1, le=4096)], Annotated[int, Field(ge=1, le=16384)]]
    factors: str
    fitted_at: str
    examples: int = Field(ge=0)
    tested: int = Field(0, ge=0)
    before: float = Field(0, ge=0, le=1)
    after: float = Field(0, ge=0, le=1)

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if len(base64.b64decode(self.factors, validate=True)) != 4 * self.shape[0] * self.shape[1]:
            raise ValueError("the factors of the query map are of another shape")
        if not np.isfinite(_numbers(self.factors, self.shape)).all():
            raise ValueError("the factors of the query map are no numbers")
        return self

    def apply(self, vector: Vectors) -> Vectors:
        """Return the map's result for a normalised query vector, normalised again."""
        down, up = _numbers(self.factors, self.shape)
        mapped = vector + (down @ vector) @ up
        length = np.linalg.norm(mapped)
        return np.asarray(mapped / length if length else vector, np.float32)


@lru_cache(maxsize=16)
def _numbers(factors: str, shape: tuple[int, int]) -> NDArray[np.float32]:
    return np.frombuffer(base64.b64decode(factors), np.float16).astype(np.float32).reshape(2, *shape)


@dataclass(frozen=True, slots=True)
class QueryMapReport:
    """The result of learning a map.

    Attributes:
        reason: why the map is used or not used.
        at: when it was learnt, as ISO 8601 in UTC.
        gain: how much the share of questions with a hit among the first three rose; ``None`` if nothing was tested.
        interval: the 95 % interval of ``gain``.
        newest: when the newest example was made, as ISO 8601.
        generation: the generation that was published with the result; ``None`` if none was.
        learnt_at: when the map to use was learnt; empty if no map is used.
        query_map: the map to use. It is not stored in the file.
    """

    reason: str
    at: str
    examples: int = 0
    tested: int = 0
    gain: float | None = None
    interval: tuple[float, float] | None = None
    newest: str = ""
    generation: str | None = None
    learnt_at: str = ""
    query_map: QueryMap | None = None


NAME = "query_map.json"
TURNED_OFF = "the plan of the domain turns it off (`plan: {query_map: false}`)"


def write_report(folder: Path, report: QueryMapReport) -> None:
    """Replace the report of the last learning."""
    write_whole(folder / NAME, json.dumps(asdict(replace(report, query_map=None)), ensure_ascii=False))


def read_report(folder: Path) -> QueryMapReport | None:
    """Return the report that ``write_report`` stored; ``None`` if there is none."""
    try:
        return QueryMapReport(**json.loads((folder / NAME).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        log.warning("%s: cannot be read: %s", folder / NAME, error)
        return None


def factors_of(change: NDArray[np.float64], rank: int = RANK) -> tuple[tuple[int, int], str]:
    """Return ``shape`` and ``factors`` of the matrix of a rank that is closest to ``change`` (Eckart & Young 1936)."""
    left, sizes, right = np.linalg.svd(change)
    rank = min(rank, len(sizes))
    roots = np.sqrt(sizes[:rank])
    factors = np.stack([roots[:, None] * right[:rank], (left[:, :rank] * roots).T])
    return (rank, len(change)), base64.b64encode(factors.astype(np.float16).tobytes()).decode("ascii")
