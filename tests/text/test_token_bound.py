"""The bound on tokens against tokenizers of two makers, whose files a dependency carries."""

import base64
import json
import random
from pathlib import Path

import pytest
from tokenizers_of_models import most_tokens

from api.mcp.calls import bound_tokens, estimate_tokens

ROOT = Path(__file__).parents[2]
RANDOM = random.Random(1)
BYTES = RANDOM.randbytes(9000)


def characters(first: int, last: int, count: int) -> str:
    return "".join(chr(RANDOM.randrange(first, last)) for _ in range(count))


TEXTS = {
    "prose": (ROOT / "docs/recall.md").read_text("utf-8"),
    "code": (ROOT / "nornweave/ask/engine.py").read_text("utf-8"),
    "json": (ROOT / "api/worked.json").read_text("utf-8")[:40_000],
    "base64": base64.b64encode(BYTES).decode(),
    "base32": base64.b32encode(BYTES).decode().lower(),
    "hexadecimal": BYTES.hex(),
    "digits": str(int.from_bytes(BYTES[:1700])),
    "signs": characters(33, 48, 9000),
    "printable": characters(33, 127, 9000),
    "blanks": " \n\t" * 3000,
    "han": characters(0x4E00, 0x9FFF, 4000),
    "chinese": "支付失败时请重试，网关返回四百二十二。" * 200,
    "russian": "Платёж отклонён, шлюз отвечает кодом 422. " * 200,
    "emoji": characters(0x1F300, 0x1F6FF, 3000),
    "cuneiform": characters(0x12000, 0x12300, 3000),
    "combining": "a\u0301\u0323" * 3000,
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_bound_is_at_least_three_quarters_of_what_tokenizers_count(name: str) -> None:
    assert bound_tokens(TEXTS[name]) >= 0.74 * most_tokens(TEXTS[name])


@pytest.mark.parametrize("name", ["prose", "code", "json"])
def test_ordinary_text_is_not_counted_twice(name: str) -> None:
    assert most_tokens(TEXTS[name]) <= bound_tokens(TEXTS[name]) <= 1.8 * most_tokens(TEXTS[name])


@pytest.mark.parametrize("name", ["prose", "code", "json"])
def test_the_estimate_of_ordinary_text_is_near(name: str) -> None:
    assert 0.95 * most_tokens(TEXTS[name]) <= estimate_tokens(TEXTS[name]) <= 1.2 * most_tokens(TEXTS[name])


def test_a_text_that_is_half_a_character_has_a_bound() -> None:
    assert bound_tokens(json.loads('"\\ud800"')) >= 1
    assert bound_tokens("") == 0
