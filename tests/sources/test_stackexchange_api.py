from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interruptions import list_interrupted

from lab.apis.server import HANG_UP, Reply, serving
from lab.apis.stackexchange import BASE, KEY, SITE, StackExchangeServer, large, small
from nornweave.connect.mirror.answers import Limits
from nornweave.connect.mirror.mirrored import MirroredSource
from nornweave.connect.stackexchange.document import stackexchange_document
from nornweave.connect.stackexchange.feed import StackExchangeFeed
from nornweave.core.errors import ConfigError, DocumentError, SourceUnavailableError
from nornweave.core.types import Document, Domain, SourceId

QUICK = Limits(backoff_s=0.0, max_wait_s=3.0)
DAY = 86_400


@pytest.fixture
def site() -> Iterator[StackExchangeServer]:
    server = StackExchangeServer()
    with serving(server):
        yield server


class Source:
    """A site as a source, whose clock a test moves."""

    def __init__(
        self,
        server: StackExchangeServer,
        folder: Path,
        *,
        tags: Sequence[str] = ("python", "duckdb"),
        site: str = SITE,
        key: str | None = None,
        limits: Limits = QUICK,
    ) -> None:
        self.clock = 1_000_000.0
        feed = StackExchangeFeed(
            site, tags, api_url=f"{server.url}/2.3", key=key, key_name="STACK_APPS_KEY", limits=limits
        )
        self.source = MirroredSource(SourceId("qa"), feed, folder, relist_s=DAY, now=lambda: self.clock)

    def paths(self) -> list[str]:
        return [entry.path for entry in self.source.list().entries]

    def documents(self) -> dict[str, Document]:
        listing = self.source.list()
        assert listing.problem is None
        return {
            entry.path: stackexchange_document(SourceId("qa"), entry, self.source.fetch(entry), domain=Domain.RESEARCH)
            for entry in listing.entries
        }

    def texts(self) -> dict[str, str]:
        return {path: found.text for path, found in self.documents().items()}

    def a_day_later(self) -> None:
        self.clock += 1.1 * DAY


def expected(server: StackExchangeServer, tags: Sequence[str] = ("python", "duckdb")) -> dict[str, str]:
    """What the documents of a site have to say, by its own state: accepted answers first, then by score."""
    texts = {}
    for number, question in server.questions.items():
        if set(tags) & set(question["tags"]):
            own = [each for _, each in sorted(server.answers.items()) if each["question_id"] == number]
            own.sort(key=lambda each: (not each["is_accepted"], -each["score"]))
            bodies = [each["body"][3:-4] for each in (question, *own)]
            texts[f"questions/{number}"] = "\n\n".join([question["title"], *bodies])
    return texts


def test_a_question_comes_with_its_answers_the_accepted_one_first(site: StackExchangeServer, tmp_path: Path) -> None:
    asked = site.ask("Why &amp; how?", "<p>How?</p><pre><code>if x &lt; 3:</code></pre>", tags=["python", "pandas"])
    site.answer_to(asked, "<p>Much liked.</p>", score=9)
    accepted = site.answer_to(asked, "<p>Accepted.</p>", score=1)
    site.accept(accepted)
    site.ask("Elsewhere", tags=["java"])
    (found,) = Source(site, tmp_path).documents().values()
    assert (found.path, found.title, found.format) == (f"questions/{asked}", "Why & how?", "stackexchange")
    assert found.url == f"https://stackoverflow.com/questions/{asked}/title"
    assert found.metadata["tags"] == ("python", "pandas")
    assert [
        (each.heading, each.metadata.get("score"), each.metadata.get("is_accepted")) for each in found.sections
    ] == [
        ("Why & how?", 3, None),
        ("Accepted answer by bob", 1, True),
        ("Answer by bob", 9, False),
    ]
    assert found.sections[1].metadata["url"] == f"https://stackoverflow.com/a/{accepted}"
    assert "if x < 3:" in found.text
    assert str(found.updated_at) == "2026-01-16 00:03:00+00:00"


