"""What every feed of an API keeps, whatever its product; ``feed_cases`` has the table."""

import random
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from corruption import corrupted
from feed_cases import CASES, FeedCase
from feed_refusals import REFUSALS, SECRETS
from hypothesis import given, settings
from hypothesis import strategies as st
from interruptions import list_interrupted

from lab.apis import STAND_INS
from lab.apis.server import Reply, Request, serving
from nornweave.connect.mirror.api_client import Limits
from nornweave.core.errors import ConfigError, DocumentError, SourceUnavailableError

every_case = pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
AT_ONCE = Limits(attempts=1, backoff_s=0, max_wait_s=0)


def for_seeds(examples: int, check: Callable[[random.Random], None]) -> None:
    """Check a property for choices of many seeds; the one that fails is printed."""

    @settings(max_examples=examples, deadline=None, database=None)
    @given(seed=st.integers(0, 2**32))
    def run(seed: int) -> None:
        check(random.Random(seed))

    run()


@every_case
def test_whatever_happens_between_and_within_passes_nothing_is_lost_or_doubled(
    case: FeedCase, tmp_path_factory: pytest.TempPathFactory
) -> None:
    def check(choose: random.Random) -> None:
        server = case.start(choose)
        meanwhile = lambda: case.changes_meanwhile and choose.random() < 0.3 and case.change(server, choose)  # noqa: E731
        with serving(server):
            source = case.source(server, tmp_path_factory.mktemp("mirror"))
            for _ in range(choose.randint(1, 4)):
                for _ in range(choose.randint(1, case.busy)):
                    case.change(server, choose)
                list_interrupted(
                    source.source, server, choose, faults=case.faults, within=case.within, meanwhile=meanwhile
                )
            source.a_day_later()
            source.list()  # ends a pass that was interrupted
            source.a_day_later()
            assert source.said() == case.expected(server)

    for_seeds(case.examples[0], check)


@every_case
def test_what_the_api_tells_of_is_seen_by_the_next_pass(
    case: FeedCase, tmp_path_factory: pytest.TempPathFactory
) -> None:
    def check(choose: random.Random) -> None:
        server = case.start(choose)
        with serving(server):
            source = case.source(server, tmp_path_factory.mktemp("mirror"))
            for _ in range(3):
                for _ in range(choose.randint(0, case.busy)):
                    case.change_seen_at_once(server, choose)
                assert source.said() == case.expected(server)
                case.later(server, choose)

    for_seeds(case.examples[1], check)


@pytest.mark.parametrize("is_deleted", [False, True], ids=["changed", "deleted"])
@pytest.mark.parametrize("name", CASES)
def test_what_changes_or_goes_at_the_source_is_seen_by_the_next_pass_or_its_bound_says_when(
    name: str, is_deleted: bool, tmp_path: Path
) -> None:
    case = CASES[name]
    server = case.start(random.Random(0))
    for _ in range(2):
        case.fill(server)
    with serving(server):
        source, asked_anew = case.source(server, tmp_path / "a"), case.source(server, tmp_path / "b")
        assert source.said() == asked_anew.said() == case.expected(server)
        case.age(server)
        before = source.said()
        assert asked_anew.said() == before == case.expected(server)
        happens = case.delete if is_deleted else case.edit
        if happens is None:
            assert "stay" in source.bound
            return
        happens(server)
        asked_anew.source.list_everything_again()
        now = asked_anew.said()
        assert now == case.expected(server) != before
        is_late = source.said() == before
        assert is_late == case.late
        if is_late:
            assert "at most 24 h" in source.bound
            source.a_day_later()
        assert source.said() == now


@every_case
def test_what_the_api_confirmed_last_is_told_of_every_document(case: FeedCase, tmp_path: Path) -> None:
    server = case.start(random.Random(0))
    case.fill(server)
    with serving(server):
        source = case.source(server, tmp_path)
        began = source.clock
        first = source.list()
        assert first.listed_at is not None
        assert all(each.verified_at and each.verified_at > at(began) for each in first.entries)
        server.before = lambda _: server.faults.append(Reply(b"", 500))
        listed = source.list()
        assert listed.problem
        assert (listed.listed_at, listed.entries) == (first.listed_at, first.entries)
        server.before = lambda _: None
        server.faults.clear()
        source.a_day_later()
        began = source.clock
        again = source.list()
        assert again.listed_at == at(began + 0.001)
        assert all(each.verified_at and each.verified_at > at(began) for each in again.entries)


