"""What README and tutorial show is what the commands print, command by command, in the folder that they speak of."""

import os
import shlex
from pathlib import Path

import pytest
from command_line import nornweave

from lab.samples import PAGES, ROOT, difference, example, printed_by, samples

pytestmark = pytest.mark.slow


def printed(command: str, folder: Path) -> list[str]:
    """Return what a command prints; plain ones of ours in a process that starts at once."""
    name, *arguments = shlex.split(command)
    if name != "nornweave" or set(command) & set("|&;<>$"):
        return printed_by(command, folder)
    done = nornweave(folder, *arguments, variables={**os.environ, "COLUMNS": "120", "NO_COLOR": "1"})
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return [line.rstrip() for line in done.stdout.splitlines()]


def test_the_samples_of_the_pages_are_what_is_printed(tmp_path: Path) -> None:
    """Commands with which several pages begin run once."""
    folder, differences = example(tmp_path), {}
    ran: dict[tuple[str, ...], list[str]] = {}
    for page in PAGES:
        so_far: tuple[str, ...] = ()
        for command, shown in samples(ROOT / page):
            so_far = (*so_far, command)
            if so_far not in ran:
                ran[so_far] = printed(command, folder)
            if told := difference(shown, ran[so_far]):
                differences[page, command] = told
    assert not differences, "python -m lab.samples --write puts what is printed into the pages"


@pytest.mark.parametrize(("shown", "printed", "told"), [
    (["a  0.25", "…", "c"], ["a 0.5", "b", "c"], ""),
    (["a", "b"], ["a", "c"], "b"),
    (["a"], ["a", "b"], "(the page stops before 'b')"),
    (["x  12 ms 7"], ["x 12 ms 9"], ""),
    (["a", "…"], ["a", "b"], ""),
])  # fmt: skip
def test_lines_are_compared_but_for_what_a_machine_decides(shown: list[str], printed: list[str], told: str) -> None:
    assert difference(shown, printed) == told
