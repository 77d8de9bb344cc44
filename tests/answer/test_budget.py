"""The context budget: ``min_score → diversity → top_k → max_tokens``."""

from collections import Counter
from dataclasses import dataclass
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st
from questions import question_of
from ranked_items import identify, ranked

from nornweave.ask.answer.context_budget import USEFUL_TOKENS, diversified, estimate_tokens, fit, with_quoted
from nornweave.ask.answer.snippet import MARK
from nornweave.ask.fuse.records import ExtractedSentence, FusedItem
from nornweave.core.types import ChunkId, Span

QUERY = "what is the retry limit"
SENTENCE = "The retry limit of a webhook is five attempts. "
FILLER = "Herons stand in shallow water and wait for fish. "


def within(items: list[FusedItem], **limits: Any) -> tuple[FusedItem, ...]:
    return fit(items, question_of(QUERY, **limits))


def long_text(sentences: int, answer_at: int) -> str:
    return "".join(SENTENCE if place == answer_at else FILLER for place in range(sentences))


def tokens_of(items: tuple[FusedItem, ...]) -> int:
    return sum(estimate_tokens(item.content) for item in items)


def test_tokens_are_a_quarter_of_the_characters_rounded_up() -> None:
    assert [estimate_tokens("x" * length) for length in (0, 1, 4, 5, 400)] == [0, 1, 1, 2, 100]


def test_without_limits_everything_stays_whole_in_its_order() -> None:
    items = [ranked("a", "one", score=0.9), ranked("b", "two", score=0.5), ranked("c", "three", score=0.4)]
    assert within(items) == tuple(items)


def test_items_below_the_minimum_are_dropped() -> None:
    items = [ranked("a", "x", score=0.9), ranked("b", "x", score=0.3), ranked("c", "x", score=0.29)]
    budgeted = within(items, min_score=0.3)
    assert identify(budgeted) == ["a", "b"]


def test_a_demoted_item_stays_among_the_first_so_that_its_conflict_is_shown() -> None:
    items = [
        ranked("a", "x", score=0.9),
        ranked("b", "x", score=0.8),
        ranked("c", "x", score=0.7),
        ranked("demoted", "x", score=0.6, demoted=True, penalty=0.25, conflict=0),  # 0.85 without its demotion
        ranked("also demoted", "x", score=0.5, demoted=True, penalty=0.1, conflict=1),  # 0.6: too low in any case
    ]
    assert identify(within(items, top_k=3)) == ["a", "b", "demoted"]
    assert identify(within(items, top_k=3, diversity=0.2)) == ["a", "b", "demoted"]
    assert identify(within(items, top_k=4)) == ["a", "b", "c", "demoted"]


def test_a_demoted_item_does_not_take_the_place_of_the_side_that_holds() -> None:
    items = [
        ranked("holds", "x", score=0.8, conflict=0),
        ranked("demoted", "x", score=0.7, demoted=True, penalty=0.3, conflict=0),
    ]
    assert identify(within(items, top_k=1)) == ["holds"]


def test_diversity_by_hand() -> None:
    items = [
        ranked("c1", "x", domain="code", score=0.80),
        ranked("c2", "x", domain="code", score=0.76),
        ranked("c3", "x", domain="code", score=0.75),
        ranked("d1", "x", domain="documentation", score=0.64),
    ]
    # second: c2 = .8 · .95 + .2 / 2 = .860, d1 = .8 · .80 + .2 = .840
    # third: c3 = .8 · .9375 + .2 / 3 = .817, d1 = .840
    assert identify(within(items, diversity=0.2)) == ["c1", "c2", "d1", "c3"]
    assert identify(within(items, diversity=0.0)) == ["c1", "c2", "c3", "d1"]
    assert identify(within(items, diversity=1.0)) == ["c1", "d1", "c2", "c3"]


def test_a_second_domain_takes_the_last_place_if_its_score_does_not() -> None:
    items = [ranked(f"c{place}", "x", score=0.9) for place in range(5)]
    items += [ranked("d1", "x", domain="documentation", score=0.02), ranked("r1", "x", domain="research", score=0.01)]
    assert identify(within(items, diversity=0.05, top_k=3)) == ["c0", "c1", "d1"]
    assert identify(within(items, diversity=0.05, top_k=1)) == ["c0"]
    assert identify(within(items, diversity=0.0, top_k=3)) == ["c0", "c1", "c2"]


