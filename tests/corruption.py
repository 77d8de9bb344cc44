"""Answers of an API with a value somewhere in them replaced, for tests that expect anything of a server."""

import random
from dataclasses import replace
from typing import Any

from lab.apis.server import Reply

_JUNK: tuple[Any, ...] = (
    *(
        None, True, -1, 0, 2**70, 1e308, float("nan"), float("inf"), "", "x", "\x00\ud800", "../..", "<p>" * 50,
        "9" * 30,
    ),
    *([], [None], [[]], {}, {"id": {}}, {"results": [7]}),
)  # fmt: skip


def corrupted(reply: Reply, choose: random.Random) -> Reply:
    """Return the answer with one value of its JSON, or a part of its bytes, replaced by junk."""
    body = reply.body
    if not isinstance(body, bytes):
        return replace(reply, body=_replaced(body, choose))
    start = choose.randint(0, len(body))
    junk = choose.choice((b"", b"<", b"&x;", b"\xff\x00", body))
    return replace(reply, body=body[:start] + junk + body[start + choose.randint(0, 200) :])


def _replaced(value: Any, choose: random.Random) -> Any:
    if not isinstance(value, dict | list) or not value or choose.random() < 0.15:
        return choose.choice(_JUNK)
    key = choose.choice(list(value) if isinstance(value, dict) else range(len(value)))
    copy = value.copy()
    copy[key] = _replaced(value[key], choose)
    return copy
