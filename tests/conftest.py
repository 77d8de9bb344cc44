"""Settings of the whole suite; beside, this file puts ``tests/`` on the path, for ``support``."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from nornweave.core.garbage import collect_rarely

# What takes 10 s or more, longest first. A worker gets a file at a time: a long one at the end lets the others idle.
LONGEST = (
    "models/test_minilm_encoder.py",
    "evals/test_campaigns.py",
    "models/test_other_models.py",
    "store/test_segments.py",
    "evals/test_tuning.py",
    "retrieval/test_access_property.py",
    "orchestration/test_standby.py",
    "api/test_schema_fuzzing.py",
    "publication/test_replica_processes.py",
    "evals/test_planted_regressions.py",
    "test_wheel.py",
    "cluster/test_machines.py",
    "orchestration/test_supervisor.py",
    "orchestration/test_runs.py",
    "store/test_store_contract.py",
    "orchestration/test_evaluation_assets.py",
    "store/test_as_of.py",
    "test_robustness.py",
    "store/test_hot_swap.py",
    "models/test_cross_encoder.py",
    "store/test_finding.py",
    "retrieval/test_late_interaction.py",
    "sync/test_sync_properties.py",
    "api/test_workers.py",
    "pages/test_in_browser.py",
    "deletion/test_receipts.py",
    "api/test_receipts_route.py",
    "api/test_syncs.py",
    "cluster/test_domain_lease.py",
    "api/test_access_routes.py",
    "api/test_mcp_stdio.py",
    "test_path.py",
    "orchestration/test_webserver.py",
    "models/test_precision.py",
)

# The same examples every time: what fails fails for everybody, and nothing depends on the clock of a busy machine.
settings.register_profile("repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("repeatable")

# Imports and tests are a million objects that stay: nothing is looked for among them, neither now nor later.
gc.disable()


def pytest_collection_finish() -> None:
    """Let the collector run from now on, for what tests make."""
    gc.freeze()
    gc.enable()
    collect_rarely()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first; within a file and among the others the order stays."""
    places = {Path(__file__).parent / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(LONGEST)))
