"""No result is too large for an agent, whatever the documents are made of; what is left out can be had."""

import base64
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from api_support import publish, write_corpus
from mcp_client import result, tools_of, until_loaded
from scripted_engine import ScriptedEngine, ledger_entry, write_ledger
from tokenizers_of_models import most_tokens

from api.mcp.calls import to_compact_json
from nornweave.config import Settings
from nornweave.core.text.terminal import legible
from nornweave.core.types import Domain
from nornweave.disagree.ledger import LedgerEntry

LIMIT_TOKENS = 10_000
RANDOM = random.Random(7)
CHARACTERS = 24_000


def characters(first: int, last: int, words: int = 9) -> str:
    """Random characters in lines of words, so that they are cut like text."""
    letters = [chr(RANDOM.randrange(first, last)) for _ in range(CHARACTERS)]
    return "".join(
        letter + ("\n" if place % 63 == 0 else " " * (place % words == 0)) for place, letter in enumerate(letters)
    )


DOCUMENTS = {
    "base64": base64.encodebytes(RANDOM.randbytes(CHARACTERS * 3 // 4)).decode(),
    "han": characters(0x4E00, 0x9FFF),
    "emoji": characters(0x1F300, 0x1F6FF),
    "cuneiform": characters(0x12000, 0x12300),
    "signs": characters(33, 65),
    "prose": "The payment is retried three times, and then the merchant is told that it failed.\n\n" * 300,
}


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A corpus whose every document is larger than a result may be."""
    folder = tmp_path_factory.mktemp("large")
    settings = write_corpus(folder)
    for name, text in DOCUMENTS.items():
        (folder / "docs" / f"{name}.md").write_text(f"# {text.split()[0][:40]} {name}\n\n{text}", "utf-8")
    publish(settings)
    return settings


def check_size(found: dict[str, Any]) -> None:
    text = to_compact_json(found)
    assert most_tokens(text) < LIMIT_TOKENS
    assert 2 * len(text) / 4 < LIMIT_TOKENS, "at four characters a token, even for a client that passes both forms on"


async def test_search_and_answer_stay_below_the_limit(large: Settings) -> None:
    async with tools_of(large) as client:
        await until_loaded(client)
        for name, text in DOCUMENTS.items():
            query = f"{name} {' '.join(text.split()[:20])[:200]}"
            found = await result(client, "search", query=query, top_k=100)
            check_size(found)
            assert found["results"]
            shown = await result(client, "answer", query=query, max_tokens=7000)
            check_size(shown)
            assert shown["sources"]
            small = await result(client, "answer", query=query, max_tokens=1000)
            assert most_tokens(to_compact_json(small)) < LIMIT_TOKENS // 7
            assert small["sources"]
        assert "more are left out to keep this short" in found["notes"][-1]


@pytest.mark.parametrize("query", ["how often is the payment retried", "prose payment", "when is the merchant told"])
async def test_most_of_a_small_answer_is_text(large: Settings, query: str) -> None:
    async with tools_of(large) as client:
        await until_loaded(client)
        small = await result(client, "answer", query=query, max_tokens=600, domains=["documentation"])
        assert most_tokens(small["text"]) >= 400
        assert 0.95 * most_tokens(to_compact_json(small)) <= 600
        assert small["sources"] and "title" not in small["sources"][0]
        usual = await result(client, "answer", query=query, domains=["documentation"])
        assert all(source["title"] for source in usual["sources"])


async def test_a_long_document_is_read_in_parts_to_its_end(large: Settings) -> None:
    async with tools_of(large) as client:
        await until_loaded(client)
        for name in DOCUMENTS:
            part = await result(client, "fetch", id=f"document:documentation/handbook/{name}.md")
            text, parts = "", 1
            while rest := part["metadata"].get("next"):
                check_size(part)
                shown, _, note = part["text"].rpartition("\n\n[… ")
                assert note.endswith(f" more characters: fetch {rest}]")
                text += shown
                assert rest.endswith(f"@{len(text)}")
                part = await result(client, "fetch", id=rest)
                parts += 1
            check_size(part)
            assert parts > 1, name
            file: Path = large.file.parent / "docs" / f"{name}.md"
            assert text + part["text"] == legible(file.read_text("utf-8")), name


async def test_conflicts_stay_below_the_limit(settings: Settings, engine: ScriptedEngine) -> None:
    entries = [wordy(number) for number in range(12)]
    write_ledger(settings, *entries)
    async with tools_of(settings, engine) as client:
        page = await result(client, "conflicts")
        check_size(page)
        read = len(page["conflicts"])
        assert page["next"]
        while page["next"]:
            page = await result(client, "conflicts", after=page["next"])
            check_size(page)
            assert page["conflicts"]
            read += len(page["conflicts"])
        assert read == len(entries)


def wordy(number: int) -> LedgerEntry:
    """An entry whose every text is as long as a document can make it, of the characters that cost most."""
    long = DOCUMENTS["cuneiform"][:4000]
    entry = ledger_entry(f"{number} {long}", Domain.CODE, Domain.DOCUMENTATION)
    side = entry.sides[0]
    side = replace(side, fact=replace(side.fact, statement=long, kind="string", value=long), author=long, path=long)
    return replace(entry, entry_id=str(number), sides=(side, side), also=(side, side) * 5, reason=long)
