"""The status of a workspace's domains and sources, for ``nornweave status``, ``/sources`` and the page.

Of each domain it is said whether its query map is in force, and why.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from nornweave.ask.search.freshness import lags_of
from nornweave.carry.lease import silent_runs
from nornweave.carry.publishing import read_last_copy
from nornweave.carry.wiring import domain_folder, store_of
from nornweave.config import Settings
from nornweave.config.sources import SourceSettings
from nornweave.connect.connectors import bound_of, open_source
from nornweave.core.access import (
    ACCESS_NOTICE,
    ANYONE,
    HELD,
    KEY,
    RIGHTS,
    VALUE_NOTICE,
    Statement,
    group_name,
    is_met,
    is_of_rights,
    read_rule,
)
from nornweave.core.errors import ConfigError, SourceUnavailableError, StoreError
from nornweave.core.membership import membership_file, read_table
from nornweave.core.text.dates import utc_text
from nornweave.core.text.terminal import counted
from nornweave.core.types import Domain
from nornweave.index.manifest import TURNED_OFF, read_report
from nornweave.index.outcomes import VerifiedSource, read_left_out, read_status, read_verified
from nornweave.index.searching.counting import StatedDocument

GIT_S = 1.0
"""So long a status waits for git."""


class CopyDocument(TypedDict):
    """A domain's copy in the object store; if it is incomplete, the reason and since when."""

    url: str
    number: int | None
    generation: str | None
    at: str | None
    problem: str | None
    behind_s: float


class SourceStatusDocument(TypedDict):
    """A source: its freshness, and how much of it is read. Moments are RFC 3339."""

    type: str
    listed_at: str | None
    verified_at: str | None
    bound: str
    commits_behind: Annotated[int | None, Field(description="that its repository is ahead of what was read, if known")]
    uncommitted: Annotated[bool | None, Field(description="files of its work tree are changed and not committed")]
    files: int | None
    read: int | None
    left_out: Annotated[dict[str, int], Field(description="how many files are not read, by reason")]
    summary: Annotated[str, Field(description="the same in words; empty before the first sync")]
    warning: Annotated[str, Field(description="that much is left out which the domain could read")]
    notices: list[str]


class StatusDocument(TypedDict):
    """The generations of a domain, and the reports of its last syncs."""

    generation: str | None
    generations: list[str]
    checked_at: str | None
    documents: int
    chunks: int
    failed: list[dict[str, Any]]
    held: list[dict[str, Any]]
    unavailable: dict[str, str]
    sources: dict[str, SourceStatusDocument]
    skipped: list[dict[str, Any]]
    skip_reasons: dict[str, int]
    runs: list[dict[str, Any]]
    copy: CopyDocument | None
    query_map: Annotated[QueryMapDocument | None, Field(description="of code; null for domains without commits")]
    silent: Annotated[list[str], Field(description="runs that neither end nor say that they live, in words")]


def status_document(settings: Settings, domain: Domain) -> StatusDocument:
    """Return the status of one domain.

    Raises:
        StoreError: the pointer to the published generation cannot be read.
    """
    store = store_of(settings, domain)
    recorded = read_status(domain_folder(settings, domain))
    latest = recorded.get("latest", {})
    return {
        "generation": store.current(),
        "generations": list(store.generations()),
        "checked_at": recorded.get("checked_at"),
        "documents": latest.get("documents", 0),
        "chunks": latest.get("chunks", 0),
        "failed": latest.get("failed", []),
        "held": latest.get("held", []),
        "unavailable": latest.get("unavailable", {}),
        "sources": _sources(settings, domain, latest.get("sources", {})),
        "skipped": latest.get("skipped", []),
        "skip_reasons": latest.get("skip_reasons", {}),
        "runs": recorded.get("runs", []),
        "copy": copy_document(settings, domain),
        "query_map": query_map_document(settings, domain) if domain == Domain.CODE else None,
        "silent": [run.said() for run in silent_runs(settings.data_dir, domain)],
    }


