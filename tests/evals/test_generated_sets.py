"""Judged sets out of a corpus: what each rule takes for a query, what it leaves, and that a set stays what it is."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from configurations import configured
from growth import assert_subquadratic
from recall_workspace import NO_MODELS, opened, publish

from evals.generated import generate
from evals.generated.docstrings import _summary
from evals.generated.query_words import (
    content_words,
    first_sentence,
    is_about_something,
    is_askable,
    is_boilerplate,
    is_prose,
    normalised,
    sentences,
    without_marks,
    without_number,
)
from evals.judgments import JudgedQuery, JudgedSet, Judgment, JudgmentOrigin
from nornweave.config import Settings
from nornweave.core.types import Domain

TYPES = {"chat": "messages", "slack": "slack", "issues": "github", "questions": "stackexchange"}
DOMAINS = {"code": "code", "docs": "documentation", "chat": "conversations", "slack": "conversations",
           "issues": "conversations", "papers": "research", "questions": "research"}  # fmt: skip


def workspace(folder: Path, files: Mapping[str, str]) -> Settings:
    """Write documents, a source for each folder of them, and publish all domains that have one."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    sources = [
        {"id": name, "domain": DOMAINS[name.split("-")[0]], "type": TYPES.get(name, "files"), "path": name}
        for name in sorted({path.split("/")[0] for path in files})
    ]
    settings = configured(folder, *sources, domain=NO_MODELS)
    publish(settings, *settings.served_domains)
    return settings


def made(settings: Settings, domain: Domain, limit: int = 100) -> JudgedSet:
    with opened(settings, domain) as generation:
        return generate(generation, domain, limit=limit)


def by_text(judged: JudgedSet) -> dict[str, tuple[JudgedQuery, Judgment]]:
    places = {judgment.query_id: judgment for judgment in judged.judgments}
    return {query.text: (query, places[query.id]) for query in judged.queries}


def hidden_text(folder: Path, query: JudgedQuery) -> str:
    assert query.hidden
    return (folder / query.hidden.path).read_text(encoding="utf-8")[query.hidden.start : query.hidden.end]


PYTHON = '''"""Money in and out: this describes the module and not a function."""

import abc


class Ledger(abc.ABC):
    """Keeps balances of every account in minor units.

    Nothing is ever deleted.
    """

    def post(self, account: str, amount: int) -> None:
        """Book an amount to one account (see :class:`Entry`), or raise ``LedgerError``.

        Args:
            account: whose.
        """
        self.book(account, amount)

    def __len__(self) -> int:
        """Count the accounts that have a balance."""
        return 0


def close(day):
    """Close it."""


def settle(day):
    # no docstring
    return "the words settle batches overnight stand in a string"


async def refund(payment):
    """refund a captured payment in part or as a whole."""
    return payment
'''
LANGUAGES = {
    "ledger.go": (
        """package ledger

// Copyright 2026 somebody, all rights reserved by them.

// PostEntry writes a balanced entry to the journal. It never blocks.
func PostEntry(account string) error {
	return nil
}
""",
        "writes a balanced entry to the journal",
        (5, 8),
    ),
    "velocity.rs": (
        """use std::fmt;

/// Counts the attempts of a card within a sliding window.
///
/// # Panics
#[derive(Debug)]
pub fn count_attempts(card: &str) -> usize {
    card.len()
}
""",
        "Counts the attempts of a card within a sliding window",
        (3, 9),
    ),
    "Exporter.java": (
        """package pay;

public class Exporter {
    private int rows;

    /**
     * Writes the settlement file for {@link Bank} in fixed width.
     *
     * @param day which
     */
    public void export(String day) {
        rows += 1;
    }

    public int other(int a, int b, int c) {
        return a * b + c - rows;
    }
}
""",
        "Writes the settlement file for Bank in fixed width",
        (6, 13),
    ),
    "verifier.js": (
        """const crypto = require("crypto");

/**
 * Checks the signature of a webhook in constant time.
 */
export function verify(body, secret) {
  return crypto.timingSafeEqual(body, secret);
}
""",
        "Checks the signature of a webhook in constant time",
        (3, 8),
    ),
    "client.rb": (
        """require "json"

# Retries a request with exponential backoff. Up to five times.
def retry_request(times)
  times.times { yield }
end
""",
        "Retries a request with exponential backoff",
        (3, 6),
    ),
    "Refunds.cs": (
        """using System;

/// <summary>Refunds a part of a payment when <paramref name="amount"/> is set.</summary>
public class Refunds
{
    public int Amount;
}
""",
        "Refunds a part of a payment when amount is set",
        (3, 7),
    ),
}


