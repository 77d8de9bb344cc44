"""Which code is running: what evaluations and tuned plans note down beside their figures."""

from __future__ import annotations

import subprocess
from functools import lru_cache
from pathlib import Path

from nornweave import __version__
from nornweave.connect.git.program import git_command, git_environment

DEADLINE_S = 5.0


@lru_cache(maxsize=1)
def code_version() -> str:
    """Return the version, with the commit where this is a checkout, and ``-changed`` where it is not just that commit.

    ``0.1.0+1c423bb-changed``; never raises.
    """
    root = Path(__file__).parent.parent
    if not (root / ".git").exists():
        return __version__
    commit = _git(root, "rev-parse", "--short", "HEAD")
    changed = "-changed" if _git(root, "status", "--porcelain", "--untracked-files=no") else ""
    return f"{__version__}+{commit}{changed}" if commit else __version__


def _git(root: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            git_command(root, *arguments),
            env=git_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=DEADLINE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace").strip() if done.returncode == 0 else ""
