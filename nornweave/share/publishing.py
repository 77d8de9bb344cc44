"""What a publisher does: after a sync, and for ``nornweave publish``."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from nornweave.config import Settings
from nornweave.core.errors import ConfigError, NornWeaveError, PublicationError, PublisherConflictError
from nornweave.core.text.dates import utc_text
from nornweave.core.types import Domain, present
from nornweave.index.leases.wiring import held_domain
from nornweave.index.object_store import ObjectStore
from nornweave.index.wiring import domain_folder, store_of
from nornweave.share.standing import Published, publisher_id, read_published, record_file, write_published
from nornweave.share.upload import Upload
from nornweave.share.workspace_document import publish_workspace, take_over_workspace

log = logging.getLogger(__name__)

WAIT_S = 60.0


def publish_domains(
    settings: Settings, domains: Sequence[Domain], *, take_over: bool = False, full: bool = False
) -> dict[Domain, Published | str | None]:
    """Copy what is published of some domains to the store, and how to answer from it.

    Returns:
        By domain what the store has now, ``None`` where nothing is published, or why it could not be copied.

    Raises:
        ConfigError: no store is configured.
        PublicationError: the workspace document cannot be written.
    """
    if settings.publish is None:
        raise ConfigError(
            f"{settings.file}: key 'publish' is missing; it says where to: publish: {{url: s3://bucket/x}}"
        )
    store, publisher = ObjectStore(settings.publish), publisher_id(settings)
    upload = partial(
        Upload,
        store=store,
        settings=settings.publish,
        publisher=publisher,
        data_dir=settings.data_dir,
        take_over=take_over,
        full=full,
    )
    done: dict[Domain, Published | str | None] = {}
    has_lost = False
    for domain in domains:
        try:
            with held_domain(settings, domain_folder(settings, domain), "publish", WAIT_S) as confirm:
                files = store_of(settings, domain).files
                done[domain] = upload(domain=domain, files=files, confirm=confirm).run()
        except NornWeaveError as error:
            note_problem(settings, domain, str(error))
            done[domain] = str(error)
            has_lost |= isinstance(error, PublisherConflictError)
    if not has_lost:  # who lost a domain does not say how to answer either
        publish_workspace(store, settings, publisher, take_over=take_over)
    return done


def publish_after_sync(settings: Settings, domain: Domain) -> str | None:
    """Copy what a sync published; a failure is noted for the status, and the next sync tries again.

    Returns:
        What went wrong; ``None`` if nothing did or no store is configured.
    """
    if settings.publish is None:
        return None
    try:
        if settings.workers and settings.workers.leases:
            take_over_workspace(ObjectStore(settings.publish), settings)  # another machine's may be newer
        outcome = publish_domains(settings, [domain])[domain]
    except (NornWeaveError, OSError) as error:
        note_problem(settings, domain, str(error))
        outcome = str(error)
    problem = outcome if isinstance(outcome, str) else None
    if problem:
        log.warning("%s: is published here, not in the store: %s", domain.value, problem)
    return problem


def refresh_workspace(settings: Settings) -> None:
    """Tell the store of a new ledger; a failure is logged, and the next sync tries again."""
    if settings.publish is None:
        return
    try:
        publish_workspace(ObjectStore(settings.publish), settings, publisher_id(settings))
    except (NornWeaveError, OSError) as error:
        log.warning("the store does not know of the new ledger: %s", error)


def note_problem(settings: Settings, domain: Domain, problem: str) -> None:
    """Note for the status why a domain could not be copied; what was copied last stays noted."""
    assert settings.publish is not None
    file = record_file(settings.data_dir, domain.value)
    known = read_published(file)
    if known is None or known.url != settings.publish.url:
        known = Published(url=settings.publish.url)
    try:
        write_published(file, replace(known, problem=problem, tried_at=utc_text(present(), "seconds")))
    except OSError as error:
        raise PublicationError(f"{file}: cannot be written: {error}") from error


def copied(settings: Settings, domain: Domain) -> Published | None:
    """Return what was last copied of a domain to the configured store, and what went wrong since."""
    if settings.publish is None:
        return None
    known = read_published(record_file(settings.data_dir, domain.value))
    return known if known and known.url == settings.publish.url else None