def test_a_docstring_asks_for_its_function(tmp_path: Path) -> None:
    found = by_text(made(workspace(tmp_path, {"code/src/ledger.py": PYTHON}), Domain.CODE))
    assert set(found) == {
        "Keeps balances of every account in minor units",
        "Book an amount to one account (see Entry), or raise LedgerError",
        "refund a captured payment in part or as a whole",
    }
    query, place = found["Book an amount to one account (see Entry), or raise LedgerError"]
    assert (place.path, place.lines, place.grade) == ("src/ledger.py", (12, 18), 1)
    hidden = hidden_text(tmp_path / "code", query)
    assert hidden.startswith('"""Book an amount') and hidden.endswith('account: whose.\n        """')
    # Of a class what precedes its first method: the methods are places of their own.
    assert found["Keeps balances of every account in minor units"][1].lines == (6, 12)


@pytest.fixture(scope="module")
def languages(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, JudgedSet]:
    folder = tmp_path_factory.mktemp("languages")
    settings = workspace(folder, {f"code/{name}": text for name, (text, _, _) in LANGUAGES.items()})
    return folder / "code", made(settings, Domain.CODE)


@pytest.mark.parametrize("name", LANGUAGES)
def test_a_comment_asks_for_what_it_stands_above(languages: tuple[Path, JudgedSet], name: str) -> None:
    folder, judged = languages
    text, asked, lines = LANGUAGES[name]
    found = {text: pair for text, pair in by_text(judged).items() if pair[1].path == name}
    assert list(found) == [asked]
    query, place = found[asked]
    assert place.lines == lines
    hidden = hidden_text(folder, query)
    assert "Copyright" not in hidden
    assert query.hidden is not None
    assert text.index(hidden) == query.hidden.start
    assert asked.split()[0] in hidden
    assert asked.split()[-1] in hidden


@pytest.mark.parametrize(
    ("described", "summary"),
    [
        ('"""Return the sum of all entries, e.g. of a day. More."""', "Return the sum of all entries, e.g. of a day"),
        ('"""Return the sum of\n    all booked entries\n\n    Of a day."""', "Return the sum of all booked entries"),
        ("'''Sum up every booked entry\n    :param day: which\n    '''", "Sum up every booked entry"),
        (
            "// day_total: adds the booked entries up\n// over the whole day.",
            "adds the booked entries up over the whole day",
        ),
        ("/** Is every entry booked twice? */", "Is every entry booked twice?"),
        ('"""Sum."""', None),
        ('"""Return the day_total of the entries."""', None),  # names the function itself
        ('"""day_total returns the sum of entries."""', "returns the sum of entries"),
        ('"""See base class for what it does."""', None),
        ("// eslint-disable-next-line no-console because of reasons", None),
        ("// a = b + c; x[1] = y(2) + z; w(a, b)", None),
        ('"""' + "word other thing " * 20 + '"""', None),
    ],
)
def test_only_a_sentence_of_prose_is_asked(described: str, summary: str | None) -> None:
    assert _summary(described, "day_total", "python") == summary


MARKDOWN = """# Payments API<a name="payments-api-page"></a>

Everything that merchants call when they want to be paid, and what we answer them with, in the order of events.

## Introduction

Nobody asks for an introduction by that name, however long this paragraph may be; so it goes on for a while longer here.

## Rate limits

A merchant may send a hundred requests per second and key; what comes above that is answered with 429, and a header says
when to come back.

## Errors that clients must retry

Some answers mean that nothing was done yet. Send the same request with the same key once more, later, with some jitter.

### Timeouts of the acquirer

When the acquirer does not answer in time, nobody knows whether the payment went through; ask for it with its key first.

## Too short to be found

Indeed.
"""


def test_a_heading_asks_for_its_section(tmp_path: Path) -> None:
    other = MARKDOWN.replace("Payments", "Payouts").replace("Rate limits", "Fees").replace("## Errors that", "## What")
    found = by_text(
        made(workspace(tmp_path, {"docs/api.md": MARKDOWN, "docs/payouts.md": other}), Domain.DOCUMENTATION, limit=20)
    )
    api = {text: place.lines for text, (_, place) in found.items() if place.path == "api.md"}
    assert set(api) <= {
        "Payments API: Rate limits",
        "Errors that clients must retry",
        "Errors that clients must retry: Timeouts of the acquirer",
    }
    assert api["Payments API: Rate limits"] == (9, 12)
    assert api["Errors that clients must retry"] == (14, 20)  # with its subsection
    assert not any("Introduction" in text or "Indeed" in text for text in found)
    query = found["Payments API: Rate limits"][0]
    assert hidden_text(tmp_path / "docs", query) == "## Rate limits"
    # What two sections are called alike is asked for with what stands above, which tells them apart.
    assert "Timeouts of the acquirer" not in found


