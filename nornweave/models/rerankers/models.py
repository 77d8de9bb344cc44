"""Find a cross-encoder's files and check them, without loading torch."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from nornweave.core.errors import EncoderError, RerankerError
from nornweave.models.folders import ModelFolder, locate
from nornweave.models.hub import fetch, has_weights

HUB_TIMEOUT = 5.0
"""Seconds until a hub that does not answer counts as out of reach."""
ADVICE = "copy the model into a folder and set reranking.model to that, or set reranking.model to null"
TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "sentencepiece.bpe.model", "spiece.model", "tokenizer.model")


def find(model: str) -> ModelFolder:
    """Find a cross-encoder's files: a folder, the local Hugging Face cache, else the hub, which is waited for briefly.

    Raises:
        RerankerError: it is nowhere, or it is no cross-encoder with one score.
    """
    folder = Path(model).expanduser()
    if model.strip() and folder.is_dir():
        return _opened(folder.resolve(), folder.resolve().name)
    if not model.strip() or model.startswith((".", "~", "/")) or model.count("/") > 1:
        raise RerankerError(
            f"cross-encoder {model!r} is not a folder; expected one with a saved CrossEncoder, or a name such as "
            "'cross-encoder/ms-marco-MiniLM-L6-v2'; set reranking.model to it, or to null"
        )
    return _opened(_from_hub(model), model)


def _opened(folder: Path, name: str) -> ModelFolder:
    _check(folder, name)
    try:
        return replace(locate(str(folder)), name=name)
    except EncoderError as error:
        raise RerankerError(f"cross-encoder {name!r} cannot be read ({error.__cause__ or error})") from error


def _check(folder: Path, name: str) -> None:
    config = _config(folder, name)
    architectures = config.get("architectures") or ["no architecture"]
    if not str(architectures[0]).endswith("ForSequenceClassification"):
        raise RerankerError(
            f"cross-encoder {name!r} is a {architectures[0]}; expected a model for sequence classification; {ADVICE}"
        )
    labels = len(config["id2label"]) if isinstance(config.get("id2label"), dict) else config.get("num_labels", 2)
    if labels != 1:
        raise RerankerError(f"cross-encoder {name!r} gives {labels} scores to a pair; expected one; {ADVICE}")
    if not any((folder / file).is_file() for file in TOKENIZERS):
        raise RerankerError(f"cross-encoder {name!r} has no tokenizer; expected one of {', '.join(TOKENIZERS)}")
    if not has_weights(folder):
        raise RerankerError(f"cross-encoder {name!r} has no weights; expected *.safetensors or *.bin in its folder")


def _config(folder: Path, name: str) -> dict[str, Any]:
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RerankerError(
            f"cross-encoder {name!r} has no config.json that can be read ({error}); expected a saved CrossEncoder"
        ) from error
    if not isinstance(config, dict):
        raise RerankerError(f"cross-encoder {name!r}: its config.json holds no mapping; expected a saved CrossEncoder")
    return config


def _from_hub(model: str) -> Path:
    try:
        return fetch(model, timeout=HUB_TIMEOUT)
    except OSError as error:
        raise RerankerError(f"cross-encoder {model!r} is {error}; {ADVICE}") from error
