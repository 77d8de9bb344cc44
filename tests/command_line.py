"""The ``nornweave`` command as a process: with its own exit code, stdout and stderr.

The process is forked from a server that has imported everything, once for all tests: importing takes longer than most
commands. ``python -m nornweave.cli`` is started by ``test_help_names_every_command_once``, the installed program by
``test_wheel``.
"""

import atexit
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.campaigns.processes import CONTEXT

HASHED = {"embedding": {"model": "hash:64", "dimensions": 64}}
"""Settings of a domain whose encoder needs no model."""
DEADLINE_S = 600


def nornweave(
    folder: Path, *arguments: str, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command in ``folder`` to its end.

    Args:
        folder: the working directory.
        arguments: of the command.
        variables: the environment; this process's unless given.
    """
    with tempfile.TemporaryDirectory() as outputs:
        files = [Path(outputs) / name for name in ("stdout", "stderr")]
        environment = dict(os.environ if variables is None else variables)
        process = CONTEXT.Process(target=_run, args=(folder, arguments, environment, files))
        process.start()
        process.join(DEADLINE_S)
        if process.exitcode is None:
            process.kill()
            process.join()
        stdout, stderr = (file.read_text(encoding="utf-8") for file in files)
    return subprocess.CompletedProcess(arguments, int(process.exitcode or 0), stdout, stderr)


def _run(folder: Path, arguments: Sequence[str], variables: Mapping[str, str], files: Sequence[Path]) -> None:
    from nornweave.cli.main import main

    for descriptor, file in enumerate(files, start=1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), descriptor)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    # A process whose main module has no file is an interactive one for DuckDB, which draws progress bars there.
    sys.modules["__main__"].__file__ = __file__
    sys.argv = ["nornweave", *arguments]
    try:
        main()
    finally:
        atexit._run_exitfuncs()  # multiprocessing leaves them out