def test_headings_of_other_markup_are_found_where_they_stand(tmp_path: Path) -> None:
    body = (
        "Open the vault and follow what it says; it takes a minute, and the partners need to know of it before it ends."
    )
    files = {
        "docs/runbook.rst": f"Keys of partners\n================\n\nIntro.\n\nRotate the *signing* key\n"
        f"------------------------\n\n{body}\n",
        "docs/page.html": f"<html><body><h1>Start here</h1><p>{body}</p>\n<h2>Order a card reader</h2>\n<p>{body} "
        f"{body}</p></body></html>",
    }
    found = by_text(made(workspace(tmp_path, files), Domain.DOCUMENTATION))
    query, place = found["Order a card reader"]
    assert hidden_text(tmp_path / "docs", query) == "Order a card reader"
    assert place.lines == (2, 3)
    query, place = found["Rotate the signing key"]
    assert hidden_text(tmp_path / "docs", query) == "Rotate the *signing* key"
    assert place.lines == (6, 9)


def test_a_question_asks_for_its_accepted_answer(tmp_path: Path) -> None:
    def question(number: int, title: str, answers: list[dict[str, object]]) -> dict[str, object]:
        return {"question_id": number, "title": title, "body": f"<p>More about {number}.</p>", "answers": answers}

    def answer(number: int, score: int, accepted: bool) -> dict[str, object]:
        body = f"<p>Answer {number}: it depends on the currency.</p>"
        return {"answer_id": number, "body": body, "score": score, "is_accepted": accepted}

    items = [
        question(1, "How many decimals does the yen have?", [answer(11, 50, False), answer(12, 3, True)]),
        question(2, "Why does a refund keep its fee?", [answer(21, 1, False), answer(22, 9, False)]),
        question(3, "Who answers questions nobody answered?", []),
    ]
    settings = workspace(tmp_path, {"questions/money.json": json.dumps({"items": items})})
    found = by_text(made(settings, Domain.RESEARCH))
    assert set(found) == {"How many decimals does the yen have?", "Why does a refund keep its fee?"}
    with opened(settings, Domain.RESEARCH) as generation:
        text = generation.document_texts([0])[0]
    lines = text.split("\n")
    for asked, said in (("How many decimals does the yen have?", "12"), ("Why does a refund keep its fee?", "22")):
        query, place = found[asked]
        assert place.lines is not None
        shown = "\n".join(lines[place.lines[0] - 1 : place.lines[1]])
        assert f"Answer {said}:" in shown
        assert shown.count("Answer") == 1
        assert query.hidden is not None
        assert text[query.hidden.start : query.hidden.end] == asked


def comment(number: int, who: str, body: str, likes: int = 0) -> dict[str, object]:
    moment = f"2026-01-12T09:{number % 60:02d}:00Z"
    return {
        "id": number,
        "user": {"login": who},
        "body": body,
        "created_at": moment,
        "reactions": {"total_count": likes},
    }


def test_an_issue_asks_for_the_comment_that_most_people_liked(tmp_path: Path) -> None:
    long = "The gateway closes idle connections after four minutes, and the pool does not notice before it writes. " * 8
    issue = {
        "number": 7,
        "title": "Connections die after an idle night",
        **comment(700, "erin", "Every morning the first payment fails."),
        "comments": [
            comment(701, "bob", "Does it happen on Mondays too, after the weekend's pause?"),
            comment(702, "dana", long, likes=5),
            comment(703, "erin", "Confirmed here, thanks to everybody who looked into this one!", likes=9),
        ],
    }
    unanswered = {
        "number": 8,
        "title": "Nobody ever answers this report",
        **comment(800, "erin", "Hello?"),
        "comments": [comment(801, "erin", "Still nobody here who wants to answer my report?")],
    }
    found = by_text(made(workspace(tmp_path, {"issues/a.json": json.dumps([issue, unanswered])}), Domain.CONVERSATIONS))
    assert list(found) == ["Connections die after an idle night"]
    query, place = found["Connections die after an idle night"]
    assert (query.kind, place.message_id, place.lines) == ("answer", "702", None)