class AccessStatementDocument(TypedDict):
    """Groups of which a viewer needs one; ``by`` is ``document``, ``source``, ``beside`` or ``rights``."""

    by: str
    groups: list[str]


class RestrictedDocument(TypedDict):
    """A document with restricted access, or with a statement that is not understood. All statements must be met."""

    source_id: str
    path: str
    statements: list[AccessStatementDocument]
    notices: list[str]


class SourceRightsDocument(TypedDict):
    """The known access rights of a source's documents.

    Attributes:
        documents: the number of documents with known rights.
        hidden: the number of documents without known rights, which nobody may see.
        principals: the number of principals with known members.
        expired: the number of principals whose members were listed too long ago to count.
        people: the number of known e-mail addresses.
        verified_at: the time of the oldest statement; ``asked_at``: when the source was asked last.
        problems: statements that were missing when the source was asked last.
    """

    documents: int
    hidden: int
    principals: int
    expired: int
    people: int
    verified_at: str | None
    asked_at: str | None
    problems: list[str]


class AccessDocument(TypedDict):
    """The access rules of a domain: groups of sources, and single documents.

    If a source states itself who may read its documents, ``rights`` counts these documents, and ``documents`` lists
    only those with further statements.
    ``unmatched`` are entries of metadata files that match no document, by source; they restrict nothing.
    """

    sources: dict[str, list[str]]
    rights: dict[str, SourceRightsDocument]
    documents: list[RestrictedDocument]
    unmatched: dict[str, list[str]]


def access_document(settings: Settings, domain: Domain) -> AccessDocument:
    """Return the access rules of the published generation, and the statements behind them.

    Raises:
        StoreError: the generation cannot be read.
    """
    mine = settings.sources_of(domain)
    sources = {source.id: sorted(map(group_name, source.access)) for source in mine if source.access}
    own = sorted(source.id for source in mine if RIGHTS in source.restricted_to)
    store = store_of(settings, domain)
    documents: list[StatedDocument] = []
    there = Counter[str]()
    if generation := store.current():
        with store.files.open(generation) as index:
            documents = index.stated_documents((ACCESS_NOTICE, VALUE_NOTICE))
            there.update(each.source_id for each in index.served_documents(("", ""), sys.maxsize) if own)
    said = Counter(each.source_id for each in documents if any(map(is_of_rights, each.rule)))
    return {
        "sources": sources,
        "rights": {name: _source_rights(settings, name, said[name], there[name]) for name in own},
        "documents": [_restriction_document(each, sources) for each in documents if not _says_rights_alone(each)],
        "unmatched": {source.id: entries for source in mine if (entries := _find_unmatched(settings, source))},
    }


def _says_rights_alone(stated: StatedDocument) -> bool:
    is_understood = not any(stated.metadata.get(key) for key in (ACCESS_NOTICE, VALUE_NOTICE))
    return is_understood and bool(stated.rule) and all(map(is_of_rights, stated.rule))


def _source_rights(settings: Settings, source_id: str, said: int, documents: int) -> SourceRightsDocument:
    """Return the known access rights of a source that states them itself."""
    problems, table = [], None
    try:
        table = read_table(membership_file(settings.data_dir, source_id))
        problems = list(table.problems) if table else ["it was not asked yet"]
    except StoreError as error:
        problems = [str(error)]
    granted = list(table.grants.values()) if table else []
    memberships, now = settings.memberships, time.time()
    old = sum(not (memberships and memberships.counts(each.verified_at, now)) for each in granted)
    return {
        "documents": said,
        "hidden": documents - said,
        "principals": len(granted),
        "expired": old,
        "people": len({name for each in granted for name in each.members if name.startswith(HELD)}),
        "verified_at": _moment(min((each.verified_at for each in granted), default=None)),
        "asked_at": _moment(table.tried_at if table else None),
        "problems": problems,
    }


