"""Settings of the whole suite; beside, this file puts ``tests/`` on the path, for ``support``."""

import gc
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

import httpx._transports.default as http
import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

from nornweave.core.process import collect_rarely

# What takes 10 s or more, longest first. A worker gets a file at a time: a long one at the end lets the others idle.
LONGEST = (
    "cluster/test_machines.py",
    "orchestration/test_standby.py",
    "models/test_minilm_encoder.py",
    "evals/test_campaigns.py",
    "store/test_segments.py",
    "api/test_schema_fuzzing.py",
    "deletion/test_receipts.py",
    "publication/test_replica_processes.py",
    "orchestration/test_supervisor.py",
    "orchestration/test_watch.py",
    "test_interrupts.py",
    "api/test_access_routes.py",
    "pages/test_in_browser.py",
    "orchestration/test_evaluation_assets.py",
    "retrieval/test_access_property.py",
    "test_wheel.py",
    "test_robustness.py",
    "api/test_workers.py",
    "evals/test_planted_regressions.py",
    "orchestration/test_webserver.py",
    "orchestration/test_runs.py",
    "examples/test_documented_output.py",
    "store/test_store_contract.py",
    "cli/test_cli.py",
    "api/test_syncs.py",
    "sync/test_sync_properties.py",
    "api/test_mcp_stdio.py",
    "api/test_receipts_route.py",
    "chunking/test_sections.py",
    "publication/test_following.py",
    "parsing/test_access_statements.py",
    "test_path.py",
)

# They import PyTorch or LiteLLM, for four or five seconds of processor time each, and a gigabyte.
MODELS = (
    "models/", "answer/test_synthesis.py", "api/test_chat.py", "api/test_event_streams.py", "drift/test_verify.py",
    "pages/test_writing.py",
)  # fmt: skip

# The same examples every time: what fails fails for everybody, and nothing depends on the clock of a busy machine.
settings.register_profile("repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("repeatable")

# A client of its own for each request of a test reads the certificates of all authorities, for 17 ms of processor time.
http.create_ssl_context = cache(http.create_ssl_context)  # type: ignore[attr-defined]

# Imports and tests are a million objects that stay: nothing is looked for among them, neither now nor later.
gc.disable()


class Scheduling(LoadFileScheduling):
    """Files to workers; those that import the same large library to one."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return "models" if any(each in file for each in MODELS) else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling:
    """Distribute tests."""
    return Scheduling(config, log)


def pytest_collection_finish() -> None:
    """Let the collector run from now on, for what tests make."""
    if "dagster" in sys.modules:
        from lab.campaigns.migrations import read_once

        read_once()
    gc.freeze()
    gc.enable()
    collect_rarely()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs the extension ``vss`` where DuckDB has none."""
    if item.get_closest_marker("vss"):
        from support import why_without_vss

        if reason := why_without_vss():
            pytest.skip(reason)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first; within a file and among the others the order stays."""
    places = {Path(__file__).parent / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(LONGEST)))


@pytest.fixture(scope="session")
def model_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the speeds of the default model on this CPU.

    They take seconds to measure. All workers of a run share the folder, so no test may change it.
    """
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "models-of-this-machine"
