"""``python -m nornweave.cli.only_drift``: the command ``drift`` alone.

It needs only the packages of ``requirements/drift.txt``, a tenth of all. It is meant for checks of pull
requests, which install it every time.
"""

from __future__ import annotations

import typer

from nornweave.cli.drift import drift
from nornweave.cli.options import run
from nornweave.core.process import heed_signals

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(drift)


def main() -> None:
    """Run the command."""
    heed_signals()
    run(app)


if __name__ == "__main__":
    main()
