"""Trace a torch model and save it for OpenVINO; only the converters, in processes of their own, load torch."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nornweave.models.conversion import MODEL, TOKENIZER, FastPathRefusedError
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


def example_inputs(model: Any, *, takes_sides: bool = False) -> dict[str, Any]:
    """Return two texts to trace with, one of them padded: a mask of ones alone would be optimised away.

    Args:
        takes_sides: give ``token_type_ids`` as well, which tell the first text of a pair from the second.
    """
    import torch

    ids = torch.full((2, 16), int(model.tokenizer.pad_token_id), dtype=torch.int64)
    mask, sides = torch.zeros_like(ids), torch.zeros_like(ids)
    for row, length in enumerate((16, 9)):
        ids[row, :length] = torch.arange(3, 3 + length) % len(model.tokenizer)
        mask[row, :length] = 1
        sides[row, length // 2 : length] = 1
    inputs = {"input_ids": ids, "attention_mask": mask}
    return inputs | {"token_type_ids": sides} if takes_sides else inputs


def export(model: Any, forward: Callable[..., Any], inputs: Mapping[str, Any], target: Path) -> None:
    """Save ``forward``, a function of the inputs that runs the model, and the model's tokenizer.

    float32 as in the original: half the size in float16, but slower to start and less exact on CPUs without bfloat16.

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

    openvino = import_openvino()
    open_shape = openvino.PartialShape([-1, -1])
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")  # the tracer warns of every constant; the probes judge the outcome
            graph = openvino.convert_model(
                Traced().eval(), example_input=dict(inputs), input=[open_shape] * len(inputs)
            )
        openvino.save_model(graph, target / MODEL, compress_to_fp16=False)
    except CONVERSION_ERRORS as error:
        raise conversion_failed(error) from error
    (target / TOKENIZER).write_text(fast_tokenizer(model).to_str(), encoding="utf-8")


def conversion_failed(error: Exception) -> FastPathRefusedError:
    """Return the refusal of a model that could not be converted."""
    return FastPathRefusedError(f"conversion failed: {type(error).__name__}: {str(error).splitlines()[:1]}")
