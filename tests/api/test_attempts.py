"""Many wrong tokens of one address: the next are not compared, and nobody else is kept waiting."""

import asyncio

from api_support import client_of, is_problem
from scripted_engine import ScriptedEngine

from api.access.door import MAX_ADDRESSES, MAX_FAILURES, WINDOW_S, Attempts
from nornweave.config import Settings

TOKEN = "a-token-of-32-characters-or-more-x"


def test_an_address_may_send_a_number_of_wrong_tokens_a_minute() -> None:
    clock = [0.0]
    attempts = Attempts(lambda: clock[0])
    for _ in range(MAX_FAILURES):
        assert attempts.may_try("a", "wrong")
        attempts.note("a", "wrong", is_right=False)
    assert not attempts.may_try("a", "another")
    assert attempts.may_try("", "another"), "only this address"
    clock[0] += WINDOW_S
    assert attempts.may_try("a", "another")


def test_a_token_that_was_right_is_always_compared() -> None:
    attempts = Attempts()
    attempts.note("a", "right", is_right=True)
    for _ in range(MAX_FAILURES):
        attempts.note("a", "wrong", is_right=False)
    assert attempts.may_try("a", "right") and not attempts.may_try("a", "wrong")


def test_a_bounded_number_of_addresses_is_remembered() -> None:
    attempts = Attempts()
    for number in range(MAX_ADDRESSES + 10):
        attempts.note(str(number), "wrong", is_right=False)
    assert len(attempts._failures) == MAX_ADDRESSES


def test_guessing_is_refused_and_who_has_the_token_goes_on(settings: Settings, engine: ScriptedEngine) -> None:
    asyncio.run(guess(settings, engine))


async def guess(settings: Settings, engine: ScriptedEngine) -> None:
    async with client_of(settings, engine, environment={"NORNWEAVE_SERVICE_TOKEN": TOKEN}) as client:
        right = {"authorization": f"Bearer {TOKEN}"}
        assert (await client.get("/agents", headers=right)).status_code == 200
        answers = [
            await client.get("/agents", headers={"authorization": f"Bearer guess-{number}"})
            for number in range(MAX_FAILURES + 5)
        ]
        assert [answer.status_code for answer in answers] == [401] * MAX_FAILURES + [429] * 5
        assert answers[-1].headers["retry-after"] == "60"
        assert (await client.get("/agents", headers=right)).status_code == 200
        form = {"content-type": "application/x-www-form-urlencoded"}
        is_problem(await client.post("/login", content="token=guess&next=/", headers=form), 429)
        assert (await client.get("/agents")).status_code == 401, "no token is no guess"
