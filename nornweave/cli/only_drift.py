"""``python -m nornweave.cli.only_drift``: the command ``drift`` alone.

It needs no more than ``requirements/drift.txt`` names, not a tenth of what all of NornWeave does. For checks of pull
requests, which install it every time.
"""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from nornweave.cli.drift import drift
from nornweave.cli.options import messages, run
from nornweave.core.process import heed_signals

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "obj": Path("nornweave.yaml")},
)
app.command()(drift)


def main() -> None:
    """Run the command; what it does not come with is named."""
    heed_signals()
    try:
        run(app)
    except ModuleNotFoundError as error:
        said = f"needs the package {error.name}, which comes with all of NornWeave only: install nornweave-search"
        messages.print(said, style="red", soft_wrap=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
