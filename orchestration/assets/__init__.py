"""The assets."""

from typing import TYPE_CHECKING, Any

import dagster as dg

OWNERS = ("team:nornweave",)

if TYPE_CHECKING:
    Result = dg.MaterializeResult[Any]
else:
    Result = dg.MaterializeResult  # Dagster knows the bare class only
