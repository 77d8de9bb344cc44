"""Sentences of two domains contradict each other if they are about one thing and hold something else of it."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nornweave.disagree.assertions.alike import SentenceEncoder
from nornweave.disagree.assertions.pairing import find_contradictions
from nornweave.disagree.assertions.passage import AssertingPassage
from nornweave.disagree.conflicts.records import Detector, detector_of


def passage(text: str, domain: str = "documentation", path: str = "page.md", **fields: Any) -> AssertingPassage:
    return AssertingPassage(text=text, domain=domain, source_id="s", path=path, place=path, **fields)


def code(text: str, title: str | None = None) -> AssertingPassage:
    return passage(text, "code", "src/service.py", title=title)


def talk(text: str) -> AssertingPassage:
    """Return a message as a Slack export has it: the day stands in the title."""
    return passage(text, "conversations", "general/2026-01-20.json", title="#general 2026-01-20")


SAYS = passage("The gateway supports OAuth.")


@pytest.mark.parametrize(
    ("one", "other", "detector"),
    [
        (SAYS, talk("ann: The gateway does not support OAuth."), Detector.NEGATION),
        (SAYS, talk("The gateway no longer supports OAuth; use tokens"), Detector.NEGATION),
        (
            passage("A value below zero bypasses the `pool_check`."),
            talk("A value below zero doesn't bypass the pool_check."),
            Detector.NEGATION,
        ),
        (
            passage("Checkout v2 was deployed on Wednesday."),
            talk("Checkout v2 shipped Monday."),
            Detector.TEMPORAL_CONTRADICTION,
        ),
        (
            passage("The `ledger_v4` migration was released on 2026-01-12."),
            talk("The ledger_v4 migration was released January 14, 2026."),
            Detector.TEMPORAL_CONTRADICTION,
        ),
        (
            passage("The `pool` keeps 10 connections."),
            talk("The pool keeps 20 connections."),
            Detector.SAME_ENTITY_DIVERGENCE,
        ),
        (
            passage("The `pool` keeps 10 connections.", section="Stand-up 2026-02-02"),
            talk("The pool keeps 20 connections."),
            Detector.SAME_ENTITY_DIVERGENCE,
        ),
        (
            passage("The export service listens on port 7070."),
            talk("ann: The export service listens on port 7171"),
            Detector.SAME_ENTITY_DIVERGENCE,
        ),
        (
            passage("Session cookies expire after 12 hours."),
            talk("Session cookies expire after 8 hours."),
            Detector.SAME_ENTITY_DIVERGENCE,
        ),
    ],
)
def test_what_contradicts(
    one: AssertingPassage, other: AssertingPassage, detector: Detector, encode: SentenceEncoder
) -> None:
    (found,) = find_contradictions([one, other], encode=encode)
    assert detector_of(found) is detector
    assert find_contradictions([other, one], encode=encode) == [found]
    for side, given in (
        ((found.first, one), (found.second, other))
        if found.first.path == one.path
        else ((found.first, other), (found.second, one))
    ):
        assert given.text[side.fact.span.start : side.fact.span.end].split() == side.fact.statement.split()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (SAYS, passage("The gateway does not support OAuth.", path="other.md")),  # one domain: its own affair
        (SAYS, talk("The gateway supports OAuth.")),
        (SAYS, talk("The gateway does not support SAML.")),
        (SAYS, talk("The client does not support OAuth.")),
        (SAYS, talk("Does the gateway not support OAuth?")),
        (SAYS, talk("If the gateway does not support OAuth, tell me.")),
        (SAYS, talk("The gateway previously did not support OAuth.")),
        (SAYS, talk("The gateway may not support OAuth.")),
        (SAYS, talk("The gateway does not support OAuth. The gateway supports OAuth.")),  # says both
        (passage("## Available Tools"), code("# Disabled Tools\n")),  # which tools, not that they are
        (passage("Features are enabled/disabled."), code("# Features are disabled.\n")),
        (passage("Returns 200 OK.", section="Refund"), code("# Returns 201 Created.\n", "create_payment")),
        (passage("Returns 200 OK.", section="Pay"), code('"""Returns 404 Not Found."""', "pay")),  # on another occasion
        (passage("Returns 200 OK or 201 Created.", section="Pay"), code('"""Returns 201 Created."""', "pay")),
        (passage("Checkout v2 shipped Monday."), talk("Checkout v3 shipped Wednesday.")),
        (passage("Checkout v2 shipped on Monday."), talk("Checkout v2 shipped on 2026-01-12.")),  # may be a Monday
        (passage("```\nOAuth is supported\n```"), talk("OAuth is not supported")),  # code says what code says
    ],
)
def test_what_does_not_contradict(one: AssertingPassage, other: AssertingPassage, encode: SentenceEncoder) -> None:
    assert find_contradictions([one, other], encode=encode) == []


@pytest.mark.parametrize(("question", "one", "other"), [
    ("when does the tram museum close?", "The tram museum will close on 3 June.",
     "tram museum closes on the 5th of June"),
    ("how many trams may a depot hold?", "A depot may hold up to 14 trams.", "# Trams\nMAX_TRAMS_PER_DEPOT = 9\n"),
    ("how long is a shift?", "Shifts last an hour.", "# Shifts of drivers.\nSHIFT_LENGTH_MINUTES = 45\n"),
    ("how many doors may open a second?", "The public gate opens 90 doors a minute.",
     "# Doors that the public gate opens.\nDOOR_RATE_PER_MINUTE = 70\n"),
    ("how often is the track cleaned?", "The track is cleaned every fifteen days.", "track is cleaned every 9 days"),
    ("are seat lamps on by default?", "Seat lamps are off until a driver presses the key.",
     "# Seat lamps.\nSEAT_LAMPS_ENABLED = True\n"),
    ("what is the delay budget?", "A delay budget of ten per cent of the rides is kept.", "DELAY_BUDGET_RATIO = 0.2\n"),
    ("is the bridge survey finished?", "The bridge survey is finished.", "bridge survey is still open, sorry"),
    ("who sells tickets?", "Tickets go through Zugo.", "we process all tickets with Farex, so call them"),
    ("can a ride be cancelled?", "A ride can still be cancelled, as long as the tram has not left.",
     "a ride can no longer be cancelled"),
    ("where are spare wheels kept?", "Spare wheels are kept in the old hall, in Graz.",
     "spare wheels are kept in Linz, counted the last four this morning"),
    ("how long is a shift?", "A shift lasts three weeks.", "for the record a shift is 14 days, I keep explaining that"),
    ("are e-mail notices on by default?", "E-mail notices are off until a rider asks.",
     "EMAIL_NOTICES_ENABLED = True\n"),
    ("is the a11y survey finished?", "The accessibility survey is finished, and all is well.",
     "a11y survey is still open"),
    ("is Hydro 9 supported?", "Trams with Hydro 9 are supported.", "right? no: Hydro 9 is not supported, tell her"),
    ("what does the timetable run on?", "The timetable runs on MariaDB 11, with two replicas.",
     "timetable is on Maria 12 since the weekend, went better than the last time"),
    ("who is shift manager in May?", "The shift manager for May is Ulla.", "Bert is shift manager in May"),
    ("are seat lamps on by default?", "Seat lamps are opt-in.", "the default of seat lamps is ON now"),
    ("are seat lamps on by default?", "Seat lamps are enabled out of the box.", "seat lamps are off by default"),
    ("is the bell on?", "The bell is mandatory on trams.", "the bell is switched off on trams"),
    ("does the gate take coins?", "The gate accepts coins.", "coins are gone from the gate"),
    ("how long before noon does check-in close?", "Check-in closes 20 minutes before noon.",
     "check-in closes 30 minutes before noon"),
    ("which Hydro do trams need?", "Trams need Hydro 9 or newer.", "trams need at least Hydro 11"),
    ("what does the gate answer when a ticket is void?", "When a ticket is void, the gate returns 403.",
     "a void ticket comes back as 404 from the gate"),
    ("who looks after the bell?", "The bell is run by the Office of Works.", "anything about the bell: ask Ulla"),
    ("who looks after the bell?", "Questions about the bell go to Bert.", "talk to Ulla about the bell"),
    ("who has the wash hall?", "The wash hall belongs to team Harbour.", "wash hall moved over to team Rails"),
    ("must riders ring?", "Riders must ring before a stop.", "riders do not have to ring before a stop anymore"),
    ("can maps be exported as SVG?", "Maps can be exported as SVG.", "the SVG export of maps has been retired"),
    ("which Hydro is the tram built with?", "The tram is built with Hydro 4.2.", "the tram builds on Hydro 5.1"),
    ("which Hydro do trams run?", "Trams run Hydro 4.2.", "trams are already on Hydro 5.1"),
    ("when does the Graz line open?", "The Graz line opens on 3 June.", "Graz line opens 10 June"),
    ("who may open the wash hall?", "Only drivers may open the wash hall.", "riders may open the wash hall as well"),
    ("who may open the wash hall?", "Riders may open the wash hall.", "riders may not open the wash hall"),
    ("who can open the wash hall?", "Only drivers can open the wash hall.", "trainees can open the wash hall now"),
    ("who may ring the bell?", "Trainees are allowed to ring the bell.", "only drivers may ring the bell"),
    ("who owns the ticket shop?", "The Harbour team owns the ticket shop.", "the Rails team owns the ticket shop"),
    ("which Hydro do trams get?", "Trams get version 4.2 of Hydro.", "trams get version 5.1 of Hydro"),
    ("are roof lamps on?", "Roof lamps are active at all depots.", "roof lamps are disabled everywhere"),
    ("are roof lamps on?", "Roof lamps are enabled.", "heads up: roof lamps are disabled everywhere at the moment"),
    ("does the gate answer maps?", "The gate supports maps.", "maps were taken out of the gate"),
    ("what is the pause of the brake?", "The pause of the brake is 18 minutes.", "BRAKE_PAUSE_MIN = 25\n"),
    ("after how long does the fan stop?", "The fan stops after 90 seconds.", "FAN_TIMEOUT_S = 140\n"),
    ("what does a day ticket cost?", "A day ticket costs 8 euros.", "day_ticket = 11\n"),
    ("by when do we renew the lease?", "The renewal of the lease has to be in by 30 September.",
     "the renewal of the lease must be in by the end of August"),
    ("may trainees drive alone?", "Trainees must not drive without a tutor.", "trainees drive without a tutor"),
    ("when are tickets counted?", "Tickets are counted in the first week of January.",
     "tickets are counted in the last week of June"),
    ("when is the well cleaned?", "The well is cleaned in March.", "the well is cleaned in October"),
    ("is the bridge open?", "The bridge is open.", "the bridge is shut"),
    ("who may open the safe?", "The safe may be opened only by the cashier.", "waiters can open the safe now"),
    ("who may open the safe?", "Only the cashier may open the safe.", "the safe may be opened by any waiter"),
    ("where is the stove kept?", "The stove is kept in the barn.", "If you look for it: the stove is kept in Linz"),
    ("how long are tram keys kept?", "Tram keys are kept for 24 hours.", "TRAM_KEY_TTL_HOURS = 48\n"),
    ("how often are clocks set?", "The clocks are set once a day.", "clocks are set every 6 hours"),
    ("how many seats may a group book?", "A group can book 30 seats at most.", "MAX_SEATS_PER_GROUP = 24\n"),
    ("how much may a raft be loaded with?", "A raft may be loaded with 310 kg.", "a raft may be loaded with 210 kg"),
    ("what does a torn flag cost?", "A torn flag costs 4 euros.", "TORN_FLAG_EUR = 6\n"),
    ("how often is a lost signal sent again?", "A lost signal is sent again three times.",
     "a lost signal is sent again twice"),
    ("may riders bring bikes?", "Bikes are prohibited in trams.", "bikes are allowed in trams now"),
    ("can riders camp at the depot?", "Riders can camp at the depot.", "camping at the depot ended in May"),
    ("what is the speed limit for trams?", "The speed limit for trams is 40 km/h.", "TRAM_SPEED_LIMIT_KMH = 30\n"),
    ("what is the heat limit for axles?", "The heat limit for axles is 80 °C.", "AXLE_HEAT_LIMIT_CELSIUS = 70\n"),
    ("what is the gust limit for lifts?", "The gust limit for lifts is 12 m/s.", "LIFT_GUST_LIMIT_M_S = 9\n"),
    ("which edition of the map is used?", "Drivers use the fourth edition of the map.", "MAP_EDITION = 5\n"),
    ("which edition of the map is used?", "Drivers use the 3rd edition of the map.",
     "drivers use edition 4 of the map"),
    ("how long do doors cool?", "Doors cool for twelve hours.",
     "doors cool for 24 hours before I shut them, Ulla wants that of all of us"),
    ("who is in charge of the bell?", "Ulla Rae looks after the bell.", "from today the bell is Bert's job"),
    ("who looks after the bell?", "Ulla Rae looks after the bell.", "the bell is in the hands of Bert since May"),
    ("who tunes the bell?", "Ulla tunes the bell.", "Bert tunes the bell now"),
    ("who opens the shop?", "Ulla opens the shop.", "as of this week Bert opens the shop"),
    ("how long before dusk are gates shut?", "Gates are shut two hours before dusk.",
     'lines = [\n  "Gates are shut one hour before dusk.",\n]\n'),
])  # fmt: skip
def test_what_people_say_in_their_words_contradicts_what_was_asked_about(
    question: str, one: str, other: str, encode: SentenceEncoder
) -> None:
    second = code(other) if "=" in other else talk(other)
    assert find_contradictions([passage(one), second], question=question, encode=encode)


@pytest.mark.parametrize(("one", "other"), [
    ("A depot may hold up to 14 trams.", "# Trams\nMAX_TRAMS_PER_DEPOT = 14\n"),
    ("A depot may hold up to 14 trams.", "# Trams\nMAX_TRAMS_PER_DEPOT = compute()\n"),
    ("A depot may hold up to 14 trams.", "a depot might hold 9 trams"),
    ("Shifts last an hour.", "# Shifts of drivers.\nSHIFT_LENGTH_MINUTES = 60\n"),
    ("Seat lamps are off until a driver presses the key.", "# Roof lamps.\nROOF_LAMPS_ENABLED = True\n"),
    ("A ride lasts three hours.", "# Bells ring three minutes before a ride ends.\nBELL = True\n"),
    ("A delay budget of ten per cent of the rides is kept.", "DELAY_BUDGET_RATIO = 0.1\n"),
    ("Trams Delay no doors 1.0 41 s wide 4.6 7 min 12 s doors 3.9 3 min 20 s", "MAX_DOORS = 5\n"),
    ("The depot counts 4.2 million rides.", "the depot counts about 4 million rides"),
    ("Enables trams that match, so that they run.", "# Disables trams that match, so that they stop.\nTRAMS = x\n"),
    ("The depot counts 5 rides.", "rides are counted at once in the depot"),
    ("The bridge survey is finished.", "the tunnel survey is still open"),
    ("Tickets go through Zugo.", "we should process tickets with Farex"),
    ("The tram museum will close on 3 June.", "the bus museum closes on the 5th of June"),
    ("The depot is maintained by Ulla.", "Bert stepped down as maintainer of the depot"),
    ("The depot is looked after by Ulla.", "Ulla looks after the depot"),
    ("A helmet is mandatory in the depot.", "a helmet is required in the depot"),
    ("Seat lamps are opt-in.", "seat lamps are off by default"),
    ("Seat lamps are off.", "when seat lamps are on, doors close"),
    ("Tickets of production are kept for 30 days.", "tickets on the sandbox are kept for 7 days"),
    ("The depot has nine drivers.", "four drivers of the depot are ill"),
    ("The delay of the bell is 2 minutes.", "we increased the delay of the bell from 30 seconds"),
    ("Seat lamps are on in all trams.", "during the trial seat lamps were switched off in trams"),
    ("RFC 9110 is supported by the gate.", "RFC 9111 is supported by the gate"),
    ("Riders must ring before a stop.", "drivers do not have to ring before a stop"),
    ("Riders must ring before a stop.", "riders have to ring before a stop"),
    ("Riders must ring before a stop.", "on ferries riders do not have to ring before a stop"),
    ("Maps can be exported as SVG.", "we removed the GIF export of maps"),
    ("The timetable runs on Farex.", "the test timetable runs on a Zugo box"),
    ("Hall 4 holds 22 trams.", "hall 6 has 18 trams"),
    ("Ulla is responsible for the bell.", "a rider says Bert is responsible for the bell"),
    ("The gate supports coins.", "coins were removed from the gate in 2019 and came back last spring"),
    ("The bell is maintained by Ulla.", "ask Ulla about the bell"),
    ("The bell is run by Ulla.", "we need to ask who runs the bell"),
    ("Check-in closes 20 minutes before noon.", "until 2023 check-in closed 30 minutes before noon"),
    ("Check-in closes 20 minutes before noon.", "in 2023 check-in closed 30 minutes before noon"),
    ("Check-in closes 20 minutes before noon.", "back then check-in closed 30 minutes before noon"),
    ("Trams run every 12 minutes.", "back in the old days trams ran every 40 minutes"),
    ("Only drivers may open the wash hall.", "drivers may open the wash hall"),
    ("Only drivers may open the wash hall.", "only drivers can open the wash hall"),
    ("Riders may open the wash hall.", "drivers may open the wash hall"),
    ("Only drivers may open the wash hall.", "riders may open the ticket hall"),
    ("Only drivers may open the wash hall.", "it may open the wash hall when doors fail"),
    ("The Graz line was opened on 3 June 2024.", "the Graz line was opened on 3 June"),
    ("The Graz line was opened on 3 June 2024.", "the Linz line was opened on 9 July 2024"),
    ("Trams get version 4.2 of Hydro.", "since version 3.0 of Hydro trams are quiet"),
    ("The ticket shop belongs to the Harbour team.", "the Harbour team owns the ticket shop since August"),
    ("In 2024 the night tram had 310 riders.", "in 2019 the night tram had 900 riders"),
    ("The kiosk closes at seven in the evening.", "the kiosk closes at 19:00"),
    ("The kiosk closes at 19:30.", "the kiosk closes at half past seven"),
    ("A tank holds 1,500 litres.", "TANK_M3 = 1.5\n"),
    ("The tram of generation 3 has four doors.", "GEN2_DOORS = 2\n"),
    ("Storen rings the bell for three minutes.", "Brunau's bell rings for five minutes"),
    ("Bell check 2 takes 50 minutes.", "[bell_check_1]\nduration_min = 40\n"),
    ("The upper lamp flashes every 4 seconds.", "the lower lamp flashes every 9 seconds"),
    ("The whistle sounds for 4 seconds.", "# Example of a plan, copy it:\n#   whistle_seconds = 6\n"),
    ("The whistle sounds for 4 seconds.", '"""For the plan.\n\nwhistle_seconds = 6\n"""\n'),
    ("Tow ropes are 60 metres long.", "[anchor_rope]\nlength_m = 80\n[tow_rope]\nlength_m = 60\n"),
    ("Lamps are forbidden in the hall.", "lamps are not allowed in the hall"),
    ("A ticket costs 6 eur.", "eur = 6\nkmh = 40\n"),
    ("Lamps are not forbidden in the hall.", "lamps are allowed in the hall"),
    ("Torn seats are mended by Bert.", "the man from Mill Lane mended the torn seat himself"),
    ("Letters about bells are answered by Ulla.", "a gentleman at Oak Farm sent a letter about bells"),
    ("Used oil is never stored again.", "oil is used in the shop and stored in the hall"),
    ("The tank holds 4000 litres.", "the tank holds 2500 litres today"),
    ("A tram holds 90 riders.", "this week a tram holds 40 riders"),
    ("The parade is held on 3 March.", "last year the parade was held on 9 April"),
    ("The brake was replaced in 2022.", "the handle of the brake was replaced in 2024"),
    ("Paint dries for 20 minutes.", "cold paint takes longer, such paint dries for 40 minutes"),
    ("The keys are in the loft of the depot.", "the keys are in the depot"),
    ("Seats dry in the hall for nine days.", "seats dry in the yard for twelve days"),
    ("Doors cool for twelve hours.", "doors cool for 24 hours, I think"),
    ("Ulla looks after the bell.", "the bell fell over and Bert saw it"),
    ("The tram with four axles carries 90 riders.", "the tram with six axles carries 140 riders"),
    ("The well is cleaned in March.", "the well is cleaned on 3 March"),
    ("The safe may be opened only by the cashier.", "only the cashier may open the safe"),
    ("The break is 45 minutes.", "by decree the break is 4 minutes, as long as a tram needs for a bend 😂"),
    ("Oak benches dry in the yard for 21 days. So do elm benches.", "elm benches dry in the yard for 10 days"),
    ("There are 18 cold tanks.", "COLD_TANKS_HELD_AT_C = 4.0\n"),
    ("The whistle sounds for 4 seconds.", "For instance, given a plan, return plan(whistle_seconds=6)\n"),
    ("day_ticket = 19\n", "the day ticket in 2014 was nine pounds"),
])  # fmt: skip
def test_what_is_equal_supposed_or_of_another_thing_does_not(one: str, other: str, encode: SentenceEncoder) -> None:
    second = code(other) if "=" in other else talk(other)
    assert find_contradictions([passage(one), second], question=one, encode=encode) == []


@pytest.mark.parametrize(("question", "page", "source"), [
    ("where are the spare bulbs?", "The spare bulbs of all rooms are in Kiel until they are sent to where they burn.",
     "# Bulbs that nobody asked for are in Lund, so count these first.\nrefill()\n"),
    ("does a lamp stop at night?", "A lamp does not stop at night.",
     "# After an error is told to the hall, the lamp is halted and stopped for the night watch.\nrun()\n"),
])  # fmt: skip
def test_a_comment_of_a_program_in_other_words_is_no_rival_of_its_pages(
    question: str, page: str, source: str, encode: SentenceEncoder
) -> None:
    assert find_contradictions([passage(page), code(source)], question=question, encode=encode) == []


def test_figures_of_a_comment_and_what_it_says_in_the_same_words_are_compared(encode: SentenceEncoder) -> None:
    for page, source, question in (
        ("A lamp is dimmed after 5 minutes.", "# A lamp is dimmed after 9 minutes.\n", "when is a lamp dimmed?"),
        ("The night lamp is off by default.", "night_lamp = True\n", "is the night lamp on?"),
        ("The lamp supports dimming.", "# The lamp does not support dimming.\n", "does the lamp support dimming?"),
    ):
        assert find_contradictions([passage(page), code(source)], question=question, encode=encode), question


def test_a_heading_states_nothing(encode: SentenceEncoder) -> None:
    page = passage("### `lamp-index` of the hall\n\nSays in which order lamps are lit.\n")
    switched = passage("lamp-index = false\n", "code", "conf/hall.conf")
    assert find_contradictions([page, switched], question="does the hall have a lamp-index?", encode=encode) == []


def test_the_thing_is_named_as_it_is_written(encode: SentenceEncoder) -> None:
    pair = [passage("Idempotency keys are kept for 24 hours."), code("IDEMPOTENCY_KEYS_TTL_HOURS = 48\n")]
    assert [each.name for each in find_contradictions(pair, encode=encode)] == ["idempotency keys"]


def test_plain_counts_of_corpora_need_more(encode: SentenceEncoder) -> None:
    pair = [passage("A thousand bolts cost 14 euros."), talk("a thousand bolts cost 17 euros")]
    assert find_contradictions(pair, encode=encode)
    pair = [passage("The depot of Graz has 14 drills."), talk("we found 17 drills in that depot")]
    assert find_contradictions(pair, encode=encode) == []


def test_what_was_not_asked_about_is_not_compared(encode: SentenceEncoder) -> None:
    pair = [passage("Shifts last an hour."), code("# Shifts of drivers.\nSHIFT_LENGTH_MINUTES = 45\n")]
    assert find_contradictions(pair, question="how long is a shift?", encode=encode)
    assert find_contradictions(pair, question="who paints the benches?", encode=encode) == []


def test_what_another_sentence_says_more_of_was_not_asked_about(encode: SentenceEncoder) -> None:
    pair = [passage("A rider may book up to 12 seats."), code("MAX_SEATS_PER_RIDER = 10\n")]
    beside = [*pair, passage("Riders swap their seats at noon.")]
    assert find_contradictions(pair, question="how many seats may a rider book?", encode=encode)
    assert find_contradictions(beside, question="when do riders swap seats?", encode=encode) == []
    assert find_contradictions(pair, question="what does a ticket for a tram cost?", encode=encode) == []
    pair = [passage("A brass bell takes 45 hours to cast."), talk("for quotes: a brass bell takes 60 hours to cast")]
    assert find_contradictions(pair, question="how long does a brass bell take to cast?", encode=encode)
    assert find_contradictions(pair, question="what does a bell cost a week?", encode=encode) == []


def test_nothing_is_compared_without_an_encoder_and_a_question() -> None:
    assert find_contradictions([passage("Shifts last an hour."), talk("shifts last two hours")]) == []


def test_the_same_pairs_are_chosen_whatever_the_order_of_sets() -> None:
    """Hashes of texts differ between processes, and with them the order of sets."""
    script = (
        "from test_assertions import passage, talk\n"
        "from nornweave.disagree.assertions.alike import choose_pairs\n"
        "pages = [passage(f'The night tram {n} of Linz has {n} doors and a bell.') for n in range(9)]\n"
        "talks = [talk(f'tram {n} has a bell and {n + 1} doors at night') for n in range(9)]\n"
        "print([(p.one.text, p.other.text) for p in choose_pairs('how many doors has a tram?', [*pages, *talks])])\n"
    )
    path = os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[2])])
    chosen = {
        subprocess.run(
            [sys.executable, "-c", script], env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path},
            check=True, capture_output=True, text=True,
        ).stdout
        for seed in "123"
    }  # fmt: skip
    assert len(chosen) == 1
