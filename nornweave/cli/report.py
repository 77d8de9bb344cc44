"""Print the results of commands; the JSON behind ``--json`` is made here too."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from api.pages.text_runs import HIT, highlighted, query_terms_of, window
from nornweave.ask.answer.extract import as_read
from nornweave.ask.answer.text_renderer import NEAREST
from nornweave.ask.views.ledger import LedgerDocument
from nornweave.cli.options import output
from nornweave.core.errors import EMPTY
from nornweave.core.text.terminal import counted
from nornweave.core.types import Domain
from nornweave.disagree.ledger import LIKELY

STATUS_COLUMNS = ("generation", "kept", "documents", "chunks", "failed", "held", "skipped", "checked", "last run")
EXCERPT_LINES = 4
SHOWN_COPIES = 2
"""Of the places that say the same as a passage: documentation may be there in a dozen versions."""
RULE = re.compile(r"([=\-~^*#+])\1{2,}")  # underlines a heading, or divides


def print_status(statuses: Mapping[str, Mapping[str, Any]]) -> None:
    """Print the domains' status for people."""
    table = Table("domain", *STATUS_COLUMNS, box=None, pad_edge=False, header_style="bold")
    for column in table.columns:
        column.no_wrap = True
    for domain, status in statuses.items():
        table.add_row(domain, *_status_cells(status))
    output.print(table)
    sources = Table("source", "type", "listed", "confirmed", "a change counts", box=None, pad_edge=False)
    for status in statuses.values():
        for name, source in status["sources"].items():
            moments = (source[key] or "never" for key in ("listed_at", "verified_at"))
            sources.add_row(name, source["type"], *moments, f"{source['bound']}{_lag_text(source)}")
    if sources.row_count:
        output.print(sources)
    for status in statuses.values():
        _print_readings(status["sources"])
    for domain, status in statuses.items():
        if (query_map := status["query_map"]) and query_map["learnt_at"]:
            _say(f"{domain}: query map {'' if query_map['in_force'] else 'not '}in force: {query_map['reason']}", "")
    for domain, status in statuses.items():
        _print_problems(domain, status)


def _lag_text(source: Mapping[str, Any]) -> str:
    """Return how far a repository is ahead of the index, in brackets; empty if it is not ahead or this is unknown."""
    commits = f"{counted(source['commits_behind'], 'commit')} behind" if source["commits_behind"] else ""
    changed = "uncommitted changes" if source["uncommitted"] else ""
    said = ", ".join(filter(None, (commits, changed)))
    return f" ({said})" if said else ""


def print_left_out(sources: Mapping[str, Mapping[str, Any]]) -> None:
    """Print every file that is not read, by source, with its reason."""
    for source_id, known in sources.items():
        _say(f"{source_id}: {known['read']:,} of {counted(known['files'], 'file')} are read", "bold")
        for skip in known["left_out"]:
            _say(f"  {skip['path']}  {skip['reason']}", "")
        for file in known["hidden"]:
            _say(f"  {file['path']}  read, and hidden from all but operators: {file['reason']}", "yellow")
    if not sources:
        _say("no source was synced yet", "")


def print_access(domains: Mapping[str, Mapping[str, Any]]) -> None:
    """Print the access rules of sources, then those of documents with the statements behind them."""
    for domain, seen in domains.items():
        for source_id, groups in seen["sources"].items():
            _say(f"{domain}: {source_id}: for {_groups(groups)} (nornweave.yaml)", "bold")
        for source_id, known in seen["rights"].items():
            there = known["documents"] + known["hidden"]
            counts = f"{known['documents']:,} of {there:,} documents are for those whom it lets read"
            since = f", said at {known['verified_at']} or later" if known["verified_at"] else ""
            names = f"{known['principals']:,} principals ({known['expired']:,} too long ago to count)"
            _say(f"{domain}: {source_id}: {counts}; {names}, {known['people']:,} addresses{since}", "bold")
            if known["hidden"]:
                _say(f"{domain}: {source_id}: {known['hidden']:,} documents for nobody until it has said who", "yellow")
            for problem in known["problems"]:
                _say(f"{domain}: {source_id}: not said: {problem}", "yellow")
        for document in seen["documents"]:
            by = {
                "document": "the document says so",
                "source": "nornweave.yaml",
                "beside": "stated beside it",
                "rights": "the source lets them read it",
            }
            said = [f"for {_groups(each['groups'])} ({by[each['by']]})" for each in document["statements"]]
            line = f"{domain}: {document['source_id']}/{document['path']}: {' and '.join(said) or 'for everybody'}"
            _say("; ".join((line, *document["notices"])), "yellow" if document["notices"] else "")
        for source_id, entries in seen["unmatched"].items():
            for entry in entries:
                _say(f"{domain}: {source_id}: {entry!r} of its metadata file matches no document", "yellow")
        if not any(seen.values()):
            _say(f"{domain}: nothing is hidden", "")


def _groups(groups: Sequence[str]) -> str:
    return " or ".join(groups) or "nobody"


