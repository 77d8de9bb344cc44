"""What a request is given when it arrives, besides what its body says: ids, the time, its deadline."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime

from api.tracing import current_trace_id
from nornweave.ask.search.question import Deadline
from nornweave.core.access.viewer import Viewer
from nornweave.core.types import present


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """The arrival of one request.

    Attributes:
        trace_id: names the request in traces and in the log, 32 hexadecimal digits.
        now: when it arrived.
        deadline: when it has to be answered; ``None`` sets no limit.
    """

    query_id: str
    trace_id: str
    now: datetime
    viewer: Viewer
    deadline: Deadline | None

    @property
    def left_s(self) -> float | None:
        """Return the seconds that are left, ``None`` without a deadline."""
        return self.deadline.left_s if self.deadline else None


def arrive(timeout_ms: int | None, viewer: Viewer) -> Arrival:
    """Note that a request of a viewer has arrived, to be answered within ``timeout_ms``; ``None`` sets no limit."""
    return Arrival(
        query_id=str(uuid.uuid4()),
        trace_id=current_trace_id(),
        now=present(),
        viewer=viewer,
        deadline=None if timeout_ms is None else Deadline(timeout_ms),
    )