def at(moment: float) -> datetime:
    return datetime.fromtimestamp(moment, UTC)


@every_case
def test_whatever_comes_back_the_source_is_unavailable_or_its_documents_are(
    case: FeedCase, tmp_path_factory: pytest.TempPathFactory
) -> None:
    def check(choose: random.Random) -> None:
        server = case.start(choose)
        case.fill(server)
        sound: Callable[[Any], Reply] = server.handle
        server.handle = lambda request: corrupted(sound(request), choose) if choose.random() < 0.4 else sound(request)
        with serving(server):
            source = case.source(server, tmp_path_factory.mktemp("mirror"), limits=AT_ONCE)
            for _ in range(2):
                try:
                    listing = source.list()
                except SourceUnavailableError:
                    continue
                for entry in listing.entries:
                    try:
                        source.document(entry)
                    except DocumentError:
                        continue

    for_seeds(40, check)


@every_case
def test_what_passes_is_tried_again(case: FeedCase, tmp_path_factory: pytest.TempPathFactory) -> None:
    for faults in case.passing:
        server = case.start(random.Random(0))
        case.fill(server)
        server.faults.extend(faults)
        with serving(server):
            assert case.source(server, tmp_path_factory.mktemp("mirror")).said() == case.expected(server) != {}


@pytest.mark.parametrize("name", CASES)
def test_wrong_settings_are_refused_before_anything_is_sent(name: str) -> None:
    for options in CASES[name].wrong:
        with pytest.raises(ConfigError) as caught:
            STAND_INS[name].feed(STAND_INS[name].settings("https://api.example.org", **options))
        assert not [secret for secret in _secrets(options) if secret in str(caught.value)]


def _secrets(options: Mapping[str, Any]) -> list[str]:
    given = [options.get("token") or "", *(["pw"] if "pw@" in str(options.get("api_url")) else [])]
    return [secret for secret in given if len(secret) > 1]


@every_case
def test_many_documents_are_read_in_pages_and_the_next_pass_reads_what_changed(
    case: FeedCase, tmp_path_factory: pytest.TempPathFactory
) -> None:
    server, documents = case.large()
    with serving(server):
        source = case.source(server, tmp_path_factory.mktemp("mirror"))
        assert len(source.gates()) == documents
        first = len(server.requests)
        if case.settles:
            source.gates()
        server.requests.clear()
        if hasattr(server, "hours"):
            server.hours += 24
        gates = source.gates()
        small = len(server.requests)
        assert small <= case.share * first
        case.edit(server)
        server.requests.clear()
        after = source.gates()
        assert sum(gates[path] != after[path] for path in gates) == 1
        assert len(server.requests) <= small + 2, "what changed is read, and nothing else"


@pytest.mark.parametrize(
    ("name", "reply", "said"), [(name, reply, said) for name, table in REFUSALS.items() for reply, said in table]
)
def test_a_refusal_or_nonsense_is_said_with_what_to_do_and_deletes_nothing(
    name: str, reply: Reply, said: str, tmp_path: Path
) -> None:
    case, secret = CASES[name], SECRETS.get(name, "no secret")
    server = case.start(random.Random(0))
    case.fill(server)
    with serving(server):
        source = case.source(server, tmp_path / "read")
        before = source.gates()
        source.a_day_later()
        server.before = partial(_refuse, server, reply, at=case.refuses_at)
        listing = source.list()
        assert said in (listing.problem or "")
        assert secret not in (listing.problem or "")
        assert {entry.path: entry.gate for entry in listing.entries} == before
        server.faults.clear()
        with pytest.raises(SourceUnavailableError, match=re.escape(said)) as caught:
            case.source(server, tmp_path / "fresh").list()
    error: BaseException | None = caught.value
    while error is not None:
        assert secret not in f"{error}{error!r}"
        error = error.__cause__


def _refuse(server: Any, reply: Reply, request: Request, *, at: str) -> None:
    if request.path.endswith(at):
        server.faults.append(reply)
