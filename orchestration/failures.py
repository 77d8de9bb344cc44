"""Errors that say what to do, as Dagster's failures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from evals.judgments import JudgmentError
from nornweave.core.errors import NornWeaveError
from nornweave.core.files.full_disk import full_disk

QUERY_INTERRUPTED = "Query interrupted"
"""What DuckDB (1.5) makes of Ctrl-C in a query: a ``RuntimeError``."""


@contextmanager
def translated() -> Iterator[None]:
    """Let a wrong judged set or a damaged file be a failure with its message, not a defect with a trace."""
    try:
        yield
    except (JudgmentError, NornWeaveError, OSError) as error:
        reason = full_disk(error)
        if reason is None and isinstance(error, OSError):
            raise
        raise dg.Failure(reason or str(error), allow_retries=False) from error
