"""The golden sets are what their README says: readable, about places that exist, of every kind, and not too easy."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

from evals.judged_files import read_judgments
from evals.judgments import JudgedQuery, JudgedSet, Judgment, JudgmentOrigin
from nornweave.ask.search.filters import read_filters
from nornweave.config import Settings
from nornweave.connect.connectors import load_settings, open_source
from nornweave.core.files.paths import OwnFiles
from nornweave.core.types import Document, Domain

REPOSITORY = Path(__file__).parents[2]
GOLDEN = REPOSITORY / "evals" / "golden"
CORPUS = REPOSITORY / "examples" / "payments"
OWN = tuple(domain.value for domain in Domain)
"""The sets that are judged within one domain, named like it."""
ANSWERS = "answers"
"""The set that is asked of all domains and judged in all of them."""
SETS = (*OWN, ANSWERS)
KINDS = ("keyword", "semantic", "hybrid", "acronym")
UNANSWERABLE = "unanswerable"
MOST_RELEVANT = {OWN: 6, (ANSWERS,): 8}
"""Places that one query may have: with more of them ten items could not hold them all. Four domains repeat more."""
_WORD = re.compile(r"[a-z]{4,}")


@cache
def golden() -> Mapping[str, JudgedSet]:
    return {name: read_judgments(GOLDEN / name) for name in SETS}


def kinds_of(name: str) -> set[str]:
    """Return the kinds of a set: where nobody says which domain to ask, the question says what a filter would."""
    return {*KINDS, "scoped" if name == ANSWERS else "filtered"}


@cache
def settings() -> Settings:
    return load_settings(REPOSITORY / "nornweave.yaml", {})


@cache
def documents(name: str) -> Mapping[str, Document]:
    """Return the documents that a set may judge by path: its own domain's, or those of all domains."""
    if name != ANSWERS:
        return documents_of(Domain(name))
    found: dict[str, Document] = {}
    for domain in Domain:
        assert not found.keys() & documents_of(domain).keys(), "a path of one domain is also one of another"
        found.update(documents_of(domain))
    return found


@cache
def documents_of(domain: Domain) -> Mapping[str, Document]:
    found: dict[str, Document] = {}
    for configured in settings().sources:
        if configured.domain is not domain or configured.path is None or not is_example(configured.path):
            continue
        source = open_source(configured, OwnFiles(Path(mkdtemp())))
        for entry in source.list().entries:
            assert entry.path not in found, f"two documents at {entry.path}"
            found[entry.path] = source.parse(entry, source.fetch(entry))
    return found


def is_example(path: Path) -> bool:
    return CORPUS in (path.resolve(), *path.resolve().parents)


def judged(name: str) -> Iterator[tuple[Judgment, Document]]:
    for judgment in golden()[name].judgments:
        assert judgment.path in documents(name), f"{judgment.query_id}: {judgment.path} is not in the example corpus"
        yield judgment, documents(name)[judgment.path]


