"""Load an encoder by its model's name, in the fastest numeric precision of this CPU.

The speed of each precision is measured once per CPU and model, and kept. A CPU's name and flags do not tell: with
AVX512-BF16 but without AMX, bfloat16 took half as long again as float32 on one machine and half the time on another,
and int8 without VNNI is slower and wrong (sums of products overflow).
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Literal, TypeAlias

from nornweave.core.errors import EncoderError
from nornweave.core.files.writing import user_cache, write_whole
from nornweave.core.types import digest
from nornweave.models.encoders.bert import BertEncoder, BertFolder, Session, import_openvino, read_bert, recipe_version
from nornweave.models.encoders.hashing import HashEncoder
from nornweave.models.encoders.port import INT8, Encoder, Precision, Vectors, Wanted
from nornweave.models.folders import ModelFolder, locate

log = logging.getLogger(__name__)

WORTH_IT = 1.5
"""So much faster must int8 be than floating point: with VNNI it takes half the time, without it costs accuracy."""
FAITHFUL = 0.9975
"""Lowest mean cosine to float32 over the probe texts: .9991 with VNNI, .9955 without, where sums overflow."""
AGREEMENT = 0.999
"""The same of bfloat16, which reaches .99998."""
ROUNDS = 3
_WORDS = (
    "the refund endpoint answers 422 when a captured payment was voided before def void(self, amount: int) -> None:"
)
TEXTS = tuple(" ".join((_WORDS.split() * 8)[shift : shift + 60]) for shift in range(8))


@dataclass(frozen=True, slots=True)
class Speeds:
    """The measured speeds and fidelity of one model on this CPU.

    Attributes:
        per_second: precision → texts per second, for precisions that the CPU and the model support.
        int8_cosine: mean cosine of int8 vectors to float32 vectors; 0 if the model has no int8 form.
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


def machine_cache(fallback: Path) -> Path:
    """Return the folder of this machine's measurements, or ``fallback`` if that folder cannot be written.

    The folder is ``$XDG_CACHE_HOME/nornweave/models``, by default ``~/.cache/nornweave/models``.
    """
    try:
        folder = user_cache("models")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # no home, or one that cannot be written
        return fallback
    return folder if os.access(folder, os.W_OK | os.X_OK) else fallback