def test_a_second_domain_gets_tokens_before_the_rest_of_the_first() -> None:
    items = [ranked(f"c{place}", long_text(20, 10), score=0.9) for place in range(6)]
    items += [ranked("d", long_text(20, 3), domain="documentation", score=0.1)]
    kept = within(items, diversity=0.2, max_tokens=120, top_k=7)
    assert {item.domain for item in kept} == {"code", "documentation"}
    assert identify(kept)[0] == "c0"


def test_an_item_that_is_too_long_is_shortened_to_what_answers() -> None:
    budgeted = within([ranked("a", long_text(40, 30))], max_tokens=60)
    (item,) = budgeted
    assert item.shortened
    assert SENTENCE.strip() in item.content
    assert MARK in item.content
    assert estimate_tokens(item.content) <= 60


def test_a_long_item_leaves_room_for_those_who_wait() -> None:
    budgeted = within(
        [ranked("long", long_text(80, 40)), ranked("short", SENTENCE), ranked("next", SENTENCE)], max_tokens=300
    )
    assert identify(budgeted) == ["long", "short", "next"]
    assert [item.shortened for item in budgeted] == [True, False, False]
    # The short ones need 12 each and leave the rest to the long one: 300 - 24 = 276, and a sentence is 12.
    assert 300 - 2 * 12 <= tokens_of(budgeted) <= 300


def test_shares_are_no_smaller_than_a_paragraph_as_long_as_that_leaves_half() -> None:
    budgeted = within([ranked(f"i{place}", long_text(40, place)) for place in range(10)], max_tokens=1000)
    tokens = [estimate_tokens(item.content) for item in budgeted]
    assert 6 <= len(tokens) < 10  # about 1000 / 160, instead of ten scraps of 100 each
    assert all(140 <= one <= 160 for one in tokens[:5])


def test_what_does_not_fit_is_passed_over_and_what_is_smaller_still_comes() -> None:
    items = [ranked("a", "x" * 396), ranked("blob", "QmFzZTY0" * 100), ranked("c", "tiny")]
    budgeted = within(items, max_tokens=101)
    assert identify(budgeted) == ["a", "c"]
    assert tokens_of(budgeted) == 100


def test_tokens_kept_for_an_item_that_cannot_use_them_go_to_the_others() -> None:
    budgeted = within([ranked("a", long_text(30, 5)), ranked("blob", "QmFzZTY0" * 500)], max_tokens=400)
    assert [(item.chunk_id, item.shortened) for item in budgeted] == [("a", False)]


def test_the_best_item_comes_even_if_only_a_few_words_fit() -> None:
    (item,) = within([ranked("a", long_text(40, 30))], max_tokens=10)
    assert 0 < estimate_tokens(item.content) <= 10
    assert within([ranked("a", long_text(40, 30))], max_tokens=1) == ()


def test_an_item_that_just_fits_is_not_touched() -> None:
    budgeted = within([ranked("a", "x" * 400), ranked("b", "y" * 400)], max_tokens=200)
    assert not any(item.shortened for item in budgeted)
    assert tokens_of(budgeted) == 200


def test_code_is_shortened_by_lines() -> None:
    body = "".join(f"    step_{number}()\n" for number in range(80))
    code = f"def handle(error):\n{body}    retry(limit=5)\n{body}"
    (item,) = within([ranked("a", code)], max_tokens=60)
    lines = item.content.splitlines()
    assert lines[0] == "def handle(error):"
    assert "    retry(limit=5)" in lines
    assert all(line == MARK or line in code.splitlines() for line in lines)


CONTENTS = st.one_of(
    st.builds(long_text, st.integers(0, 30), st.integers(0, 30)),
    st.sampled_from(["", "x", "QmFzZTY0" * 60, "日本語。" * 90, "def f():\n" + "    pass\n" * 90, "wort " * 200]),
)


