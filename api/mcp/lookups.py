"""``fetch``, ``find``, ``uses``, ``conflicts`` and ``status``: look-ups that ask no domain a question."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from urllib.parse import quote, unquote

from api.errors import RETRY_SOON_S, ProblemError, unavailable
from api.mcp.arguments import (
    USUAL_RESULT_TOKENS,
    ConflictsArguments,
    FetchArguments,
    FindArguments,
    StatusArguments,
    UsesArguments,
)
from api.mcp.questions import HandlePlace, handle, place_of
from api.mcp.results import MAX_RESULT_CHARACTERS, ToolCall, is_within
from api.requests.find import LedgerQuery
from api.requests.query import served_domain
from api.state import wait_for_start
from nornweave import __version__
from nornweave.ask.answer.pages import largest
from nornweave.ask.search.question import Deadline
from nornweave.ask.search.records import AgentState
from nornweave.ask.seen import SeenEngine
from nornweave.ask.seen.agents import SeenAgent
from nornweave.ask.views.ledger import LedgerDocument, LedgerEntryDocument
from nornweave.ask.views.tool_results import (
    ConflictsPageDocument,
    FetchDocument,
    FoundLinesDocument,
    ToolStatusDocument,
)
from nornweave.ask.views.tools import (
    Link,
    domain_status_document,
    fetched_chunk,
    fetched_document,
    found_lines_document,
    ledger_conflict_document,
    line,
    short_uses_document,
    to_seconds,
)
from nornweave.ask.views.uses import UsesDocument
from nornweave.core.errors import QueryError

SHOWN_CHARACTERS = 200
# More than fits into any result: what comes after that need not be looked at.
CONSIDERED_CONFLICTS = 50
DOCUMENT = "document:"
_DOCUMENT = re.compile(rf"{DOCUMENT}([a-z]+)/([^/]+)/(.+)", re.DOTALL)
_FROM = re.compile(r"(.+)@([0-9]{1,9})", re.DOTALL)


async def fetch(arguments: FetchArguments, call: ToolCall) -> FetchDocument:
    """Return a passage or a document."""
    match = _FROM.fullmatch(arguments.id)
    name, start = (match[1], int(match[2])) if match else (arguments.id, 0)
    await wait_for_start(call.serving.agents, call.arrived.deadline)

    def work(engine: SeenEngine) -> FetchDocument | None:
        found = _fetched(engine, name, call)
        return _from(found, start) if found else None

    found = await call.look_up(work)
    if found is None:
        raise _missing(name, call.serving.agents)
    return found


async def find(arguments: FindArguments, call: ToolCall) -> FoundLinesDocument:
    """Return the lines that hold a text or match a pattern."""
    deadline = call.arrived.deadline or Deadline(call.serving.timeout_ms)
    found = await call.serving.find(arguments.asked.query(call.serving.domains), deadline)
    count = largest(len(found["matches"]), lambda number: is_within(found_lines_document(found, number)))
    return found_lines_document(found, count)


async def uses(arguments: UsesArguments, call: ToolCall) -> UsesDocument:
    """Return the uses of a name of code."""
    deadline = call.arrived.deadline or Deadline(call.serving.timeout_ms)
    found = await call.serving.uses(arguments.name, arguments.source, deadline)
    most = max(len(found["references"]), len(found["definitions"]))
    return short_uses_document(found, largest(most, lambda count: is_within(short_uses_document(found, count))))


async def conflicts(arguments: ConflictsArguments, call: ToolCall) -> ConflictsPageDocument:
    """Return a page of the conflicts of the whole corpus."""
    query = LedgerQuery(
        entity=arguments.entity,
        domain=served_domain(arguments.domain, call.serving.domains) if arguments.domain is not None else None,
        settled=bool(arguments.settled),
    )
    return await call.look_up(lambda engine: _ledger(engine.ledger.conflicts(), query, arguments, call))


async def status(_: StatusArguments, call: ToolCall) -> ToolStatusDocument:
    """Return the domains that can be searched, with their state."""
    return await call.look_up(lambda _: _status(call.serving.agents))


def _fetched(engine: SeenEngine, name: str, call: ToolCall) -> FetchDocument | None:
    if match := _DOCUMENT.fullmatch(name):
        domain, source_id, path = match[1], match[2], unquote(match[3])
        served = {one.value: one for one in call.serving.domains}
        is_name = domain in served and "\0" not in path  # which a database need not take
        document = engine.texts.document(served[domain], source_id, path) if is_name else None
        return fetched_document(document, call.link, name) if document else None
    chunk = engine.texts.chunk(name)
    if chunk is None:
        return None
    citation = chunk["citation"]
    around = f"{DOCUMENT}{citation['domain_id']}/{citation['source_id']}/{quote(citation['source_path'])}"
    return fetched_chunk(chunk, call.link, around)


def _missing(name: str, agents: Sequence[SeenAgent]) -> ProblemError:
    starting = [agent.agent_id for agent in agents if agent.state is AgentState.STARTING]
    if starting:
        return unavailable("agent-starting", f"{', '.join(starting)} is still loading and may have it", RETRY_SOON_S)
    shown = line(name, SHOWN_CHARACTERS)
    return ProblemError(
        404,
        f"nothing with the id {shown!r} is in what is served; it may have been changed or removed since. "
        "Search again: `search` returns the ids that there are",
    )


def _from(found: FetchDocument, start: int) -> FetchDocument:
    """Return as much of a text as fits, from ``start`` on. If a rest is left out, give the id that fetches it."""
    text = found["text"]
    if start >= max(1, len(text)):
        raise QueryError("id", f"the text has {len(text)} characters; what follows '@' must be below that")

    def part(length: int) -> FetchDocument:
        end = start + length
        if end >= len(text):
            return {**found, "text": text[start:]}
        rest = f"{found['id']}@{end}"
        note = f"\n\n[… {len(text) - end} more characters: fetch {rest}]"
        return {**found, "text": text[start:end] + note, "metadata": {**found["metadata"], "next": rest}}

    length = largest(min(len(text) - start, MAX_RESULT_CHARACTERS), lambda count: is_within(part(count)))
    if start + length < len(text):
        line_end = text.rfind("\n", start + length // 2, start + length) + 1
        length = line_end - start if line_end else max(1, length)
    return part(length)


def _ledger(
    ledger: LedgerDocument, query: LedgerQuery, arguments: ConflictsArguments, call: ToolCall
) -> ConflictsPageDocument:
    chosen = query.chosen(ledger)
    served = {domain.value for domain in call.serving.domains}
    entries: list[LedgerEntryDocument] = [
        {**entry, "also": [side for side in entry["also"] if side["domain_id"] in served]}
        for entry in (*chosen["open"], *chosen["settled"])
        if served.issuperset(side["domain_id"] for side in entry["sides"])
    ]
    asked = arguments.model_dump(exclude={"after"})
    place = place_of(arguments.after, asked, ledger["made_at"])
    return _ledger_page(entries, ledger, place, call.link, lambda start: handle(start, asked, ledger["made_at"]))


def _ledger_page(
    entries: Sequence[LedgerEntryDocument],
    ledger: LedgerDocument,
    place: HandlePlace,
    link: Link,
    next_handle: Callable[[int], str],
) -> ConflictsPageDocument:
    rest = entries[place.start :]
    notes = [*place.notes, *(line(notice, SHOWN_CHARACTERS) for notice in ledger["notices"])]

    def document(count: int) -> ConflictsPageDocument:
        left = len(rest) - count
        made: ConflictsPageDocument = {
            "conflicts": [ledger_conflict_document(entry, link) for entry in rest[:count]],
            "total": len(entries),
            "more": left,
            "next": next_handle(place.start + count) if left else None,
            "made_at": ledger["made_at"] and to_seconds(ledger["made_at"]),
        }
        return {**made, "notes": notes} if notes else made

    most = min(len(rest), CONSIDERED_CONFLICTS)
    count = largest(most, lambda number: is_within(document(number), USUAL_RESULT_TOKENS))
    return document(max(count, min(most, 1)))  # one alone is below the limit, whatever its texts are


def _status(agents: Sequence[SeenAgent]) -> ToolStatusDocument:
    domains = [domain_status_document(agent.describe(), agent.health()) for agent in agents]
    return {"version": __version__, "domains": domains}
