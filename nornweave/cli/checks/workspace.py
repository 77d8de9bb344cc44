"""What the configuration names: sources, models, what is published."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from nornweave.ask.views.status import status_document
from nornweave.cli.checks import CheckFinding
from nornweave.config import Settings, SourceSettings
from nornweave.connect.edit import listing_of
from nornweave.core.errors import ConfigError, EncoderError, NornWeaveError, StoreError
from nornweave.core.text.legible import counted
from nornweave.core.types import Domain
from nornweave.index.connection import check_vss
from nornweave.index.wiring import database_checks, encoder_of, store_of

_SYNC = "run `nornweave sync`"
_MEND = "no source of this domain can be read; mend that first"
_INIT = "nornweave.yaml names no source: `nornweave init` looks for some, `nornweave init --add PLACE` adds one"


def look_at_databases(settings: Settings, environment: Mapping[str, str]) -> Iterator[CheckFinding]:
    """Connect to the PostgreSQL servers that documents are stored on and runs are recorded on, where there are any."""
    try:
        checks = database_checks(settings, environment)
    except ConfigError as error:
        yield CheckFinding("PostgreSQL", "driver", "error", str(error))
        return
    for subject, check in checks.items():
        try:
            check()
        except StoreError as error:
            yield CheckFinding("PostgreSQL", subject, "error", str(error))
        else:
            yield CheckFinding("PostgreSQL", subject, "ok", "answers")


def look_at_source(settings: Settings, source: SourceSettings, environment: Mapping[str, str]) -> CheckFinding:
    """Open a source and list it; of one behind a network, ask for its first page only."""
    finding = partial(CheckFinding, "source", source.id)
    for key in ("token_env", "credentials_env"):
        name = getattr(source, key, None)
        if name and not environment.get(name, "").strip():
            text = f"{key} names {name}, which is not set"
            remedy = f"set {name} where NornWeave runs (`export {name}=…`), Dagster included"
            return finding("error", text, remedy)
    try:
        listing = listing_of(source, settings.data_dir)
    except ConfigError as error:
        return finding("error", str(error), "correct nornweave.yaml")
    except NornWeaveError as error:
        return finding("error", str(error), "its documents stay as they are until it can be read")
    if listing is None:
        return finding("ok", "answers")
    if not (count := len(listing.entries)):
        remedy = "check 'path', 'include' and 'exclude'; `nornweave status` shows what is left out, and why"
        return finding("warning", "lists no documents", remedy)
    return finding("ok", f"lists {counted(count, 'document')}")


def look_at_models(settings: Settings, domains: tuple[Domain, ...]) -> Iterator[CheckFinding]:
    """Load each encoder that the domains name, and encode a word."""
    by_model = {settings.domains[domain].embedding.model: domain for domain in domains}
    for model, domain in by_model.items():
        try:
            vectors = encoder_of(settings, settings.domains[domain]).encode(["doctor"])
        except EncoderError as error:
            remedy = "correct domains.<name>.embedding.model in nornweave.yaml, or install what the message names"
            yield CheckFinding("model", model, "error", str(error), remedy)
        else:
            yield CheckFinding("model", model, "ok", f"encodes, {vectors.shape[1]} dimensions")


def look_at_vector_index(settings: Settings, domains: tuple[Domain, ...]) -> CheckFinding:
    """Say whether DuckDB has the extension for ``vector_index: hnsw``, which domains in files may ask for."""
    asking = [each.value for each in domains if settings.domains[each].storage.vector_index == "hnsw"]
    needed = bool(asking) and settings.storage is None
    finding = partial(CheckFinding, "vector index", "vss")
    try:
        check_vss()
    except StoreError as error:
        if not needed:
            return finding("ok", "cannot be loaded, and no domain asks for it: vectors are searched exactly")
        text, _, remedy = str(error).partition("; ")
        return finding("error", f"{text}; asked for by {', '.join(asking)}", remedy)
    return finding("ok", "can be loaded")


def look_at_index(settings: Settings, domain: Domain, *, can_sync: bool) -> Iterator[CheckFinding]:
    """Say whether something is published, and how the last sync ended.

    Args:
        can_sync: it has a source that can be read; otherwise a sync is no remedy.
    """
    finding, documents = (partial(CheckFinding, check, domain.value) for check in ("index", "documents"))
    try:
        status = status_document(settings, domain)
    except StoreError as error:
        yield finding("error", str(error), f"`nornweave rollback {domain.value}` or {_SYNC}")
        return
    if status["generation"] is None:
        yield finding(
            "warning", "nothing is published yet", _SYNC if can_sync else _MEND if settings.sources else _INIT
        )
    elif status["runs"] and "error" in status["runs"][0]:
        text = f"the last sync failed: {status['runs'][0]['error']}"
        yield finding("error", text, f"mend that, then {_SYNC}")
    else:
        text = f"{status['documents']:,} documents, {status['generation']}, checked at {status['checked_at']}"
        yield finding("ok", text)
    if status["failed"]:
        text = f"{len(status['failed']):,} documents failed"
        yield documents("warning", text, "`nornweave status` names each with its reason")
    if status["held"]:
        text = f"{sum(len(each['paths']) for each in status['held']):,} removals are held"
        yield documents("warning", text, "if they are meant: `nornweave sync --confirm-deletes`")


def published_at(settings: Settings, domains: tuple[Domain, ...]) -> dict[str, str]:
    """Return when what each domain answers from was built, in ISO form; domains without a generation are left out."""
    facts = {domain.value: store_of(settings, domain).published_facts() for domain in domains}
    return {domain: found["built_at"] for domain, found in facts.items() if "built_at" in found}
