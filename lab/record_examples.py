"""Ask the worked requests again and write down what is answered: ``python -m lab.record_examples CONFIG [NAME…]``.

``CONFIG`` is that of a synced example corpus. The requests are those of ``api/worked.json``, in its order; a new one is
written there with an empty answer. With names only these examples are recorded anew, the others stay. Two of the
requests hand documents in; one of these the workspace's inbox keeps.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from api.access.door import TOKEN_VARIABLE
from api.app import create_app
from api.openapi import FILE, Worked, worked_examples
from nornweave.config import Settings
from nornweave.config.access import AccessSettings, AgentsSettings, AllowedAgent, OidcSettings
from nornweave.connect.connectors import GitSettings, load_settings
from nornweave.core.types import Domain, JsonValue

MAX_CHARACTERS, MAX_ITEMS, MAX_LINES = 400, 8, 40
START_S = 60
AGENTS = AgentsSettings(allow=(AllowedAgent(url="https://agents.example.org"),))
SECRET = {"EXAMPLE_HOOK": "a-secret-that-only-both-know"}
HOOKED = {"url": "https://git.example.org/team/tool.git", "webhook_secret_env": next(iter(SECRET))}
PEOPLE = AccessSettings(oidc=OidcSettings(issuer="https://login.example.org", audience=("nornweave",)))
SERVICE = "service-token-of-the-operator"
ALONE = frozenset({"/recall", "/describe", "/ingest"})
"""Paths of an agent that is served alone."""


async def record(settings: Settings, examples: Sequence[Worked]) -> list[Worked]:
    """Ask everything: of all domains, of the code agent alone, or where people make tokens."""
    recorded: list[Worked] = []
    ids: dict[str, str] = {}
    people = settings.model_copy(update={"access": PEOPLE})
    for kind, configured, agent in (
        ("all", settings, None),
        ("alone", settings, Domain.CODE),
        ("people", people, None),
    ):
        async with _client(configured, agent) as client:
            for example in examples:
                if _kind(example) == kind:
                    recorded.append(await _asked(client, with_ids(example, ids)))
                    ids |= zip(_ids(example.answer), _ids(recorded[-1].answer), strict=False)
    return recorded


def with_ids(example: Worked, ids: dict[str, str]) -> Worked:
    """Return a request that names the ids of today's answers where it named those of earlier ones."""
    written = json.dumps({"parameters": example.parameters, "body": example.body})
    for before, now in ids.items():
        written = written.replace(json.dumps(before), json.dumps(now))
    return replace(example, **json.loads(written))


def _ids(answer: Any) -> Iterator[str]:
    """Yield the ids of an answer that later requests may name."""
    if isinstance(answer, dict):
        yield from (answer[key] for key in ("query_id", "id") if isinstance(answer.get(key), str))
        yield from (item["chunk_id"] for item in answer.get("items") or [] if "chunk_id" in item)


def _kind(example: Worked) -> str:
    return "alone" if example.path in ALONE else "people" if example.path.startswith("/tokens") else "all"


@asynccontextmanager
async def _client(settings: Settings, agent: Domain | None) -> AsyncIterator[httpx.AsyncClient]:
    hooked = GitSettings(id="tool", domain=Domain.CODE, **HOOKED)
    settings = settings.model_copy(update={"agents": AGENTS, "sources": (*settings.sources, hooked)})
    environment = {TOKEN_VARIABLE: SERVICE} if settings.access else {}
    app = create_app(settings, agent=agent, environment={**SECRET, **environment})
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(
            transport=httpx.ASGITransport(app),
            base_url="http://localhost",
            headers={"authorization": f"Bearer {SERVICE}"} if settings.access else {},
        ) as client,
    ):
        for _ in range(START_S * 10):
            if (await client.get("/ready")).status_code == 200:
                break
            await asyncio.sleep(0.1)
        yield client


async def _asked(client: httpx.AsyncClient, example: Worked) -> Worked:
    in_path = {name for name in example.parameters if f"{{{name}}}" in example.path}
    path = example.path.format(**{name: quote(str(example.parameters[name])) for name in in_path})
    others = {name: str(value) for name, value in example.parameters.items() if name not in in_path}
    headers = {name: value for name, value in others.items() if name.startswith("x-")}
    query = {name: value for name, value in others.items() if name not in headers}
    answer = await client.request(example.method, path, params=query, headers=headers, json=example.body)
    media_type = answer.headers["content-type"].partition(";")[0]
    is_json = media_type.endswith("json")
    shown = shortened(answer.json()) if is_json else "".join(answer.text.splitlines(True)[:MAX_LINES])
    return replace(example, status=answer.status_code, media_type=media_type, answer=shown)


def shortened(value: JsonValue) -> JsonValue:
    """Return a value whose long texts end in ``…`` and whose long lists end early."""
    if isinstance(value, str):
        return value if len(value) <= MAX_CHARACTERS else value[:MAX_CHARACTERS].rstrip() + " …"
    if isinstance(value, dict):
        return {key: shortened(inner) for key, inner in value.items()}
    return [shortened(inner) for inner in value[:MAX_ITEMS]] if isinstance(value, list) else value


def main(config: str, *names: str) -> None:
    """Write the file that ``api/openapi.py`` reads."""
    before = worked_examples()
    now = {example.name: example for example in asyncio.run(record(load_settings(Path(config), {}), before))}
    examples = [now[each.name] if not names or each.name in names else each for each in before]
    written = json.dumps([asdict(example) for example in examples], ensure_ascii=False, indent=1)
    FILE.write_text(written + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