def test_questions_of_any_tag_are_read_once(site: StackExchangeServer, tmp_path: Path) -> None:
    site.answer_to(site.ask("Both", tags=["python", "duckdb"]))
    site.answer_to(site.ask("One", tags=["duckdb"]))
    site.ask("None", tags=["java"])
    assert Source(site, tmp_path).texts() == expected(site)
    asked = [request.path for request in site.requests if request.path.endswith("/answers")]
    assert asked == ["/2.3/questions/101;103/answers"], "the question with both tags is not asked for again"


def test_a_second_pass_asks_once_for_each_tag_and_reads_what_was_active(
    site: StackExchangeServer, tmp_path: Path
) -> None:
    numbers = [site.ask(f"Q{number}", tags=["python"]) for number in range(7)]
    answers = [site.answer_to(number) for number in numbers]
    site.page_size = 2
    source = Source(site, tmp_path)
    gates = {entry.path: entry.gate for entry in source.source.list().entries}
    site.now += DAY
    source.source.list()
    site.requests.clear()
    assert {entry.path: entry.gate for entry in source.source.list().entries} == gates
    assert [(request.path, request.query["sort"]) for request in site.requests] == [("/2.3/questions", "activity")] * 2
    site.edit(answers[2], "<p>Better.</p>")
    site.answer_to(numbers[4], "<p>More.</p>")
    site.ask("New")
    site.requests.clear()
    assert source.texts() == expected(site)
    asked = [request.path for request in site.requests if request.path.endswith("/answers")]
    assert asked[0] == f"/2.3/questions/{numbers[2]};{numbers[4]}/answers"


def test_what_is_deleted_or_accepted_is_found_by_the_full_listing(site: StackExchangeServer, tmp_path: Path) -> None:
    first, second, third = (site.ask(f"Q{number}") for number in range(3))
    kept, lost = site.answer_to(first), site.answer_to(first, "<p>Wrong.</p>")
    site.answer_to(second)
    site.now += DAY
    source = Source(site, tmp_path)
    source.texts()
    site.delete(lost)
    site.delete(second)
    site.accept(kept)
    assert len(source.paths()) == 3
    site.requests.clear()
    source.a_day_later()
    assert source.texts() == expected(site)
    assert [request.path for request in site.requests if "answers" in request.path] == [
        f"/2.3/questions/{first}/answers"
    ], f"nothing changed about {third}"


def test_many_questions_of_one_second_are_paged_by_number(site: StackExchangeServer, tmp_path: Path) -> None:
    for number in range(7):
        site.ask(f"Q{number}", at=60 if number == 0 else 0)
    site.ask("Later")
    site.page_size = 2
    assert Source(site, tmp_path).texts() == expected(site)


def test_more_than_25_pages_need_no_key(site: StackExchangeServer, tmp_path: Path) -> None:
    for number in range(60):
        site.ask(f"Q{number}")
    site.page_size = 2
    assert len(Source(site, tmp_path).paths()) == 60


def test_a_new_tag_is_read_whole_and_a_removed_one_goes_with_the_full_listing(
    site: StackExchangeServer, tmp_path: Path
) -> None:
    site.ask("One", tags=["python"])
    site.ask("Two", tags=["duckdb"])
    site.now += 10 * DAY
    assert Source(site, tmp_path, tags=["python"]).texts() == expected(site, ["python"])
    assert Source(site, tmp_path, tags=["python", "duckdb"]).texts() == expected(site)
    source = Source(site, tmp_path, tags=["duckdb"])
    source.a_day_later()
    assert source.texts() == expected(site, ["duckdb"])


def test_a_pause_that_the_api_asks_for_is_kept(site: StackExchangeServer, tmp_path: Path) -> None:
    site.backoff = 1
    site.page_size = 2
    for number in range(3):
        site.ask(f"Q{number}")
    assert Source(site, tmp_path, tags=["python"]).texts() == expected(site), "the server would have refused"


def test_a_pause_that_is_too_long_is_named(site: StackExchangeServer, tmp_path: Path) -> None:
    site.backoff = 3600
    site.page_size = 1
    site.ask("One")
    site.ask("Two")
    listing = Source(site, tmp_path, tags=["python"]).source.list()
    assert len(listing.entries) == 1
    assert "rate limit until" in (listing.problem or "")


