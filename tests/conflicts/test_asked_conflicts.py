"""Two passages that answer a question differently are a conflict, by the kind that is asked for, in any words."""

import pytest
from test_assertions import code, passage, talk

from nornweave.disagree.assertions.alike import SentenceEncoder
from nornweave.disagree.assertions.answers import read_answers
from nornweave.disagree.assertions.asked import read_question
from nornweave.disagree.assertions.pairing import find_contradictions
from nornweave.disagree.conflicts import DEMOTE_FROM

MANIFEST = passage('[project]\nname = "gate"\nrequires-python = ">=3.12"\n', "code", "gate/pyproject.toml")


@pytest.mark.parametrize(
    ("question", "one", "other"),
    [
        ("how long is a reserved bike kept?", "A reserved bike goes back to the rack after 15 minutes.",
         talk("we let go of reserved bikes after 25 minutes now")),
        ("how often do we grease the chain?", "The chain gets its grease every 2 weeks.",
         talk("we grease the chain every 5 weeks, it is enough")),
        ("where does the summer fair take place?", "The summer fair takes place in the Maple hall.",
         talk("the summer fair takes place on the lawn, the hall is too hot")),
        ("where are tiles written?", "Tiles are written to /mnt/disk/tiles.", code('TILE_DIR = "/srv/tiles"\n')),
        ("who is the contact person for keys?", "Contact person for keys: Ulla Varn.",
         talk("for keys please go to Bert Holm from now on")),
        ("who may borrow the cargo bike?", "Everybody may borrow the cargo bike.",
         talk("only people with a helmet may borrow the cargo bike")),
        ("is night mode enabled by default?", "Night mode is enabled by default.",
         code("    night_mode: bool = False\n")),
        ("can riders pay with Zugo?", "Riders can pay by card or with Zugo.",
         talk("we dropped Zugo from the gate last week, it is gone for good")),
        ("when is the rehearsal?", "The rehearsal is on Monday 4 May.", talk("the rehearsal is on Wednesday 6 May")),
        ("when is the rehearsal?", "The rehearsal is on 4 May.", talk("the rehearsal is on Wednesday, May 6")),
        ("which Python version does the gate need?", "The gate runs on Python 3.8.", MANIFEST),
        ("when does the mill grind?", "The mill grinds at 10:00.", talk("from tomorrow the mill grinds at 11:30")),
        ("when is the rehearsal?", "The rehearsal is on 4 May.", talk("this year the rehearsal is on 6 May")),
        ("when does the lido open?", "The lido opens at 07:00 from May to August.",
         talk("the lido opens at 09:00 from May to September")),
        ("from when is milk weighed?", "Milk is weighed from 05:15.", talk("milk is weighed from 06:45")),
        ("when do they take goods?", "They take goods from 6 am.", talk("they take goods from 7:30")),
        ("how much does a canoe cost?", "A canoe costs 6.50 pounds.", talk("a canoe costs 7.25 pounds")),
        ("how much does a sledge cost?", "A sledge costs 2.80 euros.", talk("a sledge costs 3.10 euros")),
        ("what is the loft's air temperature?", "| what | value |\n|---|---|\n| loft air temperature | 19 °C |\n",
         code("loft_air_temperature_c: 16\n", "loft")),
        ("how many trays fit the drier?", "| what | trays |\n|---|---|\n| drier trays | 14 |\n",
         talk("the drier takes 18 trays")),
        ("what does a group day pass cost?", "A group day pass costs £31.",
         talk("from 1 May a group day pass costs £36")),
        ("what is the wait at a lock set to?", "The wait at a lock is set to 9 with 3 boats.",
         talk("the wait at a lock is set to 12 with 3 boats")),
        ("how many oars does rack 1 hold?", "Rack 1 holds 8 oars.", talk("rack one holds 14 oars")),
        ("how often is the slip swept?", "The slip is swept weekly.", talk("the slip is swept every evening")),
        ("how often is the slip swept?", "The slip is swept once a month.", talk("the slip is swept every Monday")),
    ],
)  # fmt: skip
def test_what_is_asked_for_is_compared_in_any_words(question: str, one: str, other: object) -> None:
    (found,) = find_contradictions([passage(one), other], question=question)  # type: ignore[list-item]
    assert found.confidence < DEMOTE_FROM
    assert find_contradictions([passage(one), other], question="what does a ticket cost?") == []  # type: ignore[list-item]


