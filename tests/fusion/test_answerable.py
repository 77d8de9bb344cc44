"""Whether something answers: what is unknown is named, what is doubtful is said, what nobody can tell is null."""

from dataclasses import replace
from typing import Any

import pytest
from fusion_support import item

from nornweave.ask.fuse.answerable import NO_SENTENCE, UNKNOWN_NAME, UNSURE_BELOW, Answerable, judge, shipped
from nornweave.ask.search.query import words_of
from nornweave.ask.search.question import Question
from nornweave.ask.search.records import RecallResponse, SearchSignals
from nornweave.core.access import OPERATOR
from nornweave.core.types import present

GOOD = {
    "score": 0.7, "margin": 0.3, "sparse": 0.5, "sparse_margin": 0.3, "agreement": 0.5, "background": 0.1,
    "lost": 0.0, "unknown": 0.0,
}  # fmt: skip
BAD = dict.fromkeys(GOOD, 0.0) | {"score": 0.2, "lost": 40.0, "unknown": 0.8}


def asked(text: str) -> Question:
    return Question(text=text, now=present(), viewer=OPERATOR)


def response(domain: str, known: str = "", **values: Any) -> RecallResponse:
    signals = SearchSignals(frozenset(known.split()), {**GOOD, **values}) if values is not None else None
    return RecallResponse(
        agent_id=domain, domain_id=domain, generation="g", indexed_at="", items=(), retrieval={},
        total_searched=1, latency_ms=1.0, signals=signals,
    )  # fmt: skip


def test_words_carry_meaning_and_identifiers_stay_whole() -> None:
    words = words_of("How does the parseConfigFile handle FEE_UNITS and v2.1?")
    assert list(words) == ["parseConfigFile", "handle", "FEE_UNITS", "v2.1"]
    assert words["FEE_UNITS"] == ("fee_units", "fee", "unit")


def test_a_word_is_unknown_when_no_domain_holds_it() -> None:
    text = "refine unobtainium quickly"
    answerable = judge(asked(text), [response("code", "refine"), response("research", "quickly")])
    assert answerable.unknown_words == ("unobtainium",)
    assert "“unobtainium”" in answerable.words


@pytest.mark.parametrize(("text", "unknown"), [
    ("refine vs quickly", ()), ("refine versus quickly", ()), ("refine VS. unobtainium", ("unobtainium",)),
])  # fmt: skip
def test_what_stands_between_compared_things_need_not_be_in_a_passage(text: str, unknown: tuple[str, ...]) -> None:
    assert judge(asked(text), [response("code", "refine quickly")]).unknown_words == unknown


@pytest.mark.parametrize(("text", "unknown"), [
    ("parse.go:103", ()),
    ("what happens at parse.go:103", ()),
    ("what does Zz do at parse.go:103", ("Zz",)),
    ("panic: nil pointer [signal SIGSEGV addr=0x18]\ngoroutine 41 [running]:\n\t/build/parse.go:84 +0x9c", ()),
    ("why does Frobnicate fail\npanic: nil pointer at 0x18\n\t/build/parse.go:84", ("Frobnicate",)),
    ('[warning] Failed to resolve link to "Foo.bar" in comment for Baz.qux, skipped', ()),
    ("what stands at 0x1a2b3c", ()),
])  # fmt: skip
def test_what_is_pasted_is_no_subject(text: str, unknown: tuple[str, ...]) -> None:
    known = "parse.go parse go happens stands fail does"
    assert judge(asked(text), [response("code", known)]).unknown_words == unknown
    assert judge(asked(text), [response("code", known, **BAD)]).unknown_words == unknown


def test_a_probable_answer_misses_only_names() -> None:
    text = "how chatty is the Confluence export by default"
    known = "export default"
    assert judge(asked(text), [response("code", known)]).unknown_words == ("Confluence",)
    assert judge(asked(text), [response("code", known, **BAD)]).unknown_words == ("chatty", "Confluence")


