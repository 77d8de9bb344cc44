"""``python -m orchestration``: prepare the Dagster instance, then serve its UI on this machine."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from functools import partial

from nornweave.core.process import collect_rarely, end_silently, heed_signals

end_silently()  # before anything large is imported
collect_rarely()
# ruff: noqa: E402
from api.access.door import service_token
from nornweave.config import Settings
from nornweave.core.errors import ConfigError, NornWeaveError
from nornweave.core.files.writing import not_writable, translate_full_disk
from nornweave.core.installation import optional
from nornweave.core.process import note_alive
from orchestration.definitions import CONFIG_VARIABLE, settings_from_environment
from orchestration.guard import public_url
from orchestration.instance import open_instance, write_instance
from orchestration.leases import wait_until_alone
from orchestration.webserver import HookSyncs


def _open_once(settings: Settings) -> None:
    """Create the tables before several processes need them, and end abandoned runs.

    Raises:
        ConfigError: the configured run launcher cannot be loaded.
    """
    with translate_full_disk(settings.data_dir), open_instance(settings) as instance:
        try:
            _ = instance.run_launcher
        except Exception as error:  # Dagster's, of a module, a class or a key that it does not find
            raise ConfigError(f"workers.run_launcher: {error}") from error


def main() -> int:
    """Serve the Dagster UI and its daemon until a signal comes."""
    heed_signals()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    parser = argparse.ArgumentParser(prog="python -m orchestration", description=main.__doc__)
    parser.add_argument("--port", type=int, default=3000)
    port = parser.parse_args().port
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s")
    try:
        with optional("ui", "the Dagster UI"):
            from orchestration.webserver import DagsterProcesses, run_webserver
        settings = settings_from_environment()
        token, url = service_token(os.environ), public_url(os.environ)
        with translate_full_disk(settings.data_dir):
            home = write_instance(settings)
        note = partial(note_alive, settings.data_dir)
        os.environ |= {"DAGSTER_HOME": str(home), CONFIG_VARIABLE: str(settings.file)}
        # The code server says why definitions cannot be loaded, once; without this the web server repeats it.
        os.environ["DAGSTER_IS_DEV_CLI"] = "1"
        # Runs on other machines are not this process's task.
        watches = settings.workers is None or settings.workers.run_launcher is None
        hooks = HookSyncs(settings.data_dir) if watches else None
        processes = DagsterProcesses(home / "workspace.yaml", watches=watches, hooks=hooks)
        try:
            with wait_until_alone(os.environ, partial(_open_once, settings), processes.start, note) as is_over:
                if settings_from_environment() != settings:  # they changed while this one waited
                    processes.stop()
                return run_webserver(processes, port, token=token, url=url, is_over=is_over, note=note)
        finally:
            processes.stop()
    except NornWeaveError as error:
        sys.exit(str(error))
    except OSError as error:
        sys.exit(not_writable(error) or str(error))
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    sys.exit(main())
