"""How many recalls run at once, how many wait, and what the rest are told."""

import asyncio
import threading
import time

import anyio
import pytest
from api_support import client_of, is_problem
from scripted_engine import ScriptedAgent, ScriptedEngine
from starlette.types import Message, Receive, Scope, Send
from waiting import HANGS_S, SOON_S, WITHIN_S, until_async

from api.errors import ProblemError
from api.server.limits import MAX_BODY_BYTES, MAX_FILES_BYTES, Admission, BodyLimit, body_limit
from nornweave.config import Settings
from nornweave.core.process import cpu_count

RECALL = "/agents/code/recall"


async def test_no_more_run_at_once_than_have_their_turn() -> None:
    at_once = most = 0
    lock, three = threading.Lock(), threading.Barrier(3)

    def work() -> None:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        three.wait(WITHIN_S)
        with lock:
            at_once -= 1

    admission = Admission(running=3)
    await asyncio.gather(*(admission.run(work) for _ in range(30)))
    assert most == 3


async def test_by_default_as_many_run_as_there_are_cpus() -> None:
    assert Admission().running == cpu_count()


async def test_too_many_that_wait_are_told_to_come_back(
    settings: Settings, engine: ScriptedEngine, code: ScriptedAgent
) -> None:
    code.released, code.seconds = threading.Event(), HANGS_S
    beyond = 10
    async with client_of(settings, engine) as client:
        serving = client.app.state.serving  # type: ignore[attr-defined]
        most = serving.admission.running + serving.admission.waiting
        body = {"query_text": "x", "timeout_ms": 60_000}
        asked = [asyncio.create_task(client.post(RECALL, json=body)) for _ in range(most + beyond)]
        await until_async(lambda: sum(one.done() for one in asked) == beyond)
        code.released.set()
        answers = await asyncio.gather(*asked)
        for answer in answers:
            if answer.status_code != 200:
                assert is_problem(answer, 503)["type"].endswith(":busy")
                assert answer.headers["retry-after"] == "1"
        assert (await client.get("/health")).status_code == 200
        statuses = [answer.status_code for answer in answers]
    assert statuses.count(503) == beyond


async def test_a_refused_or_failed_recall_gives_its_place_back() -> None:
    admission = Admission(running=1, waiting=0)
    with pytest.raises(ZeroDivisionError):
        await admission.run(lambda: 1 / 0)
    release = threading.Event()
    task = asyncio.create_task(admission.run(lambda: release.wait(HANGS_S)))
    await until_async(lambda: admission.admitted)
    with pytest.raises(ProblemError, match="wait already"):
        await admission.run(lambda: None)
    release.set()
    assert await task
    assert await admission.run(lambda: 7) == 7
    assert (admission.admitted, admission.in_threads) == (0, 0)


def test_a_recall_whose_request_is_cancelled_does_not_hold_up_the_end() -> None:
    release = threading.Event()

    async def main() -> float:
        admission = Admission(running=1)
        task = asyncio.create_task(admission.run(lambda: release.wait(HANGS_S)))
        await until_async(lambda: admission.in_threads)
        started = time.monotonic()
        task.cancel()
        try:
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (admission.admitted, admission.in_threads) == (0, 1)
            return time.monotonic() - started
        finally:
            release.set()

    assert asyncio.run(main()) < SOON_S


def test_only_files_that_are_handed_in_may_be_large() -> None:
    paths = ("/fuse", "/agents/code/ingest", "/ingest", "/query", "/ingest/", "/agents/a/b/ingest", "/x/ingest")
    of_files = {path: body_limit(path, "Multipart/Form-Data; boundary=x") for path in paths}
    assert [path for path, limit in of_files.items() if limit == MAX_FILES_BYTES] == ["/agents/code/ingest", "/ingest"]
    assert {body_limit(path, kind) for path in paths for kind in ("", "application/json")} == {MAX_BODY_BYTES}


async def test_a_body_that_does_not_arrive_is_given_up() -> None:
    async def read(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()

    async def forever() -> Message:
        await asyncio.sleep(600)
        raise AssertionError

    scope = {"type": "http", "method": "POST", "path": "/fuse", "headers": []}
    with pytest.raises(ProblemError) as caught:
        await BodyLimit(read, within_s=0.05)(scope, forever, lambda _: None)  # type: ignore[arg-type]
    assert (caught.value.status_code, caught.value.headers) == (408, {"Connection": "close"})


async def test_whatever_runs_is_counted(settings: Settings, engine: ScriptedEngine) -> None:
    async with client_of(settings, engine) as client:
        serving = client.app.state.serving  # type: ignore[attr-defined]
        release = threading.Event()
        gates = (serving.admission, serving.questions, serving.fusions, serving.writing, serving.lookups)
        tasks = [asyncio.create_task(gate.run(lambda: release.wait(HANGS_S))) for gate in gates]
        await until_async(lambda: serving.in_threads == len(gates))
        release.set()
        await asyncio.gather(*tasks)
        assert serving.in_threads == 0


async def test_cancelled_work_that_still_runs_is_bounded() -> None:
    """Who calls and cancels again and again gets no more threads than twice those of who waits."""
    released = threading.Event()
    gate = Admission(running=2, waiting=8)
    for number in range(4):
        with anyio.move_on_after(30) as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(gate.run, released.wait)
                while gate.in_threads <= number:
                    await asyncio.sleep(0.01)
                scope.cancel()
    assert (gate.admitted, gate.in_threads) == (0, 4)
    with pytest.raises(ProblemError, match="cancelled ones among them") as refused:
        await gate.run(released.wait)
    assert refused.value.status_code == 503
    released.set()
    while gate.in_threads:
        await asyncio.sleep(0.01)
    assert await gate.run(lambda: "again") == "again"
