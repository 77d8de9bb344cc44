"""Cross-encoders: the same scores as sentence-transformers gives, and an absence that harms nothing."""

import json
import logging
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from nornweave.core.errors import RerankerError
from nornweave.models.encoders.tokenizer import BATCH_TOKENS
from nornweave.models.folders import CROSS_ENCODER, locate
from nornweave.models.rerankers import RerankerSlot, Scores, load_reranker, scores_of

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.slow,
]

WORDS = ["refund", "payment", "captured", "void", "422", "##s", "##ed", "the", "a", ".", "ledger", "é"]
QUERY = "the refund"
TEXTS = [
    "",
    "refund",
    "the captured payments .",
    "void " * 100,
    "unknown words é",
    "a ledger",
    "422 ledger void refund",
]
NAME = "somebody/tiny-cross-encoder"
Build = Callable[..., Path]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Build a tiny random cross-encoder whose scores differ, and save it."""

    def build(name: str, *, labels: int = 1, activation: str = "Sigmoid", broken: bool = False) -> Path:
        import torch
        from sentence_transformers import CrossEncoder
        from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

        torch.manual_seed(7)
        raw, saved = tmp_path_factory.mktemp("raw"), tmp_path_factory.mktemp("models") / name
        vocabulary = {word: at for at, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS])}
        BertTokenizerFast(vocab=vocabulary, model_max_length=48).save_pretrained(raw)
        config = BertConfig(
            vocab_size=len(vocabulary),
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=64,
            max_position_embeddings=64,
            initializer_range=0.3,
            num_labels=labels,
        )
        model = BertForSequenceClassification(config)
        if broken:
            model.classifier.weight.data.fill_(float("nan"))
        model.save_pretrained(raw)
        whole = CrossEncoder(
            str(raw), device="cpu", local_files_only=True, activation_fn=getattr(torch.nn, activation)()
        )
        whole.save(str(saved))
        return saved

    return build


@pytest.fixture(scope="module")
def tiny(build: Build) -> Path:
    return build("tiny")


@pytest.fixture(scope="module")
def original(tiny: Path) -> Scores:
    """What sentence-transformers itself says, activated by a sigmoid; one pair at a time, so without padding."""
    from sentence_transformers import CrossEncoder

    model = CrossEncoder(str(tiny), device="cpu", local_files_only=True)
    pairs = [(QUERY, text) for text in TEXTS]
    scores = np.asarray(model.predict(pairs, batch_size=1, show_progress_bar=False), dtype=np.float32)
    assert np.ptp(scores) > 0.1, "scores that hardly differ prove nothing about their order"
    return scores


def test_a_model_by_folder_gives_the_scores_of_sentence_transformers(tiny: Path, original: Scores) -> None:
    for batch_size in (1, 2, 32):
        reranker = load_reranker(str(tiny), batch_size=batch_size)
        scores = reranker.score(QUERY, TEXTS)
        assert scores.dtype == np.float32
        assert scores == pytest.approx(original, abs=1e-4)
        assert reranker.score(QUERY, TEXTS[::-1]) == pytest.approx(scores[::-1], abs=1e-4)
    assert reranker.name == "tiny"
    assert reranker.version.startswith("tiny@")
    assert reranker.score(QUERY, []).shape == (0,)
    assert reranker.score("", ["\ud800 \x00 🧾"]).shape == (1,)


@pytest.mark.parametrize("activation", ["Sigmoid", "Identity"])
def test_scores_are_the_same_whatever_activation_was_saved(build: Build, original: Scores, activation: str) -> None:
    reranker = load_reranker(str(build("exact", activation=activation)), batch_size=2)
    assert reranker.score(QUERY, TEXTS) == pytest.approx(original, abs=1e-4)


def test_several_threads_get_the_scores_of_one(tiny: Path) -> None:
    reranker = load_reranker(str(tiny))
    alone = [reranker.score(QUERY, TEXTS[at:]) for at in range(4)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda at: reranker.score(QUERY, TEXTS[at:]), list(range(4)) * 4))
    for at, scores in enumerate(together):
        assert np.array_equal(scores, alone[at % 4])


def test_a_model_that_gives_no_number_is_an_error(build: Build) -> None:
    from nornweave.models.rerankers import CrossEncoderReranker

    reranker = CrossEncoderReranker(locate(str(build("nan", broken=True)), CROSS_ENCODER))
    with pytest.raises(RerankerError, match=r"'nan' gave text 0 of 1 the score nan"):
        reranker.score("refund", ["void"])


def test_the_deadline_is_looked_at_before_each_batch(tiny: Path) -> None:
    reranker = load_reranker(str(tiny))
    with pytest.raises(RerankerError, match=r"out of time after 0 of 7 texts"):
        reranker.score(QUERY, TEXTS, deadline=time.monotonic())
    assert len(reranker.score(QUERY, TEXTS, deadline=time.monotonic() + 60)) == len(TEXTS)

    deadline = time.monotonic() + 2

    def slowly(batch: Sequence[int]) -> Scores:
        time.sleep(max(0.0, deadline - time.monotonic()) + 0.01)
        return np.zeros(len(batch), dtype=np.float32)

    with pytest.raises(RerankerError, match=r"out of time after 2 of 5 texts"):
        scores_of("slow", 2, [1] * 5, slowly, deadline)


def test_batches_are_of_like_length_and_bounded() -> None:
    seen: list[list[int]] = []

    def note(batch: Sequence[int]) -> Scores:
        seen.append(list(batch))
        return np.array(batch, dtype=np.float32) - 2

    scores = scores_of("any", 2, [3, BATCH_TOKENS, 1, 7, 3], note, None)
    assert seen == [[1], [3, 0], [4, 2]]
    assert scores == pytest.approx([1 / (1 + np.exp(2 - at)) for at in range(5)], abs=1e-6)
    extremes = iter([-1e30, 1e30])
    scores = scores_of("any", 1, [1, 1], lambda _: np.array([next(extremes)], dtype=np.float32), None)
    assert list(scores) == [0.0, 1.0]


def test_a_model_in_the_local_cache_is_found_by_name_without_a_network(tiny: Path, tmp_path: Path) -> None:
    repository = tmp_path / "hub" / f"models--{NAME.replace('/', '--')}"
    revision = "0" * 40
    shutil.copytree(tiny, repository / "snapshots" / revision)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(revision, encoding="utf-8")
    script = (
        "import sys; from nornweave.models.folders import CROSS_ENCODER, locate\n"
        "print(locate(sys.argv[1], CROSS_ENCODER).version, 'torch' in sys.modules)\n"
    )
    done = _run(script, NAME, HF_HOME=str(tmp_path), HF_ENDPOINT="http://127.0.0.1:9")
    digest = locate(str(tiny), CROSS_ENCODER).digest[:16]
    assert done.stdout == f"{NAME}@{digest} False\n", done.stderr


NOWHERE = """
import sys, time
from pathlib import Path
from dataclasses import replace
import huggingface_hub
from nornweave.models import rerankers
from nornweave.models.rerankers import RerankerSlot
rerankers.CROSS_ENCODER = replace(rerankers.CROSS_ENCODER, hub_timeout=0.5)
start = time.monotonic()
slot = RerankerSlot(sys.argv[1])
slot.start()
assert slot.wait(60) is None
print(slot.state)
assert time.monotonic() - start < 10 and not {'torch', 'transformers'} & set(sys.modules)
"""


@pytest.mark.parametrize("network", ["offline", "silent"])
def test_a_model_that_is_nowhere_is_unavailable_soon(network: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections, answers nothing
        environment = {
            "offline": {"HF_HUB_OFFLINE": "1"},
            "silent": {"HF_ENDPOINT": f"http://127.0.0.1:{silent.getsockname()[1]}", "NO_PROXY": "127.0.0.1"},
        }[network]
        done = _run(NOWHERE, NAME, HF_HOME=str(tmp_path), **environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"unavailable: cross-encoder '{NAME}' is neither a folder nor in the local")
    assert "set reranking.model to" in done.stdout
    assert done.stderr.count("reranking goes without a cross-encoder") == 1


def _run(script: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("model", ["", " ", "./no/such/folder", "~/nothing", "/nowhere/at/all", "a/b/c"])
def test_a_folder_that_is_not_there_is_an_error(model: str) -> None:
    with pytest.raises(RerankerError, match="is not a folder"):
        load_reranker(model)


@pytest.mark.parametrize(("damage", "message"), [
    ({"config.json": None}, r"no config\.json that can be read"),
    ({"config.json": "{"}, r"no config\.json that can be read"),
    ({"config.json": "[]"}, r"no config\.json that can be read"),
    ({"config.json": json.dumps({"architectures": ["BertModel"]})}, "is a BertModel"),
    ({"config.json": "{}"}, "no architecture"),
    ({"tokenizer.json": None}, "has no tokenizer"),
    ({"model.safetensors": None}, "does not load"),
])  # fmt: skip
def test_a_folder_that_holds_no_cross_encoder_is_an_error(
    tiny: Path, tmp_path: Path, damage: dict[str, str | None], message: str
) -> None:
    folder = tmp_path / "damaged"
    shutil.copytree(tiny, folder)
    for name, content in damage.items():
        (folder / name).unlink()
        if content is not None:
            (folder / name).write_text(content, encoding="utf-8")
    with pytest.raises(RerankerError, match=message) as caught:
        load_reranker(str(folder))
    assert "'damaged'" in str(caught.value)


def test_a_model_of_several_labels_is_an_error(build: Build) -> None:
    for labels in (2, 3):
        with pytest.raises(RerankerError, match=f"gives {labels} scores to a pair"):
            load_reranker(str(build("several", labels=labels, activation="Identity")))


def test_weights_that_are_none_are_an_error(tiny: Path, tmp_path: Path) -> None:
    from nornweave.models.rerankers import CrossEncoderReranker

    folder = tmp_path / "broken"
    shutil.copytree(tiny, folder)
    (folder / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(RerankerError, match="'broken' does not load"):
        CrossEncoderReranker(locate(str(folder), CROSS_ENCODER))


def test_cuda_without_a_gpu_says_what_to_do(tiny: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(RerankerError, match=r"set embedding.device \(EMBEDDING_DEVICE\) to 'cpu'"):
        load_reranker(str(tiny), device="cuda")


def test_a_slot_without_a_model_is_off() -> None:
    slot = RerankerSlot(None)
    slot.start()
    assert slot.wait(1) is None
    assert (slot.reranker, str(slot.state)) == (None, "off")


def test_a_slot_loads_once_and_in_the_background(
    tiny: Path, original: Scores, caplog: pytest.LogCaptureFixture
) -> None:
    slot = RerankerSlot(str(tiny))
    assert str(slot.state) == "off"
    with caplog.at_level(logging.INFO, logger="nornweave"), ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: slot.wait(60), range(8)))
    assert str(slot.state) == "ready"
    assert slot.reranker is not None
    assert {id(reranker) for reranker in found} == {id(slot.reranker)}
    assert [record.message for record in caplog.records if "is ready" in record.message] == [caplog.messages[-1]]
    assert slot.reranker.score(QUERY, TEXTS) == pytest.approx(original, abs=1e-4)


def test_a_slot_whose_model_is_missing_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    slot = RerankerSlot("./missing")
    for _ in range(3):
        assert slot.wait(60) is None
    assert slot.state.status == "unavailable"
    assert str(slot.state).startswith("unavailable: cross-encoder './missing' is not a folder")
    assert caplog.text.count("reranking goes without a cross-encoder") == 1
