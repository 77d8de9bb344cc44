"""The publications of a domain's generations, and the generation that was published at a given moment.

``HISTORY`` beside the pointer has a line for each move of the pointer. A generation that is gone keeps its lines while
an older one is kept, so that the time at which it was current is not taken for that of another.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple, TypeAlias

from nornweave.config.domain import KeepSettings
from nornweave.core.errors import GenerationNotKeptError, QueryError
from nornweave.core.files.writing import sync_file, write_whole
from nornweave.core.text.dates import utc_text
from nornweave.core.types import GenerationId

NAME = "HISTORY"
# A client's clock may be ahead of this one.
AHEAD = timedelta(minutes=1)
_GENERATION = re.compile(r"gen-\d{6,12}")
_LINE = re.compile(r"(\d{4}-[\dT:.-]{21}Z) (gen-\d{6,12}) (\d{4}-[\dT:.-]{21}Z)", re.ASCII)
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII | re.IGNORECASE)

AsOf: TypeAlias = "datetime | GenerationId"
"""What a question is asked as of: a moment, or one generation."""


class Move(NamedTuple):
    """One publication: its time, the generation and that generation's build time."""

    at: datetime
    generation: GenerationId
    built_at: datetime


@dataclass(frozen=True, slots=True)
class Then:
    """The generation that answers for a moment, or the nearest kept one.

    Attributes:
        published_at: when it was published; ``None`` if it was requested by name and the time is unknown.
        notice: what the asker should know; empty if this generation was the published one at that moment.
    """

    generation: GenerationId
    published_at: datetime | None
    notice: str = ""


def read_as_of(text: str, now: datetime, field: str = "as_of") -> AsOf:
    """Return the time in UTC, or the generation, that ``text`` names. ``field`` is the parameter that an error names.

    Raises:
        QueryError: the text is neither a past RFC 3339 time nor the name of a generation.
    """
    if _GENERATION.fullmatch(text):
        return GenerationId(text)
    try:
        moment = datetime.fromisoformat(text.upper()) if _MOMENT.fullmatch(text) else None
    except ValueError:
        moment = None
    if moment is None:
        raise QueryError(
            field, f"{text[:64]!r} is not an RFC 3339 time (2026-11-24T10:00:00Z) or a generation (gen-000012)"
        )
    if moment.year in {MINYEAR, MAXYEAR}:  # an offset would leave what a date can be
        raise QueryError(field, f"{text} is not a possible time of a publication")
    if moment > now + AHEAD:
        raise QueryError(field, f"{text} is in the future")
    # Without a fraction use the end of the second: programs cut the current time to seconds.
    return moment.astimezone(UTC) + (timedelta(0) if "." in text else timedelta(seconds=1) - timedelta.resolution)


def note_move(folder: Path, move: Move) -> None:
    """Record a publication.

    Raises:
        OSError: the disk is full.
    """
    with (folder / NAME).open("a", encoding="ascii") as file:
        file.write(_line(move))
        file.flush()
        sync_file(file.fileno())


def read_moves(folder: Path) -> list[Move]:
    """Return the recorded publications, oldest first, without a line that a killed process left unfinished."""
    try:
        lines = (folder / NAME).read_text(encoding="ascii", errors="replace").splitlines()
    except FileNotFoundError:
        return []
    noted = (match for line in lines if (match := _LINE.fullmatch(line)))
    return sorted(
        Move(datetime.fromisoformat(at), GenerationId(name), datetime.fromisoformat(built_at))
        for at, name, built_at in (match.groups() for match in noted)
    )


def trim_moves(folder: Path, kept: Collection[GenerationId]) -> None:
    """Forget the publications before the first one of a kept generation."""
    moves = read_moves(folder)
    first = next((place for place, move in enumerate(moves) if move.generation in kept), 0)
    if first:
        write_whole(folder / NAME, "".join(map(_line, moves[first:])))


def _line(move: Move) -> str:
    return f"{utc_text(move.at, 'microseconds')} {move.generation} {utc_text(move.built_at, 'microseconds')}\n"


def kept_by(policy: KeepSettings, moves: Iterable[Move]) -> set[GenerationId]:
    """Return the generations that a policy keeps: the last of each of the newest days, weeks and months.

    Args:
        moves: the publications of existing generations, oldest first. Days, weeks and months without a publication do
            not count.
    """
    kept: set[GenerationId] = set()
    moves = list(moves)
    for count, period in ((policy.days, "%Y-%m-%d"), (policy.weeks, "%G-%V"), (policy.months, "%Y-%m")):
        last = {move.at.strftime(period): move.generation for move in moves}
        kept.update(list(last.values())[-count:] if count else ())
    return kept


def then(as_of: AsOf, moves: Sequence[Move], kept: Sequence[GenerationId]) -> Then:
    """Return the generation that was published at a moment.

    Args:
        as_of: the moment, or the name of the generation.
        moves: the publications, oldest first.
        kept: the kept generations, oldest first.

    Returns:
        The generation published then; if it is not kept, the newest kept one before it, with a notice.

    Raises:
        GenerationNotKeptError: no generation is kept that was published by then.
    """
    if not isinstance(as_of, datetime):
        if as_of not in kept:
            raise GenerationNotKeptError(f"{as_of} is not kept; {_oldest(moves, kept)}")
        return Then(as_of, next((move.at for move in moves if move.generation == as_of), None))
    if named := next((move for move in moves if move.built_at == as_of and move.generation in kept), None):
        return Then(named.generation, named.at)  # the `indexed_at` of an answer names its own generation
    before = [move for move in moves if move.at <= as_of]
    usable = [move for move in before if move.generation in kept]
    if not usable:
        raise GenerationNotKeptError(f"nothing of {utc_text(as_of, 'seconds')} is kept; {_oldest(moves, kept)}")
    newest, current = usable[-1], before[-1]
    if newest == current:
        return Then(newest.generation, newest.at)
    missing = f"{current.generation} of {utc_text(current.at)} is not kept"
    return Then(newest.generation, newest.at, f"{missing}; {newest.generation}, the last before it, answers")


def _oldest(moves: Sequence[Move], kept: Sequence[GenerationId]) -> str:
    oldest = next((move for move in moves if move.generation in kept), None)
    return f"the oldest kept is {oldest.generation} of {utc_text(oldest.at)}" if oldest else "no generation is kept"
