"""Acronyms are looked for in both forms, but only where the corpus says the other one; threads by their number."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from configurations import configured, files
from growth import assert_subquadratic
from hypothesis import given
from hypothesis import strategies as st
from questions import question_of
from recall_workspace import NO_MODELS, agent_of, publish

from nornweave.ask.search.agent import Agent
from nornweave.ask.search.expand import acronym_variants
from nornweave.ask.search.records import Switch
from nornweave.ask.search.retrievers import is_said
from nornweave.config import Settings
from nornweave.core.access import OPERATOR
from nornweave.core.types import Domain

PAGES = {
    "slos.md": "# Goals\n\nThe SLOs for search and checkout are read out on Tuesdays.",
    "pages.md": "# Pages\n\nEvery page meets WCAG, grade AA.",
    "cache.md": "# Cache\n\nEvery entry has a time to live of nine minutes.",
    "doors.md": "# Doors\n\nA door has a code. After an exchange it has another.",
    "time.md": "# Clock\n\nThe time is live.",
    "lamps.md": "# Lamps\n\nThe lamp beside the gate has a color for each neighbour.",
}
# An issue and a pull request whose comments say their number nowhere.
THREADS = [
    {
        "id": number * 10,
        "number": number,
        "title": title,
        "user": {"login": "dana"},
        "body": "See below.",
        "comments": [{"id": number * 10 + 1, "user": {"login": "bob"}, "body": comment}],
    }
    for number, title, comment in (
        (4711, "Receipts are cut off", "The printer feeds too little paper."),
        (815, "Shorter receipts", "Approved, but please name the constant."),
    )
]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("acronyms")
    (folder / "docs").mkdir()
    (folder / "threads").mkdir()
    for name, text in PAGES.items():
        (folder / "docs" / name).write_text(text, encoding="utf-8")
    (folder / "threads" / "all.json").write_text(json.dumps(THREADS), encoding="utf-8")
    settings = configured(folder, files("docs"), files("threads", "conversations", type="github"), domain=NO_MODELS)
    publish(settings, Domain.DOCUMENTATION, Domain.CONVERSATIONS)
    return settings


@pytest.fixture(scope="module")
def docs(small: Settings, pool: ThreadPoolExecutor) -> Iterator[Agent]:
    with agent_of(small, Domain.DOCUMENTATION, pool) as agent:
        yield agent


@pytest.mark.parametrize(("query", "variant", "path"), [
    ("when are service level objectives told", "when are SLO told", "slos.md"),
    ("Web Content Accessibility Guidelines", "WCAG", "pages.md"),
    ("the TTL in minutes", "the Time To Live in minutes", "cache.md"),
    ("Colours by the gate", "colors by the gate", "lamps.md"),
    ("a neighbor of the gate", "a neighbour of the gate", "lamps.md"),
])  # fmt: skip
def test_an_acronym_is_found_by_its_long_form_and_back(docs: Agent, query: str, variant: str, path: str) -> None:
    found = docs.recall(question_of(query))
    assert found.expansions == (variant,)
    assert found.items[0].citation.source_path == path
    assert docs.recall(question_of(query, expand="off")).expansions == ()


@pytest.mark.parametrize("expand", ["auto", "off"])
@pytest.mark.parametrize("query", ["HTTP headers", "role-based access control", '"TTL" in minutes', "who is on call"])
def test_what_the_corpus_says_in_one_form_only_costs_no_second_search(docs: Agent, query: str, expand: Switch) -> None:
    assert docs.recall(question_of(query, expand=expand)).expansions == ()


def test_a_variant_adds_places_and_takes_none_away(docs: Agent) -> None:
    query = "service level objectives"
    plain = docs.recall(question_of(query, expand="off", top_k=100)).items
    both = {item.chunk_id: item for item in docs.recall(question_of(query, top_k=100)).items}
    assert all(both[item.chunk_id].score >= item.score for item in plain)
    first = max(both.values(), key=lambda item: item.score)
    assert first.citation.source_path == "slos.md"
    assert "sparse" in first.sources
    assert all("sparse" not in item.sources for item in plain if item.chunk_id == first.chunk_id)


def test_words_are_said_where_they_stand_side_by_side(docs: Agent) -> None:
    with docs.generation.use(OPERATOR) as generation:
        said = [is_said(text, generation) for text in ("time to live", "Time-to-live", "SLO", "slo wcag", "WCAG", "")]
        assert said == [True, True, True, False, True, False]
        assert not is_said("code exchange", generation), "both words are there, in different places"


def test_threads_are_found_by_the_number_that_only_their_page_shows(small: Settings, pool: ThreadPoolExecutor) -> None:
    with agent_of(small, Domain.CONVERSATIONS, pool) as agent:
        for number in (4711, 815):
            for query in (f"#{number}", f"what came of PR #{number}", f"is issue {number} closed"):
                first = agent.recall(question_of(query)).items[0]
                assert first.metadata["thread_id"] == str(number), query
                assert str(number) not in first.content


@pytest.mark.parametrize(("text", "initials"), [
    ("Small Office of Fine Arts", ["SOFA", "SOOFA"]), ("in the European Economic Area, too", ["EEA"]),
    ("The Internet of Many Things", ["IMT", "IOMT"]), ("use Multi-Site Object Stores", ["MSOS"]),
    ("Multi-Factor Sign In", []), ('"Small Office of Fine Arts"', []), ("How Do I Reset My Password", []),
    ("What Is The Best Cache", []), ("AWS EC2 S3", []), ("Amazon Web", []), ("a room for live acts", []), ("", []),
])  # fmt: skip
def test_names_in_capitals(text: str, initials: list[str]) -> None:
    looked_up: list[str] = []
    assert acronym_variants(text, lambda form: bool(looked_up.append(form))) == ()
    assert looked_up == initials
    for form in initials:
        name = text.removeprefix("The ").removeprefix("use ").removeprefix("in the ").removesuffix(", too")
        assert acronym_variants(text, form.__eq__) == (text.replace(name, form),)


@given(st.lists(st.sampled_from(["Ab", "cd", "of", "The", "E-F", "X", "É", " ", "-", "\n", "9"]), max_size=40))
def test_initials_are_capitals_of_three_words_or_more(pieces: list[str]) -> None:
    looked_up: list[str] = []
    acronym_variants(" ".join(pieces), lambda form: bool(looked_up.append(form)))
    assert all(len(form) >= 3 and form == form.upper() for form in looked_up)


@given(st.text(max_size=200), st.integers(1, 4))
def test_variants_are_distinct_bounded_and_acronyms_all(text: str, limit: int) -> None:
    found = acronym_variants(f"{text} Small Office of Fine Arts of API and SDK", lambda _: True, limit=limit)
    assert len(found) <= limit - 1
    assert len({" ".join(variant.casefold().split()) for variant in found}) == len(found)
    assert acronym_variants(text, lambda _: False) == ()


@pytest.mark.parametrize("piece", ["Aa ", "A", "Aa-", "Aa of the ", "The ", "Aa  ", "A" * 41 + " "])
def test_names_are_found_in_linear_time(piece: str) -> None:
    """A search that looks on to the end of the text at every word would take minutes."""
    assert_subquadratic(
        lambda text: acronym_variants(text, lambda _: False), lambda size: piece * (size // len(piece)), 400_000
    )


@pytest.mark.parametrize("word", ["colours", "neighbor", "color"])
def test_a_word_that_is_held_in_another_spelling_is_known(docs: Agent, word: str) -> None:
    signals = docs.recall(question_of(f"which {word} has the gate")).signals
    assert signals is not None and word in signals.known
    nowhere = docs.recall(question_of("which behaviour has the gate")).signals
    assert nowhere is not None and "behaviour" not in nowhere.known