def test_each_word_that_nobody_holds_makes_an_answer_less_probable_and_a_name_most() -> None:
    def odds(text: str, known: str) -> float:
        probability = judge(asked(text), [response("code", known)]).probability or 0.0
        return probability / (1 - probability)

    known, gallops = odds("how does the export run", "export run"), odds("how does the export run", "export")
    named, unknown = (odds("how does the Sheet export", held) for held in ("Sheet export", "export"))
    assert named / unknown == pytest.approx(UNKNOWN_NAME * known / gallops, rel=0.01)
    assert 1 < known / gallops < 4
    doubted = judge(asked("Sheet export"), [response("code", "export", **BAD)])
    assert doubted.probability == judge(asked("chatty export"), [response("code", "export", **BAD)]).probability


def test_the_same_score_tells_more_of_a_longer_question() -> None:
    def probability(words: int) -> float:
        text = " ".join(f"thing{place}" for place in range(words))
        return judge(asked(text), [response("code", text, score=0.3)]).probability or 0.0

    assert probability(1) == probability(3) < UNSURE_BELOW < probability(8)
    assert probability(12) == probability(30)


def test_a_question_of_the_field_is_never_said_to_have_no_answer() -> None:
    """Short, with two words of three unknown and a low score: doubtful. In another field the score says nothing."""
    weak = {**GOOD, "score": 0.1, "margin": 0.0}
    text, known = "chatty quaint export", "export"
    assert judge(asked(text), [response("code", known, **weak)]).probability == shipped().nothing_below
    elsewhere = judge(
        asked(text), [response("code", known, **{**weak, "sparse_margin": 0.0, "lost": 40.0, "unknown": 0.8})]
    )
    assert elsewhere.probability and elsewhere.probability < shipped().nothing_below


def test_of_a_paste_nobody_says_that_nothing_answers() -> None:
    trace = "Error: cannot find the module\n    at load (plugins.js:27:32)\n    at main (cli.js:2:9)"
    said = judge(asked(trace), [response("code", **BAD)])
    assert said.may_answer and said.words == "It is not sure that anything here answers this."
    assert not judge(asked("how are modules found"), [response("code", **BAD)]).may_answer


def test_the_best_domain_decides() -> None:
    alone = judge(asked("x"), [response("code")])
    with_another = judge(asked("x"), [response("research", **BAD), response("code")])
    assert alone.probability == with_another.probability
    assert judge(asked("x"), [response("research", **BAD)]).probability < alone.probability  # type: ignore[operator]


def test_an_agent_elsewhere_makes_it_null() -> None:
    elsewhere = RecallResponse(
        agent_id="a", domain_id="code", generation="g", indexed_at="", items=(), retrieval={}, total_searched=1,
        latency_ms=1.0,
    )  # fmt: skip
    assert judge(asked("unobtainium"), [response("code"), elsewhere]) == Answerable()
    assert judge(asked("unobtainium"), []) == Answerable()


def test_filters_that_leave_nothing_are_said() -> None:
    nothing = replace(response("code", **BAD), total_searched=0)
    assert judge(asked("x"), [nothing]).words.startswith("There is no passage to search")
    assert "no passage to search" not in judge(asked("x"), [nothing, response("research", **BAD)]).words


@pytest.mark.parametrize(("probability", "unknown", "words", "may_answer"), [
    (0.9, (), "", False),
    (0.9, ("zz",), "No passage holds “zz”.", False),
    (0.01, (), "Nothing here seems to answer this; the nearest by meaning are below.", False),
    (0.01, ("zz", "yy"), "No passage holds “zz” or “yy”; the nearest by meaning are below.", False),
    (0.49, (), "It is not sure that anything here answers this.", True),
    (0.49, ("zz",), "No passage holds “zz”.", True),
    (None, (), "", False),
])  # fmt: skip
def test_it_is_said_in_words(probability: float | None, unknown: tuple[str, ...], words: str, may_answer: bool) -> None:
    assert Answerable(probability, unknown).may_answer is may_answer
    assert 0 < shipped().nothing_below < UNSURE_BELOW
    assert Answerable(probability, unknown).words == words
    assert Answerable(probability, unknown).is_doubtful is (probability is not None and probability < UNSURE_BELOW)


def test_a_question_that_was_shortened_says_so() -> None:
    long = asked("why " + "x" * 5_000).focused()
    assert judge(long, [response("code")]).words.startswith("The question was shortened: of its 5,004 characters")


