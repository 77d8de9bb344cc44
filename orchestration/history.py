"""The files of Dagster's history below ``data_dir/dagster``: create them atomically, check them without Dagster."""

from __future__ import annotations

import logging
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from nornweave.carry.lease import open_history
from nornweave.core.errors import DiskFullError, HistoryError, NornWeaveError
from nornweave.core.files.lock import hold_lock
from nornweave.core.files.writing import full_disk, no_memory, not_writable, translate_full_disk

log = logging.getLogger(__name__)

DATABASES = ("runs/runs.db", "events/event_log.db", "schedules/schedules.db")
HALF_MADE = "was left half made by a process that ended; who records next begins it anew"
REMEDY = "stop NornWeave and move that folder away: runs and ticks begin anew, documents and index are elsewhere"


def make_whole(file: Path, make: Callable[[str], object]) -> None:
    """Create a database atomically, unless there is a complete one.

    Dagster creates its tables one by one. If it is killed meanwhile, the file stays incomplete for ever. Such a file is
    renamed to ``NAME.half-made``.

    Args:
        file: the database. The file and its folder may be missing.
        make: makes a database of the same name in a folder.

    Raises:
        DiskFullError: there is no room for the database.
        sqlite3.DatabaseError: the file is damaged. It is left unchanged.
    """
    folder, aside = file.parent, file.parent / ".making"
    with translate_full_disk(folder), hold_lock(folder / ".creating"):
        if _is_whole(file):
            return
        if file.exists():
            log.warning("%s %s", file, HALF_MADE)
            file.replace(file.with_name(f"{file.name}.half-made"))
        shutil.rmtree(aside, ignore_errors=True)
        make(str(aside))
        with closing(sqlite3.connect(aside / file.name)) as connection:
            connection.execute("pragma wal_checkpoint(truncate)")
        for log_of_old in (file.with_name(f"{file.name}-wal"), file.with_name(f"{file.name}-shm")):
            log_of_old.unlink(missing_ok=True)  # SQLite would apply it to the new file
        (aside / file.name).replace(file)
        shutil.rmtree(aside)


def _is_whole(file: Path) -> bool:
    """Tell whether a database has the table that Dagster 1.13 creates last."""
    if not file.exists():
        return False
    with closing(open_history(file)) as connection:
        return bool(connection.execute("select 1 from sqlite_master where name = 'alembic_version'").fetchone())


def look_for_damage(home: Path) -> Iterator[tuple[Path, str]]:
    """Yield each damaged database of the history, with the reason. A missing database does not count as damaged.

    Args:
        home: ``data_dir/dagster``.
    """
    for file in filter(Path.exists, (home / name for name in DATABASES)):
        try:
            with closing(open_history(file)) as connection:
                (found,) = connection.execute("pragma quick_check(1)").fetchone()
            if found != "ok" or not _is_whole(file):
                yield file, found if found != "ok" else HALF_MADE
        except (sqlite3.Error, OSError) as error:
            yield file, str(error)


@contextmanager
def translate_history_errors(home: Path) -> Iterator[None]:
    """Translate Dagster's errors about its history, and a full disk, to ``HistoryError``.

    Args:
        home: ``data_dir/dagster``.

    Raises:
        HistoryError: the history cannot be used.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, NornWeaveError) and not isinstance(error, DiskFullError):
            raise
        why = full_disk(error, home) or not_writable(error) or no_memory(error)
        if why is None:
            log.info("history", exc_info=True)
            damaged = [f"{file.relative_to(home)}: {why}" for file, why in look_for_damage(home)]
            why = "; ".join(damaged) or f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
            why += f"; {REMEDY}"
        raise HistoryError(f"the history of runs in {str(home)!r} cannot be used: {why}") from error
