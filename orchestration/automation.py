"""When domains are synced automatically: every hour, and soon after a change.

All of it is on by default: whoever starts Dagster beside the index expects the index to follow its sources.

The process that watches folders tells the sensors in ``watched.json`` in ``DAGSTER_HOME``.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

import dagster as dg

from evals.query_map import why_due
from nornweave.carry.lease import DOMAIN_TAG
from nornweave.carry.wiring import INBOX
from nornweave.config import Settings
from nornweave.connect.connectors import open_source
from nornweave.connect.inbox.source import InboxSource
from nornweave.connect.protocol import Source
from nornweave.core.errors import ConfigError, NornWeaveError
from nornweave.core.files.writing import write_whole
from nornweave.core.types import Domain, digest
from orchestration.announcements import BROKERS, Announcements
from orchestration.assets import ANSWERS_KEY, LEDGER_GROUP, LEDGER_KEY, QUERY_MAP_DOMAIN, domain_keys
from orchestration.instance import UNFINISHED, forget_old_runs, home_of
from orchestration.leases import fail_abandoned_runs, is_gone

NAME = "watched.json"


@dataclass(frozen=True, slots=True)
class Watched:
    """The state of the process that watches folders.

    Attributes:
        process: the mark of the process that watches, from ``leases.process_mark``.
        sources: ``domain/source`` → a mark that changes when the source must be listed.
        ledger: a mark that changes with each publication that the ledger must take in; empty before the first.
    """

    process: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)
    ledger: str = ""


def write_watched(settings: Settings, watched: Watched) -> None:
    """Replace the file that holds the state of the watching process."""
    write_whole(home_of(settings) / NAME, json.dumps(asdict(watched)))


def read_watched(settings: Settings) -> Watched:
    """Return the last state of the watching process; an empty ``Watched`` if that process does not run."""
    try:
        watched = Watched(**json.loads((home_of(settings) / NAME).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return Watched()
    return Watched() if is_gone(watched.process) else watched


SYNC_JOB = "sync"
# Sensors see changes in folders and repositories. The hourly sync is for remote sources,
# and for failures that may pass.
DEFAULT_CRON = "0 * * * *"
# At night, not after each sync: once a day is often enough to see a trend of quality.
EVALUATION_CRON = "30 3 * * *"
# Who saves a file waits for it: folders are looked at as often as Dagster's daemon allows, but listing a large one, 3 s
# for 168,000 files, takes a tenth of a processor; one that hangs does not keep the others waiting longer than a minute.
LOOK_INTERVAL_S = 5
REST = 9
MAX_REST_S = 60
# Watched sources (``orchestration.watch``) are listed rarely: only the kernel's omissions are left to find.
WATCHED_REST_S = 900.0
WEBHOOK_INTERVAL_S = 30
QUERY_MAP_INTERVAL_S = 600
# Dagster gives a tick 60 s; a source on a slow disk must not keep the others from being looked at.
DEADLINE_S = 30.0

Opener = Callable[[], Source]
Openers = Mapping[Domain, Mapping[str, Opener]]


def automation(
    settings: Settings,
    job: dg.UnresolvedAssetJobDefinition,
    cron: str,
    measure: dg.UnresolvedAssetJobDefinition,
    evaluation_cron: str,
    learn: dg.UnresolvedAssetJobDefinition | None = None,
) -> tuple[list[dg.ScheduleDefinition], list[dg.SensorDefinition]]:
    """Return the schedules and the sensors.

    Args:
        job: syncs a domain.
        cron: when every domain is synced.
        measure: the job that measures the published generations, at the times of ``evaluation_cron``.
        learn: the job that learns the query map; ``None`` if no code is served.

    Raises:
        ConfigError: ``cron`` or ``evaluation_cron`` is not a cron expression.
    """
    return [corpus_refresh(settings, job, cron), evaluation_schedule(measure, evaluation_cron)], [
        change_sensor(settings, job),
        ledger_sensor(settings, job),
        *([query_map_sensor(settings, learn)] if learn else []),
        *([webhook_sensor(settings)] if settings.webhook or os.environ.get(BROKERS) else []),
        *([lost_runs_sensor()] if settings.workers and settings.workers.run_launcher else []),
    ]


def webhook_sensor(settings: Settings) -> dg.SensorDefinition:
    """Return the sensor that posts undelivered events. It starts no runs."""

    def look(_: dg.SensorEvaluationContext) -> dg.SkipReason:
        Announcements(settings).deliver(heed_pause=True)
        return dg.SkipReason("events were sent, if any waited and their receiver answers")

    does = "Posts events that the webhook did not take at first; after each failure it waits longer."
    return _sensor("webhook_delivery", look, does, every_s=WEBHOOK_INTERVAL_S)


def lost_runs_sensor() -> dg.SensorDefinition:
    """Return the sensor that ends remote runs whose process was killed. Not every launcher notices killed processes."""

    def look(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        return dg.SkipReason(f"{fail_abandoned_runs(context.instance)} runs have given no sign of life and were ended")

    return _sensor("lost_runs", look, "Ends runs on other machines that give no sign of life; each is tried once more.")


def corpus_refresh(
    settings: Settings, job: dg.UnresolvedAssetJobDefinition, cron: str = DEFAULT_CRON
) -> dg.ScheduleDefinition:
    """Return the schedule that syncs every domain in its own run. It also deletes old runs."""

    def refresh(context: dg.ScheduleEvaluationContext) -> Iterator[dg.RunRequest | dg.SkipReason]:
        forget_old_runs(context.instance)
        idle = [each for each in settings.served_domains if not has_unfinished_run(context.instance, each.value)]
        if not idle:
            yield dg.SkipReason("every domain still has a run that has not ended")
        for domain in idle:
            yield run_request(domain, run_key=f"{domain.value}@{context.scheduled_execution_time.isoformat()}")

    return _schedule(
        ("NORNWEAVE_REFRESH_CRON", DEFAULT_CRON),
        name="corpus_refresh",
        job=job,
        cron_schedule=cron,
        execution_fn=refresh,
        description="Syncs every domain, changed or not, each in a run of its own.",
    )


def evaluation_schedule(measure: dg.UnresolvedAssetJobDefinition, cron: str = EVALUATION_CRON) -> dg.ScheduleDefinition:
    """Return the schedule that measures the published generations."""
    return _schedule(
        ("NORNWEAVE_EVALUATION_CRON", EVALUATION_CRON),
        name="evaluation_schedule",
        job=measure,
        cron_schedule=cron,
        description="Measures what is published with its judged sets, whether it changed or not.",
    )


def _schedule(setting: tuple[str, str], **fields: Any) -> dg.ScheduleDefinition:
    """Return an active schedule. ``setting`` is the variable that sets its cron expression, and an example."""
    try:
        return dg.ScheduleDefinition(default_status=dg.DefaultScheduleStatus.RUNNING, **fields)
    except dg.DagsterInvalidDefinitionError as error:
        variable, example = setting
        stated = f"{variable}: {fields['cron_schedule']!r}"
        raise ConfigError(f"{stated} is not a cron expression; five fields are expected, like {example!r}") from error


def change_sensor(settings: Settings, job: dg.UnresolvedAssetJobDefinition) -> dg.SensorDefinition:
    """Return the sensor that starts a run for each domain whose local sources have changed."""
    openers = {domain: _local_sources(settings, domain) for domain in settings.served_domains}
    rests_until = 0.0
    of_watched: dict[str, tuple[str, float]] = {}  # key → mark, and time of the listing

    def look(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        nonlocal rests_until
        started = time.monotonic()
        if started < rests_until:
            return dg.SkipReason(f"looks again in {rests_until - started:.0f} s: the last look took long")
        seen: dict[str, str] = json.loads(context.cursor) if context.cursor else {}
        watched = read_watched(settings).sources
        # Sources of a running domain rest: the first tick after the run sees their changes.
        busy = [domain for domain in openers if has_unfinished_run(context.instance, domain.value)]
        resting = {f"{domain.value}/{name}" for domain in busy for name in openers[domain]}
        # A watched source rests if its mark has not changed since it was listed a short while ago.
        resting |= {
            key
            for key, (mark, listed_at) in of_watched.items()
            if watched.get(key) == mark and started - listed_at < WATCHED_REST_S
        }
        sight = look_at(openers, seen, deadline=started + DEADLINE_S, resting=resting)
        ended = time.monotonic()
        rests_until = ended + min(REST * (ended - started), MAX_REST_S)
        of_watched.update({key: (mark, started) for key, mark in watched.items() if key in sight.listed})
        requests = [run_request(domain) for domain in openers if domain in sight.changed]
        nothing = "; ".join(["no change in a domain that is not being synced", *sight.problems])
        cursor = json.dumps(sight.marks, sort_keys=True)
        return dg.SensorResult(requests, skip_reason=None if requests else nothing, cursor=cursor)

    does = "Syncs a domain soon after documents were handed in, or changed in one of its local sources."
    return _sensor("source_changes", look, does, job=job)


def ledger_sensor(settings: Settings, job: dg.UnresolvedAssetJobDefinition) -> dg.SensorDefinition:
    """Return the sensor that rebuilds the ledger after the watching process has published a generation."""

    def look(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        due = read_watched(settings).ledger
        if not due or due == context.cursor:
            return dg.SkipReason("nothing was published that the ledger has not seen")
        if has_unfinished_run(context.instance, LEDGER_GROUP):
            return dg.SkipReason("the ledger is being made")
        request = dg.RunRequest(asset_selection=[LEDGER_KEY], tags={DOMAIN_TAG: LEDGER_GROUP})
        return dg.SensorResult(run_requests=[request], cursor=due)

    does = "Makes the conflict ledger anew after a saved file was published by itself."
    return _sensor("ledger_after_changes", look, does, job=job)


def query_map_sensor(settings: Settings, learn: dg.UnresolvedAssetJobDefinition) -> dg.SensorDefinition:
    """Return the sensor that starts the learning of the code domain's query map: weekly, and after many new commits."""

    def look(context: dg.SensorEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        if has_unfinished_run(context.instance, QUERY_MAP_DOMAIN.value):
            return dg.SkipReason("the domain is being synced, or its map learnt")
        try:
            due = why_due(settings, QUERY_MAP_DOMAIN, now=datetime.now(UTC))
        except NornWeaveError as error:
            return dg.SkipReason(str(error))
        if not due:
            return dg.SkipReason("the last one was learnt this week, and few commits are new")
        return dg.RunRequest(tags={DOMAIN_TAG: QUERY_MAP_DOMAIN.value, "reason": due})

    does = "Learns the query map of the code domain each week, and when 50 commits are new."
    return _sensor("query_map_due", look, does, every_s=QUERY_MAP_INTERVAL_S, job=learn)


def _sensor(
    name: str, look: Callable[..., Any], does: str, every_s: int = LOOK_INTERVAL_S, **fields: Any
) -> dg.SensorDefinition:
    """Return an active sensor that calls ``look`` every ``every_s`` seconds. ``does`` describes it in the UI."""
    return dg.SensorDefinition(
        name=name,
        evaluation_fn=look,
        minimum_interval_seconds=every_s,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=does,
        **fields,
    )


@dataclass(slots=True)
class Sight:
    """The result of listing the sources.

    Attributes:
        marks: ``domain/source`` → digest of its listing. Sources that were not listed keep their old mark.
        listed: the sources that were listed.
        changed: the domains with a source whose listing differs from the last one.
        problems: a message for each source that could not be listed, or not in time.
    """

    marks: dict[str, str] = field(default_factory=dict)
    listed: set[str] = field(default_factory=set)
    changed: set[Domain] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)


