"""Which media type a client prefers, by its ``Accept`` (RFC 9110, section 12.5.1)."""

from __future__ import annotations

EVENTS, HTML, JSON = "text/event-stream", "text/html", "application/json"


def prefers_html(accept: str, *, otherwise: bool) -> bool:
    """Tell whether a client wants HTML rather than JSON; ``otherwise`` where it does not mind."""
    html, json = _quality(accept, HTML), _quality(accept, JSON)
    return otherwise if html == json else html > json


def prefers_events(accept: str) -> bool:
    """Tell whether a client names events, and would rather have them than JSON."""
    return EVENTS in accept.lower() and _quality(accept, EVENTS) > _quality(accept, JSON)


def _quality(accept: str, kind: str) -> float:
    """Return how much a client wants a media type: the weight of the most special range that covers it."""
    best = (-1, 0.0)
    for entry in accept.lower().split(","):
        name, *parameters = (part.strip() for part in entry.split(";"))
        rank = {"*/*": 0, f"{kind.partition('/')[0]}/*": 1, kind: 2}.get(name, -1)
        if rank >= 0:
            best = max(best, (rank, _weight(parameters)))
    return best[1]


def _weight(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return min(max(float(value), 0.0), 1.0)
            except ValueError:
                return 0.0
    return 1.0
