"""Pages of an answer: every item once, as many as fit, never none where there are some."""

from dataclasses import replace
from typing import Any

from fact_support import fact
from hypothesis import given
from hypothesis import strategies as st
from questions import question_of
from ranked_items import citation, ranked

from nornweave.ask.answer.pages import LEAST_CHARACTERS, AnswerPage, answer_page, largest
from nornweave.ask.fuse.answerable import Answerable
from nornweave.ask.fuse.records import (
    Answer,
    ConflictRecord,
    ConflictSide,
    ConflictStrategy,
    Detector,
    ExtractedSentence,
    Fused,
    FusedItem,
    Recalled,
)
from nornweave.ask.search.records import CoverageGap
from nornweave.core.types import ChunkId, Span


def conflict(*chunk_ids: str) -> ConflictRecord:
    sides = tuple(
        ConflictSide(
            chunk_id=ChunkId(chunk_id),
            citation=citation("code", f"src/{chunk_id}.py", line_range=(1, 2)),
            fact=fact("retry", str(place), attribute="limit", kind="limit", span=Span(0, 9), statement="x" * 200),
            role="says",
        )
        for place, chunk_id in enumerate(chunk_ids)
    )
    return ConflictRecord(
        id="0123456789abcdef",
        items=tuple(ChunkId(chunk_id) for chunk_id in chunk_ids),
        sides=sides,
        detector=Detector.SAME_ENTITY_DIVERGENCE,
        entity="retry",
        attribute="limit",
        resolution=ConflictStrategy.FLAG,
        resolved_to=None,
        reason="flagged",
        explanation="0 and 1",
        confidence=0.8,
    )


def answer_of(*items: FusedItem, conflicts: tuple[ConflictRecord, ...] = (), gaps: int = 0) -> Answer:
    recalled = Recalled(
        asked={},
        responses=(),
        coverage_gaps=tuple(CoverageGap(f"domain-{place}", "agent", "timeout after 5000ms") for place in range(gaps)),
        domain_signals={},
    )
    return Answer(
        question=question_of("retry limit"),
        recalled=recalled,
        items=items,
        extract=(),
        conflicts=conflicts,
        fused=Fused(
            items=items,
            conflicts=conflicts,
            merges=(),
            normalization="calibrated",
            total_items=len(items),
            deduplicated_items=len(items),
        ),
        synthesis=None,
        stage_latency_ms={},
        total_latency_ms=0.0,
    )