def look_at(openers: Openers, seen: Mapping[str, str], *, deadline: float, resting: Collection[str] = ()) -> Sight:
    """List the sources, new ones first, and return the result. An error of a source is one of its problems.

    Args:
        seen: ``domain/source`` → the mark of its last listing.
        deadline: a ``time.monotonic()``. Sources that are not listed by then are problems.
        resting: the keys of sources that are not listed this time.
    """
    sight = Sight()
    pairs = [(domain, name, opener) for domain, named in openers.items() for name, opener in named.items()]
    for domain, name, opener in sorted(pairs, key=lambda pair: f"{pair[0].value}/{pair[1]}" in seen):
        key = f"{domain.value}/{name}"
        if key in seen:
            sight.marks[key] = seen[key]
        if key in resting:
            continue
        if time.monotonic() > deadline:
            sight.problems.append(f"{key}: not looked at, the others took too long")
            continue
        try:
            listing = opener().list()
        except NornWeaveError as error:
            sight.problems.append(f"{key}: {error}")
            continue
        mark = digest(*(part for entry in listing.entries for part in (entry.path, entry.gate)))
        # A source that is empty when it is first seen has nothing to sync.
        if mark != seen.get(key) and (listing.entries or key in seen):
            sight.changed.add(domain)
        sight.marks[key] = mark
        sight.listed.add(key)
    return sight


def run_request(domain: Domain, run_key: str | None = None) -> dg.RunRequest:
    """Return a request for a run of one domain.

    Dagster ignores a request whose ``run_key`` it has seen before. A request without a key always starts a run.
    """
    return dg.RunRequest(
        run_key=run_key,
        asset_selection=[*domain_keys(domain), LEDGER_KEY, ANSWERS_KEY],
        tags={DOMAIN_TAG: domain.value},
    )


def has_unfinished_run(instance: dg.DagsterInstance, group: str) -> bool:
    """Tell whether a run of ``group`` is queued or running, so that a new run would wait for it.

    Args:
        group: the name of a domain, or the group of the ledger.
    """
    filters = dg.RunsFilter(statuses=list(UNFINISHED), tags={DOMAIN_TAG: group})
    return instance.get_runs_count(filters) > 0


def _local_sources(settings: Settings, domain: Domain) -> Mapping[str, Opener]:
    """Return the sources that can be listed every few seconds, which are the inbox and local sources."""
    sources = [source for source in settings.sources_of(domain) if not source.is_remote]
    named = {source.id: partial(open_source, source, settings.own_files) for source in sources}
    return {INBOX: partial(InboxSource, INBOX, domain, settings.inbox(domain)), **named}
