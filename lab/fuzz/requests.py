"""``python -m lab.fuzz.requests URL``: the worked examples' requests, damaged, against a running server.

Nothing may answer with a 5xx, hang, or end the connection. Start the server on a workspace that may be spoilt.
"""

from __future__ import annotations

import copy
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer

EXAMPLES = Path(__file__).parents[2] / "api" / "worked.json"
# What is right starts a process that looks everywhere (receipts), or waits for a stream that does not end.
LEFT_OUT = ("/receipts", "/mcp")
STRANGE: tuple[Any, ...] = (
    None, True, -1, 0, 10**30, 1e308, float("nan"), "", " ", "\0", "\ud800", "a" * 5000, "'; drop table chunks; --",
    "../../etc/passwd", "%2e%2e%2f", "{{7*7}}", "https://example.org/", [], {}, [[]], {"a": {"b": {}}}, "2026-02-30",
    "0001-01-01T00:00:00Z", "code", ["code", "code"], "(a+)+$", "[", "\u202e", "🦉" * 300, "gen-000001",
)  # fmt: skip
_SLOW_S = 10.0


def damaged(value: Any, chance: random.Random) -> Any:
    """Return a copy of a JSON value with something in it replaced, removed, doubled or nested."""
    value = copy.deepcopy(value)
    places = list(_places(value))
    if not places or chance.random() < 0.1:
        return chance.choice(STRANGE)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        holder, key = chance.choice(places)
        way = chance.randrange(5)
        if way == 0 and isinstance(holder, dict):
            holder.pop(key, None)
        elif way == 1 and isinstance(holder, dict):
            holder[chance.choice(("unknown", "", "__proto__", "query", "domains"))] = chance.choice(STRANGE)
        elif way == 2 and isinstance(_at(holder, key), str):
            holder[key] = _bent(holder[key], chance)
        else:
            holder[key] = chance.choice(STRANGE)
    return value


def _at(holder: Any, key: Any) -> Any:
    return holder.get(key) if isinstance(holder, dict) else holder[key]


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield value, key
        yield from _places(inner)


def _bent(text: str, chance: random.Random) -> str:
    at = chance.randrange(len(text) + 1)
    middle = chance.choice(
        ("", text[at : at + 9] * 2, "\n", "\0", "'", '"', "\\", "%", "é", "\u2028", "<", "&", ";", "*")
    )
    return text[:at] + middle + text[at + chance.randrange(4) :]


def request(client: httpx.Client, examples: list[dict[str, Any]], chance: random.Random) -> httpx.Request:
    """Return the request of an example, damaged in its path, its parameters, its body or its bytes."""
    example = chance.choice(examples)
    parameters = {key: str(value) for key, value in (example.get("parameters") or {}).items()}
    body, path = example.get("body"), example["path"]
    for name, value in parameters.items():
        path = path.replace(f"{{{name}}}", value)
    what = chance.randrange(6)
    if what == 0 or (body is None and what < 3):
        path = "/" + _bent(path[1:], chance)
    query = {key: value for key, value in parameters.items() if f"{{{key}}}" not in example["path"]}
    if what == 1 or (body is None and what >= 3):
        query[chance.choice([*query, "limit", "text", "domain", "x"])] = str(chance.choice(STRANGE))
    if body is not None and what > 1:
        body = damaged(body, chance)
    raw = (
        json.dumps(body, ensure_ascii=chance.random() < 0.5).encode("utf-8", "surrogatepass")
        if body is not None
        else b""
    )
    if what == 5:
        at = chance.randrange(len(raw) + 1)
        raw = raw[:at] + chance.choice((b"", b"\xff", b"{", chance.randbytes(3))) + raw[at + chance.randrange(3) :]
    headers = {
        "content-type": "application/json",
        "accept": chance.choice(("*/*", "application/json", "text/html", "x")),
    }
    method = example["method"].upper() if chance.random() < 0.95 else chance.choice(("GET", "PUT", "DELETE", "OPTIONS"))
    safe = httpx.URL(client.base_url).copy_with(raw_path=path.encode("utf-8", "replace").replace(b"\0", b"%00"))
    query = {key: value.encode("utf-8", "replace").decode() for key, value in query.items()}
    return client.build_request(method, safe, params=query or None, content=raw, headers=headers)


def main(
    url: Annotated[str, typer.Argument(help="Of a running server.")],
    requests: Annotated[int, typer.Option(help="How many.")] = 50_000,
    seed: Annotated[int, typer.Option(help="Other seeds make other requests.")] = 1,
) -> None:
    """Send damaged requests and print how many had which status; exit 1 when one had a 5xx or none."""
    examples = [each for each in json.loads(EXAMPLES.read_text("utf-8")) if not each["path"].startswith(LEFT_OUT)]
    statuses: Counter[str] = Counter()
    trouble = 0
    with httpx.Client(base_url=url, timeout=60) as client:
        for number in range(requests):
            chance = random.Random(f"{seed}/{number}")  # noqa: S311 - nothing secret
            try:
                sent = request(client, examples, chance)
            except (httpx.InvalidURL, ValueError):  # the client refuses to send it
                statuses["not sent"] += 1
                continue
            started = time.monotonic()
            try:
                status = str(client.send(sent).status_code)
            except httpx.HTTPError as error:
                status = type(error).__name__
            seconds = time.monotonic() - started
            statuses[status] += 1
            if not status.isdigit() or status >= "500" or seconds > _SLOW_S:
                trouble += not status.isdigit() or status >= "500"
                typer.echo(
                    f"{number}: {status} {seconds:.1f} s {sent.method} {str(sent.url)[:200]} {sent.content[:300]!r}"
                )
    typer.echo(", ".join(f"{status} {count:,}" for status, count in sorted(statuses.items())))
    sys.exit(1 if trouble else 0)


if __name__ == "__main__":
    typer.run(main)
