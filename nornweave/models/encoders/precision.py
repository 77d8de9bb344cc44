"""Choose the numeric precision of this CPU: measured once per CPU and model, and kept beside the converted model.

A CPU's name and flags do not tell: with AVX512-BF16 but without AMX, bfloat16 took half as long again as float32 on one
machine and half the time on another, and int8 without VNNI is slower and wrong (sums of products overflow).
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Literal, TypeAlias

from nornweave.core.files.atomic_write import write_whole
from nornweave.core.types import digest
from nornweave.models.encoders.port import Encoder, Vectors
from nornweave.models.runtimes import import_openvino

log = logging.getLogger(__name__)

Precision: TypeAlias = Literal["float32", "bfloat16", "int8"]
"""``bfloat16`` gives the vectors of ``float32`` (cosine .9999); those of ``int8`` are others (.999)."""
Wanted: TypeAlias = Literal["auto", "float", "int8"]

WORTH_IT = 1.5
"""So much faster must int8 be than floating point: with VNNI it takes half the time, without it costs accuracy."""
FAITHFUL = 0.9975
"""Lowest mean cosine to float32 over the probe texts: .9991 with VNNI, .9955 without, where sums overflow."""
ROUNDS = 3
_WORDS = (
    "the refund endpoint answers 422 when a captured payment was voided before def void(self, amount: int) -> None:"
)
TEXTS = tuple(" ".join((_WORDS.split() * 8)[shift : shift + 60]) for shift in range(8))


@dataclass(frozen=True, slots=True)
class Speeds:
    """Measured speeds and fidelity of one model on this CPU.

    Attributes:
        per_second: texts per second, by precision; only those that CPU and model have.
        int8_cosine: mean cosine of int8 vectors to float32 vectors; 0 where the model has no int8 form.
    """

    per_second: dict[Precision, float]
    int8_cosine: float = 0.0

    @property
    def floating(self) -> Precision:
        """The faster floating point type."""
        return max(("float32", "bfloat16"), key=lambda one: self.per_second.get(one, 0.0))

    @property
    def fastest(self) -> Precision:
        """The precision for new vectors."""
        gain = self.per_second.get("int8", 0.0) / self.per_second[self.floating]
        return "int8" if self.has_faithful_int8 and gain >= WORTH_IT else self.floating

    @property
    def has_faithful_int8(self) -> bool:
        """Whether int8 vectors on this CPU agree with float32."""
        return self.int8_cosine >= FAITHFUL


def speeds_of(open_encoder: Callable[[Precision], Encoder], bundle: Path, *, has_int8: bool) -> Speeds:
    """Return the speeds of this CPU, measuring once: half a second on two idle cores.

    Args:
        open_encoder: opens the model of ``bundle``.
        bundle: folder of the converted model; the speeds are kept beside it.
        has_int8: whether the model has an int8 form.
    """
    capabilities = import_openvino().Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    key = digest(bundle.name, version("openvino"), *sorted(capabilities), _cpu())
    file = bundle.parent / f"speeds-{key[:16]}.json"
    try:
        return Speeds(**json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        pass  # not measured yet, or torn
    candidates: list[Precision] = ["float32"]
    candidates += ["bfloat16"] if "BF16" in capabilities else []
    candidates += ["int8"] if has_int8 else []
    speeds = _measured({precision: open_encoder(precision) for precision in candidates})
    log.info("%s on this CPU, texts per second: %s; taking %s", bundle.name, speeds.per_second, speeds.fastest)
    try:
        write_whole(file, json.dumps(asdict(speeds)) + "\n")
    except OSError as error:
        log.warning("%s: measured again at the next start, because it cannot be written: %s", file, error)
    return speeds


def _measured(encoders: dict[Precision, Encoder]) -> Speeds:
    vectors: dict[Precision, Vectors] = {name: encoder.encode(TEXTS) for name, encoder in encoders.items()}
    seconds: dict[Precision, list[float]] = {name: [] for name in encoders}
    for _ in range(ROUNDS):  # in turns, since the speed of a shared machine drifts
        for name, encoder in encoders.items():
            start = time.perf_counter()
            encoder.encode(TEXTS)
            seconds[name].append(time.perf_counter() - start)
    cosine = float((vectors["int8"] * vectors["float32"]).sum(axis=1).mean()) if "int8" in vectors else 0.0
    # The best round: what else runs on the machine only ever slows one down.
    return Speeds({name: round(len(TEXTS) / min(rounds), 1) for name, rounds in seconds.items()}, round(cosine, 5))


def _cpu() -> str:
    """Return what tells CPUs apart; virtual machines give very different ones the same name."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split("\n\n")[0].splitlines()
    except OSError:  # not Linux
        return str(import_openvino().Core().get_property("CPU", "FULL_DEVICE_NAME"))
    return "\n".join(line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part")))
