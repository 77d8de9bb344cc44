"""Which address is asked next, how its latency is estimated, and when a second one is asked beside it."""

import random
from collections import Counter

import pytest
from waiting import Clock

from nornweave.ask.agents.replicas import ENOUGH, FAILURES, Latencies, Replica, choose


def _replicas(*latencies_s: float) -> list[Replica]:
    made = [Replica(f"http://10.0.0.{number}", Clock(0)) for number in range(len(latencies_s))]
    for replica, latency_s in zip(made, latencies_s, strict=True):
        replica.took(latency_s)
    return made


def test_a_latency_rises_at_once_falls_by_a_quarter_and_halves_in_ten_seconds() -> None:
    clock = Clock(0)
    replica = Replica("http://10.0.0.1", clock)
    replica.took(0.1)
    assert replica.cost == pytest.approx(0.101)
    replica.took(0.5)
    assert replica.cost == pytest.approx(0.501)
    replica.took(0.1)  # 0.5 - 0.25 x 0.4
    assert replica.cost == pytest.approx(0.401)
    clock.now = 10.0
    assert replica.cost == pytest.approx(0.201)
    replica.outstanding = 2
    assert replica.cost == pytest.approx(0.603)


def test_of_two_random_addresses_the_one_that_costs_less_is_asked() -> None:
    best, middle, worst = _replicas(0.01, 0.02, 0.03)
    rng = random.Random(7)
    drawn = Counter(choose([worst, middle, best], (), rng) for _ in range(3_000))
    assert drawn[worst] == 0  # it loses against either
    assert drawn[best] / 3_000 == pytest.approx(2 / 3, abs=0.03)
    assert drawn[middle] / 3_000 == pytest.approx(1 / 3, abs=0.03)


def test_a_quick_address_with_many_open_requests_is_passed_over() -> None:
    quick, slow = _replicas(0.01, 0.05)
    assert choose([quick, slow], (), random.Random(1)) is quick
    quick.outstanding = 6
    assert choose([quick, slow], (), random.Random(1)) is slow


def test_an_address_that_was_tried_or_is_left_alone_is_not_asked() -> None:
    first, second = _replicas(0.01, 0.05)
    assert choose([first, second], [first], random.Random(1)) is second
    for _ in range(FAILURES):
        second.breaker.fail("no answer")
    assert choose([first, second], [first], random.Random(1)) is None
    assert choose([first, second], (), random.Random(1)) is first


def test_a_slow_address_is_tried_again_when_its_latency_has_decayed() -> None:
    clock = Clock(0)
    usual, was_slow = Replica("http://10.0.0.1", clock), Replica("http://10.0.0.2", clock)
    was_slow.took(10.0)
    for _ in range(12):  # ten seconds halve it: 10 s are below 5 ms after eleven halvings
        usual.took(0.005)
        clock.now += 10.0
    usual.took(0.005)
    assert choose([usual, was_slow], (), random.Random(1)) is was_slow


def test_a_second_request_is_sent_after_the_95th_percentile_of_the_last_128() -> None:
    latencies = Latencies()
    for number in range(1, ENOUGH):
        latencies.add(number / 1000)
    assert latencies.p95_s is None
    assert latencies.hedge_after_s == 0.5
    for number in range(ENOUGH, 101):
        latencies.add(number / 1000)
    assert latencies.p95_s == latencies.hedge_after_s == 0.095
    for _ in range(128):
        latencies.add(0.001)
    assert latencies.p95_s == 0.001
    assert latencies.hedge_after_s == 0.005  # never sooner
