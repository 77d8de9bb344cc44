"""The event of a publication, as JSON for a webhook."""

from __future__ import annotations

import logging
from typing import Any
from urllib.parse import urlsplit

import httpx

from nornweave.store.port import Publication
from nornweave.types import Domain

logger = logging.getLogger(__name__)

TIMEOUT_S = 5.0


def publication_event(domain: Domain, publication: Publication) -> dict[str, Any]:
    """Return the event: what was added, changed and removed (``source_id/path``), in which generation, by which run."""
    return {
        "event": "publication",
        "domain": domain.value,
        "generation": publication.generation,
        "run_id": publication.run_id,
        "created_at": publication.created_at.isoformat(),
        "added": list(publication.added),
        "changed": list(publication.changed),
        "removed": list(publication.removed),
    }


def send(url: str, event: dict[str, Any], *, timeout_s: float = TIMEOUT_S) -> bool:
    """Post an event; say whether it was taken.

    A webhook that fails is logged and nothing else: the publication stands, and its event is in the generation. The
    log names the host alone, for the rest of the address may be a secret.
    """
    try:
        httpx.post(url, json=event, timeout=timeout_s).raise_for_status()
    except httpx.HTTPStatusError as error:
        logger.warning("webhook at %s answered %s", urlsplit(url).hostname, error.response.status_code)
    except httpx.HTTPError as error:
        logger.warning("webhook at %s cannot be reached: %s", urlsplit(url).hostname, type(error).__name__)
    else:
        return True
    return False
