"""Whether a domain's query map is in force, and why, as ``GET /quality`` and ``nornweave status`` show it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from nornweave.carry.wiring import domain_folder, store_of
from nornweave.config import Settings
from nornweave.core.types import Domain
from nornweave.index.query_map import TURNED_OFF, read_report


class QueryMapDocument(TypedDict):
    """The state of a query map, which is learnt from commits."""

    in_force: bool
    gain: Annotated[
        float | None, Field(description="in commits with a changed file among the first three; null: none was tested")
    ]
    interval: Annotated[list[float] | None, Field(description="95 %, of the gain, where it was learnt here")]
    examples: Annotated[int, Field(description="commits that it was learnt from")]
    tested: Annotated[int, Field(description="newer commits that it was tested with")]
    reason: str
    learnt_at: Annotated[str | None, Field(description="ISO 8601, UTC; null: never here")]


def query_map_document(settings: Settings, domain: Domain) -> QueryMapDocument:
    """Return whether the published generation has a query map in force, with its figures or why there is none.

    Raises:
        StoreError: the published generation cannot be read.
    """
    files, report = store_of(settings, domain).files, read_report(domain_folder(settings, domain))
    current = files.current()
    known = files.manifest(current).query_map if current else None
    is_used = settings.domains[domain].plan.query_map
    if known:
        is_last = report is not None and report.learnt_at == known.fitted_at
        said = (
            f"a changed file is among the first three for {known.after:.3f} of {known.tested} newer commits with it, "
        )
        return {
            "in_force": is_used,
            "gain": round(known.after - known.before, 4),
            "interval": [*report.interval] if report and is_last and report.interval else None,
            "examples": known.examples,
            "tested": known.tested,
            "reason": f"{said}for {known.before:.3f} without" if is_used else TURNED_OFF,
            "learnt_at": known.fitted_at,
        }
    if report is None:
        return {
            "in_force": False, "gain": None, "interval": None, "examples": 0, "tested": 0, "learnt_at": None,
            "reason": "none was learnt here yet; Dagster's `query_map` does" if is_used else TURNED_OFF,
        }  # fmt: skip
    older = f"{current} was published without it: {report.reason}"
    return {
        "in_force": False,
        "gain": report.gain,
        "interval": [*report.interval] if report.interval else None,
        "examples": report.examples,
        "tested": report.tested,
        "reason": older if report.learnt_at else report.reason,
        "learnt_at": report.at,
    }
