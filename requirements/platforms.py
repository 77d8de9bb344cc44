"""Say which locked packages lack a wheel, by system and Python: ``python requirements/platforms.py UV LOCK…``.

Locks are installed from wheels alone, so a package without a wheel for a system cannot be installed there. uv asks the
index once per lock for the files of every version; the tags in their names tell the rest, for systems that this machine
is not. It fails for a gap that is not in ``KNOWN``, and for one in ``KNOWN`` that is none any more.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from packaging.markers import Marker
from packaging.tags import Tag, compatible_tags, cpython_tags, mac_platforms
from packaging.utils import parse_wheel_filename

PYTHONS = ((3, 11), (3, 12), (3, 13), (3, 14))


@dataclass(frozen=True, slots=True)
class System:
    """What wheels and markers say of a system.

    Attributes:
        platforms: platform tags that it runs, of Linux up to a version of glibc.
        markers: ``sys_platform``, ``platform_system`` and ``platform_machine``.
    """

    platforms: tuple[str, ...]
    markers: Mapping[str, str]

    def tags(self, python: tuple[int, int]) -> Set[Tag]:
        """Return the tags of wheels that CPython installs here."""
        interpreter = f"cp{python[0]}{python[1]}"
        own = cpython_tags(python, platforms=self.platforms)
        return {*own, *compatible_tags(python, interpreter, self.platforms)}

    def wants(self, marker: str | None, python: tuple[int, int]) -> bool:
        """Tell whether a lock's entry is for this system."""
        version = f"{python[0]}.{python[1]}"
        of_python = {"python_version": version, "python_full_version": f"{version}.0"}
        cpython = {"implementation_name": "cpython", "platform_python_implementation": "CPython", "os_name": "posix"}
        return marker is None or Marker(marker).evaluate({**self.markers, **of_python, **cpython})


def linux(machine: str, glibc: int) -> System:
    """Return a Linux with glibc 2.``glibc``."""
    versions = [f"manylinux_2_{minor}_{machine}" for minor in range(glibc, 4, -1)]
    older = [f"{name}_{machine}" for name in ("manylinux2014", "manylinux2010", "manylinux1", "linux")]
    markers = {"sys_platform": "linux", "platform_system": "Linux", "platform_machine": machine}
    return System((*versions, *older), markers)


def macos(machine: str, version: tuple[int, int]) -> System:
    """Return a macOS of a version."""
    markers = {"sys_platform": "darwin", "platform_system": "Darwin", "platform_machine": machine}
    return System(tuple(mac_platforms(version, machine)), markers)


SYSTEMS = {
    "linux-x86_64": linux("x86_64", 28),
    "linux-aarch64": linux("aarch64", 35),
    "linux-aarch64, glibc 2.28": linux("aarch64", 28),
    "macos-arm64": macos("arm64", (14, 0)),
}
KNOWN: Set[tuple[str, str, str]] = frozenset(
    {("macos-arm64", "3.14", "watchdog")}  # 7 has one, Dagster asks for 6
    | {("linux-aarch64, glibc 2.28", f"{major}.{minor}", "openvino") for major, minor in PYTHONS}
)
"""System, Python and package of the gaps that the documentation names (docs/installation.md)."""


def files_of(uv: str, lock: Path) -> Iterator[tuple[str, str | None, list[str]]]:
    """Yield name, marker and wheels of each entry of a lock, as the index has them.

    Raises:
        CalledProcessError: uv cannot reach the index; it has said why.
    """
    with tempfile.TemporaryDirectory() as folder:
        listed = Path(folder, "pylock.toml")
        options = ("--universal", "--python-version", "3.11", "--no-deps", "--format", "pylock.toml", "--no-annotate")
        command = (uv, "pip", "compile", "--quiet", "--no-config", *options, "--output-file", str(listed), str(lock))
        subprocess.run(command, check=True)
        packages: list[dict[str, Any]] = tomllib.loads(listed.read_text(encoding="utf-8"))["packages"]
    for package in packages:
        places = (wheel.get("url") or wheel["path"] for wheel in package.get("wheels", ()))
        yield package["name"], package.get("marker"), [Path(urlparse(place).path).name for place in places]


def gaps(entries: list[tuple[str, str | None, list[str]]]) -> Iterator[tuple[str, str, str]]:
    """Yield system, Python and package of each wheel that is missing."""
    tagged = [(name, marker, {tag for file in files for tag in parse_wheel_filename(file)[3]})
              for name, marker, files in entries]  # fmt: skip
    for (system, about), python in itertools.product(SYSTEMS.items(), PYTHONS):
        tags = about.tags(python)
        for name, marker, has in tagged:
            if about.wants(marker, python) and not has & tags:
                yield system, f"{python[0]}.{python[1]}", name


def main(uv: str, locks: list[Path]) -> None:
    """Print the gaps of each lock; exit with 1 if they are not those that are known."""
    missing: set[tuple[str, str, str]] = set()
    for lock in locks:
        entries = list(files_of(uv, lock))
        found = list(gaps(entries))
        missing.update(found)
        by_package: dict[tuple[str, str], list[str]] = defaultdict(list)
        for system, python, package in found:
            by_package[system, package].append(python)
        print(f"{lock.name}: {len(entries)} packages, {len(SYSTEMS)} systems, Python 3.11 to 3.14")  # noqa: T201
        for (system, package), pythons in sorted(by_package.items()):
            print(f"  {system}: no wheel of {package} for Python {', '.join(pythons)}")  # noqa: T201
    news = [
        f"no wheel of {package} on {system}, Python {python}" for system, python, package in sorted(missing - KNOWN)
    ]
    news += [
        f"{package} has a wheel on {system}, Python {python}: remove it from KNOWN"
        for system, python, package in sorted(KNOWN - missing)
    ]
    if news:
        sys.exit("\n".join(news))


if __name__ == "__main__":
    main(sys.argv[1], [Path(name) for name in sys.argv[2:]])
