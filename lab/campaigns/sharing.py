"""Everything at once: a server under questions and feedback, two syncs and rollbacks."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import httpx

from lab.campaigns.processes import CampaignChild, EndedProcess, command, until
from lab.campaigns.report import Order, Tally
from lab.campaigns.workspace import VERSIONS, WORDS, References, Workspace, differences, disorder, published_state
from nornweave.ask.feedback import feedback_of

CLIENTS = 3
PAUSE_S = 0.05
TIMEOUT_S = 120.0
COMMANDS = {
    "first sync": ("sync", "--confirm-deletes", "--json"),
    "second sync": ("sync", "--confirm-deletes", "--json"),
    "rollback": ("rollback", "documentation", "--json"),
    "status": ("status", "--json"),
}
# What a command may say when another one has the domain, or when there is nothing to do for it.
REFUSALS = ("is being written", "nothing to roll back to")


@dataclass(slots=True)
class _Client:
    """One user of the server: asks, and judges what it was shown."""

    answers: Counter[str] = field(default_factory=Counter)
    judged: set[tuple[str, str]] = field(default_factory=set)
    trouble: list[str] = field(default_factory=list)

    def ask_until(self, stop: threading.Event, url: str, seed: str) -> None:
        """Ask until ``stop``."""
        chance = random.Random(seed)
        with httpx.Client(base_url=url, timeout=TIMEOUT_S, trust_env=False) as http:
            while not stop.wait(PAUSE_S):
                asked = {"query": f"what is the limit of {chance.choice(WORDS)}", "timeout_ms": 60_000}
                if (answer := self._post(http, "/query", asked)) is None:
                    continue
                if gaps := answer["coverage_gaps"]:
                    self.trouble.append(f"not searched: {gaps}")
                for item in answer["items"][:1]:
                    vote = {
                        "query_id": answer["query_id"],
                        "chunk_id": item["chunk_id"],
                        "useful": chance.random() < 0.5,
                    }
                    if self._post(http, "/feedback", vote) is not None:
                        self.judged.add((answer["query_id"], item["chunk_id"]))

    def _post(self, http: httpx.Client, path: str, body: object) -> dict | None:  # type: ignore[type-arg]
        try:
            response = http.post(path, json=body)
        except httpx.HTTPError as error:
            self.trouble.append(f"{path}: {error!r}")
            return None
        self.answers[path] += 1
        if response.status_code != 200:
            self.trouble.append(f"{path}: {response.status_code} {response.text[:200]}")
            return None
        return response.json()  # type: ignore[no-any-return]


def share_installation(order: Order) -> Tally:
    """Run all commands at once, ``order.runs`` times, under a server with ``CLIENTS`` users.

    No request fails, no command fails but by a clear refusal, and in the end the index is that of a first sync and the
    feedback is what was answered with 200.
    """
    tally = Tally("all at once")
    expected = References(order.folder / "reference", order.seed)
    workspace = Workspace(order.folder / "workspace", order.folder / "var", order.seed)
    workspace.write(0)
    tally.ended_well("the first sync", _run(order, workspace, "first sync").wait())
    server = command(order.folder / "serve.txt", workspace.config, "serve", "--port", "0", "--workers", "1", "--json")
    clients, stop = [_Client() for _ in range(CLIENTS)], threading.Event()
    try:
        url = _url(order, server)
        with ThreadPoolExecutor(CLIENTS) as pool:
            for number, client in enumerate(clients):
                pool.submit(client.ask_until, stop, url, f"{order.seed} {number}")
            try:
                for number in range(1, order.runs + 1):
                    workspace.write(number % VERSIONS)
                    started = {name: _run(order, workspace, name) for name in COMMANDS}
                    for name, child in started.items():
                        _judge(tally, f"round {number}: {name}", name, child.wait())
                    tally.runs["rounds of four commands"] += 1
            finally:
                stop.set()
        _judge(tally, "the last sync", "first sync", _run(order, workspace, "first sync").wait())
    finally:
        server.stop()
        ended = server.wait(30)
    tally.ended_well("the server", ended)
    trouble = [*differences(published_state(workspace.settings), expected[order.runs % VERSIONS])]
    tally.trouble += trouble + disorder(workspace.settings)
    _compare_feedback(tally, workspace, clients)
    return tally


def _run(order: Order, workspace: Workspace, name: str) -> CampaignChild:
    return command(order.folder / f"{name.replace(' ', '-')}.txt", workspace.config, *COMMANDS[name])


def _url(order: Order, server: CampaignChild) -> str:
    said = order.folder / "serve.txt"
    until(lambda: not server.is_running or (said.exists() and '"url"' in said.read_text(encoding="utf-8")))
    line = next(line for line in said.read_text(encoding="utf-8").splitlines() if line.startswith("{"))
    return str(json.loads(line)["url"])


def _judge(tally: Tally, place: str, name: str, ended: EndedProcess) -> None:
    kind = name.removeprefix("first ").removeprefix("second ")
    if ended.code == 0 and not ended.defect:
        tally.outcomes[f"{kind} done"] += 1
    elif ended.code == 1 and not ended.defect and any(refusal in ended.said for refusal in REFUSALS):
        tally.outcomes[f"{kind} refused"] += 1
    else:
        tally.trouble.append(f"{place} {ended.cause}")


def _compare_feedback(tally: Tally, workspace: Workspace, clients: list[_Client]) -> None:
    book = feedback_of(workspace.settings)
    try:
        stored = {(answer.query_id, chunk) for answer in book.judged() for chunk in answer.votes}
    finally:
        book.close()
    for client in clients:
        tally.trouble += client.trouble
        tally.outcomes["answers"] += client.answers["/query"]
        tally.outcomes["judgments stored"] += len(client.judged & stored)
    if lost := len(set().union(*(client.judged for client in clients)) ^ stored):
        tally.trouble.append(f"{lost} judgments were lost or not made")