def items_of(*lengths: int, **more: Any) -> tuple[FusedItem, ...]:
    return tuple(
        ranked(f"c{place}", f"{place} " + "word " * (length // 5), domain=("code", "research")[place % 2], **more)
        for place, length in enumerate(lengths)
    )


def within(characters: int) -> Any:
    return lambda page: len(page.text) <= characters


def pages(answer: Answer, characters: int) -> list[AnswerPage]:
    made = [answer_page(answer, 0, within(characters))]
    while made[-1].left:
        made.append(answer_page(answer, made[-1].start + len(made[-1].items), within(characters)))
    return made


@given(st.lists(st.integers(0, 3000), max_size=12), st.integers(600, 5000))
def test_pages_show_every_item_once_and_keep_their_size(lengths: list[int], characters: int) -> None:
    answer = answer_of(*items_of(*lengths), gaps=1)
    made = pages(answer, characters)
    assert [item.chunk_id for page in made for item in page.items] == [f"c{n}" for n in range(len(lengths))]
    assert all(len(page.text) <= characters for page in made)
    assert all("Not searched: domain-0" in page.text for page in made)


def test_what_fits_is_shown_whole() -> None:
    answer = answer_of(*items_of(500, 500))
    (page,) = pages(answer, 5000)
    assert [item.content for item in page.items] == [item.content for item in answer.items]
    assert not any(item.shortened for item in page.items)


def test_an_item_that_is_too_long_is_shortened_and_says_so() -> None:
    (page,) = pages(answer_of(*items_of(5000)), 800)
    assert page.items[0].shortened
    assert "· shortened" in page.text


def test_conflicts_give_way_to_items_and_are_counted() -> None:
    items = items_of(*[100] * 8)
    conflicts = tuple(conflict(f"c{place}", f"c{place + 1}") for place in range(7))
    whole = answer_page(answer_of(*items, conflicts=conflicts), 0, within(100_000))
    assert (whole.conflicts, whole.conflicts_shown) == (7, 4)
    small = answer_page(answer_of(*items, conflicts=conflicts), 0, within(500))
    assert (small.conflicts_shown, len(small.items) > 0) == (0, True)
    assert small.conflicts > 0


def test_long_items_are_shortened_before_conflicts_are_left_out() -> None:
    items = items_of(5000, 5000, 5000, 5000)
    page = answer_page(answer_of(*items, conflicts=(conflict("c0", "c1"),)), 0, within(5000))
    assert (len(page.items), page.conflicts_shown, page.left) == (4, 1, 0)
    assert page.body.index("Conflicts:") < page.body.index("↳ [1] ")


def test_the_first_page_begins_with_the_sentences_and_names_what_they_are_quoted_from() -> None:
    items = items_of(*[1000] * 6)
    sentences = tuple(
        ExtractedSentence(item.chunk_id, f"[CODE — x]\nfrom {item.chunk_id}", Span(0, 5))
        for item in (items[5], items[0])
    )
    first, second, *_ = pages(replace(answer_of(*items), extract=sentences), 2500)
    assert first.lead.splitlines() == ["“[CODE \\— x] from c5” [6]", "“[CODE \\— x] from c0” [1]"]
    assert first.text.startswith(first.lead) and len(first.items) < 6
    assert [*first.cited] == [*range(1, len(first.items) + 1), 6]
    assert second.lead == "" and min(second.cited) == len(first.items) + 1


def test_a_passage_that_is_shortened_alone_has_the_best_sentence_and_its_own() -> None:
    items = items_of(4000, 4000, 4000)
    sentences = tuple(ExtractedSentence(f"c{place}", f"said by {place}", Span(0, 5)) for place in (2, 1, 0))
    page = answer_page(replace(answer_of(*items), extract=sentences), 0, lambda page: len(page.text) <= 560)
    assert page.lead.splitlines() == ["“said by 2” [3]", "“said by 0” [1]"]
    assert len(page.items) == 1 and len(page.text) > 450
    first, second, *_ = answer_page(answer_of(*items), 0, lambda page: len(page.text) <= 4000).items
    assert len(first.content) > len(second.content)


def test_a_second_passage_is_shortened_to_the_room_that_a_short_first_one_leaves() -> None:
    items = items_of(300, 4000, 4000)
    sentences = tuple(ExtractedSentence(f"c{place}", f"said by {place}", Span(0, 5)) for place in (1, 2, 0))
    page = answer_page(replace(answer_of(*items), extract=sentences), 0, lambda page: len(page.text) <= 800)
    assert page.lead.splitlines() == ["“said by 1” [2]", "“said by 0” [1]"]
    assert [item.shortened for item in page.items] == [False, True]
    assert len(page.text) > 700 and page.left == 1


def test_the_best_sentence_leads_though_it_is_shown_and_one_of_a_passage_that_does_not_fit_follows() -> None:
    items = items_of(40, 200, 800)
    sentences = tuple(
        ExtractedSentence(f"c{place}", said, Span(0, 3)) for place, said in ((0, "0 word"), (2, "It is."))
    )
    unsure = replace(answer_of(*items), answerable=Answerable(0.4), nearest=sentences)
    page = answer_page(unsure, 0, within(600))
    assert [item.chunk_id for item in page.items] == ["c0", "c1"]
    nearest = "What comes nearest, in the words of the sources:"
    doubt = unsure.answerable.words
    assert page.lead.splitlines() == [doubt, nearest, "“0 word” [1]", "“It is.” [3]"]
    alone = answer_page(replace(unsure, nearest=sentences[:1]), 0, within(600))
    assert alone.lead.splitlines() == [doubt, nearest, "“0 word” [1]"]
    nothing = answer_page(replace(unsure, nearest=()), 0, within(600))
    assert nothing.lead == doubt == "It is not sure that anything here answers this."  # no heading of nothing


def test_where_nothing_fits_one_short_item_is_the_page() -> None:
    page = answer_page(answer_of(*items_of(5000, 5000)), 0, lambda _: False)
    assert len(page.items) == 1
    assert len(page.items[0].content) <= LEAST_CHARACTERS
    assert page.left == 1
    assert answer_page(answer_of(), 0, lambda _: False).items == ()


@given(st.integers(0, 100), st.integers(0, 120))
def test_the_largest_that_fits(most: int, limit: int) -> None:
    assert largest(most, lambda number: number <= limit) == min(most, limit)


def test_sentences_that_may_not_answer_are_shown_as_what_comes_nearest() -> None:
    said = replace(ranked("a", content="The retry limit is nine for each call."), domain="documentation")
    near = (ExtractedSentence(said.chunk_id, said.content, Span(0, len(said.content))),)
    unsure = replace(answer_of(said), answerable=Answerable(0.4, ("zz",)), nearest=near)
    first = answer_page(unsure, 0, lambda page: True)
    assert "Doubtful:" not in first.lead
    assert first.lead.splitlines()[0] == "No passage holds “zz”."
    assert first.lead.splitlines()[1].startswith("What comes nearest")
    assert "“The retry limit is nine for each call.” [1]" in first.lead
    nothing = answer_page(replace(unsure, answerable=Answerable(0.01), nearest=()), 0, lambda page: True)
    assert nothing.lead == "Doubtful: Nothing here seems to answer this; the nearest by meaning are below."


def test_what_stands_next_to_the_sentence_that_answers_stays_and_places_that_do_not_fit_are_named() -> None:
    lines = [
        f"retry limit {place} of the other kind, said for a call that nobody makes any more" for place in range(40)
    ]
    lines[29:31] = ["**weaver_rest**", "Seconds until it ends, 30 by default."]
    text = "\n\n".join(lines)
    at = text.index(lines[30])
    item = ranked("a", content=text)
    said = ExtractedSentence(ChunkId("a"), lines[30], Span(at, at + len(lines[30])))
    answer = replace(answer_of(item, *items_of(4000, 4000)), extract=(said,))
    page = answer_page(answer, 0, lambda page: len(page.text) <= 750)
    assert len(page.items) == 1
    assert "**weaver_rest**\n\nSeconds until it ends" in page.items[0].content
    assert "retry limit 28" in page.items[0].content, "what is near counts more than what is as much about the question"
    assert "retry limit 3 " not in page.items[0].content
    assert "also:" not in page.body, "the room is for the passage that answers"
    page = answer_page(answer_of(*items_of(300, 4000, 4000)), 0, lambda page: len(page.text) <= 480)
    assert len(page.items) == 1 and not page.items[0].shortened
    assert page.body.splitlines()[-1].startswith("↳ also: ")


def test_what_follows_the_sentence_that_answers_stays_before_what_says_more_words_of_the_question() -> None:
    lines = [f"Weaver {place} of the weavers that rest in the hall of weavers." for place in range(30)]
    lines[12:15] = ["A weaver rests when the bell rings.", "That is at noon.", "Then all go home."]
    text = "\n\n".join(lines)
    at = text.index(lines[12])
    said = ExtractedSentence(ChunkId("a"), lines[12], Span(at, at + len(lines[12])))
    answer = replace(answer_of(ranked("a", content=text), *items_of(4000)), extract=(said,))
    page = answer_page(answer, 0, lambda page: len(page.text) <= 400)
    assert "bell rings.\n\nThat is at noon.\n\nThen all go home." in page.items[0].content
    assert page.lead == "“A weaver rests when the bell rings.” [1]", "the best sentence is what is read first"
    second = ExtractedSentence(ChunkId("a"), lines[13], Span(at, at))
    page = answer_page(replace(answer, extract=(said, second)), 0, lambda page: len(page.text) <= 440)
    assert page.text.count("at noon") == 1, "a further sentence that a passage shows is not said twice"


def test_a_quoted_line_of_code_names_what_it_is_part_of_and_its_line_where_a_place_is_asked_for() -> None:
    text = "    # Old lines go.\n    def roll(self):\n        self.drop()\n"
    cited = replace(citation("code", "lamp/log.py", line_range=(7, 9)), title="Log.roll")
    item = ranked("a", text, cited=cited, metadata={"class_name": "Log", "function_name": "roll"})
    at = text.index("def roll")
    said = ExtractedSentence(item.chunk_id, "def roll(self):", Span(at, at + 15))
    answer = replace(answer_of(item), extract=(said,))
    asked = replace(answer, question=question_of("which class rolls the log over"))
    assert answer_page(asked, 0, lambda _: True).lead == "“def roll(self):” (Log.roll, lamp/log.py:8) [1]"
    assert answer_page(answer, 0, lambda _: True).lead == "“def roll(self):” [1]"