def _moment(seconds: float | None) -> str | None:
    return None if seconds is None else utc_text(datetime.fromtimestamp(seconds, UTC), "seconds")


def _find_unmatched(settings: Settings, source: SourceSettings) -> list[str]:
    """Return entries of a source's metadata file that match no document; if unknown, the reason."""
    if not getattr(source, "metadata", None):
        return []
    try:
        return list(open_source(source, settings.own_files).list().unmatched)
    except (ConfigError, SourceUnavailableError) as error:
        return [str(error)]


def _restriction_document(stated: StatedDocument, sources: Mapping[str, Sequence[str]]) -> RestrictedDocument:
    own, source = read_rule(stated.metadata.get(KEY)), frozenset(sources.get(stated.source_id, ()))

    def said_by(statement: Statement) -> str:
        if is_of_rights(statement):
            return "rights"
        if statement in own:
            return "document"
        return "source" if statement == source else "beside"

    statements: list[AccessStatementDocument] = [
        {"by": said_by(statement), "groups": sorted(statement)} for statement in stated.rule
    ]
    notices = [str(notice) for key in (ACCESS_NOTICE, VALUE_NOTICE) if (notice := stated.metadata.get(key))]
    return {"source_id": stated.source_id, "path": stated.path, "statements": statements, "notices": notices}


class LeftOutFile(TypedDict):
    """A file of a source that is not read. The path of a skipped folder ends with a slash."""

    path: str
    reason: str


class LeftOutDocument(TypedDict):
    """How much of a source is read, and the files that are not.

    ``hidden`` documents are read but shown only to operators: an access statement in them may be misunderstood.
    """

    files: int
    read: int
    left_out: list[LeftOutFile]
    hidden: list[LeftOutFile]


_NO_GROUPS = "it is for groups, and no 'access:' is configured"


def left_out_document(settings: Settings, source_id: str | None = None) -> dict[str, dict[str, LeftOutDocument]]:
    """Return the files of each source, or of one, that the last complete sync did not read.

    Raises:
        ConfigError: there is no such source.
        StoreError: a generation cannot be read.
    """
    if source_id and source_id not in {source.id for source in settings.sources}:
        raise ConfigError(f"no source has the id {source_id!r}")
    found: dict[str, LeftOutDocument] = {}
    wanted = [source for source in settings.sources if source_id in (None, source.id)]
    hidden = [each for domain in {source.domain for source in wanted} for each in _hidden(settings, domain)]
    for source in wanted:
        if known := read_left_out(domain_folder(settings, source.domain)).get(source.id):
            files = [(path, reason) for reason, paths in known["left_out"].items() for path in paths]
            left_out: list[LeftOutFile] = [{"path": path, "reason": reason} for path, reason in sorted(files)]
            found[source.id] = {"files": known["files"], "read": known["read"], "left_out": left_out,
                                "hidden": [file for of, file in hidden if of == source.id]}  # fmt: skip
    return {"sources": found}


def _hidden(settings: Settings, domain: Domain) -> list[tuple[str, LeftOutFile]]:
    """Return the documents of a domain that nobody but operators may see, each with its source id."""
    store = store_of(settings, domain)
    if not (generation := store.current()):
        return []
    with store.files.open(generation) as index:
        stated = index.stated_documents((ACCESS_NOTICE,))
    if settings.access is None:
        stated = [each for each in stated if not is_met(each.rule, ANYONE.groups)]
    return [
        (each.source_id, {"path": each.path, "reason": str(notice or _NO_GROUPS)})
        for each in stated
        if (notice := each.metadata.get(ACCESS_NOTICE)) or settings.access is None
    ]


