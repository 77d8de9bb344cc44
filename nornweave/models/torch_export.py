"""Trace a torch model and save it for OpenVINO: what the converters share, which run in processes of their own."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nornweave.models.conversion import MODEL, TOKENIZER, ConversionManifest, FastPathRefusedError
from nornweave.models.runtimes import import_openvino

# What torch's tracer and OpenVINO's translator raise for a model that they cannot follow.
CONVERSION_ERRORS = (RuntimeError, ValueError, TypeError, KeyError, AttributeError, NotImplementedError, IndexError)


def fast_tokenizer(model: Any) -> Any:
    """Return the Rust tokenizer of a model whose texts go through nothing else.

    Raises:
        FastPathRefusedError: prompts are put before its texts, or it has no such tokenizer, or no padding token.
    """
    if any(model.prompts.values()):
        raise FastPathRefusedError(f"the model puts prompts before its texts ({sorted(model.prompts)})")
    tokenizer = getattr(model, "tokenizer", None)
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if tokenizer is None or backend is None:
        raise FastPathRefusedError("the model has no fast tokenizer")
    if tokenizer.pad_token_id is None:
        raise FastPathRefusedError("the model's tokenizer has no padding token")
    return backend


def record(
    convert: Callable[[Path, Path], ConversionManifest],
    *,
    refusals: tuple[type[Exception], ...] = (FastPathRefusedError,),
) -> None:
    """Run a converter on the two folders of the command line; write the model, or the reason why there is none.

    Args:
        convert: from the model's folder to the target.
        refusals: errors that refuse the model for good.
    """
    source, target = map(Path, sys.argv[1:3])
    try:
        manifest = convert(source, target)
    except refusals as error:
        manifest = ConversionManifest(refused=str(error))
    manifest.write(target)


def _example_inputs(model: Any, *, takes_sides: bool) -> dict[str, Any]:
    """Return two texts to trace with, one of them padded: a mask of ones alone would be optimised away."""
    import torch

    ids = torch.full((2, 16), int(model.tokenizer.pad_token_id), dtype=torch.int64)
    mask, sides = torch.zeros_like(ids), torch.zeros_like(ids)
    for row, length in enumerate((16, 9)):
        ids[row, :length] = torch.arange(3, 3 + length) % len(model.tokenizer)
        mask[row, :length] = 1
        sides[row, length // 2 : length] = 1
    inputs = {"input_ids": ids, "attention_mask": mask}
    return inputs | {"token_type_ids": sides} if takes_sides else inputs


def export(model: Any, forward: Callable[..., Any], target: Path, *, takes_sides: bool = False) -> None:
    """Save ``forward``, a function of the tokenised texts that runs the model, and the model's tokenizer.

    float32 as in the original: half the size in float16, but slower to start and less exact on CPUs without bfloat16.

    Args:
        takes_sides: the model reads ``token_type_ids`` as well, which tell the first text of a pair from the second.

    Raises:
        FastPathRefusedError: the model cannot be traced or translated.
    """
    import torch

    class Traced(torch.nn.Module):  # type: ignore[misc]  # torch is Any to the type checker
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any = None) -> Any:
            features = {"input_ids": input_ids, "attention_mask": attention_mask, "token_type_ids": token_type_ids}
            return forward({name: value for name, value in features.items() if value is not None})

    inputs = _example_inputs(model, takes_sides=takes_sides)
    openvino = import_openvino()
    open_shape = openvino.PartialShape([-1, -1])
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")  # the tracer warns of every constant; the probes judge the outcome
            graph = openvino.convert_model(Traced().eval(), example_input=inputs, input=[open_shape] * len(inputs))
        openvino.save_model(graph, target / MODEL, compress_to_fp16=False)
    except CONVERSION_ERRORS as error:
        raise conversion_failed(error) from error
    (target / TOKENIZER).write_text(fast_tokenizer(model).to_str(), encoding="utf-8")


def conversion_failed(error: Exception) -> FastPathRefusedError:
    """Return the refusal of a model that could not be converted."""
    return FastPathRefusedError(f"conversion failed: {type(error).__name__}: {str(error).splitlines()[:1]}")
