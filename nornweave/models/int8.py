"""The int8 recipe of a model: the numbers that calibration found, kept in ``int8.json``.

Inputs of a product are divided, channel by channel, by what the weights are multiplied with, so that both fit 8 bits
(SmoothQuant, Xiao et al., arXiv:2211.10438); then each input has one range, and each row of weights one scale.
``python -m evals.calibrate`` at revision 2d37daa made the file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nornweave.core.types import digest

Floats = NDArray[np.float32]

RECIPE_FILE = "int8.json"
LEVELS = 256
LARGEST = 127
"""Weights are between minus this and this."""


@dataclass(frozen=True, slots=True)
class Steps:
    """How the input of a matrix product becomes 8 bits.

    Attributes:
        smoothing: what each channel is divided by.
        low: the number that becomes 0, after the division.
        high: the number that becomes 255.
    """

    smoothing: Floats
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Recipe:
    """The steps of every product of one model, by the name of its weights.

    Attributes:
        weights: SHA-256 of the file that the recipe was made for.
        inputs: the products that are missing stay in floating point.
    """

    weights: str
    inputs: Mapping[str, Steps]


def recipe_for(weights: Path) -> Recipe | None:
    """Return the recipe made for a file of weights; ``None`` where there is none."""
    loaded = json.loads(_text())
    with weights.open("rb") as stream:
        if hashlib.file_digest(stream, "sha256").hexdigest() != loaded["weights"]:
            return None
    inputs = {
        place: Steps(np.array(steps["smoothing"], np.float32), steps["low"], steps["high"])
        for place, steps in loaded["inputs"].items()
    }
    return Recipe(loaded["weights"], inputs)


def recipe_version() -> str:
    """Return the version of the recipe; vectors of different versions differ."""
    return digest(_text())[:8]


def quantised_rows(matrix: Floats) -> tuple[NDArray[np.int8], Floats]:
    """Return a matrix in 8 bits and, per row, what to multiply it with."""
    scales = np.abs(matrix).max(axis=1, keepdims=True) / LARGEST
    scales = np.where(scales > 0, scales, 1).astype(np.float32)
    return np.rint(matrix / scales).astype(np.int8), scales


def _text() -> str:
    return (resources.files(__package__) / RECIPE_FILE).read_text(encoding="utf-8")
