from pathlib import Path

import pytest
from feed_cases import stackexchange_said, stackexchange_source
from feed_source import served

from lab.apis.server import Reply
from lab.apis.stackexchange import KEY, StackExchangeServer
from nornweave.core.errors import SourceUnavailableError

DAY = 86_400


site = served(StackExchangeServer)


def test_a_question_comes_with_its_answers_the_accepted_one_first(site: StackExchangeServer, tmp_path: Path) -> None:
    asked = site.ask("Why &amp; how?", "<p>How?</p><pre><code>if x &lt; 3:</code></pre>", tags=["python", "pandas"])
    site.answer_to(asked, "<p>Much liked.</p>", score=9)
    accepted = site.answer_to(asked, "<p>Accepted.</p>", score=1)
    site.accept(accepted)
    site.ask("Elsewhere", tags=["java"])
    (found,) = stackexchange_source(site, tmp_path).documents().values()
    assert (found.path, found.title, found.format) == (f"questions/{asked}", "Why & how?", "stackexchange")
    assert found.url == f"https://stackoverflow.com/questions/{asked}/title"
    assert found.metadata["tags"] == ("python", "pandas")
    assert [
        (each.heading, each.metadata.get("score"), each.metadata.get("is_accepted")) for each in found.sections
    ] == [("Why & how?", 3, None), ("Accepted answer by bob", 1, True), ("Answer by bob", 9, False)]
    assert found.sections[1].metadata["url"] == f"https://stackoverflow.com/a/{accepted}"
    assert "if x < 3:" in found.text
    assert str(found.updated_at) == "2026-01-16 00:03:00+00:00"


def test_questions_of_any_tag_are_read_once(site: StackExchangeServer, tmp_path: Path) -> None:
    site.answer_to(site.ask("Both", tags=["python", "duckdb"]))
    site.answer_to(site.ask("One", tags=["duckdb"]))
    site.ask("None", tags=["java"])
    assert stackexchange_source(site, tmp_path).said() == stackexchange_said(site)
    asked = [request.path for request in site.requests if request.path.endswith("/answers")]
    assert asked == ["/2.3/questions/101;103/answers"], "the question with both tags is not asked for again"


def test_deleted_questions_are_found_by_the_next_listing_and_deleted_answers_too(
    site: StackExchangeServer, tmp_path: Path
) -> None:
    first, second, third = (site.ask(f"Q{number}") for number in range(3))
    kept, lost = site.answer_to(first), site.answer_to(first, "<p>Wrong.</p>")
    site.answer_to(second)
    site.now += DAY
    source = stackexchange_source(site, tmp_path)
    source.said()
    site.delete(lost)
    site.delete(second)
    site.accept(kept)
    site.requests.clear()
    assert source.said() == stackexchange_said(site)
    assert [request.path for request in site.requests if "answers" in request.path] == [
        f"/2.3/questions/{first}/answers"
    ], f"nothing changed about {third}"


def test_many_questions_of_one_second_are_paged_by_number(site: StackExchangeServer, tmp_path: Path) -> None:
    for number in range(7):
        site.ask(f"Q{number}", at=60 if number == 0 else 0)
    site.ask("Later")
    site.page_size = 2
    assert stackexchange_source(site, tmp_path).said() == stackexchange_said(site)


def test_a_new_tag_is_read_whole_and_a_removed_one_goes_with_the_full_listing(
    site: StackExchangeServer, tmp_path: Path
) -> None:
    site.ask("One", tags=["python"])
    site.ask("Two", tags=["duckdb"])
    site.now += 10 * DAY
    assert stackexchange_source(site, tmp_path, tags=["python"]).said() == stackexchange_said(site, ["python"])
    assert stackexchange_source(site, tmp_path, tags=["python", "duckdb"]).said() == stackexchange_said(site)
    source = stackexchange_source(site, tmp_path, tags=["duckdb"])
    source.a_day_later()
    assert source.said() == stackexchange_said(site, ["duckdb"])


def test_a_pause_that_the_api_asks_for_is_kept(site: StackExchangeServer, tmp_path: Path) -> None:
    site.backoff = 1
    site.page_size = 2
    for number in range(3):
        site.ask(f"Q{number}")
    assert stackexchange_source(site, tmp_path, tags=["python"]).said() == stackexchange_said(site), (
        "the server would have refused"
    )


def test_a_pause_that_is_too_long_is_named(site: StackExchangeServer, tmp_path: Path) -> None:
    site.backoff = 3600
    site.page_size = 1
    site.ask("One")
    site.ask("Two")
    listing = stackexchange_source(site, tmp_path, tags=["python"]).source.list()
    assert len(listing.entries) == 1
    assert "rate limit until" in (listing.problem or "")


def test_a_used_up_quota_is_named_and_reading_goes_on_when_it_is_renewed(
    site: StackExchangeServer, tmp_path: Path
) -> None:
    for number in range(6):
        site.answer_to(site.ask(f"Q{number}"))
    site.page_size = 2
    site.quota = 3
    source = stackexchange_source(site, tmp_path)
    for _ in range(2):
        problem = source.source.list().problem or ""
        assert "rate limit until" in problem, "more requests available in 40000 seconds"
        assert "token_env may raise the limit" in problem
    site.quota = 300
    assert source.said() == stackexchange_said(site)


def test_the_key_is_sent_and_never_shown(site: StackExchangeServer, tmp_path: Path) -> None:
    site.ask("One")
    source = stackexchange_source(site, tmp_path, token=KEY, token_env="STACK_APPS_KEY")
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


def test_an_unknown_site_is_named(site: StackExchangeServer, tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailableError, match="check that the site 'nowhere' exists"):
        stackexchange_source(site, tmp_path, site="nowhere").paths()
