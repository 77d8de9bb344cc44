"""A repository that people work on: commits, deletions, moves, merges, force-pushes and renamed branches."""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path

_ENVIRONMENT = {
    **{key: value for key, value in os.environ.items() if not key.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{role}_{part}": value for role in ("AUTHOR", "COMMITTER") for part, value in (
        ("NAME", "Ann"), ("EMAIL", "ann@example.org"))},
}  # fmt: skip
_WORDS = ("anchor", "basalt", "cobalt", "dynamo", "ember", "fjord", "garnet", "harbor", "indigo", "juniper", "krypton")


class Upstream:
    """A repository with a work tree whose history is decided by a seed.

    Args:
        chance: decides everything.
        files: how many there are at first.
    """

    def __init__(self, root: Path, chance: random.Random, *, files: int = 8) -> None:
        self.root = root
        self._chance = chance
        self._moment = 1_700_000_000
        root.mkdir(parents=True)
        self._git("init", "-q", "-b", "main")
        self._git("config", "uploadpack.allowFilter", "true")
        for number in range(files):
            self._write(f"docs/{number}.md")
        (root / "picture.png").write_bytes(chance.randbytes(5_000))
        self._commit()

    @property
    def url(self) -> str:
        """Return its address."""
        return f"file://{self.root}"

    def change(self) -> str:
        """Do one of the things that people do; return which."""
        steps = (self._edit, self._edit, self._delete, self._move, self._force, self._merge, self._rename)
        step = self._chance.choice(steps)
        step()
        return step.__name__.strip("_")

    def documents(self) -> dict[str, str]:
        """Return what the tip of the default branch says: the text of each page by its path."""
        listing = self._git("ls-tree", "-r", "--name-only", "HEAD").splitlines()
        return {path: self._git("show", f"HEAD:{path}") for path in listing if path.endswith(".md")}

    def _edit(self) -> None:
        for _ in range(self._chance.randint(1, 3)):
            self._write(f"docs/{self._chance.randrange(20)}.md")
        self._commit()

    def _delete(self) -> None:
        pages = self._pages()
        for page in self._chance.sample(pages, min(len(pages) // 4, 2)):
            page.unlink()
        self._commit()

    def _move(self) -> None:
        page = self._chance.choice(self._pages())
        target = self.root / "guide" / f"{self._chance.randrange(5)}" / page.name
        target.parent.mkdir(parents=True, exist_ok=True)
        page.replace(target)
        self._commit()

    def _force(self) -> None:
        """Rewrite the last commits."""
        depth = min(self._chance.randint(1, 3), int(self._git("rev-list", "--count", "--first-parent", "HEAD")) - 1)
        self._git("reset", "-q", "--hard", f"HEAD~{depth}")
        self._edit()

    def _merge(self) -> None:
        branch = self._git("branch", "--show-current").strip()
        self._git("checkout", "-q", "-b", "side")
        self._write(f"side/{self._chance.randrange(9)}.md")
        self._commit()
        self._git("checkout", "-q", branch)
        self._edit()
        self._git("merge", "-q", "--no-ff", "-m", "merge", "side")
        self._git("branch", "-q", "-D", "side")

    def _rename(self) -> None:
        """Give the default branch another name, and perhaps one below its old one."""
        old = self._git("branch", "--show-current").strip()
        new = self._chance.choice(["main", "trunk", "main/next", "develop"])
        if not (old.startswith(f"{new}/") or new.startswith(f"{old}/")):
            self._git("branch", "-q", "-M", old, new)

    def _pages(self) -> list[Path]:
        return sorted(self.root.rglob("*.md"))

    def _write(self, path: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        words = " ".join(self._chance.choices(_WORDS, k=self._chance.randint(5, 60)))
        file.write_text(f"# {self._chance.choice(_WORDS)}\n\nThe limit is {self._chance.randrange(99)}: {words}.\n")

    def _commit(self) -> None:
        self._git("add", "-A")
        self._git("commit", "-q", "--allow-empty", "-m", "x")

    def _git(self, *arguments: str) -> str:
        self._moment += 60
        moment = {"GIT_AUTHOR_DATE": f"{self._moment} +0000", "GIT_COMMITTER_DATE": f"{self._moment} +0000"}
        done = subprocess.run(
            ["git", *arguments], cwd=self.root, env=_ENVIRONMENT | moment, capture_output=True, text=True, check=True
        )
        return done.stdout
