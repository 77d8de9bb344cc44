"""Git repositories for tests."""

import os
import subprocess
from pathlib import Path

ENVIRONMENT = {
    **{key: value for key, value in os.environ.items() if not key.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


class Repository:
    """A git repository whose commits have dates that are given."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str, **environment: str) -> str:
        command = ["git", "-c", "user.name=Ann", "-c", "user.email=ann@example.com", "-c", "commit.gpgsign=false"]
        done = subprocess.run(
            [*command, *arguments], cwd=self.root, env=ENVIRONMENT | environment, capture_output=True, check=True
        )
        return done.stdout.decode().strip()

    def commit(self, files: dict[str, str], date: str, author: str = "Ann <ann@example.com>") -> str:
        write(self.root, files)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "x", "--author", author, "--date", date, GIT_COMMITTER_DATE=date)
        return self.git("rev-parse", "HEAD")
