"""Everything that the processes of a campaign import."""

# ruff: noqa: F401 - imported so that forked processes find it

import gc

import dagster._core.storage.noop_compute_log_manager
import dagster._core.storage.schedules
import dagster._daemon.daemon

import api.server.serving
import evals.tuning.tune
import nornweave.ask.engine
import nornweave.cli.main
import nornweave.cli.progress
import nornweave.cli.quality
import nornweave.cli.report
import nornweave.ingest.ledger
import nornweave.ingest.wiring
import orchestration.definitions
import orchestration.instance
import orchestration.runs
import orchestration.storage
from nornweave.core.garbage import collect_rarely

collect_rarely()
gc.freeze()
