"""``python -m orchestration``: prepare the Dagster instance, then serve its UI on this machine."""

from __future__ import annotations

import argparse
import logging
import os
import sys

from api.access.service_token import service_token
from nornweave.core.errors import NornWeaveError
from nornweave.core.extras import optional
from nornweave.core.files.full_disk import disk_full_said, not_writable
from nornweave.core.interrupts import heed_signals
from orchestration.definitions import CONFIG_VARIABLE, settings_from_environment
from orchestration.instance import open_instance, write_instance
from orchestration.standby import alone


def main() -> int:
    """Serve the Dagster UI with its daemon until a signal comes."""
    heed_signals()
    parser = argparse.ArgumentParser(prog="python -m orchestration", description=main.__doc__)
    parser.add_argument("--port", type=int, default=3000)
    port = parser.parse_args().port
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(message)s")
    try:
        with optional("ui", "the Dagster UI"):
            from orchestration.webserver import run_webserver
        settings = settings_from_environment()
        with disk_full_said(settings.data_dir):
            home = write_instance(settings)
        with alone(os.environ) as is_over:
            with disk_full_said(settings.data_dir), open_instance(settings):
                pass  # makes its tables before several processes need them, and ends what was abandoned
            os.environ |= {"DAGSTER_HOME": str(home), CONFIG_VARIABLE: str(settings.file)}
            # The code server says why definitions cannot be loaded, once; without this the web server repeats it.
            os.environ["DAGSTER_IS_DEV_CLI"] = "1"
            return run_webserver(home / "workspace.yaml", port, service_token(os.environ), is_over)
    except NornWeaveError as error:
        sys.exit(str(error))
    except OSError as error:
        sys.exit(not_writable(error) or str(error))
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    sys.exit(main())
