"""``python -m nornweave.cli``: the command line where its script is not installed."""

from nornweave.cli.main import main

main()
