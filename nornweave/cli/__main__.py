"""``nornweave``, and ``python -m nornweave.cli`` if the script is not installed."""

import atexit
import gc

from nornweave.core.process import collect_rarely, end_silently


def main() -> None:
    """Run the command line; Ctrl-C ends it silently while it is imported."""
    end_silently()
    collect_rarely()
    atexit.register(gc.freeze)  # a process that ends looks for garbage as well
    from nornweave.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
