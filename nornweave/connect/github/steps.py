"""What the lists of GitHub have in common: a step of reading one, and the moment from which the next pass reads it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from nornweave.connect.mirror.answers import ApiAnswer
from nornweave.connect.mirror.feed import RecordPage
from nornweave.core.errors import SourceUnavailableError
from nornweave.core.types import JsonValue

# 200,000 issues; a server that sends more pages than this sends the same ones for ever.
MAX_PAGES = 2_000
# A server whose clock is ahead of its database would hide what changes in between.
_OVERLAP = timedelta(minutes=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class GithubStep(RecordPage):
    """A part of a list; ``position`` is the address or cursor of the page to go on with, ``None`` for the first one."""

    position: JsonValue = None
    is_end: bool = False


def moment_of(answer: ApiAnswer) -> str:
    """Return when an answer was made, by its server's clock, less some overlap; as GitHub writes moments."""
    return (datetime.fromtimestamp(answer.moment, UTC) - _OVERLAP).strftime("%Y-%m-%dT%H:%M:%SZ")


def too_many(place: str) -> SourceUnavailableError:
    """Return the error of a list that does not end."""
    return SourceUnavailableError(f"{place}: more than {MAX_PAGES} pages; expected an end")