def _print_readings(sources: Mapping[str, Mapping[str, Any]]) -> None:
    for name, source in sources.items():
        if source["summary"]:
            more = f"; nornweave status --left-out {name} lists them" if source["left_out"] else ""
            _say(f"{name}  {source['summary']}{more}", "")
        for notice in (*source["notices"], *filter(None, [source["warning"]])):
            _say(f"{name}: {notice}", "yellow")


def _status_cells(status: Mapping[str, Any]) -> tuple[str, ...]:
    last = status["runs"][0] if status["runs"] else {}
    return (
        status["generation"] or "none",
        str(len(status["generations"])),
        f"{status['documents']:,}",
        f"{status['chunks']:,}",
        str(sum(not failure["reason"].startswith(EMPTY) for failure in status["failed"])),
        str(sum(len(held["paths"]) for held in status["held"])),
        str(sum(status["skip_reasons"].values())),
        status["checked_at"] or "never",
        "failed" if "error" in last else f"{last['seconds']:.1f} s" if last else "-",
    )


def _print_problems(domain: str, status: Mapping[str, Any]) -> None:
    for failure in status["failed"]:
        said = "" if failure["reason"].startswith(EMPTY) else "failed: "  # nothing is wrong with an empty file
        _say(f"{domain}: {said}{failure['source_id']}/{failure['path']}: {failure['reason']}", "yellow")
    for held in status["held"]:
        _say(f"{domain}: held: {held['source_id']}: {held['reason']}", "yellow")
    for source_id, reason in status["unavailable"].items():
        _say(f"{domain}: unavailable: {source_id}: {reason}", "red")
    if (copy := status["copy"]) and copy["problem"]:
        _say(f"{domain}: not in {copy['url']}: {copy['problem']}", "red")
    for said in status["silent"]:
        _say(f"{domain}: {said}", "yellow")
    if status["runs"] and "error" in status["runs"][0]:
        _say(f"{domain}: last run failed: {status['runs'][0]['error']}", "red")


def print_answer(result: Mapping[str, Any]) -> None:
    """Print the items of an answer with their citations, conflicts with both sides, and a model's text."""
    _print_before_items(result)
    terms = query_terms_of(result["query"])
    for rank, item in enumerate(result["items"], 1):
        title = Text(f"{rank}. {_where(item['citation'])}", style="bold")
        title.append(f"  {item['score']['value']:.3f}", style="cyan")
        if item["citation"]["stale"]:
            title.append("  stale", style="yellow")
        if item["conflict"]:
            title.append(f"  conflict {item['conflict']['index'] + 1}: {item['conflict']['role']}", style="yellow")
        output.print(title)
        for citation in item["corroborated_by"][:SHOWN_COPIES]:
            output.print(Text(f"   = {_where(citation)}", style="green"))
        if (more := len(item["corroborated_by"]) - SHOWN_COPIES) > 0:
            output.print(Text(f"   = {counted(more, 'more place')}", style="green"))
        if folded := item.get("folded", ()):
            places = ", ".join([_where(citation) for citation in folded[:SHOWN_COPIES]])
            beyond = " …" if len(folded) > SHOWN_COPIES else ""
            output.print(Text(f"   and {len(folded)} like it: {places}{beyond}", style="dim"))
        for line in _excerpt(item["content"], terms):
            output.print(line, no_wrap=True, overflow="ellipsis")
    if any("explanation" in item for item in result["items"]):
        _print_explanations(result["items"])
    for number, conflict in enumerate(result["conflicts"], 1):
        _print_conflict(number, conflict)
    if not result["items"] and not result["coverage_gaps"]:
        output.print("nothing found; every domain was searched")


def _excerpt(text: str, terms: Collection[str]) -> list[Text]:
    """Return the neighbouring lines with the most different words of the question, which are marked."""
    said = (line for line in text.splitlines() if line.strip() and not RULE.fullmatch(line.strip()))
    lines = [highlighted(line, terms) for line in said]
    shown = [lines[place] for place in window(lines, EXCERPT_LINES)]
    return [Text.assemble("   ", *((run.text, "bold" if run.kind == HIT else "dim") for run in line)) for line in shown]


def _print_before_items(result: Mapping[str, Any]) -> None:
    """Print a model's text, the sentences that answer, and any doubts."""
    if result["synthesis"]:
        output.print(Text(result["synthesis"]))
        output.print()
    ranked = {item["chunk_id"]: (rank, item) for rank, item in reversed([*enumerate(result["items"], 1)])}
    if result["nearest"]:
        output.print(Text(NEAREST, style="yellow"))
    sentences = result["extract"] or result["nearest"]
    for sentence in sentences:
        rank, item = ranked[sentence["chunk_id"]]
        is_code = item["citation"]["domain_id"] == Domain.CODE
        output.print(Text(f"“{as_read(sentence['text'], is_code=is_code)}” [{rank}]"))
    if sentences:
        output.print()
    if result["answerable"]["words"] and result["items"]:
        output.print(Text(result["answerable"]["words"], style="yellow"))