def hidden_notices(settings: Settings, domain: Domain) -> dict[str, str]:
    """Return source id → a sentence with the number of its hidden documents and one of them.

    Hidden are documents that only operators may see. The result is empty if the generation cannot be read.
    """
    try:
        hidden = _hidden(settings, domain)
    except StoreError:
        return {}
    counts, first = Counter(source for source, _ in hidden), dict(reversed(hidden))
    return {
        source: f"{counted(count, 'document')} hidden from all but operators, such as {first[source]['path']}: "
        f"{first[source]['reason']}; nornweave status --access lists them"
        for source, count in counts.items()
    }


def _sources(
    settings: Settings, domain: Domain, reported: Mapping[str, Mapping[str, Any]]
) -> dict[str, SourceStatusDocument]:
    """Return for each source id when it was last listed completely, and the freshness of its documents."""
    verified = read_verified(domain_folder(settings, domain)).sources
    lags, sources = lags_of(settings, domain), dict[str, SourceStatusDocument]()
    hidden = hidden_notices(settings, domain)
    lags.ask({name: source.commit for name, source in verified.items()}, wait_s=GIT_S)
    for source in () if settings.replica_of else settings.sources_of(domain):
        known = verified.get(source.id, VerifiedSource())
        sources[source.id] = {
            "type": source.type,
            "listed_at": known.listed_at,
            "verified_at": known.oldest,
            "bound": bound_of(source),
            "commits_behind": lag.commits if (lag := lags.of(source.id, known.commit)) else None,
            "uncommitted": lag.uncommitted if lag else None,
            "files": (counts := reported.get(source.id, {})).get("files"),
            "read": counts.get("read"),
            "left_out": counts.get("left_out", {}),
            "summary": counts.get("summary", ""),
            "warning": counts.get("warning", ""),
            "notices": [*counts.get("notices", []), *filter(None, [hidden.get(source.id)])],
        }
    return sources


def copy_document(settings: Settings, domain: Domain) -> CopyDocument | None:
    """Return the state of the copy in the object store; ``None`` if no store is configured."""
    if settings.publish is None:
        return None
    noted, files = read_last_copy(settings, domain), store_of(settings, domain).files
    since = None if noted and noted.built_as == files.current() else files.published_at()
    return {
        "url": settings.publish.url,
        "number": noted.number or None if noted else None,
        "generation": noted.built_as if noted else None,
        "at": noted.at if noted else None,
        "problem": noted.problem if noted else None,
        "behind_s": round(max(0.0, time.time() - since), 1) if since else 0.0,
    }


class ConfiguredSource(TypedDict):
    """A source of ``nornweave.yaml``, with the report of its domain's last sync."""

    id: str
    domain: str
    type: str
    location: Annotated[
        str, Field(description="path (relative to the file where it is below its folder), address, repository or site")
    ]
    access: Annotated[list[str], Field(description="groups of which a reader needs one; empty for everybody")]
    state: Annotated[
        str, Field(description="`ok`, `held` removals, `unavailable`, or `empty`: nothing of it is indexed")
    ]
    reason: Annotated[str | None, Field(description="why it is unavailable, or its domain cannot be read")]
    held: Annotated[int, Field(description="removals that wait for a person")]
    files: Annotated[int | None, Field(description="that it has; null before its first sync")]
    read: Annotated[int | None, Field(description="of its files")]
    left_out: Annotated[dict[str, int], Field(description="how many files are not read, by reason")]


class RemovedSource(TypedDict):
    """A source that was removed from the file."""

    id: str
    status: Literal["REMOVED"]


class SourcesDocument(TypedDict):
    """All sources, in the order of the file."""

    sources: list[ConfiguredSource]


def sources_document(settings: Settings) -> SourcesDocument:
    """Return all sources with their states."""
    look = _Look(settings)
    return {"sources": [look.document(source) for source in settings.sources]}


def source_document(settings: Settings, source: SourceSettings) -> ConfiguredSource:
    """Return one source with its state."""
    return _Look(settings).document(source)


