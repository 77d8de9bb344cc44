"""What is taken over from the git configuration of the user and the machine: how to reach a server, nothing else.

A user's configuration may name hooks, filters, other addresses (``url.….insteadOf``), templates and programs that watch
files. None of them has a part in reading a repository, and some would lead elsewhere than ``url`` says.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator

TIMEOUT_S = 20.0
# Proxies, certificates and logins, also those of one host ("http.https://example.org/.proxy").
_TAKEN = re.compile(r"(http|credential)\..+|core\.sshcommand|ssh\.variant", re.DOTALL)
# What this program decides itself.
_NOT_TAKEN = re.compile(r"http\.(.+\.)?(followredirects|lowspeedlimit|lowspeedtime)", re.DOTALL)


def user_settings() -> tuple[tuple[str, str], ...]:
    """Return keys and values, in git's order, the machine's before the user's; nothing where git fails."""
    # No repository is looked for: what a folder says about itself does not count here.
    environment = {key: value for key, value in os.environ.items() if key not in {"GIT_DIR", "GIT_WORK_TREE"}}
    environment |= {"GIT_DIR": os.devnull, "LC_ALL": "C"}
    command = ["git", "config", "--null", "--includes", "--list"]
    try:
        done = subprocess.run(
            command, cwd="/", env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S,
            check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return tuple(_taken(done.stdout))


def _taken(listing: bytes) -> Iterator[tuple[str, str]]:
    for entry in listing.split(b"\0"):
        key, is_set, value = os.fsdecode(entry).partition("\n")
        if _TAKEN.fullmatch(key) and not _NOT_TAKEN.fullmatch(key):
            yield key, value if is_set else "true"
