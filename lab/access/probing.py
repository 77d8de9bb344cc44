"""Ask as outsiders in every way there is, and look whether an answer holds something of a hidden document.

Every hidden document has words of its own: what is asked for, and what only its text, its path and its ids have. An
answer that holds one of those which the request did not send shows the document. Each way is also asked as an operator,
who has to see something: a way in which nobody sees anything proves nothing.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import httpx
from starlette.types import ASGIApp

from lab.access.serving import SERVICE, Outcome, as_somebody, publish, served, write_documents, write_workspace
from nornweave.connect.inbox.deposits import InboxDocument, deposit
from nornweave.core.types import Domain

OUTSIDERS: Mapping[str, Sequence[str]] = {
    "nw_none": [],
    "nw_guests": ["guests", "public", "everybody"],
    "nw_case": ["Board", "BOARD"],
    "nw_comma": ["board,", "board , cto", "board;cto"],
    "nw_blank": ["boa rd", "board\u200b", "b\u043eard"],
    "nw_star": ["*", "**", ".*", "%"],
    "nw_list": ["['board']", '["board"]', "[]", "()"],
    "nw_inner": ["every_of", "null", "None", "false", "0"],
}
"""Tokens of people who may see nothing that is hidden, with their groups."""
_SOURCES: Sequence[Mapping[str, Any]] = [
    {"id": "docs", "domain": "documentation", "type": "files", "path": "docs", "metadata": "side.yaml"},
    {"id": "closed", "domain": "documentation", "type": "files", "path": "closed", "access": ["board"]},
]
_GENERATIONS = ("gen-000001", "gen-000002", "gen-000003")
_SYLLABLES = tuple(f"{first}{second}" for first in "bcdfghklmnprstvwxz" for second in "aeiou")
_TIMEOUT_MS = 60_000
_AT_ONCE = 4
_BUSY_S = 0.5


@dataclass(frozen=True, slots=True)
class Hidden:
    """A document that is hidden from outsiders.

    Attributes:
        asked: a word of it that probes ask for.
        tells: what only it has: words of its text, its name; ids of its passages.
    """

    source: str
    path: str
    asked: str
    tells: tuple[str, ...]
    ids: tuple[str, ...] = ()


def probe(folder: Path, count: int, seed: int) -> Outcome:
    """Send probes of outsiders to a server in this process; the answers that show something are kept."""
    rng = random.Random(seed)  # noqa: S311 - repeatable, nothing secret
    settings, hidden = _published(folder, rng)

    async def ask() -> Outcome:
        async with served(settings) as app:
            known = await _with_ids(app, hidden)
            outcome = await _sent(app, known, count, rng)
            outcome.shown += await _ways_that_prove_nothing(app, known, rng)
            return outcome

    return asyncio.run(ask())


def _published(folder: Path, rng: random.Random) -> tuple[Any, list[Hidden]]:
    """Publish three generations of open documents, and of hidden ones of every kind."""
    hidden: list[Hidden] = []

    def text(source: str, path: str, header: str = "", begins: str = "") -> str:
        asked, *tells = (_word(rng) for _ in range(4))
        name = f"{path}-{tells[0]}.md"
        hidden.append(Hidden(source, name, asked, tuple(tells)))
        return f"{header}# Plan {tells[1]}\n\n{begins}The {asked} deal {tells[2]} closes. The retry limit is 9.\n"

    def named() -> str:
        return f"{hidden[-1].source}/{hidden[-1].path}"

    documents = {f"docs/open-{number}.md": f"# Open {number}\n\nThe retry limit is {number}.\n" for number in range(9)}
    for kind, header, begins in (
        ("yaml", "---\naccess: board\n---\n", ""), ("toml", "+++\naccess = ['board']\n+++\n", ""),
        ("broken", "---\naccess: [board\n---\n", ""), ("line", "", "- access: board\n\n"), ("later", "", ""),
        ("opened", "---\naccess: board\n---\n", ""), ("gone", "---\naccess: board\n---\n", ""), ("beside", "", ""),
        ("hidden-then-gone", "", ""),
    ):  # fmt: skip
        written = text("docs", kind, header, begins)
        documents[named()] = written
    of = {each.path.rpartition("-")[0]: each for each in hidden}
    written = text("closed", "source")
    documents[named()] = written
    documents["side.yaml"] = f"{of['beside'].path}: {{Access: board}}\n"
    settings = write_workspace(folder, documents, _SOURCES, {**OUTSIDERS, "nw_board": ["board"]})
    handed = text("inbox", "handed")
    metadata = {"Access": "board"}
    deposit(
        settings.inbox(Domain.DOCUMENTATION),
        [InboxDocument(source_path=hidden[-1].path, content=handed, metadata=metadata)],
    )
    publish(settings)
    later, gone = f"docs/{of['later'].path}", f"docs/{of['hidden-then-gone'].path}"
    restricted = {path: f"---\naccess: board\n---\n{documents[path]}" for path in (later, gone)}
    write_documents(folder, {**restricted, f"docs/{of['opened'].path}": "# Plan\n\nNothing is left of it.\n"})
    (folder / "docs" / of["gone"].path).unlink()
    publish(settings)
    (folder / gone).unlink()
    write_documents(folder, {"docs/open-1.md": "# Open 1\n\nThe retry limit is 11.\n"})
    publish(settings)
    # Its name is no secret any more; what it was is.
    opened = of["opened"]
    cleaned = replace(opened, tells=tuple(word for word in opened.tells if word not in opened.path))
    return settings, [cleaned if each is opened else each for each in hidden]


def _word(rng: random.Random) -> str:
    return "q" + "".join(rng.choices(_SYLLABLES, k=5))


async def _with_ids(app: ASGIApp, hidden: Sequence[Hidden]) -> list[Hidden]:
    """Return the documents with the ids of their passages, as operators see them."""
    known = []
    async with as_somebody(app, SERVICE) as operator:
        for each in hidden:
            found: list[str] = []
            for generation in (None, *_GENERATIONS):
                body = {"query": each.asked, "top_k": 20, **({"as_of": generation} if generation else {})}
                items = (await operator.post("/query", json=body)).json()["items"]
                found += [item["chunk_id"] for item in items if each.asked in item["content"]]
            known.append(replace(each, ids=tuple(dict.fromkeys(found))))
    return known


async def _sent(app: ASGIApp, hidden: Sequence[Hidden], count: int, rng: random.Random) -> Outcome:
    outcome = Outcome()
    async with AsyncExitStack() as stack:
        clients = {token: await stack.enter_async_context(as_somebody(app, token)) for token in OUTSIDERS}

        async def ask(numbers: Iterator[int]) -> None:
            for number in numbers:
                way, token = ways[number % len(ways)], rng.choice(list(OUTSIDERS))
                sent, said = await _asked(clients[token], WAYS[way], rng.choice(hidden), rng)
                outcome.count(way)
                if told := _told(hidden, sent, said):
                    outcome.shown.append(f"{way} as {token}: {told[0]} in the answer to {sent[:300]}")

        ways = [way for way in WAYS for _ in range(_MORE_OFTEN if way in _QUICK else 1)]
        numbers = iter(range(count))
        await asyncio.gather(*(ask(numbers) for _ in range(_AT_ONCE)))
    return outcome


def _told(hidden: Sequence[Hidden], sent: str, said: str) -> list[str]:
    """Return what an answer has of hidden documents that its request had not."""
    return [tell for each in hidden for tell in (*each.tells, *each.ids) if tell in said and tell not in sent]


async def _ways_that_prove_nothing(app: ASGIApp, hidden: Sequence[Hidden], rng: random.Random) -> list[str]:
    """Ask each way as an operator, about each document; return those that show none of them."""
    blind = []
    async with as_somebody(app, SERVICE) as operator:
        for name, way in WAYS.items():
            answers = [await _asked(operator, way, each, rng) for each in hidden for _ in range(3)]
            if not any(_told(hidden, sent, said) for sent, said in answers):
                blind.append(f"{name}: shows nothing to an operator, so it proves nothing")
    return blind


async def _asked(client: httpx.AsyncClient, way: Way, hidden: Hidden, rng: random.Random) -> tuple[str, str]:
    """Return what was sent, and what was answered, headers too."""
    method, path, options = way(hidden, rng)
    while (answer := await client.request(method, path, **options)).status_code == httpx.codes.SERVICE_UNAVAILABLE:
        await asyncio.sleep(_BUSY_S)  # other work on the machine
    if answer.is_server_error:
        raise RuntimeError(f"{method} {path} {options}: {answer.status_code} {answer.text[:300]}")
    sent = f"{method} {path} {json.dumps(options, ensure_ascii=False)}"
    # `why` says nothing of a document but that there is one, unless its name is everybody's today.
    is_there = path == "/why" and answer.is_success and any(tell in hidden.path for tell in hidden.tells)
    return sent, f"{answer.text}\n{' '.join(answer.headers.values())}\n{hidden.tells[-1] if is_there else ''}"


Way: TypeAlias = Callable[[Hidden, random.Random], tuple[str, str, dict[str, Any]]]
_HTML = {"accept": "text/html,*/*;q=0.8"}


def _question(hidden: Hidden, rng: random.Random) -> str:
    forms = ("{0}", "{0} deal", 'the "{0} deal"', "what is the {0} deal", "plan {0} retry limit", "retry limit")
    return rng.choice(forms).format(hidden.asked)


def _body(hidden: Hidden, rng: random.Random) -> dict[str, Any]:
    body: dict[str, Any] = {
        "query": _question(hidden, rng),
        "timeout_ms": _TIMEOUT_MS,
        "top_k": rng.choice((1, 10, 50)),
    }
    if rng.random() < 0.5:
        body["as_of"] = rng.choice(_GENERATIONS)
    if rng.random() < 0.3:
        body["filters"] = {
            "documentation": {"path_glob": rng.choice(("**", "*.md", hidden.path, f"{hidden.path[:6]}*"))}
        }
    return body | rng.choice(({}, {"explain": True}, {"expand": "on"}, {"min_score": 0}, {"diversity": 0.5}))


def _id(hidden: Hidden, rng: random.Random) -> str:
    return rng.choice(hidden.ids or ("0" * 32,))


def _tool(name: str, arguments: Callable[[Hidden, random.Random], dict[str, Any]]) -> Way:
    def way(hidden: Hidden, rng: random.Random) -> tuple[str, str, dict[str, Any]]:
        call = {"name": name, "arguments": arguments(hidden, rng)}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}
        return "POST", "/mcp", {"json": body, "headers": headers}

    return way


def _compared(_: Hidden, rng: random.Random) -> tuple[str, str, dict[str, Any]]:
    a, b = rng.sample(_GENERATIONS, 2)
    return "GET", f"/generations/{a}/diff/{b}", {"params": rng.choice(({}, {"format": "text"}))}


def _as_of(rng: random.Random) -> dict[str, str]:
    return rng.choice(({}, *({"as_of": name} for name in _GENERATIONS)))


WAYS: Mapping[str, Way] = {
    "query": lambda hidden, rng: ("POST", "/query", {"json": _body(hidden, rng)}),
    "text": lambda hidden, rng: ("POST", "/query", {"json": {**_body(hidden, rng), "format": "text"}}),
    "events": lambda hidden, rng: (
        "POST", "/query", {"json": _body(hidden, rng), "headers": {"accept": "text/event-stream"}}
    ),
    "recall": lambda hidden, rng: (
        "POST", "/agents/documentation/recall",
        {"json": {"query_text": _question(hidden, rng), "top_k": 50, "timeout_ms": _TIMEOUT_MS}},
    ),
    "chat": lambda hidden, rng: (
        "POST", "/v1/chat/completions",
        {"json": {"model": "nornweave", "messages": [{"role": "user", "content": _question(hidden, rng)}]}},
    ),
    "page": lambda hidden, rng: (
        "GET", "/", {"params": {"q": _question(hidden, rng), **_as_of(rng)}, "headers": _HTML}
    ),
    "page data": lambda hidden, rng: ("GET", "/.json", {"params": {"q": _question(hidden, rng), **_as_of(rng)}}),
    "find text": lambda hidden, rng: (
        "GET", "/find", {"params": {"text": rng.choice((hidden.asked, "retry limit", "deal"))}}
    ),
    "find regex": lambda hidden, rng: (
        "GET", "/find", {"params": {"regex": rng.choice((f"{hidden.asked[:5]}.*", "deal .*", "^access", "."))}}
    ),
    "find page": lambda hidden, _: ("GET", "/find", {"params": {"regex": hidden.asked[:6]}, "headers": _HTML}),
    "find path": lambda hidden, rng: (
        "GET", "/find", {"params": {"regex": ".", "path_glob": rng.choice((f"{hidden.path[:4]}*", "**/*", "*-*"))}}
    ),
    "complete": lambda hidden, rng: (
        "GET", "/complete", {"params": {"prefix": rng.choice((hidden.path[:4], "P", "Plan", "q")), "limit": "50"}}
    ),
    "chunk": lambda hidden, rng: ("GET", f"/chunks/{_id(hidden, rng)}", {}),
    "passage": lambda hidden, rng: ("GET", f"/passages/{_id(hidden, rng)}", {"headers": _HTML}),
    "passage data": lambda hidden, rng: ("GET", f"/passages/{_id(hidden, rng)}.json", {}),
    "document": lambda hidden, rng: (
        "GET", f"/documents/documentation/{hidden.source}/{hidden.path}", {"params": _as_of(rng)}
    ),
    "document as of a generation": lambda hidden, rng: (
        "GET", f"/documents/documentation/{hidden.source}/{hidden.path}",
        {"params": {"generation": rng.choice(_GENERATIONS)}},
    ),
    "why": lambda hidden, rng: (
        "POST", "/why",
        {"json": {"query": hidden.asked, "domain": "documentation", "source_id": hidden.source,
                  "source_path": hidden.path, **_as_of(rng)}},
    ),
    "diff": _compared,
    "search tool": _tool("search", lambda hidden, rng: {"query": _question(hidden, rng), **_as_of(rng)}),
    "answer tool": _tool("answer", lambda hidden, rng: {"query": _question(hidden, rng), **_as_of(rng)}),
    "find tool": _tool("find", lambda hidden, rng: {"text": rng.choice((hidden.asked, "deal"))}),
    "fetch tool": _tool("fetch", lambda hidden, rng: {"id": _id(hidden, rng)}),
}  # fmt: skip
"""How an outsider can ask, by name: method, path and what else is sent."""
# Look-ups by name and id, which are most of what can be guessed.
_QUICK = frozenset(
    {
        "find text", "find regex", "find path", "complete", "chunk", "passage data", "document",
        "document as of a generation", "why", "fetch tool",
    }
)  # fmt: skip
_MORE_OFTEN = 6