def test_a_used_up_quota_is_named_and_reading_goes_on_when_it_is_renewed(
    site: StackExchangeServer, tmp_path: Path
) -> None:
    for number in range(6):
        site.answer_to(site.ask(f"Q{number}"))
    site.page_size = 2
    site.quota = 3
    source = Source(site, tmp_path)
    problem = source.source.list().problem or ""
    assert "quota is used up; it is renewed at midnight UTC" in problem
    assert "an app key in STACK_APPS_KEY raises it from 300 requests to 10,000" in problem
    asked = len(site.requests)
    assert "rate limit until" in (source.source.list().problem or ""), "more requests available in 40000 seconds"
    assert len(site.requests) == asked + 1
    site.quota = 300
    assert source.texts() == expected(site)


def test_the_key_is_sent_and_never_shown(site: StackExchangeServer, tmp_path: Path) -> None:
    site.ask("One")
    source = Source(site, tmp_path, key=KEY)
    assert len(source.paths()) == 1
    assert all(request.query["key"] == KEY for request in site.requests)
    source.a_day_later()
    for fault in (
        Reply(b"<html>"),
        Reply({"error_id": 400, "error_name": f"odd {KEY}"}, 400),
        Reply({}, 429, {"retry-after": "4000"}),
        Reply({}, 418),
        Reply({}, 302, {"location": f"https://elsewhere.example.org/?key={KEY}"}),
    ):
        site.faults.append(fault)
        problem = source.source.list().problem or ""
        assert problem
        assert "U4DMV" not in problem


@pytest.mark.parametrize(
    ("reply", "advice"),
    [
        (Reply({"error_id": 400, "error_name": "bad_parameter", "error_message": "x"}, 400), "check that the site"),
        (Reply({"error_id": 403, "error_name": "access_denied"}, 400), "check the app key in STACK_APPS_KEY"),
        (Reply({"error_id": 405, "error_name": "key_required"}, 400), "check the app key in STACK_APPS_KEY"),
        (Reply({"error_id": 404, "error_name": "no_method"}, 404), "no_method; try again later"),
        (Reply({"items": {}}), "no list of items in the answer"),
        (Reply({"items": [], "has_more": True}), "goes on without saying anything new"),
        (Reply([]), "expected an object"),
        (Reply(b"<html>"), "no JSON"),
        (Reply({}, 410), "check the address"),
    ],
)
def test_a_refusal_says_what_to_do_and_deletes_nothing(
    site: StackExchangeServer, tmp_path: Path, reply: Reply, advice: str
) -> None:
    asked = site.ask("One")
    source = Source(site, tmp_path)
    assert source.paths() == [f"questions/{asked}"]
    source.a_day_later()
    site.faults.append(reply)
    listing = source.source.list()
    assert [entry.path for entry in listing.entries] == [f"questions/{asked}"]
    assert advice in (listing.problem or "")


def test_what_passes_is_tried_again(site: StackExchangeServer, tmp_path: Path) -> None:
    site.ask("One")
    site.faults += [
        Reply({"error_id": 503, "error_name": "temporarily_unavailable"}, 400),
        Reply(b"<html>bad gateway", 502),
        HANG_UP,
    ]
    assert len(Source(site, tmp_path).paths()) == 1