def words_of(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


def text_at(judgment: Judgment, document: Document) -> str:
    if judgment.lines:
        return "\n".join(document.text.split("\n")[judgment.lines[0] - 1 : judgment.lines[1]])
    said = [one.body for one in document.messages if one.id == judgment.message_id]
    return "\n".join(said) if judgment.message_id else document.text


def queries(names: Iterable[str] = SETS) -> Iterator[JudgedQuery]:
    for name in names:
        yield from golden()[name].queries


def answerable(names: Iterable[str] = SETS) -> list[JudgedQuery]:
    return [query for query in queries(names) if query.answerable]


@pytest.mark.parametrize("name", SETS)
def test_each_set_is_made_by_people_and_has_every_kind(name: str) -> None:
    one = golden()[name]
    assert one.origin is JudgmentOrigin.PEOPLE
    assert one.note
    counts = Counter(query.kind for query in answerable((name,)))
    assert set(counts) == kinds_of(name)
    assert min(counts.values()) >= 4


@pytest.mark.parametrize("names", [OWN, (ANSWERS,)])
def test_there_are_enough_queries_of_each_kind(names: tuple[str, ...]) -> None:
    counts = Counter(query.kind for query in answerable(names))
    assert min(counts.values()) >= 10
    assert counts.total() >= 50


@pytest.mark.parametrize("names", [OWN, (ANSWERS,)])
def test_questions_without_an_answer_are_marked_and_have_none(names: tuple[str, ...]) -> None:
    unanswerable = [query for query in queries(names) if not query.answerable]
    assert len(unanswerable) >= 20
    assert {query.kind for query in unanswerable} == {UNANSWERABLE}
    for name in names:
        assert {query.id for query in answerable((name,))} == set(golden()[name].relevant)


def test_nothing_is_asked_twice() -> None:
    assert len({query.id for query in queries()}) == len(list(queries()))
    texts = Counter(" ".join(query.text.casefold().split()) for query in queries())
    assert not [text for text, count in texts.items() if count > 1]


@pytest.mark.parametrize("names", MOST_RELEVANT)
def test_no_query_has_more_relevant_places_than_the_first_ten_items_can_show(names: tuple[str, ...]) -> None:
    for one in map(golden().__getitem__, names):
        assert not [query for query, places in one.relevant.items() if len(places) > MOST_RELEVANT[names]]


def test_every_answerable_query_has_an_exact_answer() -> None:
    for one in golden().values():
        for query, places in one.relevant.items():
            assert max(place.grade for place in places) == 2, query


def test_grades_are_the_three_of_the_readme() -> None:
    assert {judgment.grade for one in golden().values() for judgment in one.judgments} == {0, 1, 2}


@pytest.mark.parametrize("names", [OWN, (ANSWERS,)])
def test_hard_negatives_go_with_a_third_of_the_queries(names: tuple[str, ...]) -> None:
    misleading = {judgment.query_id for name in names for judgment in golden()[name].judgments if judgment.grade == 0}
    assert 3 * sum(query.id in misleading for query in answerable(names)) >= len(answerable(names))


@pytest.mark.parametrize("name", SETS)
def test_the_readme_counts_them_right(name: str) -> None:
    one = golden()[name]
    misleading = sum(judgment.grade == 0 for judgment in one.judgments)
    cells = (len(one.relevant), len(one.unanswerable), len(one.judgments) - misleading, misleading)
    row = f"| `{name}` | {' | '.join(map(str, cells))} |"
    assert row in (GOLDEN / "README.md").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("name", SETS)
def test_every_judged_place_exists(name: str) -> None:
    for judgment, document in judged(name):
        assert text_at(judgment, document).strip(), judgment.key
        if judgment.lines:
            assert judgment.lines[1] <= len(document.text.split("\n")), judgment.key
        if judgment.message_id:
            assert judgment.message_id in {message.id for message in document.messages}, judgment.key


@pytest.mark.parametrize("name", SETS)
def test_places_are_named_as_citations_name_them(name: str) -> None:
    """Messages by their id; paged documents, which have no lines to cite, as a whole; everything else by lines."""
    for judgment, document in judged(name):
        assert bool(judgment.message_id) == bool(document.messages), judgment.key
        assert judgment.whole_document == bool(document.page_starts), judgment.key


@pytest.mark.parametrize("name", [Domain.RESEARCH.value, ANSWERS])
def test_lines_of_a_thread_lie_within_one_post(name: str) -> None:
    """They count lines of the text that the system made of it, which an edit of its reader could shift."""
    for judgment, document in judged(name):
        if document.format != "stackexchange" or judgment.lines is None:
            continue
        starts = {document.text.count("\n", 0, section.span.start) + 1: section for section in document.sections}
        post = starts.get(judgment.lines[0])
        assert post is not None, f"{judgment.key} does not start where a post starts"
        end = document.text[: post.span.end].rstrip().count("\n") + 1
        assert judgment.lines[1] <= end, judgment.key


@pytest.mark.parametrize("domain", Domain)
def test_filters_are_read_and_only_filtered_queries_have_them(domain: Domain) -> None:
    declared = settings().domains[domain].filters
    for query in golden()[domain.value].queries:
        assert bool(query.filters) == (query.kind == "filtered"), query.id
        assert len(read_filters(declared, query.filters, f"filters.{domain.value}")) == len(query.filters)


@pytest.mark.parametrize("domain", Domain)
def test_filters_leave_something_out_that_looks_right(domain: Domain) -> None:
    """At least two filtered queries of a domain have a hard negative; a filter that excludes nothing proves nothing."""
    filtered = {query.id for query in golden()[domain.value].queries if query.filters}
    misleading = {judgment.query_id for judgment in golden()[domain.value].judgments if judgment.grade == 0}
    assert len(filtered & misleading) >= 2


def test_nobody_says_which_domain_to_ask() -> None:
    """Filters are a domain's own; a scoped query says where to look, and most have what looks right elsewhere."""
    assert not [query.id for query in queries((ANSWERS,)) if query.filters]
    scoped = {query.id for query in answerable((ANSWERS,)) if query.kind == "scoped"}
    misleading = {judgment.query_id for judgment in golden()[ANSWERS].judgments if judgment.grade == 0}
    assert 2 * len(scoped & misleading) >= len(scoped)


def test_answers_are_judged_in_every_domain() -> None:
    """Half of the queries that are asked of all domains have answers in two or more, and every domain answers many."""
    home = {path: domain for domain in Domain for path in documents_of(domain)}
    answering = {query: {home[one.path] for one in found} for query, found in golden()[ANSWERS].relevant.items()}
    assert 2 * sum(len(found) > 1 for found in answering.values()) >= len(answering)
    counts = Counter(domain for found in answering.values() for domain in found)
    assert min(counts[domain] for domain in Domain) >= 10


@pytest.mark.parametrize("names", [OWN, (ANSWERS,)])
def test_keyword_queries_use_words_of_their_answers_and_semantic_ones_hardly_any(names: tuple[str, ...]) -> None:
    assert shared_words(names, "keyword") >= 0.75
    assert shared_words(names, "semantic") <= 0.3


def shared_words(names: tuple[str, ...], kind: str) -> float:
    """Return how many of the queries' longer words stand in the exact answers, over all queries of a kind."""
    asked = shared = 0
    for name in names:
        exact: dict[str, set[str]] = {}
        for judgment, document in judged(name):
            if judgment.grade == 2:
                exact.setdefault(judgment.query_id, set()).update(words_of(text_at(judgment, document)))
        for query in answerable((name,)):
            if query.kind == kind:
                asked += len(words_of(query.text))
                shared += len(words_of(query.text) & exact[query.id])
    return shared / asked