APART = [
    ("how many riders does the small ferry seat?", "The small ferry seats 6 riders.",
     "the big ferry seats 24 riders"),
    ("how long can a tram wait?", "Trams wait for 20 minutes.", "in Graz trams wait for 5 minutes"),
    ("how long can a tram wait?", "Trams wait for 20 minutes.", "trams of the night line wait for 5 minutes"),
    ("how many times is a failed mail sent?", "A failed mail is sent 5 times.", "a failed letter is sent twice"),
    ("how often do trams report?", "Trams report every 5 minutes.", "the trams of this report ran for 14 months"),
    ("who runs the course on bells?", "The course on bells is run by Ulla Varn.",
     "Bert Holm gives a talk at the course on bells"),
    ("which team looks after the map?", "The map is in the care of the Rails team.",
     "at Farex the map is in the care of the Harbour team"),
    ("are old rides archived?", "Old rides are archived at night.", "pinned old rides are not archived"),
    ("may riders ring at a quiet stop?", "Riders may ring at a quiet stop.", "riders may not ring in a depot"),
    ("when are reports due?", "Reports are due by 5 May.", "better hand in your reports by 1 May"),
    ("does it support Windows?", "On Windows, the old tool may work better.",
     "don't bother telling it to support windows"),
    ("who may read the log?", "Everybody may read the log.", "anybody may read the log"),
    ("when is the rehearsal?", "The rehearsal is on Monday 4 May.", "the rehearsal is on Monday"),
    ("when is the rehearsal?", "The rehearsal is on Monday, May 4.", "the rehearsal is on 4 May"),
    ("how long can a tram wait?", "Trams wait for between 10 and 14 minutes.", "trams wait for 12 minutes"),
    ("when does the mill grind?", "The mill grinds at 10:00.", "just for today the mill grinds at 11:30"),
    ("when does the mill grind?", "The mill grinds at 10:00.", "tomorrow, with low wind, the mill grinds at 11:30"),
    ("when does the mill grind?", "The mill grinds at 10:00.", "next Sunday the mill grinds at 11:30"),
    ("when does the mill grind?", "The mill grinds at 10:00.", "on 6 May only, the mill grinds at 11:30"),
    ("when does the lido open?", "The lido opens at 07:00 from May to August.",
     "the lido opens at 09:00 from September to April"),
    ("when does the lido open?", "In summer the lido opens at 07:00.", "the lido opens at 09:00 from October to March"),
    ("how many oars does rack one hold?", "Rack one holds 8 oars.", "in rack two there is room for 14 oars"),
    ("how many oars does long rack 1 hold?", "Long rack 1 holds 8 oars.", "long rack two has room for 14 oars"),
    ("when is milk weighed?", "Milk is weighed from 05:15.", "milk is weighed until 19:00"),
    ("how often is the slip swept?", "The slip is swept daily.", "the slip is swept every evening"),
    ("where are the rules?", "The rules are in `/etc/gate/rules`.", "the rules are in `gate/rules`"),
]  # fmt: skip
"""Questions, sentences of a page and of a thread: of a part, of another thing, or with the same value."""


@pytest.mark.parametrize(("question", "one", "other"), APART)
def test_what_is_of_a_part_or_of_another_thing_is_no_conflict(question: str, one: str, other: str) -> None:
    assert find_contradictions([passage(one), talk(other)], question=question) == []


@pytest.mark.parametrize(
    ("sentence", "setting", "conflicts"),
    [("10 % of all rides are sampled.", "0.1", 0), ("10 % of all rides are sampled.", "0.25", 1),
     ("All rides are sampled 3 times.", "0.1", 0)],
)  # fmt: skip
def test_a_number_below_one_in_a_program_is_a_share(sentence: str, setting: str, conflicts: int) -> None:
    passages = [passage(sentence), code(f"RIDE_SAMPLING = {setting}\n")]
    assert len(find_contradictions(passages, question="how many of the rides are sampled?")) == conflicts


@pytest.mark.parametrize(("question", "sentence", "setting"), [
    ("which Hydro version do I need?", "Upgrade to at least version 2.1.7 and Hydro to 2.0+.",
     "HYDRO_LOST_EXIT_CODE = 62\n"),
    ("how do I stop the night lamp?", "A reset stops all night lamps of a tram.", "stop_night_lamps = false\n"),
    ("a slow restart or a hot one", "Slow restarts swap all bells of a tram.", "in_slow_restart = false\n"),
])  # fmt: skip
def test_a_line_of_a_program_answers_only_what_it_is_asked_for(
    question: str, sentence: str, setting: str, encode: SentenceEncoder
) -> None:
    assert find_contradictions([passage(sentence), code(setting)], question=question, encode=encode) == []


def test_a_changelog_answers_nothing_of_today() -> None:
    old = passage("Night mode is disabled by default.", path="CHANGELOG.md")
    pair = [old, code("night_mode: bool = True\n")]
    assert find_contradictions(pair, question="is night mode enabled by default?") == []


def test_a_corpus_lists_what_people_set_otherwise(encode: SentenceEncoder) -> None:
    pair = [passage("Maps are drawn every 15 minutes."), talk("maps are drawn every 40 minutes")]
    assert [each.confidence < DEMOTE_FROM for each in find_contradictions(pair, encode=encode)] == [True]
    assert find_contradictions([pair[0], talk("the bell plan is printed every 40 minutes")], encode=encode) == []


def test_what_a_page_tells_its_readers_to_set_is_no_value_of_the_code(encode: SentenceEncoder) -> None:
    passages = [passage("Set your read timeout to 35 seconds."), code("NETWORK_READ_TIMEOUT_SECONDS = 30\n")]
    asked = "how long is the read timeout?"
    assert find_contradictions(passages, encode=encode) == find_contradictions(passages, question=asked) == []


@pytest.mark.parametrize("sentence", [", /srv/gate/map", "(/srv/gate/map)", "so /srv/gate/map"])
def test_a_sentence_that_begins_within_a_clause_is_read(sentence: str) -> None:
    asked = read_question("where are the rules?")
    (found,) = read_answers(sentence, 0, "conversations", "", asked, frozenset())
    assert found.assertion.values == {"srv/gate/map"}
