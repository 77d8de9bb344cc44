"""``make demo``: ingest the example corpus and some of this project, ask three questions, and measure the answers."""

from __future__ import annotations

import subprocess
import sys

QUESTIONS = (
    # The code was changed after the documentation was written: 422 against 400, both are shown and one holds.
    ("what does the payment module return on errors", ()),
    ("HERON_KEY_PEPPER", ("--domain", "code")),
    ("why do we add jitter to retries", ()),
)


def run(*arguments: str) -> None:
    """Run one command as a user would, showing it first."""
    print(f"\n$ nornweave {' '.join(arguments[:1])} {' '.join(repr(a) if ' ' in a else a for a in arguments[1:])}", flush=True)
    done = subprocess.run([sys.executable, "-m", "nornweave.cli", *arguments], check=False)
    if done.returncode:
        sys.exit(done.returncode)


def main() -> None:
    """Sync, ask, list what the domains disagree about, and measure."""
    run("sync")
    for question, options in QUESTIONS:
        run("query", question, *options, "--top-k", "3")
    run("conflicts")
    run("eval", "--summary")
    print(
        "\nNext: `make serve`, then open http://127.0.0.1:8082 and ask the same questions on the page (`/` for the question, j, k"
        "\n      and Enter for the passages). The Dagster UI is on http://127.0.0.1:3000: four domain groups, runs, checks and plots."
        "\n      Judge your own corpus in an hour: docs/evaluation.md."
        "\n      Point nornweave.yaml at your own sources: docs/configuration.md."
    )


if __name__ == "__main__":
    main()
