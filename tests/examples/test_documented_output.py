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


@pytest.mark.parametrize("page", PAGES)
def test_the_samples_of_a_page_are_what_is_printed(page: str, tmp_path: Path) -> None:
    folder = example(tmp_path)
    differences = {
        command: told
        for command, shown in samples(ROOT / page)
        if (told := difference(shown, printed(command, folder)))
    }
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