def speeds_of(
    open_encoder: Callable[[Precision], Encoder], model: ModelFolder, bert: BertFolder, cache: Path
) -> Speeds:
    """Return the speeds on this CPU. The first call measures them, which takes half a second on two idle cores.

    Args:
        open_encoder: opens the model with a precision.
        cache: the folder in which the speeds are stored.
    """
    capabilities = import_openvino().Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    key = digest(model.digest, recipe_version(), version("openvino"), *sorted(capabilities), _cpu())
    file = cache / f"speeds-{key[:16]}.json"
    try:
        return Speeds(**json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        pass  # not measured yet, or torn
    candidates: list[Precision] = ["float32"]
    candidates += ["bfloat16"] if "BF16" in capabilities else []
    candidates += ["int8"] if bert.recipe else []
    speeds = _measured({precision: open_encoder(precision) for precision in candidates})
    log.info("%s on this CPU, texts per second: %s; taking %s", model.name, speeds.per_second, speeds.fastest)
    try:
        cache.mkdir(parents=True, exist_ok=True)
        write_whole(file, json.dumps(asdict(speeds)) + "\n")
    except OSError as error:
        log.warning("%s: measured again at the next start, because it cannot be written: %s", file, error)
    return speeds


def _measured(encoders: dict[Precision, Encoder]) -> Speeds:
    vectors: dict[Precision, Vectors] = {name: encoder.encode(TEXTS) for name, encoder in encoders.items()}
    if "bfloat16" in vectors and _cosine(vectors["bfloat16"], vectors["float32"]) < AGREEMENT:
        del encoders["bfloat16"]
    seconds: dict[Precision, list[float]] = {name: [] for name in encoders}
    for _ in range(ROUNDS):  # in turns, since the speed of a shared machine drifts
        for name, encoder in encoders.items():
            start = time.perf_counter()
            encoder.encode(TEXTS)
            seconds[name].append(time.perf_counter() - start)
    cosine = _cosine(vectors["int8"], vectors["float32"]) if "int8" in vectors else 0.0
    # The best round: what else runs on the machine only ever slows one down.
    return Speeds({name: round(len(TEXTS) / min(rounds), 1) for name, rounds in seconds.items()}, round(cosine, 5))


def _cosine(vectors: Vectors, exact: Vectors) -> float:
    return float((vectors * exact).sum(axis=1).mean())


def _cpu() -> str:
    """Return text that identifies the CPU. It is more than the name, which different virtual CPUs have in common."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").split("\n\n")[0].splitlines()
    except OSError:  # not Linux
        return str(import_openvino().Core().get_property("CPU", "FULL_DEVICE_NAME"))
    return "\n".join(line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part")))


HASH = "hash:"
LITELLM = ("litellm:", "litellm/")
PROBE_BATCH = 2
"""Texts in a batch while the CPU's speed is measured: enough batches for all streams of OpenVINO."""
Choose: TypeAlias = Callable[[ModelFolder, Speeds], Precision]


def load_encoder(
    model: str,
    *,
    dimensions: int | None = None,
    device: Literal["cpu", "cuda"] = "cpu",
    batch_size: int = 32,
    cache_dir: Path,
    precision: Wanted = "auto",
    like: str | None = None,
) -> Encoder:
    """Load an embedding model and try it on one text.

    Args:
        model: ``sentence-transformers/all-MiniLM-L6-v2`` (bundled), another sentence-transformers model by name or
            folder, ``litellm:<model>`` for a model behind an API, ``hash:<dimensions>`` for hashing without a model.
        dimensions: the dimensions that the domain declares; ``None`` accepts those of the model.
        cache_dir: the folder in which the speeds of this CPU are stored, once per model.
        precision: the numbers to compute vectors with. ``auto`` uses the precision of ``like`` if there are vectors,
            else the fastest one of this CPU.
        like: the version of existing vectors, to which new vectors are added; ``None`` if there are none.

    Raises:
        EncoderError: the model cannot be found, loaded or reached, or has other dimensions than declared.
    """
    if model.startswith(HASH):
        encoder: Encoder = _hash_encoder(model)
    elif model.startswith(LITELLM):
        encoder = _hosted_encoder(model, dimensions, batch_size)
    else:
        choose = partial(_precision, wanted=precision, like=like)
        encoder = _local_encoder(locate(model), device, batch_size, cache_dir, choose)
    _check(encoder, model, dimensions, precision)
    return encoder


def _check(encoder: Encoder, model: str, dimensions: int | None, precision: Wanted) -> None:
    if precision == "int8" and INT8 not in encoder.version:
        raise EncoderError(
            f"embedding model {model!r} cannot be computed with embedding.precision 'int8'; only the default model has "
            "that form, on device 'cpu' with OpenVINO: set it to 'auto'"
        )
    probe = encoder.encode_query("probe")
    if dimensions is not None and probe.shape != (dimensions,):
        raise EncoderError(
            f"embedding model {model!r} has {probe.shape[0]} dimensions, the domain declares {dimensions}; "
            f"set embedding.dimensions to {probe.shape[0]}, or name another model"
        )


def _local_encoder(folder: ModelFolder, device: str, batch_size: int, cache_dir: Path, choose: Choose) -> Encoder:
    """Load a BERT on OpenVINO or NumPy, and any other model with sentence-transformers."""
    if device == "cpu" and (bert := read_bert(folder.path)) is not None:
        try:
            return _without_torch(folder, bert, batch_size, cache_dir, choose)
        except EncoderError as error:
            log.warning("embedding model %s runs on sentence-transformers, slower: %s", folder.name, error)
    from nornweave.models.rerankers import SentenceTransformerEncoder

    return SentenceTransformerEncoder(folder, device=device, batch_size=batch_size)


def _without_torch(folder: ModelFolder, bert: BertFolder, batch_size: int, cache_dir: Path, choose: Choose) -> Encoder:
    session = _session(folder)

    def opened(precision: Precision, batch_size: int = PROBE_BATCH) -> Encoder:
        version = _version(folder, precision)
        return BertEncoder(bert, session, version=version, batch_size=batch_size, precision=precision)

    has_choice = session.NAME == "OpenVINO"
    speeds = speeds_of(opened, folder, bert, cache_dir) if has_choice else Speeds({"float32": 1.0})
    encoder = opened(choose(folder, speeds), batch_size)
    encoder.encode_query("probe")
    return encoder


def _session(folder: ModelFolder) -> type[Session]:
    """Return the runtime for BERT: OpenVINO, or NumPy if OpenVINO does not load."""
    try:
        import_openvino()
    except ImportError as error:
        log.warning("embedding model %s runs on NumPy, slower, because OpenVINO does not load: %s", folder.name, error)
        from nornweave.models.encoders.bert import NumpySession

        return NumpySession
    from nornweave.models.encoders.bert import OpenVinoSession

    return OpenVinoSession


def _hosted_encoder(model: str, dimensions: int | None, batch_size: int) -> Encoder:
    from nornweave.models.hosted import LiteLLMEncoder

    name = model[len(LITELLM[0]) :]
    return LiteLLMEncoder(name, dimensions=dimensions, batch_size=batch_size)


def _hash_encoder(model: str) -> HashEncoder:
    try:
        return HashEncoder(int(model.removeprefix(HASH)))
    except ValueError as error:
        raise EncoderError(
            f"embedding model {model!r}: {error}; expected 'hash:64' or another number of at least 2"
        ) from error


def _version(folder: ModelFolder, precision: Precision) -> str:
    return f"{folder.version}{INT8}{recipe_version()}" if precision == "int8" else folder.version


def _precision(folder: ModelFolder, speeds: Speeds, *, wanted: Wanted, like: str | None) -> Precision:
    """Choose the numeric precision.

    New vectors get the precision of existing ones, so that moving a corpus to another machine does not encode it again.
    The exception is ``int8`` on a CPU that cannot compute int8 vectors faithfully, which uses the fastest other one.
    """
    if wanted == "auto" and like == _version(folder, "float32"):
        wanted = "float"
    if wanted == "auto" and like == _version(folder, "int8") and speeds.has_faithful_int8:
        wanted = "int8"
    if wanted == "int8" and "int8" in speeds.per_second:
        return "int8"
    return speeds.fastest if wanted == "auto" else speeds.floating
