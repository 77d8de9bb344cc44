"""Agents of this process take turns in one thread, and one that hangs costs the others nothing."""

import math
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import pytest
from waiting import HANGS_S, until

from nornweave.ask.search.lanes import AgentKey, Lanes
from nornweave.core.types import Domain

STRANGERS = ("vault", "shelf", "attic")


@pytest.fixture
def lanes() -> Iterator[Lanes]:
    with lanes_with(math.inf) as lanes:
        yield lanes


@pytest.fixture
def hasty() -> Iterator[Lanes]:
    """Give agents elsewhere nearly no time after the others."""
    with lanes_with(0.05) as lanes:
        yield lanes


@contextmanager
def lanes_with(budget_s: float) -> Iterator[Lanes]:
    with ExitStack() as stack:

        def pool(name: str) -> ThreadPoolExecutor:
            return stack.enter_context(ThreadPoolExecutor(2, thread_name_prefix=name))

        own: dict[AgentKey, Executor] = {domain: pool(domain.value) for domain in Domain}
        own |= {(Domain.CODE, name): pool(name) for name in STRANGERS}
        yield Lanes(own.__getitem__, lambda: pool("shared"), budget_s)


def names(lanes: Lanes, *places: AgentKey, timeout_s: float | None = None) -> dict[AgentKey, str]:
    """Run a task that says which threads it is in, for each place; return what has ended."""
    task: Callable[[], str] = lambda: threading.current_thread().name.partition("_")[0]  # noqa: E731
    futures = lanes.run(dict.fromkeys(places, task), timeout_s)
    return {place: future.result() for place, future in futures.items() if future.done()}


def test_agents_here_take_turns_and_those_elsewhere_have_threads_of_their_own(lanes: Lanes) -> None:
    places: list[AgentKey] = [*Domain, (Domain.CODE, "vault")]
    assert names(lanes, *places) == {
        **dict.fromkeys(Domain, "shared"),
        (Domain.CODE, "vault"): "vault",
    }


def test_one_that_hangs_keeps_its_own_threads_until_it_is_quick_again(lanes: Lanes) -> None:
    go = threading.Event()

    def hang() -> str:
        assert go.wait(HANGS_S)
        return "went on"

    try:
        futures = lanes.run({Domain.CODE: hang, Domain.DOCUMENTATION: lambda: "fine"}, timeout_s=2)
        assert futures[Domain.DOCUMENTATION].result() == "fine"
        assert not futures[Domain.CODE].done()
        others = [Domain.DOCUMENTATION, Domain.RESEARCH]
        assert names(lanes, Domain.CODE, *others, timeout_s=60) == {
            Domain.CODE: "code",
            **dict.fromkeys(others, "shared"),
        }
    finally:
        go.set()
    until(futures[Domain.CODE].done)
    until(lambda: names(lanes, Domain.CODE) == {Domain.CODE: "shared"})


def test_an_error_is_that_agents_alone(lanes: Lanes) -> None:
    def fail() -> str:
        raise ValueError("broken")

    futures = lanes.run({Domain.CODE: fail, Domain.DOCUMENTATION: lambda: "fine"})
    assert isinstance(futures[Domain.CODE].exception(), ValueError)
    assert futures[Domain.DOCUMENTATION].result() == "fine"


@pytest.mark.parametrize(("here", "quick"), [
    (Domain.DOCUMENTATION, 1),  # all that are here have answered
    (None, 2),  # nobody is here: half of the others have
])  # fmt: skip
def test_once_there_is_a_quorum_strangers_have_their_budget(hasty: Lanes, here: Domain | None, quick: int) -> None:
    go = threading.Event()
    tasks: dict[AgentKey, Callable[[], object]] = {
        (Domain.CODE, name): (lambda: "fine") if number < quick else (lambda: go.wait(HANGS_S))
        for number, name in enumerate(STRANGERS)
    }
    try:
        futures = hasty.run(tasks if here is None else {here: lambda: "fine", **tasks})
        assert not futures[Domain.CODE, "attic"].done()  # and it is not waited for until it has
    finally:
        go.set()


def test_a_stranger_that_is_asked_alone_is_waited_for(hasty: Lanes) -> None:
    task = lambda: threading.Event().wait(0.5)  # noqa: E731 - ten times its budget
    assert hasty.run({(Domain.CODE, "vault"): task})[Domain.CODE, "vault"].result(0) is False


def test_an_agent_here_is_waited_for_as_before(hasty: Lanes) -> None:
    slow = lambda: threading.Event().wait(0.5)  # noqa: E731
    futures = hasty.run({Domain.CODE: slow, (Domain.CODE, "vault"): lambda: True})
    assert futures[Domain.CODE].result(0) is False
