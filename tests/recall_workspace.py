"""A small workspace of all four domains, published for real with an encoder that needs no model, and its agents."""

import json
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from nornweave.ask.search.agent import Agent
from nornweave.carry.wiring import encoder_of, store_of
from nornweave.config import PlanSettings, Settings
from nornweave.connect.connectors import load_settings
from nornweave.core.types import Domain
from nornweave.index.generations.checksums import checksum_file
from nornweave.index.generations.serving import ServedGeneration
from nornweave.index.index import Index
from nornweave.ingest.pipeline import run
from nornweave.ingest.records import SyncOptions
from nornweave.ingest.wiring import domain_parts
from nornweave.models.encoders import Encoder
from nornweave.models.encoders.port import QueryMemo
from nornweave.models.rerankers import RerankerSlot

HANDLERS = '''"""Turn acquirer failures into answers."""

RETRY_LIMIT = 3


class PaymentError(Exception):
    """A payment that cannot go on."""


def handle_payment_error(error: PaymentError) -> int:
    """Return the HTTP status that a failed payment answers with."""
    if error.args == ("declined",):
        return 422
    raise TimeoutError("upstream acquirer   timed out: shard 4 is unreachable")
'''
LEDGER = '''"""Keep the books."""


def post_entry(account: str, amount: int) -> dict[str, int]:
    """Post an entry to the ledger of an account."""
    return {account: amount}


def close_day(entries: list[int]) -> int:
    """Add up what a day brought."""
    return sum(entries)
'''
CHECKOUT = """export class CheckoutForm {
  submitOrder(basket: string[]): boolean {
    return basket.length > 0 && basket.every((item) => item !== "");
  }
}
"""
API = """# Payments API

Everything that merchants call.

## Rate limits

A merchant may send 100 requests per second; more are answered with 429.

## Error handling

A declined card is answered with status 400 and code `card_declined`.
"""
RUNBOOK = """# Runbook

## Drain a queue

Run `paymentctl drain --shard 4` and wait.
The log says:

    ERROR [worker 4] connection reset by peer: errno=104

## Größe der Warteschlange

Die Länge steht im Überwachungsbild. 支付 失败 时 请 重试.
"""
OPS = """[2026-01-12 09:14] dana: webhook backlog, oldest event 22 min, taking it
[2026-01-12 09:18] bob: which shard is fakturo on
[2026-01-12 09:26] dana: quarantined shard 4, draining
[2026-03-02 10:00] grace: we decided to answer 422 instead of 400
[2026-03-02 10:05] dana: fine with me, retry budget holds
"""
STORMS = """# Retry storms in card networks

## Abstract

Budgets and jitter keep retries from piling up while an acquirer is down.

## Results

Jitter lowered duplicate authorizations by 38 %.
"""
KEYS = """# Idempotency keys in the wild

Half of the merchants reuse a key after a timeout.
"""
PAPERS = {
    "storms.md": {"authors": ["Liv Halvorsen"], "tags": ["retries", "psd2"], "publication_date": "2025-09-14"},
    "keys.md": {"authors": ["Kwame Boateng"], "tags": ["idempotency"], "publication_date": "2025-04-02"},
}
FILES = {
    "code/src/payments/handlers.py": HANDLERS,
    "code/src/payments/ledger.py": LEDGER,
    "code/src/payments_web/checkout.ts": CHECKOUT,
    "docs/api.md": API,
    "docs/operations/runbook.md": RUNBOOK,
    "chat/ops.log": OPS,
    "papers/storms.md": STORMS,
    "papers/keys.md": KEYS,
}
SOURCES = [
    {"id": "shop", "domain": "code", "type": "files", "path": "code"},
    {"id": "handbook", "domain": "documentation", "type": "files", "path": "docs"},
    {"id": "ops", "domain": "conversations", "type": "messages", "path": "chat"},
    {"id": "library", "domain": "research", "type": "files", "path": "papers", "metadata": "papers.json"},
]
NO_MODELS = {"embedding": {"model": "hash:64", "dimensions": 64}, "reranking": {"model": None}}


def write_workspace(folder: Path, domains: Mapping[str, Mapping[str, Any]] | None = None) -> Settings:
    """Write the documents and a configuration; ``domains`` overrides settings."""
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    (folder / "papers.json").write_text(json.dumps(PAPERS), encoding="utf-8")
    return configure(folder, domains)


def configure(folder: Path, domains: Mapping[str, Mapping[str, Any]] | None = None) -> Settings:
    """Write the configuration alone, anew."""
    overrides = {domain.value: {**NO_MODELS, **(domains or {}).get(domain.value, {})} for domain in Domain}
    file = folder / "nornweave.yaml"
    file.write_text(json.dumps({"data_dir": "var", "sources": SOURCES, "domains": overrides}), encoding="utf-8")
    return load_settings(file, {})


def publish(settings: Settings, *domains: Domain) -> None:
    """Sync domains, all of them unless named."""
    for domain in domains or tuple(Domain):
        report = run(domain_parts(settings, domain), SyncOptions(run_id="test", wait_s=0))
        assert not report.failed, report


def current_file(settings: Settings, domain: Domain) -> Path:
    """Return the file of the published generation, which is a small one."""
    files = store_of(settings, domain).files
    name = files.current()
    assert name is not None
    (file,) = files.data_files(name)
    return file.path


def change_generation(settings: Settings, domain: Domain, statement: str) -> None:
    """Change the published generation by an SQL statement; its checksum, which would not hold any more, goes."""
    file = current_file(settings, domain)
    with duckdb.connect(str(file)) as connection:
        connection.execute(statement)
    checksum_file(file).unlink()


def opened(settings: Settings, domain: Domain) -> Index:
    """Open the published generation."""
    files = store_of(settings, domain).files
    name = files.current()
    assert name is not None
    return files.open(name, {})


def paths_of(generation: Index, numbers: Any) -> list[str]:
    """Return the paths of chunks, in the order of their numbers given."""
    chunks = generation.chunks(numbers)
    return [chunks[int(number)].path for number in numbers]


@contextmanager
def agent_of(
    settings: Settings,
    domain: Domain,
    executor: Executor,
    *,
    encoder: Encoder | None = None,
    plan: PlanSettings | None = None,
    kind: type[Agent] = Agent,
) -> Iterator[Agent]:
    """Wire one agent as the engine does, with another encoder, plan or kind of agent where given."""
    configured = settings.domains[domain]
    if plan:
        configured = configured.model_copy(update={"plan": plan})
    agent = kind(
        domain,
        configured,
        ServedGeneration(store_of(settings, domain).files),
        load_encoder=lambda: QueryMemo(encoder or encoder_of(settings, configured)),
        reranker=RerankerSlot(None),
        executor=executor,
    )
    try:
        yield agent
    finally:
        agent.close()