@pytest.mark.parametrize("options", [{"tags": []}, {"tags": ["a;b"]}, {"tags": ["a b"]}, {"api_url": "ftp://x"}])
def test_wrong_settings_are_refused_before_anything_is_sent(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        StackExchangeFeed(**{"site": SITE, "tags": ["python"], **options})


def test_an_unknown_site_is_named(site: StackExchangeServer, tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailableError, match="check that the site 'nowhere' exists"):
        Source(site, tmp_path, site="nowhere").paths()


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_whatever_happens_between_and_within_passes_nothing_is_lost_or_doubled(
    seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    choose = random.Random(seed)
    site = StackExchangeServer(page_size=choose.choice([1, 2, 3, 100]))
    with serving(site):
        source = Source(site, tmp_path_factory.mktemp("mirror"))
        for _ in range(choose.randint(1, 4)):
            for _ in range(choose.randint(1, 6)):
                _change(site, choose)
            _interrupt(source, site, choose)
        source.a_day_later()
        source.source.list()  # ends a pass that was interrupted
        source.a_day_later()
        assert source.texts() == expected(site)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_what_is_not_deleted_is_seen_by_the_next_pass(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    choose = random.Random(seed)
    site = StackExchangeServer(page_size=choose.choice([1, 2, 3, 100]))
    with serving(site):
        source = Source(site, tmp_path_factory.mktemp("mirror"))
        for _ in range(3):
            for _ in range(choose.randint(0, 6)):
                _change(site, choose, deletes=False)
            assert source.texts() == expected(site)
            site.now += choose.choice([0, 5_000])


def _change(site: StackExchangeServer, choose: random.Random, *, deletes: bool = True) -> None:
    questions, answers = list(site.questions), list(site.answers)
    tags = choose.choice([["python"], ["duckdb"], ["python", "duckdb"], ["java"]])
    match choose.randint(0, 7):
        case 2 | 3 if questions:
            site.answer_to(choose.choice(questions), f"<p>A{site.now}</p>", score=choose.randint(0, 3))
        case 4 if questions:
            site.edit(choose.choice([*questions, *answers]), f"<p>E{site.now}</p>")
        case 5 if questions and deletes:
            site.delete(choose.choice([*questions, *answers]))
        case 6 if answers and deletes:
            accepted = choose.choice(answers)
            if "accepted_answer_id" not in site.questions[site.answers[accepted]["question_id"]]:
                site.accept(accepted)
        case _:
            site.ask(f"Q{site.now}", f"<p>B{site.now}</p>", tags=tags, at=choose.choice([0, 60]))


def _interrupt(source: Source, site: StackExchangeServer, choose: random.Random) -> None:
    """List with a server that fails for good after some requests."""
    list_interrupted(
        source.source,
        site,
        choose,
        faults=[HANG_UP, Reply({}, 500), Reply(b"<html>"), Reply({"items": None}), Reply({}, 404)],
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["display_name", "x"]), inner),
    max_leaves=8,
)
FIELDS = (
    *("question_id", "answer_id", "title", "body", "tags", "owner", "score", "link", "creation_date"),
    *("last_activity_date", "answer_count", "accepted_answer_id", "is_accepted"),
)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_whatever_comes_back_only_named_errors_come_out(data: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    post = {"question_id": 1, "answer_id": 2, "title": "T", "body": "<p>B</p>", "answer_count": 1}
    odd = {field: data.draw(JSON) for field in data.draw(st.sets(st.sampled_from(FIELDS), max_size=4))}
    more = {key: data.draw(JSON) for key in data.draw(st.sets(st.sampled_from(["backoff", "quota_remaining"])))}
    content = {"items": [{**post, **odd}], "has_more": data.draw(st.sampled_from([False, None, 0, "x"])), **more}
    site = StackExchangeServer()
    answer = Reply(data.draw(st.sampled_from([content, content, odd])))
    site.before = lambda _: site.faults.append(answer)
    with serving(site):
        at_once = Limits(backoff_s=0.0, max_wait_s=0.0)
        source = Source(site, tmp_path_factory.mktemp("mirror"), limits=at_once)
        try:
            for entry in source.source.list().entries:
                raw = source.source.fetch(entry)
                assert json.loads(raw)
                stackexchange_document(SourceId("qa"), entry, raw, domain=Domain.RESEARCH)
        except (SourceUnavailableError, DocumentError):
            pass


def test_a_large_site_is_read_in_pages_and_its_second_pass_is_small(tmp_path: Path) -> None:
    server = large(300, page_size=10)
    with serving(server):
        server.now += DAY
        source = Source(server, tmp_path, tags=["python"])
        assert len(source.paths()) == 300
        first = len(server.requests)
        server.requests.clear()
        source.paths()
        assert len(server.requests) <= 0.05 * first


def test_the_small_site_for_demonstrations(tmp_path: Path) -> None:
    server = small()
    with serving(server):
        assert Source(server, tmp_path).texts().keys() == {"questions/101", "questions/103"}
    assert server.now > BASE
