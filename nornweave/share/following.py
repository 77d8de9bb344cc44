"""Where a replica is with one domain, as its agent tells it."""

from __future__ import annotations

from dataclasses import dataclass

from nornweave.core.types import JsonValue


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
