"""Checks for problems that keep NornWeave from working: of the machine, and of the configuration."""

from __future__ import annotations

import http.client
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

from nornweave.ask.views.status import status_document
from nornweave.carry.lease import DATABASE_VARIABLE
from nornweave.carry.wiring import database_checks, encoder_of, store_of
from nornweave.config import Settings, SourceSettings
from nornweave.connect.edit import listing_of
from nornweave.core.access import RIGHTS
from nornweave.core.errors import ConfigError, EncoderError, NornWeaveError, StoreError
from nornweave.core.files.writing import not_writable
from nornweave.core.membership import membership_file, read_table
from nornweave.core.text.terminal import counted
from nornweave.core.types import Domain
from nornweave.index.connection import check_vss
from nornweave.models.encoders.bert import BertEncoder
from orchestration.history import HALF_MADE, REMEDY, look_for_damage

Level: TypeAlias = Literal["ok", "warning", "error"]


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """The result of one check.

    Attributes:
        check: the kind of check: ``configuration``, ``disk``, ``source``, …
        level: ``error`` if something does not work, ``warning`` if it may stop working or something is left undone.
        remedy: what to do about it; empty if nothing has to be done.
    """

    check: str
    subject: str
    level: Level
    text: str
    remedy: str = ""


# A sync builds each generation beside the one that answers, and stops below this.
LEAST_FREE_BYTES = 500 * 1024 * 1024
# What clocks of machines that share a disk may differ by.
CLOCK_TOLERANCE_S = 300.0
_PORT_TIMEOUT_S = 5.0
_GIB, _MIB = 1024**3, 1024**2


def look_at_disk(data_dir: Path) -> Iterator[CheckFinding]:
    """Check whether ``data_dir`` can be written and how much space is free."""
    subject = str(data_dir)
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=data_dir) as file:
            file.write(b"doctor")
        free = shutil.disk_usage(data_dir).free
    except OSError as error:
        remedy = "give this user the right to write there, or name another folder by 'data_dir' in nornweave.yaml"
        answers = bool(not_writable(error)) and any(data_dir.glob("domains/*"))
        text = f"cannot be written: {error.strerror}{'; what is published answers' if answers else ''}"
        yield CheckFinding("disk", subject, "warning" if answers else "error", text, remedy)
        return
    yield space_finding(subject, free, _size_of(data_dir / "domains"))


def space_finding(subject: str, free: int, used: int) -> CheckFinding:
    """Compare the free space with the size of the index, both in bytes.

    Return an error if less than ``LEAST_FREE_BYTES`` are free, a warning if a second index would not fit, else ``ok``.
    """
    text = f"{free / _GIB:.1f} GiB are free, the index takes {used / _GIB:.1f} GiB"
    if free < LEAST_FREE_BYTES:
        remedy = "free space, or move 'data_dir' to a larger disk; `domains.<name>.storage.keep_generations: 1` helps"
        return CheckFinding("disk", subject, "error", text, remedy)
    if free < used:
        remedy = "a full rebuild needs about as much again: free space before `nornweave sync --full`"
        return CheckFinding("disk", subject, "warning", text, remedy)
    return CheckFinding("disk", subject, "ok", text)


def look_at_clock(built_at: Mapping[str, str], now: datetime) -> Iterator[CheckFinding]:
    """Compare the clock with the times at which the published generations were built.

    Args:
        built_at: domain → ISO time.
        now: the present moment, with its zone.
    """
    ahead = {
        domain: moment
        for domain, written in built_at.items()
        if ((moment := datetime.fromisoformat(written)) - now).total_seconds() > CLOCK_TOLERANCE_S
    }
    for domain, moment in ahead.items():
        text = f"it is {_shown(now)}, but {domain} was published at {_shown(moment)}"
        yield CheckFinding(
            "clock", domain, "warning", text, "set the clock (`timedatectl set-ntp true`), then sync again"
        )
    if not ahead:
        yield CheckFinding("clock", "", "ok", _shown(now))


def look_at_port(what: str, port: int, remedy: str) -> CheckFinding:
    """Check whether a port of the loopback address is free or already used by NornWeave."""
    subject = f"127.0.0.1:{port}"
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except PermissionError:
            return CheckFinding("port", subject, "error", f"{what}: this user may not use it", remedy)
        except OSError:
            if _answers(port):
                return CheckFinding("port", subject, "ok", f"{what}: answers there")
            return CheckFinding("port", subject, "warning", f"{what}: another program uses it", remedy)
    return CheckFinding("port", subject, "ok", f"{what}: free")


