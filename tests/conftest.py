"""Settings of the whole suite; beside, this file puts ``tests/`` on the path, for ``support``."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# What takes 20 s or more, longest first. A worker gets a file at a time: a long one at the end lets the others idle.
LONGEST = (
    "models/test_minilm_encoder.py",
    "test_wheel.py",
    "evals/test_campaigns.py",
    "orchestration/test_runs.py",
    "test_path.py",
    "models/test_precision.py",
    "api/test_schema_fuzzing.py",
    "models/test_precision_of_a_corpus.py",
    "orchestration/test_supervisor.py",
    "models/test_cross_encoder.py",
    "test_robustness.py",
    "models/test_other_models.py",
    "api/test_serving.py",
    "evals/test_planted_regressions.py",
    "api/test_workers.py",
    "orchestration/test_evaluation_assets.py",
    "orchestration/test_webserver.py",
    "answer/test_synthesis.py",
    "cli/test_cli.py",
    "orchestration/test_instance.py",
    "orchestration/test_confirming.py",
    "sync/test_sync_properties.py",
)

# The same examples every time: what fails fails for everybody, and nothing depends on the clock of a busy machine.
settings.register_profile("repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("repeatable")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first; within a file and among the others the order stays."""
    places = {Path(__file__).parent / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(LONGEST)))
