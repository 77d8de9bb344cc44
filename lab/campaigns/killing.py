"""Kill a sync with everything it started, at any moment; the next sync must publish what a first one would have."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lab.campaigns.processes import CONTEXT, CampaignChild, command, until
from lab.campaigns.report import Order, Tally
from lab.campaigns.workspace import (
    VERSIONS,
    References,
    State,
    Workspace,
    between,
    differences,
    disorder,
    of_domain,
    published_state,
    state_of,
)
from lab.small_segments import small_segments
from nornweave.carry.wiring import domain_folder, store_of
from nornweave.connect.connectors import load_settings
from nornweave.core.errors import StoreError
from nornweave.core.types import Domain, GenerationId
from nornweave.index.manifest import Manifest
from nornweave.ingest.records import SyncOptions

_STEP_BYTES = 64
# The share of kills that a sync to the end follows; after the others the next one is killed as well.
FINISHED = 0.4
# The share of syncs to the end that build segments, as killed ones do; the others write a domain whole.
IN_SEGMENTS = 0.6
# The shares of kills that wait for a build, and for the pointer to move; each is a small part of a sync.
IN_BUILD, AT_POINTER = 0.35, 0.2
BUILD_S = 0.4
# The share of syncs that Dagster runs, as the command does; the others are the recipe alone, at half the cost.
BY_DAGSTER = 0.2
# The shares of syncs to the end that a rollback follows, which is killed as well, and a question as of an earlier time.
ROLLED_BACK, AS_OF = 0.5, 0.5
ROLLBACK_S = 0.4
DOMAIN = Domain.DOCUMENTATION


def kill_syncs(order: Order) -> Tally:
    """Kill ``order.runs`` syncs and rollbacks of an installation whose documents keep changing.

    After each, every domain's published generation is one that a whole sync would have published, and every kept
    generation has what it had; a sync that is not killed then leaves what a first sync of the same documents leaves.
    """
    tally = Tally("kill -9 over PostgreSQL" if order.storage else "kill -9")
    _Campaign(order, tally).run()
    return tally


class _Campaign:
    def __init__(self, order: Order, tally: Tally) -> None:
        self._order = order
        self._tally = tally
        self._chance = random.Random(order.seed)
        self._expected = References(order.folder / "reference", order.seed)
        self._workspace = Workspace(order.folder / "workspace", order.folder / "var", order.seed, order.storage)
        self._seen: dict[tuple[Domain, GenerationId], State] = {}
        self._moments: list[tuple[datetime, GenerationId | None]] = []

    def run(self) -> None:
        """Kill, look, finish and compare, again and again."""
        tally, version, finished = self._tally, 0, 0
        self._workspace.write(0)
        seconds = self._finish(0, "the first sync")
        allowed = [self._expected[0]]  # what may be published: what was finished last, and what was begun after it
        while tally.runs["kills"] < self._order.runs and len(tally.trouble) <= self._order.runs:
            # After a rollback only a change is published: documents do not go back to what was published last.
            version = (version + (2 if (version + 1) % VERSIONS == finished else 1)) % VERSIONS
            self._workspace.write(version)
            allowed.append(self._expected[version])
            name = f"kill {tally.runs['kills'] + 1}"
            if step := self._kill_sync(self._chance.uniform(0, seconds)):
                tally.outcomes[f"in {step}"] += 1
                self._look(name, allowed)
                if self._chance.random() >= FINISHED:
                    continue
                seconds = (seconds + self._finish(version, f"after {name}")) / 2
            else:
                seconds *= 0.8
                self._compare(version, f"before {name}")
            allowed, finished = [self._expected[version]], version
            if self._chance.random() < ROLLED_BACK:
                allowed += self._kill_rollback(f"the rollback after {name}", allowed)
        version = (finished + 1) % VERSIONS
        self._workspace.write(version)
        self._finish(version, "the last sync")

    def _kill_sync(self, after_s: float) -> str:
        """Start a sync and kill it; return what it was at, empty when it had ended."""
        step = CONTEXT.Array("c", _STEP_BYTES)
        child = self._start("killed.txt", step, in_segments=True)
        place, chosen = "", self._chance.random()
        until(lambda: bool(_text(step)) or not child.is_running)
        if chosen < IN_BUILD:
            until(lambda: _text(step) == "build" or not child.is_running)
            time.sleep(self._chance.uniform(0, BUILD_S))
        elif chosen < IN_BUILD + AT_POINTER:
            place = self._until_pointer_moves(child)
        else:
            time.sleep(after_s)
        return self._counted(child, place or _text(step), "a sync")

    def _start(self, said: str, step: Any, *, in_segments: bool) -> CampaignChild:
        sync = _sync_by_dagster if self._chance.random() < BY_DAGSTER else _sync
        return CampaignChild(self._order.folder / said, sync, self._workspace.config, step, in_segments)

    def _kill_rollback(self, name: str, allowed: list[State]) -> list[State]:
        """Kill a rollback; return what may be published besides now."""
        store = store_of(self._workspace.settings, DOMAIN)
        older = store.generations()[:-1]
        child = command(self._order.folder / "rollback.txt", self._workspace.config, "rollback", DOMAIN.value)
        place = "a rollback"
        if self._chance.random() < 0.5 and older:
            place = self._until_pointer_moves(child)
        else:
            time.sleep(self._chance.uniform(0, ROLLBACK_S))
        was_killed = self._counted(child, place, name, may_fail=not older)
        self._tally.outcomes["in a rollback"] += bool(was_killed)
        back = [self._seen[DOMAIN, generation] for generation in older[-1:] if (DOMAIN, generation) in self._seen]
        self._look(name, [*allowed, *back])
        self._moments.append((datetime.now(UTC), store.current()))
        return back

    def _until_pointer_moves(self, child: CampaignChild) -> str:
        """Wait until another generation is published."""
        files = [store_of(self._workspace.settings, each).files for each in self._workspace.settings.served_domains]
        before = [each.current() for each in files]
        while child.is_running and before == [each.current() for each in files]:
            time.sleep(0.0005)
        return "moving the pointer"

    def _counted(self, child: CampaignChild, step: str, name: str, *, may_fail: bool = False) -> str:
        """Kill and count; what ended before by itself must have done its work, or says why not."""
        if ended := child.kill():
            self._tally.runs["ended before"] += 1
            if not may_fail:
                self._tally.ended_well(f"{name}, before it was killed,", ended)
            return ""
        self._tally.runs["kills"] += 1
        return step

    def _look(self, name: str, allowed: list[State], *, again: bool = False) -> None:
        """Compare what is published, and what kept generations have, if ``again`` all, with what they must have."""
        settings = self._workspace.settings
        for problem in between(settings, allowed):
            self._trouble(name, problem)
        for domain in settings.served_domains:
            for generation in store_of(settings, domain).generations():
                if (domain, generation) in self._seen and not again:
                    continue
                try:
                    state = state_of(settings, domain, generation)
                except StoreError as error:
                    self._trouble(name, str(error))
                    continue
                if self._seen.setdefault((domain, generation), state) != state:
                    self._trouble(name, f"{domain.value}: {generation} has not what it had")

    def _finish(self, version: int, name: str) -> float:
        """Sync to the end and compare; return how many seconds the sync took."""
        before, was = dict(self._manifests()), published_state(self._workspace.settings)
        started = time.monotonic()
        step = CONTEXT.Array("c", _STEP_BYTES)  # it is gone with the last reference to it, here
        child = self._start("sync.txt", step, in_segments=self._chance.random() < IN_SEGMENTS)
        self._tally.ended_well(f"{name}: sync", child.wait())
        seconds = time.monotonic() - started
        self._tally.runs["syncs to the end"] += 1
        self._compare(version, name)
        for domain, manifest in self._manifests():
            old = {segment.name for segment in before[domain].segments} if domain in before else set()
            written = sum(segment.documents for segment in manifest.segments if segment.name not in old)
            now, then = (of_domain(state, domain) for state in (self._expected[version], was))
            changed = sum(then.get(path) != digest for path, digest in now.items() if not path.endswith("/terms"))
            self._tally.outcomes["merges"] += bool(old) and written > changed
            self._tally.outcomes["manifests of several segments"] += len(manifest.segments) > 1
        return seconds

    def _manifests(self) -> Iterator[tuple[Domain, Manifest]]:
        for domain in self._workspace.settings.served_domains:
            files = store_of(self._workspace.settings, domain).files
            current = files.current()
            if current:
                yield domain, files.manifest(current)

    def _compare(self, version: int, name: str) -> None:
        settings = self._workspace.settings
        trouble = [*differences(published_state(settings), self._expected[version]), *disorder(settings)]
        for problem in trouble:
            self._trouble(name, problem)
        self._tally.outcomes["times equal to a first sync"] += not trouble
        self._look(name, [self._expected[version]], again=True)
        self._ask_as_of(name)
        self._moments.append((datetime.now(UTC), store_of(settings, DOMAIN).current()))

    def _ask_as_of(self, name: str) -> None:
        """Ask as of an earlier time of which the generation is kept: that one answers."""
        kept = store_of(self._workspace.settings, DOMAIN).generations()
        self._moments = [each for each in self._moments if each[1] in kept]
        if not self._moments or self._chance.random() >= AS_OF:
            return
        moment, generation = self._chance.choice(self._moments)
        asked = ("query", "the limit of anchor", "--as-of", moment.isoformat(), "--json")
        ended = command(self._order.folder / "query.txt", self._workspace.config, *asked).wait()
        if self._tally.ended_well(f"{name}: query as of {moment}", ended):
            answer = json.loads(next(line for line in ended.said.splitlines() if line.startswith("{")))
            self._tally.outcomes["answers as of earlier"] += 1
            if (found := answer["coverage"][DOMAIN.value]["generation"]) != generation:
                self._trouble(name, f"as of {moment} {generation} was published, {found} answered")

    def _trouble(self, name: str, problem: str) -> None:
        self._tally.trouble.append(f"{name}: {problem}")


def _text(step: Any) -> str:
    return bytes(step.value).decode()


def _sync(config: Path, step: Any, in_segments: bool) -> None:
    """Sync each domain by the recipe, saying in shared memory which step it is at."""
    from nornweave.ingest.ledger import refresh_ledger
    from nornweave.ingest.pipeline import run
    from nornweave.ingest.run_status import record_run
    from nornweave.ingest.wiring import domain_parts

    def at(name: str, _done: int, _total: int) -> None:
        step.value = name.encode()[: _STEP_BYTES - 1]

    settings = load_settings(config, {})
    step.value = b"start"
    with small_segments(smallest=0 if in_segments else 1_000):
        for domain in settings.served_domains:
            options = SyncOptions(confirm_deletes=True, run_id="campaign", wait_s=10)
            record_run(domain_folder(settings, domain), run(domain_parts(settings, domain), options, at))
        refresh_ledger(settings)


def _sync_by_dagster(config: Path, step: Any, in_segments: bool) -> None:
    """Do what the command does."""
    from orchestration.instance import open_instance
    from orchestration.runs import materialize

    def at(name: str, _done: int, _total: int) -> None:
        step.value = name.partition(" ")[2].encode()[: _STEP_BYTES - 1]

    settings = load_settings(config, {})
    step.value = b"start"
    with small_segments(smallest=0 if in_segments else 1_000), open_instance(settings) as instance:
        done = materialize(settings, settings.served_domains, SyncOptions(confirm_deletes=True), at, instance)
    if failed := [outcome for outcome in done.outcomes.values() if isinstance(outcome, str)]:
        raise SystemExit("; ".join(failed))