CHAT = """[2026-01-12 09:14] dana: webhook backlog grows, does anybody know which shard holds fakturo?
[2026-01-12 09:15] bob: looking
[2026-01-12 09:18] bob: fakturo lives on shard four since the migration in December
[2026-01-12 09:26] dana: quarantined shard four, draining it, right?
[2026-01-12 09:30] bob: yes, and tell the partners about the delay of their events please
"""


def test_a_chat_question_asks_for_the_reply(tmp_path: Path) -> None:
    found = by_text(made(workspace(tmp_path, {"chat/ops.log": CHAT}), Domain.CONVERSATIONS))
    asked = "webhook backlog grows, does anybody know which shard holds fakturo?"
    assert list(found) == [asked]  # the other is a tag question
    query, place = found[asked]
    assert (query.kind, place.message_id) == ("reply", "3")  # not "looking", which says nothing
    assert query.hidden is not None
    assert query.hidden.start == 0
    assert query.hidden.end == len("dana: ") + len(asked)


FILLER = (
    "what all the merchants send us and what we send them back, step by step, with everything that may go wrong "
    "between the two."
)


def many(count: int, start: int = 0) -> dict[str, str]:
    """Return documents with two headings each that nothing else has."""
    subjects = ("Refunds", "Ledgers", "Payouts", "Disputes", "Webhooks")
    files = {}
    for number in range(start, start + count):
        subject = f"{subjects[number % 5]} chapter{number:03d}"
        sections = "\n".join(
            f"## {kind} {subject} merchants\n\n{kind}, {FILLER}\n" for kind in ("Start", "Stop", "Mend")
        )
        files[f"docs/{number:03d}.md"] = f"# About {subject}\n\n{sections}"
    return files


@pytest.fixture(scope="module")
def chapters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[int, JudgedSet]]:
    """Sets of 20 queries from 40 documents, from 41, and from all of them but the first."""
    sets = {}
    for name, files in ((40, many(40)), (41, many(41)), (39, many(39, start=1))):
        sets[name] = made(workspace(tmp_path_factory.mktemp(f"c{name}"), files), Domain.DOCUMENTATION, limit=20)
    yield sets


def test_the_limit_is_kept_and_no_document_has_more_than_its_share(chapters: dict[int, JudgedSet]) -> None:
    assert len(chapters[40].queries) == 20
    assert max(Counter(judgment.path for judgment in chapters[40].judgments).values()) <= 3
    assert len({judgment.path for judgment in chapters[40].judgments}) >= 10


@pytest.mark.parametrize(("other", "document"), [(41, "040.md"), (39, "000.md")])
def test_a_document_more_or_less_changes_few_queries(chapters: dict[int, JudgedSet], other: int, document: str) -> None:
    """What goes or comes is at most what the document gives, and what takes its place."""
    before, after = (by_text(chapters[one]) for one in (40, other))
    own = sum(1 for one in (before, after) for _, place in one.values() if place.path == document)
    assert len(before.keys() ^ after.keys()) <= 2 * own
    shared = before.keys() & after.keys()
    assert len(shared) >= 17
    assert [before[text] for text in sorted(shared)] == [after[text] for text in sorted(shared)]


def test_the_same_corpus_gives_the_same_set(tmp_path: Path) -> None:
    settings = workspace(tmp_path, {**many(6), "code/ledger.py": PYTHON})
    for domain in (Domain.DOCUMENTATION, Domain.CODE):
        first = made(settings, domain, limit=7)
        assert made(settings, domain, limit=7) == first
        assert set(by_text(made(settings, domain, limit=3))) <= set(by_text(first))


def test_what_is_said_twice_is_not_asked(tmp_path: Path) -> None:
    files = {
        "code/a.py": 'def add_up(day):\n    """Add up what a day brought."""\n    return sum(day)\n',
        "code/b.py": 'def sum_up(day):\n    """Add up what a day brought!"""\n    return 0\n',
        "code/c.py": 'def take_off(day):\n    """Take off what a week cost."""\n    return 1\n',
    }
    assert list(by_text(made(workspace(tmp_path, files), Domain.CODE))) == ["Take off what a week cost"]


def test_documents_that_two_sources_have_are_left_out(tmp_path: Path) -> None:
    one = 'def take_off(day):\n    """Take off what a week cost."""\n    return 1\n'
    other = 'def bring(day):\n    """Bring home what was left there."""\n    return 1\n'
    files = {"code/same.py": one, "code-two/same.py": other, "code-two/own.py": other.replace("home", "back")}
    assert [place.path for _, place in by_text(made(workspace(tmp_path, files), Domain.CODE)).values()] == ["own.py"]


