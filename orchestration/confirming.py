"""Confirm at the command line, before the run, exactly what is held now."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from nornweave.config import Settings
from nornweave.core.errors import NornWeaveError
from nornweave.core.types import Domain
from nornweave.index.wiring import store_of
from nornweave.ingest.confirmations import ConfirmationSubject
from nornweave.ingest.diff import held_state
from nornweave.ingest.pipeline import DomainSync
from nornweave.ingest.records import SyncOptions
from nornweave.ingest.wiring import confirmations_of, domain_parts

logger = logging.getLogger(__name__)


@contextmanager
def confirmed(settings: Settings, domains: Sequence[Domain], options: SyncOptions) -> Iterator[None]:
    """Confirm what ``options`` ask for, while the context is open; unused confirmations are withdrawn."""
    confirmations = confirmations_of(settings)
    issued: list[tuple[Domain, ConfirmationSubject]] = []
    try:
        for domain in domains:
            for subject, state in _states(settings, domain, options):
                issued.append((domain, subject))
                confirmations.issue(domain, subject, state)
        yield
    finally:
        for domain, subject in issued:
            confirmations.withdraw(domain, subject)


def _states(settings: Settings, domain: Domain, options: SyncOptions) -> Iterator[tuple[ConfirmationSubject, str]]:
    if options.confirm_deletes and (state := _held_now(settings, domain, options)):
        yield ConfirmationSubject.REMOVALS, state
    if options.accept_quality and (published := store_of(settings, domain).current()):
        yield ConfirmationSubject.QUALITY, published


def _held_now(settings: Settings, domain: Domain, options: SyncOptions) -> str | None:
    """List the domain's sources; return the state of the removals that the brake holds, if there are any."""
    try:
        with DomainSync(domain_parts(settings, domain), SyncOptions(wait_s=options.wait_s)) as sync:
            held = sync.list_changes().held
    except NornWeaveError as error:
        logger.warning("%s: no removal is confirmed, what is held cannot be found out: %s", domain.value, error)
        return None
    return held_state(held) if held else None
