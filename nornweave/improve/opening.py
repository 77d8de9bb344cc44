"""Settings → the history of evaluations."""

from __future__ import annotations

from nornweave.config import Settings
from nornweave.improve.history import EvaluationHistory
from nornweave.improve.history_file import HistoryFile
from nornweave.index.wiring import workspace_server


def history_of(settings: Settings) -> EvaluationHistory:
    """Return the history of evaluations.

    Raises:
        ConfigError: it is in PostgreSQL, and the packages for that are not installed.
    """
    server = workspace_server(settings)
    if server is None:
        return HistoryFile(settings.data_dir / "evaluations")
    from nornweave.improve.postgresql_history import PostgresHistory

    return PostgresHistory(server)
