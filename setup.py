"""Where the packages lie in a wheel; everything else about the project stands in pyproject.toml.

``api``, ``evals`` and ``orchestration`` are top-level names here and would take these names from everybody in the
environment of a user. So a wheel carries them inside ``nornweave/_bundled``, a folder that only NornWeave's own
processes put on their path (``nornweave/core/installation.py``). An editable installation leaves them where they are.
"""

import sys

from setuptools import find_packages, setup

BUNDLED = ("api", "evals", "orchestration")


def place(package: str) -> str:
    """Return the name that a wheel gives to a package."""
    is_own = package.split(".")[0] == "nornweave" or "editable_wheel" in sys.argv
    return package if is_own else f"nornweave._bundled.{package}"


# The laboratory is for those who work on this repository: an editable installation finds it, a wheel has none of it.
names = ("nornweave", *BUNDLED, *(("lab",) if "editable_wheel" in sys.argv else ()))
found = find_packages(include=[pattern for name in names for pattern in (name, f"{name}.*")])
setup(packages=[place(package) for package in found], package_dir={place(package): package for package in BUNDLED})