def test_a_corpus_without_any_gives_an_empty_set(tmp_path: Path) -> None:
    settings = workspace(tmp_path, {"code/a.py": "x = 1\n", "docs/a.md": "nothing\n", "chat/a.log": "bob: hi\n"})
    for domain in (Domain.CODE, Domain.DOCUMENTATION, Domain.CONVERSATIONS):
        judged = made(settings, domain)
        assert (judged.queries, judged.judgments, dict(judged.relevant)) == ((), (), {})


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A little of everything."""
    code = {f"code/{name}": text for name, (text, _, _) in LANGUAGES.items()}
    files = {**many(12), **code, "code/ledger.py": PYTHON, "docs/api.md": MARKDOWN, "chat/ops.log": CHAT}
    return workspace(tmp_path_factory.mktemp("mixed"), files)


@pytest.mark.parametrize("domain", [Domain.CODE, Domain.DOCUMENTATION, Domain.CONVERSATIONS])
def test_every_query_can_be_asked_and_its_place_is_there(mixed: Settings, domain: Domain) -> None:
    judged = made(mixed, domain)
    assert judged.queries
    assert (judged.name, judged.origin) == ("generated", JudgmentOrigin.GENERATED)
    assert "hidden" in judged.note
    assert len({query.id for query in judged.queries}) == len(judged.queries) == len(judged.judgments)
    assert len({normalised(query.text) for query in judged.queries}) == len(judged.queries)
    with opened(mixed, domain) as generation:
        places = generation.chunk_places()
        texts = generation.document_texts({place.document_no for place in places})
    documents = {place.path: texts[place.document_no] for place in places}
    messages = {(place.path, message) for place in places for message in place.message_ids}
    for query, place in by_text(judged).values():
        assert query.kind and query.id.startswith(f"{query.kind}-")
        assert len(content_words(query.text)) >= 3
        assert query.hidden is not None and query.hidden.path == place.path
        text = documents[place.path]
        assert 0 <= query.hidden.start < query.hidden.end <= len(text)
        assert text[query.hidden.start : query.hidden.end].strip()
        assert place.message_id is None or (place.path, place.message_id) in messages
        assert place.lines is None or 1 <= place.lines[0] <= place.lines[1] <= text.count("\n") + 1


@pytest.mark.parametrize(("text", "askable"), [
    ("Rate limits", False), ("rate limits per merchant", True), ("How do I do it to you?", False),
    ("1 2 3 4 5 a b c d", False), ("word " * 41, False), ("Größe der Warteschlange", True),
])  # fmt: skip
def test_what_says_enough_to_be_looked_for(text: str, askable: bool) -> None:
    assert is_askable(text) is askable


@pytest.mark.parametrize("heading", ["Introduction", "  see ALSO ", "What's new?", "Return value", "Table of Contents"])
def test_headings_that_every_document_has(heading: str) -> None:
    assert is_boilerplate(heading)
    assert not is_boilerplate(f"{heading} of payments")


def test_a_question_of_a_chat_must_be_about_something() -> None:
    assert is_about_something("When does the merchant get the refund?")
    assert not is_about_something("What else is going on in your life lately?")
    assert not is_about_something("The merchant got the refund, didn't he?")


def test_markup_and_numbers_are_no_part_of_a_query() -> None:
    assert (
        without_marks('Reads ``a.b`` as :py:class:`~pay.Entry`, "quoted" *twice*') == "Reads a.b as Entry, quoted twice"
    )
    assert without_marks("keeps snake_case and <b>bold</b> _words_") == "keeps snake_case and bold words"
    assert [without_number(one) for one in ("3.1 Rate limits", "2. Fees", "5 Discussion", "429 Too many")] == [
        "Rate limits", "Fees", "Discussion", "429 Too many",
    ]  # fmt: skip
    assert sentences("Really? Yes, e.g. here. Then") == ["Really?", "Yes, e.g. here.", "Then"]


@pytest.mark.parametrize(
    "text", ["a. " * 20_000, "`" * 50_000, "<a" * 25_000, ":a:`" * 20_000, "* " * 30_000, "{@a " * 20_000]
)
def test_hostile_text_takes_no_time(text: str) -> None:
    def read_every_way(text: str) -> None:
        for read in (first_sentence, sentences, without_marks, without_number, is_prose, content_words):
            read(text)  # type: ignore[operator]
        _summary(text, "a_name", "go")
        _summary(f'"""{text}"""', "name", "python")

    assert_subquadratic(read_every_way, lambda size: text[:size], len(text))
