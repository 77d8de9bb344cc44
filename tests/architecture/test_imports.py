"""Programs may begin with any package: no import depends on another one that came before."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EACH_ALONE = """
import importlib, sys

for name in sys.argv[1:]:
    for loaded in [module for module in sys.modules if module.split(".")[0] == "nornweave"]:
        del sys.modules[loaded]
    try:
        importlib.import_module(name)
    except ImportError as error:
        print(f"{name}: {error}")
"""


@pytest.mark.slow
def test_every_package_can_be_imported_first() -> None:
    """All modules would take a minute; ``models`` is where packages and their members need each other."""
    folder = ROOT / "nornweave"
    files = {*folder.rglob("__init__.py"), *folder.glob("*.py"), *(folder / "models").glob("**/*.py")}
    names = sorted(".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for file in files)
    command = [sys.executable, "-c", EACH_ALONE, *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_no_two_files_of_tests_have_one_name() -> None:
    """pytest imports a test file by its bare name: of two that share it, the second stops the run."""
    names = Counter(file.name for file in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name, times in names.items() if times > 1] == []
