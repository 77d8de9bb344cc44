"""Models beside the default one: BERT with mean pooling on OpenVINO, others run by sentence-transformers."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nornweave.core.errors import EncoderError
from nornweave.models.encoders import load_encoder
from nornweave.models.encoders.bert import read_bert
from nornweave.models.folders import locate

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.slow,
]

WORDS = ["refund", "payment", "captured", "void", "422", "##s", "##ed", "the", "a", ".", "ledger", "é"]
TEXTS = ["", "refund", "the captured payments .", "void " * 100, "unknown words é", "a ledger"]
Build = Callable[..., Path]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Build a tiny random model with sentence-transformers and save it; the same one again is not built again."""

    @cache
    def build(name: str, *, pooling: str = "mean", normalize: bool = True, query: str = "", document: str = "") -> Path:
        import torch
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
        from transformers import BertConfig, BertModel, BertTokenizerFast

        torch.manual_seed(7)
        raw, saved = tmp_path_factory.mktemp("raw"), tmp_path_factory.mktemp("models") / name
        vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
        (raw / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
        BertTokenizerFast(vocab={word: at for at, word in enumerate(vocabulary)}, model_max_length=64).save_pretrained(
            raw
        )
        config = BertConfig(
            vocab_size=len(vocabulary),
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=64,
            max_position_embeddings=64,
        )
        BertModel(config).save_pretrained(raw)
        transformer = Transformer(str(raw), max_seq_length=48)
        modules: list[Any] = [transformer, Pooling(32, pooling_mode=pooling)]
        model = SentenceTransformer(modules=[*modules, Normalize()] if normalize else modules, device="cpu")
        model.prompts = {"query": query, "document": document} if query else model.prompts
        model.save(str(saved))
        return saved

    return build


def _original(folder: Path, texts: list[str]) -> Any:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    return model.encode(texts, normalize_embeddings=True, show_progress_bar=False, batch_size=1)


@pytest.mark.parametrize(("options", "runs_as"), [
    ({"pooling": "mean"}, "BertEncoder"),
    ({"pooling": "cls", "normalize": False}, "SentenceTransformerEncoder"),
    ({"pooling": "max"}, "SentenceTransformerEncoder"),
], ids=["mean", "cls-unnormalised", "max"])  # fmt: skip
def test_a_saved_model_gives_its_vectors(build: Build, tmp_path: Path, options: dict[str, Any], runs_as: str) -> None:
    folder = build("tiny", **options)
    encoder = load_encoder(str(folder), dimensions=32, cache_dir=tmp_path)
    assert type(encoder).__name__ == runs_as
    assert (encoder.dimensions, encoder.max_tokens) == (32, 46)
    assert encoder.version.startswith("tiny@")
    assert (encoder.encode(TEXTS) * _original(folder, TEXTS)).sum(axis=1).min() > 0.999


def test_a_model_with_prompts_runs_with_them(build: Build, tmp_path: Path) -> None:
    folder = build("prompted", query="a ledger ", document="void ")
    encoder = load_encoder(str(folder), dimensions=32, cache_dir=tmp_path)
    assert type(encoder).__name__ == "SentenceTransformerEncoder"
    seen: list[int] = []
    wanted = _original(folder, [f"void {text}" for text in TEXTS])
    assert np.allclose(encoder.encode(TEXTS, progress=seen.append), wanted, atol=1e-5)
    assert seen == [len(TEXTS)]
    assert np.allclose(encoder.encode_query("refund"), _original(folder, ["a ledger refund"])[0], atol=1e-5)
    assert encoder.encode([]).shape == (0, 32)
    assert encoder.encode(["\ud800 \x00 🧾"]).shape == (1, 32)
    assert list(encoder.tokenizer.token_starts("refund payments")) == [0, 7, 14]
    assert encoder.max_tokens == 46


def test_cuda_without_a_gpu_says_what_to_do(build: Build, tmp_path: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(EncoderError, match=r"set embedding\.device"):
        load_encoder(str(build("tiny")), device="cuda", cache_dir=tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_version_follows_the_weights_and_not_the_folder(build: Build, tmp_path: Path) -> None:
    first = build("tiny")
    copied = tmp_path / "tiny"
    shutil.copytree(first, copied)
    assert locate(str(copied)).version == locate(str(first)).version
    limit = copied / "sentence_bert_config.json"
    limit.write_text(json.dumps({**json.loads(limit.read_text()), "max_seq_length": 32}))
    assert locate(str(copied)).version != locate(str(first)).version
    assert str(tmp_path) not in locate(str(copied)).version


def test_a_model_that_cannot_be_built_is_stood_in_for(
    build: Build, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    folder = tmp_path / "own"
    shutil.copytree(build("tiny"), folder)
    weights = {name: tensor.to(torch.bfloat16) for name, tensor in load_file(folder / "model.safetensors").items()}
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    assert read_bert(folder) is not None
    encoder = load_encoder(str(folder), dimensions=32, cache_dir=tmp_path)
    assert type(encoder).__name__ == "SentenceTransformerEncoder"
    assert "own runs on sentence-transformers, slower" in caplog.text


def test_a_model_whose_weights_are_broken_is_an_encoder_error(build: Build, tmp_path: Path) -> None:
    folder = tmp_path / "broken"
    shutil.copytree(build("tiny"), folder)
    (folder / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(EncoderError, match="'broken' does not load"):
        load_encoder(str(folder), cache_dir=tmp_path / "cache")


@pytest.mark.parametrize(
    "environment", [{"HF_HUB_OFFLINE": "1"}, {"HF_ENDPOINT": "http://127.0.0.1:9"}], ids=["offline", "unreachable"]
)
def test_a_model_that_is_nowhere_is_an_encoder_error_at_once(environment: dict[str, str], tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; import huggingface_hub\n"
        "from nornweave.models.encoders import load_encoder; from nornweave.core.errors import EncoderError\n"
        "for model in sys.argv[2:]:\n"
        "    start = time.monotonic()\n"
        "    try: load_encoder(model, cache_dir=Path(sys.argv[1]))\n"
        "    except EncoderError as error: print(error)\n"
        "    assert time.monotonic() - start < 15; assert 'torch' not in sys.modules\n"
    )
    no_folders = ["./no/such/folder", "", "a/b/c"]
    no_names = ["nobody/no-such-model", "not a valid name!"]
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path), *no_folders, *no_names],
        env={**os.environ, "HF_HOME": str(tmp_path), **environment},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert len(said) == len(no_folders) + len(no_names)
    assert all("is not a folder" in line for line in said[: len(no_folders)])
    assert all("neither a folder nor in the local" in line for line in said[len(no_folders) :])


def test_an_empty_folder_is_an_encoder_error(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(EncoderError, match=r"neither modules\.json nor config\.json"):
        load_encoder(str(tmp_path / "empty"), cache_dir=tmp_path)


def test_a_cache_that_cannot_be_written_costs_the_measurement_only(
    build: Build, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    assert load_encoder(str(build("tiny")), cache_dir=tmp_path / "file").dimensions == 32
    assert "measured again at the next start" in caplog.text
