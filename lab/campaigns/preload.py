"""Everything that the processes of a campaign import."""

# ruff: noqa: F401 - imported so that forked processes find it

import gc
from tempfile import TemporaryDirectory

import dagster._core.storage.noop_compute_log_manager
import dagster._core.storage.schedules
import dagster._daemon.daemon

import api.server.serving
import nornweave.ask.engine
import nornweave.cli.main
import nornweave.cli.quality
import nornweave.cli.report
import nornweave.cli.sync
import nornweave.ingest.ledger
import nornweave.ingest.wiring
import orchestration.definitions
import orchestration.instance
import orchestration.runs
import orchestration.storage
from lab.campaigns.migrations import read_once
from nornweave.core.process import collect_rarely

collect_rarely()
read_once()
with TemporaryDirectory() as folder, dagster.DagsterInstance.local_temp(folder):
    """What the first instance of a process reads and imports is there for all."""
gc.freeze()
