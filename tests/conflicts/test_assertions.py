"""Sentences of two domains contradict each other if they are about one thing and hold something else of it."""

from typing import Any

import pytest

from nornweave.disagree.assertions.pairing import AssertingPassage, find_contradictions
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
        (SAYS, code("# OAuth removed in v3\ndef login(): ..."), Detector.NEGATION),
        (SAYS, code('def login():\n    """OAuth is not available."""'), Detector.NEGATION),
        (
            passage("A value below zero bypasses the `pool_check`."),
            talk("A value below zero doesn't bypass the pool_check."),
            Detector.NEGATION,
        ),
        (
            passage("Returns 200 OK.", section="API > Create payment"),
            code('def create_payment():\n    """Responds with 201 Created."""', "create_payment"),
            Detector.SAME_ENTITY_DIVERGENCE,
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
        (
            passage("Audit logs are stored in the eu-west-1 region."),
            talk("bob: audit logs are stored in eu-central-1 since May"),
            Detector.SAME_ENTITY_DIVERGENCE,
        ),
    ],
)
def test_what_contradicts(one: AssertingPassage, other: AssertingPassage, detector: Detector) -> None:
    (found,) = find_contradictions([one, other])
    assert detector_of(found) is detector
    assert find_contradictions([other, one]) == [found]
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
def test_what_does_not_contradict(one: AssertingPassage, other: AssertingPassage) -> None:
    assert find_contradictions([one, other]) == []
