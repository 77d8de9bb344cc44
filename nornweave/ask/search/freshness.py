"""When the sources last confirmed the cited documents, and how soon changes there are indexed."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from nornweave.ask.search.records import RecallResponse, SourceFreshness
from nornweave.carry.wiring import INBOX, domain_folder
from nornweave.config import Settings, SourceSettings
from nornweave.connect.connectors import bound_of, lag_of, repository_of
from nornweave.connect.protocol import AT_ONCE, Lag
from nornweave.core.access import Viewer
from nornweave.core.types import Domain
from nornweave.index.outcomes import Verified, VerifiedFile, VerifiedSource

FRESH_S = 10.0
"""Git is asked again after so long; what it said counts for three times that."""
ASKED_FOR_S = 600.0
"""Git is asked for so long after a question: the next one should find the answer there and not wait for it."""


class Lags:
    """How many commits repositories are ahead of the index. Git is asked in the background; methods are thread-safe.

    Args:
        sources: the sources that are in repositories on this machine.
    """

    def __init__(self, sources: Iterable[SourceSettings]) -> None:
        self._sources = {source.id: source for source in sources}
        self._known: Mapping[tuple[str, str], tuple[Lag, float]] = {}
        self._asked: tuple[frozenset[tuple[str, str]], float] = (frozenset(), 0.0)
        self.questioned_at = float("-inf")
        self._lock = threading.Lock()

    def ask(self, commits: Mapping[str, str | None], wait_s: float = 0.0) -> None:
        """Ask git, unless it was asked just now.

        Args:
            commits: source id → the commit that was read.
            wait_s: how long to wait for git's answers.
        """
        wanted = frozenset((name, commit) for name, commit in commits.items() if commit and name in self._sources)
        with self._lock:
            before, at = self._asked
            if not wanted or (wanted <= before and time.monotonic() - at < FRESH_S):
                return
            self._asked = wanted, time.monotonic()
        asking = threading.Thread(target=self._ask, args=(wanted,), name="git-lag", daemon=True)
        asking.start()
        if wait_s:
            asking.join(wait_s)

    def of(self, source: str, commit: str | None) -> Lag | None:
        """Return how far a source is ahead of the commit that was read; ``None`` if that is not known now."""
        lag, at = self._known.get((source, commit or ""), (None, 0.0))
        return lag if time.monotonic() - at < 3 * FRESH_S else None

    def _ask(self, wanted: Iterable[tuple[str, str]]) -> None:
        said = {(source, commit): lag_of(self._sources[source], commit) for source, commit in sorted(wanted)}
        self._known = {place: (lag, time.monotonic()) for place, lag in said.items() if lag}


@dataclass(frozen=True, slots=True)
class Freshness:
    """The freshness of a domain's sources. ``restricted`` has the ids of sources that not everybody may see."""

    file: VerifiedFile
    bounds: Mapping[str, str]
    lags: Lags
    restricted: frozenset[str] = frozenset()

    def begin(self, generation: str) -> Verified:
        """Return the confirmations of a generation, and let git be asked in the background."""
        self.lags.questioned_at = time.monotonic()
        return self._asking(generation)

    def keep(self, generation: str | None) -> None:
        """Ask git again, if there is a generation and a question arrived in the last ``ASKED_FOR_S`` seconds."""
        if generation and time.monotonic() - self.lags.questioned_at < ASKED_FOR_S:
            self._asking(generation)

    def _asking(self, generation: str) -> Verified:
        verified = self.file.of(generation)
        self.lags.ask({name: source.commit for name, source in verified.sources.items()})
        return verified

    def verified_at(self, generation: str, source_id: str, path: str) -> datetime | None:
        """Return when a document's source last confirmed the version in a generation; ``None`` if unknown."""
        return self.file.of(generation).at(source_id, path)

    def add_freshness(
        self, response: RecallResponse, verified: Verified, viewer: Viewer, *, sees_all: bool
    ) -> RecallResponse:
        """Return the response with the freshness of the sources that the viewer may know.

        These are the sources of its items and, with ``sees_all``, all other sources. A restricted source without items
        is included only if the viewer ``sees_everything``, because its name would tell that it exists.

        Args:
            sees_all: whether no document is hidden from the viewer.
        """
        untold = frozenset[str]() if viewer.sees_everything else self.restricted
        cited = {item.citation.source_id for item in response.items}
        sources = {
            name: self._of_source(name, source)
            for name, source in sorted(verified.sources.items())
            if name in cited or (sees_all and name not in untold)
        }
        return replace(response, sources=sources)

    def _of_source(self, name: str, source: VerifiedSource) -> SourceFreshness:
        lag, bound = self.lags.of(name, source.commit), self.bounds.get(name, source.bound)
        behind = (lag.commits, lag.uncommitted) if lag else (None, None)
        return SourceFreshness(source.listed_at, bound, *behind)


def freshness_of(settings: Settings, domain: Domain, *, asks_git: bool) -> Freshness:
    """Return the freshness of a domain. Nothing is read yet. A replica gets the bounds from its publisher.

    Args:
        asks_git: whether to ask git. A process that gives a single answer does not, because it ends too soon.
    """
    own = {} if settings.replica_of else {each.id: bound_of(each) for each in settings.sources_of(domain)}
    bounds = {INBOX: AT_ONCE, **own}
    lags = lags_of(settings, domain) if asks_git else Lags(())
    restricted = frozenset(settings.restricted_sources(domain))
    return Freshness(VerifiedFile(domain_folder(settings, domain)), bounds, lags, restricted)


def lags_of(settings: Settings, domain: Domain) -> Lags:
    """Return the lags of a domain's repositories on this machine. Git is not asked yet."""
    sources = () if settings.replica_of else settings.sources_of(domain)
    return Lags(each for each in sources if repository_of(each))
