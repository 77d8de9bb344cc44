"""The status for its page: the state of each source and domain, problems, and the commands that help."""

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
    """Return a domain's status for the page.

    Args:
        document: the report of the domain's syncs.
        health: the health of the domain's agent in this process.
        running: the running sync of the domain; ``None`` if no sync runs.
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
    """Return the rows of the table in the order of the file, without sources of domains that are not served."""
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
    """Return a sentence about a run: its changes, or why it failed."""
    if "error" in run:
        return f"failed: {run['error']}"
    parts = [f"{run[name]} {name}" for name in ("added", "changed", "removed", "failed") if run.get(name)]
    published = f", published {run['generation']}" if run.get("published") else ""
    return f"{', '.join(parts) or 'no change'}{published} in {run.get('seconds', 0):.1f} s"


def preview_words(listing: Listing | None) -> tuple[str, tuple[str, ...]]:
    """Return a sentence about the documents of a new source, and its first paths.

    ``None`` stands for a remote source, which answers but is not listed. It has no paths.
    """
    if listing is None:
        return "It answers. What it holds is known once it is synced.", ()
    count, left_out = len(listing.entries), len(listing.skipped)
    if listing.problem:
        return f"{sentence(listing.problem)}.", ()
    said = f"A sync would read {counted(count, 'document')}" if count else "It names no document that this kind reads"
    rest = f"; {left_out:,} are left out" if left_out else ""
    return f"{said}{rest}.", tuple(entry.path for entry in listing.entries[:PREVIEWED])


def source_keys(fields: Mapping[str, str]) -> dict[str, JsonValue]:
    """Return the source's keys from the form. A place with ``://`` becomes ``url``, any other ``path``."""
    place = fields.get("place", "").strip()
    keys = {name: fields.get(name, "").strip() for name in ("id", "domain", "type")}
    return {**keys, "url" if "://" in place else "path": place}


def _step(step: str) -> str:
    _, name, source = (*step.split(), "", "", "")[:3]
    return f"{STEPS[name]} {source}" if name == "list" else STEPS.get(name, name)


def _remedies(domain: str, document: StatusDocument) -> list[tuple[str, str]]:
    """Return commands and what each does, the most useful first."""
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
