"""The status as its page shows it: how each source and each domain is, what needs somebody, and what to type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from api.pages.addresses import original
from api.pages.catalogue import DomainChoice
from api.pages.conflict_view import sentence
from api.syncs import Running
from nornweave.ask.views.status import ConfiguredSource, StatusDocument
from nornweave.core.errors import EMPTY
from nornweave.core.text.legible import counted
from nornweave.core.types import JsonValue, Listing

# Steps of a sync as people call them.
STEPS = {
    "load": "loading the model",
    "list": "reading",
    "store": "reading documents",
    "embed": "computing vectors",
    "build": "building the generation",
    "evaluate": "measuring its answers",
}
PREVIEWED = 20
"""Paths of a source that may be added, at most."""


def domain_status(
    domain: str, document: StatusDocument, health: Mapping[str, JsonValue], running: Running | None
) -> dict[str, Any]:
    """Return what the page shows of a domain.

    Args:
        document: what its syncs reported.
        health: of its agent, in this process.
        running: its sync that is under way.
    """
    return {
        "domain": domain,
        "document": document,
        "health": health,
        "running": running,
        "step": _step(running.step) if running else "",
        "only_empty": all(failure["reason"].startswith(EMPTY) for failure in document["failed"]),
        "held_count": sum(len(held["paths"]) for held in document["held"]),
        "runs": [{**run, "words": run_words(run)} for run in document["runs"]],
        "remedies": _remedies(domain, document),
    }


def source_rows(
    sources: Sequence[ConfiguredSource], status: Mapping[str, StatusDocument], catalogue: Sequence[DomainChoice]
) -> list[dict[str, Any]]:
    """Return the rows of the table, in the order of the file; sources of domains that are not served are left out."""
    passages = {
        (choice.domain, value): count
        for choice in catalogue
        for each in choice.filters
        if each.key == "source"
        for value, count in each.values
    }
    return [
        {
            **source,
            "href": original(source["location"]),
            "state": "not synced yet" if source["state"] == "empty" else source["state"],
            "passages": passages.get((source["domain"], source["id"]), 0),
            "fresh": reported["sources"].get(source["id"]),
            "failed": sum(failure.get("source_id") == source["id"] for failure in reported["failed"]),
        }
        for source in sources
        if (reported := status.get(source["domain"]))
    ]


def run_words(run: Mapping[str, Any]) -> str:
    """Say what a run did, or why it failed."""
    if "error" in run:
        return f"failed: {run['error']}"
    parts = [f"{run[name]} {name}" for name in ("added", "changed", "removed", "failed") if run.get(name)]
    published = f", published {run['generation']}" if run.get("published") else ""
    return f"{', '.join(parts) or 'no change'}{published} in {run.get('seconds', 0):.1f} s"


def preview_words(listing: Listing | None) -> tuple[str, tuple[str, ...]]:
    """Say what a source names that may be added: a sentence, and the first paths."""
    if listing is None:
        return "It answers. What it holds is known once it is synced.", ()
    count, left_out = len(listing.entries), len(listing.skipped)
    if listing.problem:
        return f"{sentence(listing.problem)}.", ()
    said = f"A sync would read {counted(count, 'document')}" if count else "It names no document that this kind reads"
    rest = f"; {left_out:,} are left out" if left_out else ""
    return f"{said}{rest}.", tuple(entry.path for entry in listing.entries[:PREVIEWED])


def source_keys(fields: Mapping[str, str]) -> dict[str, JsonValue]:
    """Return the keys of the source that a form describes: a place with ``://`` is an address, another one a path."""
    place = fields.get("place", "").strip()
    keys = {name: fields.get(name, "").strip() for name in ("id", "domain", "type")}
    return {**keys, "url" if "://" in place else "path": place}


def _step(step: str) -> str:
    _, name, source = (*step.split(), "", "", "")[:3]
    return f"{STEPS[name]} {source}" if name == "list" else STEPS.get(name, name)


def _remedies(domain: str, document: StatusDocument) -> list[tuple[str, str]]:
    """Return what to type, and what it does; the first is what helps most."""
    sync = f"nornweave sync --domain {domain}"
    remedies = (
        (document["held"], f"{sync} --confirm-deletes", "remove what is held, if that is meant"),
        (document["unavailable"], "nornweave sync", "read the sources again, once they can be reached"),
        (document["failed"], sync, "read changed documents again; mend or exclude them first"),
        (document["generation"] is None, sync, "publish a first generation"),
        (
            len(document["generations"]) > 1,
            f"nornweave rollback {domain}",
            "answer from the generation before this one",
        ),
    )
    return [(command, effect) for is_needed, command, effect in remedies if is_needed]
