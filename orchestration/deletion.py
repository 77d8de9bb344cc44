"""What is left of a deleted document in the records of runs."""

from __future__ import annotations

import dagster as dg

from nornweave.config import Settings
from nornweave.core.deletion import Deleted, Place, Search
from orchestration.instance import open_instance


def runs_place(settings: Settings) -> Place:
    """Return what Dagster recorded of runs; a run whose events quote the document is removed from it."""

    def search(deleted: Deleted) -> Search:
        with open_instance(settings) as instance:
            runs = _quoting(instance, deleted)
        return Search(len(runs), "events of all runs in Dagster", tuple(runs[:10]))

    def purge(deleted: Deleted) -> None:
        with open_instance(settings) as instance:
            for run in _quoting(instance, deleted):
                instance.delete_run(run)

    return Place(name="runs", search=search, purge=purge)


def _quoting(instance: dg.DagsterInstance, deleted: Deleted) -> list[str]:
    runs = instance.get_run_ids() if deleted.passages else []
    return [run for run in runs if any(_quotes(event, deleted) for event in instance.all_logs(run))]


def _quotes(event: dg.EventLogEntry, deleted: Deleted) -> bool:
    return deleted.is_in(dg.serialize_value(event).encode())