class _Look:
    """One reading of the sources. Data of a domain are read once, and only if a source of it needs them."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._status = cache(partial(status_document, settings))
        self._indexed = cache(partial(_indexed_sources, settings))

    def document(self, source: SourceSettings) -> ConfiguredSource:
        """Return one source with its state."""
        held: list[str] = []
        counts: Mapping[str, Any] = {}
        try:
            status = self._status(source.domain)
            held = [path for each in status["held"] if each["source_id"] == source.id for path in each["paths"]]
            counts = status["sources"].get(source.id, {})
            reason = status["unavailable"].get(source.id)
            if reason or held:
                state = "unavailable" if reason else "held"
            else:
                state = "ok" if source.id in self._indexed(source.domain) else "empty"
        except StoreError as error:
            state, reason = "unavailable", str(error)
        places = (getattr(source, key) for key in source.place_keys)
        return {
            "id": source.id,
            "domain": source.domain.value,
            "type": source.type,
            "location": _relative_place(next((place for place in places if place), ""), self._settings.file.parent),
            "access": sorted(source.restricted_to),
            "state": state,
            "reason": reason,
            "held": len(held),
            "files": counts.get("files"),
            "read": counts.get("read"),
            "left_out": counts.get("left_out", {}),
        }


def _relative_place(place: object, folder: Path) -> str:
    """Return a place as text for people. A path below the configuration's folder becomes relative to it."""
    is_below = isinstance(place, Path) and place.is_relative_to(folder)
    return str(place.relative_to(folder) if isinstance(place, Path) and is_below else place)


def _indexed_sources(settings: Settings, domain: Domain) -> frozenset[str]:
    """Return the ids of the sources with at least one published document."""
    store = store_of(settings, domain)
    generation = store.current()
    if generation is None:
        return frozenset()
    with store.files.open(generation) as index:
        first = (index.served_documents((source.id, ""), 1) for source in settings.sources_of(domain))
        return frozenset(document.source_id for documents in first for document in documents)


class QueryMapDocument(TypedDict):
    """The state of a query map, which is learnt from commits."""

    in_force: bool
    gain: Annotated[
        float | None, Field(description="in commits with a changed file among the first three; null: none was tested")
    ]
    interval: Annotated[list[float] | None, Field(description="95 %, of the gain, where it was learnt here")]
    examples: Annotated[int, Field(description="commits that it was learnt from")]
    tested: Annotated[int, Field(description="newer commits that it was tested with")]
    reason: str
    learnt_at: Annotated[str | None, Field(description="ISO 8601, UTC; null: never here")]


def query_map_document(settings: Settings, domain: Domain) -> QueryMapDocument:
    """Return whether the published generation has a query map in force, with its figures or why there is none.

    Raises:
        StoreError: the published generation cannot be read.
    """
    files, report = store_of(settings, domain).files, read_report(domain_folder(settings, domain))
    current = files.current()
    known = files.manifest(current).query_map if current else None
    is_used = settings.domains[domain].plan.query_map
    if known:
        is_last = report is not None and report.learnt_at == known.fitted_at
        said = (
            f"a changed file is among the first three for {known.after:.3f} of {known.tested} newer commits with it, "
        )
        return {
            "in_force": is_used,
            "gain": round(known.after - known.before, 4),
            "interval": [*report.interval] if report and is_last and report.interval else None,
            "examples": known.examples,
            "tested": known.tested,
            "reason": f"{said}for {known.before:.3f} without" if is_used else TURNED_OFF,
            "learnt_at": known.fitted_at,
        }
    if report is None:
        return {
            "in_force": False, "gain": None, "interval": None, "examples": 0, "tested": 0, "learnt_at": None,
            "reason": "none was learnt here yet; Dagster's `query_map` does" if is_used else TURNED_OFF,
        }  # fmt: skip
    older = f"{current} was published without it: {report.reason}"
    return {
        "in_force": False,
        "gain": report.gain,
        "interval": [*report.interval] if report.interval else None,
        "examples": report.examples,
        "tested": report.tested,
        "reason": older if report.learnt_at else report.reason,
        "learnt_at": report.at,
    }
