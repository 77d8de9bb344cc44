"""What items stand under: file, folder, headings, and claims that name nothing but an attribute."""

from __future__ import annotations

import pytest

from evals.conflicts import tagged_item
from nornweave.claims.passage import Passage
from nornweave.fusion.detect import find_disagreements
from nornweave.fusion.grounds import ground_of
from nornweave.fusion.records import Detector, Disagreement


def page(text: str, path: str = "docs/page.md", section: str = "") -> Passage:
    return Passage(text=text, path=path, section=section or None, format="markdown")


def code(text: str, path: str, language: str = "python") -> Passage:
    return Passage(text=text, domain="code", path=path, language=language)


def compared(a: Passage, b: Passage) -> tuple[Disagreement, ...]:
    return find_disagreements((tagged_item(a, "a"), tagged_item(b, "b")))


def test_places_by_hand() -> None:
    source = ground_of("src/pipelines/orders/dag.py", "")
    assert source.same_folder(ground_of("docs/pipelines/orders.md", "Orders"))
    assert not source.same_place(ground_of("docs/pipelines/orders.md", "Orders"))
    assert ground_of("src/retry.py", "").same_name(ground_of("docs/retries.md", ""))
    assert ground_of("sync.py", "").same_place(ground_of("notes/architecture-sync.md", ""))
    assert not ground_of("sync.py", "").same_name(ground_of("notes/architecture-sync.md", ""))
    assert not ground_of("a/README.md", "").same_place(ground_of("b/README.md", ""))
    assert ground_of("a.py", "", "run_all").same_name(ground_of("b.py", "", "run_all"))
    assert ground_of("pyproject.toml", "").same_folder(ground_of("README.md", ""))


def test_a_bare_constant_meets_a_page_that_is_about_its_attribute() -> None:
    pool = code("const (\n\tdefaultMaxConnections = 50\n)\n", "src/db/connection_pool.go", "go")
    section = "Operations > Connection pool"
    assert compared(pool, page("Each instance keeps a pool of at most 20 connections.", "docs/ops.md", section))
    assert not compared(pool, page("Each instance keeps a pool of at most 50 connections.", "docs/ops.md", section))


def test_a_bare_constant_does_not_meet_a_thing_with_a_name_of_its_own() -> None:
    limits = code("RATE_LIMIT_PER_MINUTE = 60\n", "src/geo/rate_limit.py")
    assert compared(limits, page("The rate limit is 100 requests per minute.", "docs/limits.md", "Limits"))
    assert not compared(
        limits, page("The rate limit of the mail importer is 100 requests per minute.", "docs/limits.md")
    )


def test_a_part_of_a_client_is_not_what_another_thing_has() -> None:
    client = code("class Client\n  READ_TIMEOUT = 35\nend\n", "sdk/webhook_client.rb", "ruby")
    assert not compared(client, page("The webhook timeout is 10 seconds.", "docs/webhooks.md", "Webhooks"))
    assert compared(client, page("The webhook read timeout is 10 seconds.", "docs/webhooks.md", "Webhooks"))


def test_claims_go_before_sentences() -> None:
    a = page("The webhook timeout is 10 seconds. Webhook delivery failures are never counted.", "docs/webhooks.md")
    b = Passage(
        text="ines: the webhook timeout is 30 seconds\nines: webhook delivery failures are counted",
        domain="conversations",
        path="chat.json",
    )
    (found,) = compared(a, b)
    assert found.detector is Detector.SAME_ENTITY_DIVERGENCE
    assert found.claims is not None


@pytest.mark.parametrize(
    ("left", "right"),
    [("The availability is 99.9 %.", "The availability is 99.95 %."), ("The availability is 90 %.", "It is 90.1 %.")],
)
def test_shares_near_the_whole_are_compared_by_what_is_missing(left: str, right: str) -> None:
    a, b = page(f"{left}", "docs/checkout.md", "Checkout"), page(right, "docs/checkout.md", "Checkout")
    other = Passage(text=b.text, domain="research", path=b.path, section=b.section, format="markdown")
    found = find_disagreements((tagged_item(a, "a"), tagged_item(other, "b")))
    assert not found  # what papers say holds for what they studied