def _print_conflict(number: int, conflict: Mapping[str, Any]) -> None:
    """Print each side of a conflict with its place. The side that holds comes first."""
    about = " ".join(part for part in (conflict["entity"], conflict["attribute"].replace("_", " ")) if part)
    output.print(Text(f"conflict {number}: {about}", style="bold yellow"))
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2))
    for _ in range(3):
        table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for side in conflict["claims"]:
        said, day = side["statement"] or "", (side["timestamp"] or "")[:10]
        table.add_row(f"   {side['role']}", f"{side['domain_id']}  {side['source_path']}", day, Text(said))
    output.print(table)
    output.print(Text(f"   {conflict['resolution']}: {conflict['reason']}", style="dim"))


def print_ledger(document: LedgerDocument, *, settled: bool = False, dismissed: bool = False) -> None:
    """Print the ledger's open conflicts by entity. Likely conflicts come first, and so does the side that holds.

    With ``settled``, print settled conflicts, too. With ``dismissed``, print only dismissed conflicts.
    """
    entries = document["dismissed"] if dismissed else document["open"] + (document["settled"] if settled else [])
    likely = sum(entry["confidence"] >= LIKELY for entry in document["open"])
    entity: str | None = None
    for entry in entries:
        if entry["entity"] != entity:
            entity = entry["entity"]
            output.print(Text(entity or "(no name)", style="bold"))
        since = f"settled {entry['settled'][:10]}" if entry["settled"] else f"since {entry['first_seen'][:10]}"
        output.print(
            Text(f"  {entry['attribute'].replace('_', ' ')}  ({since}, {entry['confidence']:.2f})  {entry['entry_id']}")
        )
        for side in entry["sides"]:
            lines = ":{}-{}".format(*side["line_range"]) if side["line_range"] else ""
            place = f"{side['domain_id']}  {side['source_path']}{lines}  ({side['source_id']})"
            output.print(Text(f"    {side['written']}  {place}", style="cyan"))
            output.print(Text(f"      {side['statement']}", style="dim"), no_wrap=True, overflow="ellipsis")
        output.print(Text(f"    {entry['reason']}", style="dim"))
    dismissals = f", {len(document['dismissed'])} dismissed" if document["dismissed"] else ""
    output.print(f"{len(document['open'])} open ({likely} likely), {len(document['settled'])} settled{dismissals}")


def _print_explanations(items: Sequence[Mapping[str, Any]]) -> None:
    """Print one row per item: for each retriever its rank and score × weight, then the bonuses."""
    sources = list(items[0]["explanation"]["contributions"])
    bonuses = sorted({name for item in items for name in item["explanation"]["bonuses"]})
    table = Table(box=None, pad_edge=False, header_style="bold", title_justify="left", title="\nrank: score × weight")
    if any(item["explanation"]["query_map"] for item in items):
        table.title = "\nrank: score × weight; of code, dense by the query map (docs/history.md)"
    for name in ("", "domain", *sources, "combined", *bonuses, "model", "score"):
        table.add_column(name, justify="left" if name == "domain" else "right", no_wrap=True)
    for rank, item in enumerate(items, 1):
        explanation = item["explanation"]
        model = explanation["model_score"]
        table.add_row(
            str(rank),
            item["citation"]["domain_id"],
            *(_score_part(item, source) for source in sources),
            f"{explanation['combined']:.3f}",
            *(f"+{explanation['bonuses'][name]:.3f}" if name in explanation["bonuses"] else "" for name in bonuses),
            "" if model is None else f"{model:.3f}",
            f"{item['score']['value']:.3f}",
        )
    output.print(table)


def _score_part(item: Mapping[str, Any], source: str) -> str:
    """Return a retriever's part of a score: ``#3: .41 × .40``.

    There is no rank if only other retrievers found the chunk.
    """
    explanation = item["explanation"]
    weight, part = explanation["weights"].get(source), explanation["contributions"].get(source, 0.0)
    if not part or weight is None:
        return f"+{part:.3f}" if part else ""
    found = item["sources"].get(source)
    rank = f"#{found['rank']}: " if found else ""
    return f"{rank}{part / weight:.2f} × {weight:.2f}"


def _where(citation: Mapping[str, Any]) -> str:
    """Return the place of a citation: ``code  src/app.py:3-9  (repo)  title``. Filters and ``why`` accept this path."""
    place = f"{citation['domain_id']}  {citation['source_path']}"
    if citation["line_range"]:
        place += ":{}-{}".format(*citation["line_range"])
    if citation["page"]:
        place += f" p. {citation['page']}"
    if citation["message_ids"]:
        place += f"#{citation['message_ids'][0]}"
    place += f"  ({citation['source_id']})"
    return f"{place}  {citation['title']}" if citation["title"] else place


def _say(line: str, style: str) -> None:
    output.print(line, style=style, soft_wrap=True)
