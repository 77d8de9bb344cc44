"""When the sources last confirmed what an answer cites, and how soon what changes there counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from nornweave.ask.search.records import RecallResponse, SourceFreshness
from nornweave.carry.wiring import INBOX, domain_folder
from nornweave.config import Settings
from nornweave.connect.connectors import bound_of
from nornweave.connect.protocol import AT_ONCE
from nornweave.core.types import Domain
from nornweave.index.outcomes import Verified, VerifiedFile


@dataclass(frozen=True, slots=True)
class Freshness:
    """What is known of the sources of a domain."""

    file: VerifiedFile
    bounds: Mapping[str, str]

    def verified_at(self, generation: str, source_id: str, path: str) -> datetime | None:
        """Return when the source of a document last confirmed that it is as a generation has it."""
        return self.file.of(generation).at(source_id, path)

    def add_freshness(self, response: RecallResponse, verified: Verified, *, sees_all: bool) -> RecallResponse:
        """Return an answer that says how fresh the sources of its items are and, to who ``sees_all``, the others."""
        cited = {item.citation.source_id for item in response.items}
        sources = {
            name: SourceFreshness(source.listed_at, self.bounds.get(name, source.bound))
            for name, source in sorted(verified.sources.items())
            if sees_all or name in cited
        }
        return replace(response, sources=sources)


def freshness_of(settings: Settings, domain: Domain) -> Freshness:
    """Return it for a domain; nothing is read yet. A replica learns the bounds with what sources confirmed."""
    own = {} if settings.replica_of else {each.id: bound_of(each) for each in settings.sources_of(domain)}
    bounds = {INBOX: AT_ONCE, **own}
    return Freshness(VerifiedFile(domain_folder(settings, domain)), bounds)