@st.composite
def rankings(draw: st.DrawFn) -> list[FusedItem]:
    scores = sorted(draw(st.lists(st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.5, 0.9, 1.0]), max_size=14)), reverse=True)
    domains = st.sampled_from(["code", "documentation", "conversations", "news"])
    return [
        ranked(f"i{place}", draw(CONTENTS), domain=draw(domains), score=score) for place, score in enumerate(scores)
    ]


LIMITS = st.one_of(st.none(), st.integers(0, 700))
PARTS = st.one_of(st.none(), st.sampled_from([0.0, 0.2, 0.5, 1.0]))


@given(rankings(), st.integers(1, 12), LIMITS, PARTS, PARTS)
def test_the_budget_is_never_exceeded_and_nothing_is_invented(
    items: list[FusedItem], top_k: int, max_tokens: int | None, min_score: float | None, diversity: float | None
) -> None:
    budgeted = within(items, top_k=top_k, max_tokens=max_tokens, min_score=min_score, diversity=diversity)
    given_items = {str(item.chunk_id): item for item in items}
    names = identify(budgeted)
    assert len(names) == len(set(names)) <= top_k
    assert max_tokens is None or tokens_of(budgeted) <= max_tokens
    assert all(item.score >= (min_score or 0) for item in budgeted)
    for item in budgeted:
        source = given_items[item.chunk_id]
        assert item.item is source.item
        assert item.score >= (min_score or 0)
        assert item.shortened == (item.content != source.item.content)
        assert not item.shortened or len(item.content) < len(source.item.content)
    for domain in {item.domain for item in budgeted}:
        places = [int(name[1:]) for name in names if given_items[name].domain == domain]
        assert places == sorted(places)
    if not diversity:
        assert [int(name[1:]) for name in names] == sorted(int(name[1:]) for name in names)


@given(rankings(), st.integers(2, 12), st.sampled_from([0.01, 0.2, 0.5, 1.0]), st.integers(2 * USEFUL_TOKENS, 700))
def test_two_domains_among_the_candidates_are_two_domains_in_the_answer(
    items: list[FusedItem], top_k: int, diversity: float, max_tokens: int
) -> None:
    items = [item for item in items if "QmFz" not in item.content]  # of which no part can be shown
    budgeted = within(items, top_k=top_k, diversity=diversity)
    at_least = min(2, len({item.domain for item in items}))
    assert len({item.domain for item in budgeted}) >= at_least
    assert not items or budgeted[0].item is items[0].item
    tight = within(items, top_k=top_k, diversity=diversity, max_tokens=max_tokens)
    assert len({item.domain for item in tight}) >= at_least


@given(rankings(), st.integers(1, 12), st.integers(1, 12))
def test_fewer_items_are_the_first_of_more_without_diversity(items: list[FusedItem], few: int, more: int) -> None:
    low, high = sorted([few, more])
    assert within(items, top_k=low) == within(items, top_k=high)[:low]


def test_diversity_over_very_many_domains_does_not_weigh_every_domain_for_each_place() -> None:
    weighed: Counter[str] = Counter()

    @dataclass(frozen=True)
    class OfOwnDomain:
        place: int

        @property
        def domain(self) -> str:
            weighed["domains"] += 1
            return f"d{self.place}"

        @property
        def score(self) -> float:
            weighed["scores"] += 1
            return 1 - self.place / 20_000

    items = cast(list[FusedItem], [OfOwnDomain(place) for place in range(1_600)])
    assert diversified(items, 400, 0.2) == items[:400]
    assert max(weighed.values()) <= 3 * len(items)


def test_a_shortened_item_shows_the_sentence_that_is_quoted_of_it() -> None:
    quoted = "After that the delivery is put aside."
    text = f"{SENTENCE * 20}{FILLER * 20}{quoted} {FILLER * 20}"
    (cut,) = within([ranked("a", text, domain="documentation")], max_tokens=120)
    assert quoted not in cut.content
    at = Span(text.index(quoted), text.index(quoted) + len(quoted))
    (shown,) = with_quoted([cut], [ExtractedSentence(ChunkId("a"), quoted, at)], QUERY)
    assert quoted in shown.content
    assert tokens_of((shown,)) <= 120
    assert with_quoted([cut], [], QUERY) == (cut,)
