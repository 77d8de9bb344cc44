"""Sentences that say one thing in other words are compared: the bundled model tells which are alike."""

import pytest
from ranked_items import ranked
from test_asked_conflicts import APART
from test_assertions import code, passage, talk

from nornweave.ask.fuse.conflict_resolution import find_disagreements
from nornweave.core.errors import EncoderError
from nornweave.disagree.assertions.alike import SentenceEncoder
from nornweave.disagree.assertions.pairing import find_contradictions
from nornweave.disagree.assertions.passage import AssertingPassage

pytestmark = pytest.mark.slow


TOLD = [
    ("how much time has a learner to hand back skates?", "Rented skates come back within two hours.",
     talk("from this winter rented skates have to be back after 90 minutes")),
    ("which day does the band load in?", "The band's sound check is on Friday 3 July, the concert a day later.",
     talk("the band's sound check moved to Thursday 2 July")),
    ("can one still sail to the island?", "The island ferry is out of service.",
     talk("the island ferry is sailing again since Easter")),
    ("is the steam room usable?", "The steam room is closed for repairs.",
     talk("the steam room is back in use, a bit damp but warm")),
    ("whom do I ask about a jammed loom?", "Greta Moss looks after the looms, so ask her if one jams.",
     talk("from Monday Idris looks after the looms, if one jams bother him")),
    ("till when can one swim in the evening?", "The pool closes at 18:00 on weekdays.",
     talk("on weekdays the pool now closes at 7 pm, not earlier")),
    ("who is permitted to open the vault?", "Only curators may open the vault.",
     talk("new rule for the vault: anyone on the night watch can open it")),
    ("where do the evening copies of the seat plan go?",
     "Each evening a copy of the seat plan is written to /mnt/desk/plans.",
     code("SEAT_PLAN_COPY_DIR=/srv/attic/plans\n")),
]  # fmt: skip


@pytest.mark.parametrize(("question", "one", "other"), TOLD)
def test_the_words_of_the_question_need_not_stand_in_both(
    question: str, one: str, other: AssertingPassage, encode: SentenceEncoder
) -> None:
    (found,) = find_contradictions([passage(one), other], question=question, encode=encode)
    assert {found.first.fact.statement, found.second.fact.statement} == {one, other.text.strip()}


@pytest.mark.parametrize(("question", "one", "other"), APART)
def test_alike_is_not_the_same_thing(question: str, one: str, other: str, encode: SentenceEncoder) -> None:
    assert find_contradictions([passage(one), talk(other)], question=question, encode=encode) == []


@pytest.mark.parametrize(
    ("question", "one", "other"),
    [
        ("how many fit in a ranked match?", "A ranked match holds eight players.", "CASUAL_MATCH_SIZE = 16\n"),
        ("how heavy may a parcel be?", "A parcel weighs no more than 18 kg.", "MAX_PARCEL_GRAMS = 18000\n"),
        ("what is the fee for a mooring?", "The fee for a mooring is £890.", "Mooring Two takes 110 minutes to clear"),
        (
            "how many hours can a porter hold a cart?",
            "A porter can hold a cart for 48 hours.",
            "PORTER_REMINDER_HOURS = 24\n",
        ),
        ("how much is the deposit?", "The deposit is £150 for a tram.", "BELL_DEPOSIT_POUNDS = 40\n"),
        ("how long does the press run?", "The press runs for 90 minutes.", "an hour and a half in the press is plenty"),
        ("how long does the glue set?", "The glue sets for 150 minutes.", "the glue sets for two hours and a half"),
    ],
)
def test_numbers_are_compared_if_they_count_one_thing(
    question: str, one: str, other: str, encode: SentenceEncoder
) -> None:
    second = code(other) if "=" in other else talk(other)
    assert find_contradictions([passage(one), second], question=question, encode=encode) == []


@pytest.mark.parametrize(
    ("said", "count"),
    [
        ("as of today dripping oars are hung up in the rack to dry", 1),
        ("maybe dripping oars are hung up in the rack to dry from now on", 0),
        ("just for today dripping oars are hung up in the rack to dry instead", 0),
        ("dripping oars are hung up in the rack to dry instead tomorrow", 0),
        ("dripping oars were hung up in the rack to dry until now", 0),
    ],
)
def test_who_announces_a_change_says_something_else_than_a_page_in_any_words(
    said: str, count: int, encode: SentenceEncoder
) -> None:
    page = passage("To dry them, everybody leans wet oars against the wall of the shed.")
    asked = "where do I leave wet oars?"
    assert len(find_contradictions([page, talk(said)], question=asked, encode=encode)) == count


def test_what_was_not_asked_about_is_not_shown(encode: SentenceEncoder) -> None:
    question, one, other = TOLD[0]
    beside = [passage("Lessons are held on the small rink every morning.", path="lessons.md")]
    assert find_contradictions([passage(one), other, *beside], question=question, encode=encode)
    assert not find_contradictions([passage(one), other, *beside], question="where are lessons held?", encode=encode)


@pytest.mark.parametrize(
    ("question", "answer"),
    [("what is the drier's inlet temperature?", "The inlet temperature of the drier is 70 °C."),
     ("how hot is the water in the dye vat?", "The dye vat's water is 60 degrees hot.")],
)  # fmt: skip
def test_what_another_sentence_answers_is_not_shown_of_another_thing(
    question: str, answer: str, encode: SentenceEncoder
) -> None:
    apart = [passage("The outlet temperature of the kiln is 300 °C."), code("kiln_outlet_temperature_c: 280\n")]
    assert find_contradictions(apart, question="what is the kiln's outlet temperature?", encode=encode)
    assert not find_contradictions([*apart, passage(answer, path="a.md")], question=question, encode=encode)


def test_the_sentences_of_the_most_relevant_passages_are_compared_first(encode: SentenceEncoder) -> None:
    """Of all pairs only a few are compared; the passages of an answer come in the order of their domains."""
    question, one, other = TOLD[1]
    noise = [ranked(f"c{n}", f"# The band plays its sound check number {n} in hall {n}.\nrun()\n", score=0.1)
             for n in range(8)]  # fmt: skip
    talked = ranked("t", other.text, domain="conversations", score=0.8)
    page = ranked("d", one, domain="documentation", score=0.9)
    (found,) = find_disagreements([*noise, talked, page], question, encode)
    assert (found.first, found.second) == (len(noise), len(noise) + 1)


def test_a_corpus_lists_what_is_alike_and_only_that(encode: SentenceEncoder) -> None:
    pages = [passage(one, path=f"{number}.md") for number, (_, one, _) in enumerate(TOLD[:4])]
    assert len(find_contradictions([*pages, *(other for *_, other in TOLD[:4])], encode=encode)) >= 3
    template = code('# Mail\n"""The following event has been deleted."""\n')
    feature = passage("Supports events, todos and business cards.")
    assert find_contradictions([template, feature], encode=encode) == []


def test_a_model_that_fails_leaves_the_comparison_by_words() -> None:
    def fail(texts: object) -> object:
        raise EncoderError("no model")

    question, one, other = TOLD[0]
    assert find_contradictions([passage(one), other], question=question, encode=fail) == []  # type: ignore[arg-type]
    words = [passage("The `pool` keeps 10 connections."), talk("The pool keeps 20 connections.")]
    asked = "how many connections does the pool keep?"
    assert find_contradictions(words, question=asked, encode=fail)  # type: ignore[arg-type]
