"""``python -m lab.token_projection``: fit the directions that token vectors are projected on, and write them.

They are the principal directions (uncentred) of the last layer over this repository's own code, documentation and
example corpus: no judged set is looked at.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import typer
from numpy.typing import NDArray

from nornweave.models.conversion import MODEL, TOKENIZER, machine_cache
from nornweave.models.encoders import tokens
from nornweave.models.encoders.tokenizer import rust_tokenizer
from nornweave.models.folders import locate
from nornweave.models.runtimes import import_openvino

REPOSITORY = Path(__file__).parents[1]
FILES = ("nornweave/**/*.py", "docs/**/*.md", "examples/payments/**/*")
LINES, PIECES, SEED, LARGEST = 25, 350, 3, 300_000
TARGET = Path(tokens.__file__).with_name("token_projection.json")
MODEL_NAME = "sentence-transformers/all-MiniLM-L6-v2"
Floats = NDArray[np.float64]


def main(target: Path = TARGET) -> None:
    """Encode pieces of code and of other text, half and half, and write the directions."""
    folder = locate(MODEL_NAME)
    hidden_of = _last_layer(machine_cache(REPOSITORY / "build"))
    spread, count = np.zeros((384, 384)), 0
    for piece in _sample():
        rows = hidden_of(piece)[1:-1]
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        spread, count = spread + rows.T @ rows, count + len(rows)
    write(spread / count, folder.version, target)
    typer.echo(f"{target}: from {count:,} tokens")


def write(spread: Floats, encoder: str, target: Path) -> None:
    """Write the directions of largest spread, one byte a component."""
    shares, directions = np.linalg.eigh(spread)
    best = directions[:, ::-1][:, : tokens.TOKEN_DIMENSIONS]
    kept = shares[::-1][: tokens.TOKEN_DIMENSIONS].sum()
    numbers = np.rint(best * (127 / np.abs(best).max())).astype(np.int8)
    stored = {
        "encoder": encoder,
        "kept": round(float(kept), 3),
        "directions": base64.b64encode(numbers.tobytes()).decode(),
    }
    target.write_text(json.dumps(stored) + "\n", encoding="utf-8")


def _last_layer(cache: Path) -> Callable[[str], Floats]:
    bundle = max(cache.glob("sentence-transformers-all-MiniLM-L6-v2-*"))  # more than one: the same model
    tokenizer = rust_tokenizer((bundle / TOKENIZER).read_text(encoding="utf-8"), max_length=256)
    core = import_openvino().Core()
    model = core.read_model(bundle / MODEL)
    model.add_outputs([(tokens.LAST_LAYER, 0)])
    compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})

    def hidden_of(text: str) -> Floats:
        ids = np.array([tokenizer.encode(text).ids], np.int64)
        return np.array(compiled([ids, np.ones_like(ids)])[1][0], np.float64)

    return hidden_of


def _sample() -> Iterator[str]:
    """Yield pieces of the same number of lines, of code and of anything else."""
    pieces: dict[bool, list[str]] = {True: [], False: []}
    files = sorted(file for pattern in FILES for file in REPOSITORY.glob(pattern) if file.is_file())
    for file in files:
        if file.stat().st_size <= LARGEST:
            lines = file.read_text(encoding="utf-8", errors="replace").split("\n")
            starts = range(0, len(lines), LINES)
            pieces[file.suffix == ".py"] += ["\n".join(lines[start : start + LINES]) for start in starts]
    draw = random.Random(SEED)  # noqa: S311
    for kind in (True, False):
        yield from draw.sample(pieces[kind], min(PIECES, len(pieces[kind])))


if __name__ == "__main__":
    typer.run(main)
