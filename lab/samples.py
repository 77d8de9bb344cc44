"""Run the commands that the documentation shows, and compare what they print with what it shows.

A sample is a fenced block ``console``: lines that begin with ``$`` are commands, the others what they print on stdout.
A line ``…`` stands for any number of lines. ``python -m lab.samples`` compares, ``--write`` puts what is printed now
into the pages: all of it, or as many lines as are shown before a ``…``.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = ("README.md", "docs/tutorial.md")
CHANGED_AT = datetime(2026, 1, 15, tzinfo=UTC).timestamp()
GAP = "…"
# A file's name and, in a block of another kind, what stands in it; or a block of commands.
_BLOCK = re.compile(r"`([\w./-]+)`[^`\n]*:\n\n```(?!console)\w+\n(.*?)```|```console\n(.*?)```", re.DOTALL)
_SPACES = re.compile(r"\s+")
# Scores, seconds, milliseconds at the end of a line, and the day differ from run to run.
_MEASURED = re.compile(r"\d*\.\d+|(?<=[a-z\d#] )\d+$|(?<=since )[\d-]{10}")


def example(folder: Path) -> Path:
    """Copy the example corpus, with the same time for every file; return ``folder``."""
    shutil.copytree(ROOT / "examples" / "payments", folder, dirs_exist_ok=True)
    for file in folder.rglob("*"):
        os.utime(file, (CHANGED_AT, CHANGED_AT))
    return folder


def samples(page: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each command of a page with the lines that the page shows; a file that it shows is written by a command."""
    for name, content, block in _BLOCK.findall(page.read_text(encoding="utf-8")):
        if name:
            yield f"mkdir -p {Path(name).parent} && printf '%s' {shlex.quote(content)} > {name}", []
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *shown = part.splitlines()
            yield command, shown


def printed_by(command: str, folder: Path) -> list[str]:
    """Return what a command prints on stdout, as on a terminal of 120 columns.

    Raises:
        AssertionError: it failed.
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment: Mapping[str, str] = {**os.environ, "PATH": path, "COLUMNS": "120", "NO_COLOR": "1"}
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return [line.rstrip() for line in done.stdout.splitlines()]


def difference(shown: list[str], printed: list[str]) -> str:
    """Return the first line that is shown and not printed in its place; nothing where all are."""
    rest, anywhere = [_comparable(line) for line in printed], False
    for line in shown:
        if line.strip() == GAP:
            anywhere = True
            continue
        wanted = _comparable(line)
        places = range(len(rest)) if anywhere else range(min(1, len(rest)))
        place = next((place for place in places if rest[place] == wanted), None)
        if place is None:
            return line
        rest, anywhere = rest[place + 1 :], False
    return "" if anywhere or not rest else f"(the page stops before {rest[0]!r})"


def _comparable(line: str) -> str:
    return _MEASURED.sub("#", _SPACES.sub(" ", line).strip())


def as_long(shown: list[str], printed: list[str]) -> list[str]:
    """Return as many of the printed lines as are shown before the first gap, and a gap if there are more."""
    count = shown.index(GAP) if GAP in shown else len(printed)
    return [*printed[:count], *([GAP] if len(printed) > count else [])]


def main() -> int:
    """Compare or, with ``--write``, replace; return the exit code."""
    differences = 0
    for name in PAGES:
        page = ROOT / name
        text, at = page.read_text(encoding="utf-8"), 0
        with tempfile.TemporaryDirectory() as temporary:
            folder = example(Path(temporary))
            for command, shown in samples(page):
                printed = printed_by(command, folder)
                old = "\n".join([f"$ {command}", *shown, ""])
                if told := difference(shown, printed):
                    differences += 1
                    sys.stderr.write(f"{name}: {command}: {told}\n")
                    new = "\n".join([f"$ {command}", *as_long(shown, printed), ""])
                    at = text.index(old, at)
                    text = text[:at] + new + text[at + len(old) :]
                at = text.find(f"$ {command}", at) + 1
        if "--write" in sys.argv:
            page.write_text(text, encoding="utf-8")
    return 1 if differences and "--write" not in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