def test_a_commit_answers_that_is_far_ahead_with_a_good_score() -> None:
    def probability(score: float, ahead: float, kind: str = "commit") -> float:
        ranked = [(item("a", metadata={"kind": kind}), score), (item("b"), score - ahead), (item("c"), score - ahead)]
        return judge(asked("x"), [response("code", **BAD)], ranked).probability or 0.0

    doubted = judge(asked("x"), [response("code", **BAD)]).probability
    assert probability(0.3, 0.1) > UNSURE_BELOW > max(probability(0.3, 0.01), probability(0.1, 0.03))
    assert probability(0.3, 0.1, "function") == doubted


@pytest.mark.parametrize(("text", "title", "is_sure"), [
    ("which release first had jars", "Seal jars", True),
    ("which release first had jars", "Adjust changelog", False),
    ("which release first had jars", "docs: add missing changelog entries for v1.2 (#7)", False),
    ("which release first had jars", "Update changelog [ci skip]", False),
    ("which release first had jars", "Fix changelog parser", True),
    ("which commit adjusted the changelog", "Adjust changelog", True),
    ("who bumped the version to 2.0.1", "Bump version to 2.0.1", True),
])  # fmt: skip
def test_a_commit_that_keeps_house_is_asserted_only_if_it_is_asked_for(text: str, title: str, *, is_sure: bool) -> None:
    first = item("a", content=title, metadata={"kind": "commit"})
    first = replace(first, citation=replace(first.citation, title=title))
    ranked = [(first, 0.9), (item("b"), 0.1), (item("c"), 0.1)]
    assert judge(asked(text), [response("code", text, **BAD)], ranked).is_doubtful is not is_sure


@pytest.mark.parametrize(("text", "path", "kind", "content", "is_sure"), [
    ("what changed in 1.4.0", "releases/v1.4.0", "release", "Release v1.4.0", True),
    ("what is new since 1.3.9", "releases/v1.4.0", "release", "Release v1.4.0", True),
    ("what changed for jars in 1.4.0", "releases/v1.4.0", "release", "Release v1.4.0", False),
    ("what changed in 1.5.0", "releases/v1.4.0", "release", "Release v1.4.0", False),
    ("who last changed lid.py", "commits/1", "commit", "Oil", True),
    ("who last changed jar.py", "commits/1", "commit", "Oil", False),
])  # fmt: skip
def test_what_a_question_calls_by_its_name_is_no_guess(
    text: str, path: str, kind: str, content: str, *, is_sure: bool
) -> None:
    first = item("a", content=content, metadata={"kind": kind, "release": path.partition("/v")[2]})
    first = replace(first, citation=replace(first.citation, source_path=path))
    others = [(item("b"), 0.29)]
    told = response("code", "lid py lid.py fit_lid", **BAD)
    signals = replace(told.signals, last_changes=frozenset({"a"} if "lid" in text else ()))  # type: ignore[type-var]
    judged = judge(asked(text), [replace(told, signals=signals)], [(first, 0.3), *others])
    assert judged.is_doubtful is not is_sure
    assert judged.words.startswith("No release 1.5.0 is known here") is ("1.5.0" in text)


def test_a_last_change_that_is_older_than_what_is_read_is_doubted_and_said() -> None:
    told = response("code", "lid.py")
    signals = replace(told.signals, older="None of the 9 commits that are read is known to change lid.py.")  # type: ignore[type-var]
    judged = judge(asked("who last changed lid.py"), [replace(told, signals=signals)], [(item("a"), 0.9)])
    assert judged.is_doubtful and judged.words == signals.older  # type: ignore[union-attr]


@pytest.mark.parametrize(("is_quoted", "probability", "words"), [
    (False, 0.9, NO_SENTENCE), (False, None, NO_SENTENCE), (True, 0.9, ""),
])  # fmt: skip
def test_an_answer_without_a_sentence_says_so(is_quoted: bool, probability: float | None, words: str) -> None:
    answerable = Answerable(probability=probability, is_quoted=is_quoted)
    assert (answerable.words, answerable.doubt) == (words, "")


def test_a_doubt_is_enough_where_no_sentence_is_quoted() -> None:
    answerable = Answerable(probability=0.3, is_quoted=False)
    assert answerable.words == answerable.doubt == "It is not sure that anything here answers this."