def _shown(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _answers(port: int) -> bool:
    """Tell whether NornWeave's API or its Dagster UI answers at a port."""
    for path, sign in (("/health", b'"status"'), ("/server_info", b"dagster")):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PORT_TIMEOUT_S)
        try:
            connection.request("GET", path)
            if sign in connection.getresponse().read(10_000):
                return True
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
    return False


def _size_of(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += Path(place, name).lstat().st_size
            except FileNotFoundError:  # a generation that is being removed
                continue
    return total


_SYNC = "run `nornweave sync`"
_MEND = "no source of this domain can be read; mend that first"
_INIT = "nornweave.yaml names no source: `nornweave init` looks for some, `nornweave init --add PLACE` adds one"


def look_at_databases(settings: Settings, environment: Mapping[str, str]) -> Iterator[CheckFinding]:
    """Connect to the configured PostgreSQL servers of documents and runs."""
    try:
        checks = database_checks(settings, environment)
    except ConfigError as error:
        yield CheckFinding("PostgreSQL", "driver", "error", str(error))
        return
    for subject, check in checks.items():
        try:
            check()
        except StoreError as error:
            yield CheckFinding("PostgreSQL", subject, "error", str(error))
        else:
            yield CheckFinding("PostgreSQL", subject, "ok", "answers")


def look_at_history(settings: Settings, environment: Mapping[str, str]) -> Iterator[CheckFinding]:
    """Check the files in which Dagster records runs, unless PostgreSQL records them."""
    home = settings.data_dir / "dagster"
    if environment.get(DATABASE_VARIABLE) or not home.is_dir():
        return
    finding = partial(CheckFinding, "history", str(home))
    damaged = list(look_for_damage(home))
    for file, why in damaged:
        if why == HALF_MADE:
            yield finding("warning", f"{file.relative_to(home)} {why}", _SYNC)
        else:
            yield finding("error", f"{file.relative_to(home)}: {why}; syncs are not recorded", REMEDY)
    if not damaged:
        yield finding("ok", f"runs, events and ticks take {_size_of(home) / _MIB:.1f} MiB")


def look_at_access(settings: Settings, environment: Mapping[str, str]) -> Iterator[CheckFinding]:
    """Check that groups of sources have members, that tokens can be checked, and that people can sign in."""
    from api.access.door import client_secret
    from api.access.oidc import SigningKeys
    from api.errors import ProblemError
    from api.pages.addresses import URL_VARIABLE, configured_url
    from nornweave.core.access import read_tokens
    from nornweave.core.membership import read_members

    restricted = [source.id for source in settings.sources if source.restricted_to]
    access = settings.access
    if access is None:
        if restricted:
            text = "names groups, and nothing says who is in one: `nornweave serve` refuses to start"
            remedy = "add 'access: {tokens: ./tokens.yaml}' to nornweave.yaml"
            yield CheckFinding("access", restricted[0], "error", text, remedy)
        return
    if access.tokens is not None:
        try:
            yield CheckFinding("access", str(access.tokens), "ok", f"{len(read_tokens(access.tokens)):,} tokens")
        except ConfigError as error:
            remedy = "`nornweave token --group NAME` prints a token and its line for the file"
            yield CheckFinding("access", str(access.tokens), "error", str(error), remedy)
    if access.membership.file is not None:
        file = access.membership.file
        try:
            yield CheckFinding("access", str(file), "ok", f"{len(read_members(file)[0]):,} people, groups and accounts")
        except ConfigError as error:
            yield CheckFinding("access", str(file), "error", str(error), "docs/rights.md says what stands in it")
    yield from _look_at_memberships(settings)
    if access.oidc is not None:
        keys = SigningKeys(access.oidc)
        try:
            keys.usable(None, access.oidc.algorithms[0])
            yield CheckFinding("access", access.oidc.issuer, "ok", "its keys can be read")
        except ProblemError:
            remedy = "check 'issuer' and 'jwks', and that this machine reaches them; the log says what was answered"
            yield CheckFinding("access", access.oidc.issuer, "error", "its keys cannot be read", remedy)
    if access.oidc is not None and access.oidc.client_id:
        finding = partial(CheckFinding, "access", f"sign-in as {access.oidc.client_id}")
        try:
            client_secret(settings, environment)
            url = configured_url(environment)
            if url is None:
                remedy = f"set {URL_VARIABLE}=https://…, which people open, and register its /callback at the provider"
                yield finding("warning", f"{URL_VARIABLE} is not set: sign-in works on this machine alone", remedy)
            else:
                yield finding("ok", f"the provider has to know {url}/callback, and {url}/logout for signing out")
        except ConfigError as error:
            yield finding("error", str(error), "a server does not start without it")


def _look_at_memberships(settings: Settings) -> Iterator[CheckFinding]:
    """Check that the sources with ``rights`` named all members when they were asked last."""
    hours = settings.access.membership.max_age_hours if settings.access else 0
    for source in (each for each in settings.sources if RIGHTS in each.restricted_to):
        try:
            table = read_table(membership_file(settings.data_dir, source.id))
            problems = table.problems if table else ("it was not asked yet",)
        except StoreError as error:
            problems = (str(error),)
        if problems:
            text = f"who may read is not known anew: {'; '.join(problems[:5])}"
            remedy = f"what it said before counts for {hours:g} hours; `nornweave access refresh` asks it"
            yield CheckFinding("access", source.id, "warning", text, remedy)
    if notice := settings.principals_notice:
        yield CheckFinding("access", "principals", "warning", notice, "docs/rights.md says how names are written")


def look_at_source(settings: Settings, source: SourceSettings, environment: Mapping[str, str]) -> CheckFinding:
    """Open a source and list it. Only the first page of a remote source is read."""
    finding = partial(CheckFinding, "source", source.id)
    for key in ("token_env", "credentials_env"):
        name = getattr(source, key, None)
        if name and not environment.get(name, "").strip():
            text = f"{key} names {name}, which is not set"
            remedy = f"set {name} where NornWeave runs (`export {name}=…`), Dagster included"
            return finding("error", text, remedy)
    try:
        listing = listing_of(source, settings.own_files)
    except ConfigError as error:
        return finding("error", str(error), "correct nornweave.yaml")
    except NornWeaveError as error:
        return finding("error", str(error), "its documents stay as they are until it can be read")
    if listing is None:
        return finding("ok", "answers")
    if not (count := len(listing.entries)):
        remedy = "check 'path', 'include' and 'exclude'; `nornweave status` shows what is left out, and why"
        return finding("warning", "lists no documents", remedy)
    return finding("ok", f"lists {counted(count, 'document')}")


def look_at_models(settings: Settings, domains: tuple[Domain, ...]) -> Iterator[CheckFinding]:
    """Load each encoder of the domains, and encode a word with it."""
    by_model = {settings.domains[domain].embedding.model: domain for domain in domains}
    for model, domain in by_model.items():
        try:
            encoder = encoder_of(settings, settings.domains[domain])
            vectors = encoder.encode(["doctor"])
        except EncoderError as error:
            remedy = "correct domains.<name>.embedding.model in nornweave.yaml, or install what the message names"
            yield CheckFinding("model", model, "error", str(error), remedy)
        else:
            place = f" on {encoder.runs_on}" if isinstance(encoder, BertEncoder) else ""
            yield CheckFinding("model", model, "ok", f"encodes{place}, {vectors.shape[1]} dimensions")


def look_at_vector_index(settings: Settings, domains: tuple[Domain, ...]) -> CheckFinding:
    """Check that DuckDB has its extension for vectors, if a domain is configured with ``vector_index: hnsw``."""
    asking = [each.value for each in domains if settings.domains[each].storage.vector_index == "hnsw"]
    finding = partial(CheckFinding, "vector index", "vss")
    try:
        check_vss()
    except StoreError as error:
        if not asking:
            return finding("ok", "cannot be loaded, and no domain asks for it: vectors are searched exactly")
        text, _, remedy = str(error).partition("; ")
        return finding("error", f"{text}; asked for by {', '.join(asking)}", remedy)
    return finding("ok", "can be loaded")


def look_at_index(settings: Settings, domain: Domain, *, can_sync: bool) -> Iterator[CheckFinding]:
    """Report whether something is published and how the last sync ended.

    Args:
        can_sync: the domain has a source that can be read; otherwise a sync would not help.
    """
    finding, documents = (partial(CheckFinding, check, domain.value) for check in ("index", "documents"))
    try:
        status = status_document(settings, domain)
    except StoreError as error:
        yield finding("error", str(error), f"`nornweave rollback {domain.value}` or {_SYNC}")
        return
    if status["generation"] is None:
        yield finding(
            "warning", "nothing is published yet", _SYNC if can_sync else _MEND if settings.sources else _INIT
        )
    elif status["runs"] and "error" in status["runs"][0]:
        text = f"the last sync failed: {status['runs'][0]['error']}"
        yield finding("error", text, f"mend that, then {_SYNC}")
    else:
        text = f"{status['documents']:,} documents, {status['generation']}, checked at {status['checked_at']}"
        yield finding("ok", text)
    if any((settings.data_dir / "plans" / domain.value).glob("plan-*.json")):
        remedy = f"copy its 'values' below 'domains.{domain.value}.plan' if they are meant, and remove data_dir/plans"
        yield CheckFinding("plan", domain.value, "warning", "a tuned plan of an earlier version is not read", remedy)
    for said in status["silent"]:
        remedy = (
            "`nornweave up` ends it within two minutes and syncs the domain again; without it, `nornweave sync` does"
        )
        yield CheckFinding("run", domain.value, "warning", said, remedy)
    if status["failed"]:
        text = f"{len(status['failed']):,} documents failed"
        yield documents("warning", text, "`nornweave status` names each with its reason")
    if status["held"]:
        text = f"{sum(len(each['paths']) for each in status['held']):,} removals are held"
        yield documents("warning", text, "if they are meant: `nornweave sync --confirm-deletes`")


def look_at_judged(settings: Settings, domain: Domain) -> Iterator[CheckFinding]:
    """Report when each judged set of a domain prevents a publication, and its places that match no document."""
    from evals.gate import holds_back
    from evals.judgments import JudgmentError
    from evals.sets import read_domain_sets, wrong_judgments

    configured = settings.domains[domain].evaluation
    finding = partial(CheckFinding, "judged", domain.value)
    try:
        sets = read_domain_sets(configured.judgments)
    except JudgmentError as error:
        yield finding("error", str(error), "correct it: docs/evaluation.md")
        return
    with suppress(StoreError):  # look_at_index has said it
        for sentence in wrong_judgments(settings, domain) if store_of(settings, domain).current() else ():
            yield finding("error", sentence, "docs/evaluation.md says how places are written")
    smallest = next(count for count in range(1, 100) if holds_back(count, configured.lost_share))
    least = f"the smallest set that can hold a generation back has {counted(smallest, 'question')}"
    if not sets:
        yield finding("ok", f"no judged set, so nothing is held back; {least}")
    for judged in sets:
        set_name = f"{judged.name}, {counted(len(judged.relevant), 'question')}"
        if not configured.gate:
            yield finding("warning", f"{set_name}: holds nothing back", "the gate is off: `gate: true` turns it on")
        elif when := holds_back(len(judged.relevant), configured.lost_share):
            yield finding("ok", f"{set_name}: holds a generation back if {when}")
        else:
            yield finding("warning", f"{set_name}: can hold nothing back", f"judge more: {least}")


def look_at_judged_across(settings: Settings) -> Iterator[CheckFinding]:
    """Report the sets judged across domains, which never prevent a publication, and places that match no document."""
    from evals.sets import wrong_judgments

    finding = partial(CheckFinding, "judged", "all domains")
    with suppress(StoreError):
        for sentence in wrong_judgments(settings, None):
            yield finding("error", sentence, "docs/evaluation.md says how places are written")
    for folder in settings.evaluation.judgments:
        text = f"{folder.name}: is asked after a publication and holds nothing back"
        yield finding("ok", text, "sets under domains.<name>.evaluation are asked before it")


def published_at(settings: Settings, domains: tuple[Domain, ...]) -> dict[str, str]:
    """Return when each domain's published generation was built, in ISO form; domains without one are left out."""
    facts = {domain.value: store_of(settings, domain).published_facts() for domain in domains}
    return {domain: found["built_at"] for domain, found in facts.items() if "built_at" in found}
