"""Where a replica stands, for those who answer from it: read from the file that its follower writes."""

from __future__ import annotations

import time
from dataclasses import dataclass

from nornweave.config import Settings
from nornweave.core.types import Domain, JsonValue
from nornweave.share.records import DomainStanding, Standing, read_standing, standing_file

# A replica whose store has not answered for so long says so in its notices.
SILENT_S = 30.0
_READ_AGAIN_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """Where a replica is with one domain, now.

    Attributes:
        url: of the store.
        published: the generation that the store names, as far as it is known.
        published_at: when that was published, ISO 8601.
        behind_s: for how long it has been known and is not here; 0 when it is here.
        checked_s: seconds since the store last answered and had all that it names; ``None``: never yet.
        problems: what is wrong, for people.
    """

    url: str
    published: str | None
    published_at: str | None
    behind_s: float
    checked_s: float | None
    problems: tuple[str, ...]

    def as_json(self) -> dict[str, JsonValue]:
        """Return it as ``/health`` shows it."""
        return {
            "url": self.url,
            "published": self.published,
            "published_at": self.published_at,
            "behind_s": round(self.behind_s, 1),
            "checked_s": None if self.checked_s is None else round(self.checked_s, 1),
        }


class StandingBook:
    """A replica's standing, read again when it may have changed; thread-safe."""

    def __init__(self, settings: Settings) -> None:
        self._url = settings.replica_of
        self._file = standing_file(settings.data_dir)
        self._read: tuple[float, Standing | None] = (float("-inf"), None)

    def of(self, domain: Domain) -> Following | None:
        """Return where the replica is with a domain; ``None`` for a workspace that is no replica."""
        if self._url is None:
            return None
        standing = self._standing()
        if standing is None:
            return Following(
                url=self._url, published=None, published_at=None, behind_s=0.0, checked_s=None,
                problems=("the store has not been looked at yet",),
            )  # fmt: skip
        now, noted = time.time(), standing.domains.get(domain.value, DomainStanding())
        checked_s = max(0.0, now - standing.checked_at) if standing.checked_at else None
        return Following(
            url=self._url,
            published=noted.published,
            published_at=noted.published_at,
            behind_s=max(0.0, now - noted.behind_since) if noted.behind_since else 0.0,
            checked_s=checked_s,
            problems=tuple(_problems(standing, noted, checked_s)),
        )

    def _standing(self) -> Standing | None:
        read_at, standing = self._read
        if time.monotonic() - read_at > _READ_AGAIN_S:
            standing = read_standing(self._file)
            self._read = (time.monotonic(), standing)
        return standing


def _problems(standing: Standing, noted: DomainStanding, checked_s: float | None) -> list[str]:
    problems = [one for one in (standing.problem, noted.problem) if one]
    if checked_s is None or checked_s > SILENT_S:
        since = "ever" if checked_s is None else f"for {checked_s:.0f} s"
        problems.append(f"the store has not answered as it should {since}; what was brought before answers")
    if standing.restart:
        problems.append("the publisher's settings have changed; start the replica again to take them over")
    return problems
