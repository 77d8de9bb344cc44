"""Stage 3: what merges, what does not, what stays, and that nothing is lost."""

import random
from dataclasses import replace
from itertools import combinations
from textwrap import indent

import numpy as np
import pytest
from fact_support import fact
from growth import assert_subquadratic
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from nornweave.ask.fuse.deduplication.merge import LONGEST_READ, candidate_pairs, deduplicate, words_of
from nornweave.ask.fuse.records import DedupedItems, FusedItem
from nornweave.ask.search.records import Citation, RecallItem
from nornweave.core.types import ChunkId, Fact

RUNBOOK = (
    "Move the slow merchant to the quarantine shard. Its events are delayed but not lost, and the other merchants "
    "catch up within minutes. Write to the merchant before you go home."
)


def fused(name: str, content: str, score: float = 0.5, *, domain: str = "documentation", **fields: object) -> FusedItem:
    citation = Citation(
        domain_id=domain, source_id="source", source_path=f"{name}.md", timestamp=None, line_range=None,
        char_range=(0, len(content)), page=None, section=None, message_ids=None, url=None, title=None, revision=None,
        stale=False,
    )  # fmt: skip
    vector = fields.pop("vector", None)
    item = RecallItem(
        chunk_id=ChunkId(name), content=content, score=score, citation=citation, sources={}, vector=vector
    )
    return FusedItem(item=item, agent=f"{domain}-memory", domain=domain, relevance=score, **fields)


def merged(*items: FusedItem, threshold: float = 0.85) -> DedupedItems:
    return deduplicate(items, threshold)


def ids(outcome: DedupedItems) -> list[str]:
    return [kept.item.chunk_id for kept in outcome.items]


def citations(items: tuple[FusedItem, ...]) -> set[Citation]:
    return {citation for one in items for citation in (one.item.citation, *one.corroborated_by)}


def timeout(seconds: str, **changes: object) -> Fact:
    return fact("webhook_timeout", f"{seconds} seconds", **changes)


def test_an_item_that_says_a_word_of_the_question_is_not_merged_into_one_that_lacks_it() -> None:
    """In a long text an editor may have replaced one ordinary word; but not the one that is asked about."""
    page = (
        "The pump house stands behind the northern yard. Its {} valve was welded in spring and tested twice before the "
        "season began. Whoever opens the sluice signs the book beside the door, notes the level of the river, and "
        "tells the keeper on duty. After heavy rain the grating is cleared by hand, and the keeper looks at the gauge "
        "every hour until the water falls. Keys are returned to the office at the end of each shift."
    )
    items = [fused(word, page.format(word)) for word in ("lower", "outer")]
    assert len(deduplicate(items).items) == 1
    assert len(deduplicate(items, question="when was the pump house tested").items) == 1
    for word in ("lower", "outer"):
        assert ids(deduplicate(items, question=f"when was the {word} valve welded")) == ["lower", "outer"]


@pytest.mark.parametrize(("one", "other", "is_same"), [
    ("receive", "recieve", True), ("addresses", "adresses", True), ("signature", "signatures", True),
    ("welded", "melded", False), ("form", "farm", False), ("inspection", "injection", False),
])  # fmt: skip
def test_a_spelling_mistake_is_no_other_word(one: str, other: str, is_same: bool) -> None:
    text = "At the end of the week the keepers of the lock {} what the office has sent, and put it in the book."
    outcome = merged(fused("a", text.format(one)), fused("b", text.format(other)))
    assert (len(outcome.items) == 1) == is_same


def test_nothing_comes_of_nothing() -> None:
    assert merged() == DedupedItems(())


def test_the_same_chunk_of_two_answers_is_one_item() -> None:
    one, other = fused("a", RUNBOOK, 0.4), replace(fused("a", RUNBOOK, 0.6), agent="another")
    outcome = merged(one, other)
    assert outcome.items == (other,)  # its one citation is not said twice
    assert [(merge.reason, merge.similarity) for merge in outcome.merges] == [("same_chunk", 1.0)]
    assert len(outcome.merges) == 1


def test_of_two_equal_texts_the_higher_score_stays_and_cites_the_other() -> None:
    outcome = merged(fused("a", RUNBOOK, 0.4), fused("b", RUNBOOK.upper(), 0.6, domain="conversations"))
    (kept,) = outcome.items
    assert (kept.item.chunk_id, kept.relevance) == ("b", 0.6)
    assert [citation.source_path for citation in kept.corroborated_by] == ["a.md"]
    assert kept.is_corroborated
    assert [(m.kept, m.dropped, m.reason) for m in outcome.merges] == [("b", "a", "same_text")]


def test_two_equal_files_of_one_domain_are_both_cited() -> None:
    (kept,) = merged(fused("a", RUNBOOK), fused("b", RUNBOOK)).items
    assert {kept.item.citation.source_path, *(c.source_path for c in kept.corroborated_by)} == {"a.md", "b.md"}
    assert not kept.is_corroborated  # corroboration is another domain's


def test_a_quotation_goes_in_favour_of_the_longer_text_whatever_its_score() -> None:
    longer = f"## Backlog\n\n{RUNBOOK} The alert is called `webhook_backlog` and fires after 15 minutes."
    outcome = merged(
        fused("chat", f"bob: from the runbook: {RUNBOOK}", 0.9, domain="conversations"), fused("page", longer, 0.3)
    )
    (kept,) = outcome.items
    assert (kept.item.chunk_id, kept.relevance) == ("page", 0.9)
    assert outcome.merges[0].reason == "contained"


def test_code_that_is_wanted_stays_beside_a_longer_copy() -> None:
    code = "def registration(tag, text, override):\n    return lambda universal: universal.add(tag, text, override)\n"
    longer = f"{code}\n\ndef translation(universal, field):\n    return universal.translated(field.tag, field.name)\n"
    named = merged(fused("tr", code, 0.9, domain="code"), fused("id", longer, 0.3, domain="code"))
    assert ids(named) == ["tr", "id"]
    assert ids(merged(fused("tr", code, 0.5, domain="code"), fused("id", longer, 0.4, domain="code"))) == ["id"]


def test_most_sentences_in_a_longer_text_are_enough() -> None:
    """From 60 % of the sentences on."""
    shared = ["Bread needs time.", "Salt slows the yeast down.", "Steam keeps the crust soft at first."]
    more = ["Rye wants sourdough.", "Let every loaf cool before you cut it.", "Flour differs from mill to mill."]
    short = fused("short", " ".join([*shared, "Baking is a pleasure.", "Everybody likes the smell."]), 0.9)
    long = fused("long", " ".join([*shared, *more, "Old dough makes good crumbs."]), 0.2)
    assert ids(merged(short, long)) == ["long"]
    fewer = fused("short", " ".join([*shared[:2], "Baking is a pleasure.", "Everybody likes the smell of it."]), 0.9)
    assert ids(merged(fewer, long)) == ["short", "long"]


def test_what_only_the_shorter_text_knows_is_not_lost() -> None:
    short = fused("short", f"{RUNBOOK} The shard is called Q7.")
    long = fused(
        "long", f"{RUNBOOK} Merchants who are moved get a mail, and support sees a note. It is written by hand."
    )
    assert ids(merged(short, long)) == ["short", "long"]


@pytest.mark.parametrize(("one", "other"), [
    ("Returns HTTP 404 when the user is missing.", "Returns HTTP 409 when the user exists."),
    ("The request times out after 30 seconds.", "The request times out after 30 minutes."),
    ("Uploads are scanned before they are stored.", "Uploads are not scanned before they are stored."),
    ("Alice owns the billing service.", "Bob owns the billing service."),
    ("Live keys allow 100 calls, sandbox keys 20.", "Live keys allow 20 calls, sandbox keys 100."),
    ("On Linux it lives in one file, on macOS in many.", "On macOS it lives in one file, on Linux in many."),
    ("Copies the rows from the archive to the table.", "Copies the rows to the archive from the table."),
    ("## 2.1.0\n\nFixes a crash in the importer.", "## 2.2.0\n\nFixes a crash in the importer."),
    ("| GET | /users | reads users |", "| GET | /orders | reads orders |"),
    ("Lists the keys of the account.", "Lists the expired keys of the account."),
    ("Only admins may delete a project.", "Admins may delete a project."),
])  # fmt: skip
def test_another_value_in_the_same_template_is_no_duplicate(one: str, other: str) -> None:
    vector = np.array([1, 0], np.float32)  # as close as embeddings can be
    items = fused("a", one, vector=vector, encoder="e"), fused("b", other, 0.4, vector=vector, encoder="e")
    assert ids(merged(*items)) == ["a", "b"]


@pytest.mark.parametrize(("one", "other"), [
    ("def create(name):\n    return store.add(name)", "def delete(name):\n    return store.remove(name)"),
    ("def get(self):\n    return self.n + 1", "def get(self):\n    return self.n - 1"),
    ("async def get(self):\n    return await self.load()", "def get(self):\n    return self.load()"),
    ("def run(job):\n    start(job)\n    return job", "def run(job):\n    start(job)\n    wait(job)\n    return job"),
    ("RETRIES = 5\nDELAY = 2", "RETRIES = 3\nDELAY = 2"),
])  # fmt: skip
def test_functions_that_do_nearly_the_same_are_no_duplicates(one: str, other: str) -> None:
    assert len(merged(fused("a", one, domain="code"), fused("b", other, domain="code")).items) == 2


@pytest.mark.parametrize(("one", "other"), [
    ("**Never** delete a `posting`, it's audited.", "Never delete a posting, it’s audited."),
    ("<p>The key is <b>rotated</b> every quarter.</p>", "> The key is rotated every quarter."),
    ("The pool holds 1,200 connections for two minutes.", "The pool holds 1200 connections for 2 minutes."),
    ("备份每天凌晨两点运行，保留三十天。", "「备份每天凌晨两点运行，保留三十天」"),
    ("JWT is a token format", "JWT is a token format for auth"),
])  # fmt: skip
def test_another_dress_is_no_other_text(one: str, other: str) -> None:
    assert len(merged(fused("a", one), fused("b", other)).items) == 1


def test_code_is_the_same_however_it_is_laid_out_but_for_its_operators() -> None:
    wide = "def area(r):\n    return sum([r ** 2, 1])"
    tall = "def area(r):\n    return sum(\n        [\n            r**2,\n            1,\n        ]\n    )"
    assert len(merged(fused("a", wide, domain="code"), fused("b", tall, domain="code")).items) == 1
    assert len(merged(fused("a", wide, domain="code"), fused("b", wide.replace("**", "*"), domain="code")).items) == 2


HANDLER = """async def handle_payment_error(request, error):
    \"\"\"Turn an error of a payment into a response.\"\"\"
    # Only what the caller can mend has a body.
    if isinstance(error, ValidationError):
        return JSONResponse(
            status_code=422, content={"detail": str(error)}
        )
    raise error
"""
QUOTATIONS = {
    "fence": "```python\n{code}```\n",
    "fence under a heading": "# Errors\n\nThe handler of errors:\n\n~~~py\n{code}~~~\n",
    "directive": "The handler of errors\n\n.. code-block:: python\n   :linenos:\n\n{indented}",
    "double colon": "The handler of errors::\n\n{indented}",
    "indented": "The handler of errors:\n\n{indented}",
}


@pytest.mark.parametrize("quotation", QUOTATIONS.values(), ids=QUOTATIONS.keys())
def test_code_that_a_page_quotes_is_one_item_with_the_code(quotation: str) -> None:
    page = quotation.format(code=HANDLER, indented=indent(HANDLER, "    "))
    outcome = merged(fused("code", HANDLER, 0.9, domain="code"), fused("page", page))
    (item,) = outcome.items
    assert item.relevance == 0.9
    assert item.is_corroborated
    assert {citation.source_path for citation in citations(outcome.items)} == {"code.md", "page.md"}


@pytest.mark.parametrize("quotation", QUOTATIONS.values(), ids=QUOTATIONS.keys())
@pytest.mark.parametrize(
    ("word", "other"), [("422", "400"), ("isinstance", "issubclass"), ("raise error", "raise request"), ("async ", "")]
)
def test_quoted_code_that_differs_in_a_word_is_not_merged(quotation: str, word: str, other: str) -> None:
    altered = HANDLER.replace(word, other, 1)
    page = quotation.format(code=altered, indented=indent(altered, "    "))
    assert ids(merged(fused("code", HANDLER, 0.9, domain="code"), fused("page", page))) == ["code", "page"]


def test_a_value_that_stands_elsewhere_in_the_code_does_not_hide_that_it_differs() -> None:
    lines = [f"assert nodes_equal(list(path), [0, {number}])" for number in (2, 3, 4)]
    code = "\n".join(["def test_paths(path):", *(f"    {line}" for line in lines)])
    altered = code.replace("[0, 2]", "[0, 3]")
    assert ids(merged(fused("a", code, domain="code"), fused("b", altered, domain="code"))) == ["a", "b"]


def test_the_threshold_is_the_callers() -> None:
    one = fused("a", "To wash rice, rinse it slowly three times in cold water from the tap")
    other = fused("b", "Rinse rice three times in cold water from the tap to wash it slowly", 0.4)
    assert len(merged(one, other, threshold=0.5).items) == 1
    longer = fused("b", f"{one.item.content} and leave it in a sieve for a while, because wet rice sticks to the pot")
    assert [m.reason for m in merged(one, longer, threshold=1.0).merges] == ["contained"]


def test_paraphrases_need_close_vectors_of_one_encoder() -> None:
    one = "Driven by light, plants turn carbon dioxide and water into glucose and oxygen; this is photosynthesis."
    other = "Photosynthesis converts carbon dioxide and water into glucose and oxygen, driven by light."
    near, far = np.array([0.9, 0.436], np.float32), np.array([0.8, 0.6], np.float32)
    first = fused("a", one, vector=np.array([1, 0], np.float32), encoder="e")
    (kept,) = merged(first, fused("b", other, 0.4, vector=near, encoder="e")).items
    assert kept.item.chunk_id == "a"
    assert len(merged(first, fused("b", other, vector=far, encoder="e")).items) == 2
    assert len(merged(first, fused("b", other, vector=near, encoder="f")).items) == 2
    assert len(merged(first, fused("b", "Whales sing under water.", vector=near, encoder="e")).items) == 2


def test_items_whose_claims_differ_are_no_duplicates() -> None:
    one = fused("a", RUNBOOK, facts=(timeout("10"),))
    assert len(merged(one, fused("b", RUNBOOK, facts=(timeout("30"),))).items) == 2
    assert len(merged(one, fused("b", RUNBOOK, facts=(timeout("10"), timeout("30")))).items) == 1  # one says more
    assert len(merged(one, fused("b", RUNBOOK, facts=(timeout("30", qualifiers=("hedged",)),))).items) == 1
    assert len(merged(one, fused("b", RUNBOOK, facts=(timeout("30", name="read timeout"),))).items) == 1


def test_the_winner_keeps_its_facts() -> None:
    (kept,) = merged(fused("a", RUNBOOK, 0.9, facts=(timeout("10"),)), fused("b", RUNBOOK, 0.1)).items
    assert kept.facts == (timeout("10"),)


def test_nothing_goes_by_way_of_a_third() -> None:
    """The short text stands in the middle one, most of which stands in the long one: that has nothing of the short."""
    shared = ["Bread needs time.", "Salt slows the yeast down.", "Steam keeps the crust soft at first."]
    own = ["Baking is a pleasure.", "Everybody likes the smell."]
    more = ["Rye wants sourdough.", "Let every loaf cool before you cut it.", "Flour differs from mill to mill."]
    short, middle, long = (" ".join(one) for one in (own, shared + own, shared + more))
    items = fused("short", short, 0.9), fused("middle", middle, 0.8), fused("long", long, 0.7)
    assert ids(merged(*items[:2])) == ["middle"]
    assert ids(merged(*items[1:])) == ["long"]
    assert ids(merged(*items)) == ["short", "long"]


def test_what_went_into_a_loser_is_cited_too() -> None:
    earlier = fused("earlier", "unrelated").item.citation
    losers = fused("b", RUNBOOK.lower(), 0.3, corroborated_by=(earlier,)), fused("c", f"{RUNBOOK}!", 0.4)
    (kept,) = merged(fused("a", RUNBOOK, 0.5), *losers).items
    assert [citation.source_path for citation in kept.corroborated_by] == ["c.md", "b.md", "earlier.md"]


def test_items_without_words_merge_only_if_they_are_equal() -> None:
    assert ids(merged(fused("a", ""), fused("b", "..."), fused("c", ""), fused("d", "---"))) == ["a", "b", "d"]


WORDS = ["cache", "key", "server", "is", "not", "the", "of", "10", "20", "HTTP", "user_id", "Basel", "read", "write"]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join) | st.sampled_from(
    ["", RUNBOOK, f"> {RUNBOOK}", f"{RUNBOOK} It has 7 shards.", f"dana: {RUNBOOK}", RUNBOOK[:90], "x" * 50, "é ü 備份"]
)


@st.composite
def item_lists(draw: st.DrawFn) -> tuple[FusedItem, ...]:
    texts = draw(st.lists(TEXTS, max_size=9))
    domains = st.sampled_from(["code", "documentation", "conversations"])
    scores = st.sampled_from([0.1, 0.5, 0.5, 0.9])
    vectors = st.sampled_from([None, np.array([1, 0], np.float32), np.array([0, 1], np.float32)])
    return tuple(
        fused(f"{place}", text, draw(scores), domain=draw(domains), vector=draw(vectors), encoder="e")
        for place, text in enumerate(texts)
    )


@given(item_lists())
def test_no_citation_is_lost_and_no_score_falls(items: tuple[FusedItem, ...]) -> None:
    outcome = merged(*items)
    assert citations(outcome.items) == citations(items)
    assert len(outcome.items) + len(outcome.merges) == len(items)
    by_id = {one.item.chunk_id: one for one in outcome.items}
    for merge in outcome.merges:
        dropped = items[int(merge.dropped)]
        assert by_id[merge.kept].relevance >= dropped.relevance
        assert dropped.item.citation in by_id[merge.kept].corroborated_by
        assert 0 <= merge.similarity <= 1
    assert all(one.item.citation not in one.corroborated_by for one in outcome.items)


@given(item_lists())
def test_merging_again_merges_nothing(items: tuple[FusedItem, ...]) -> None:
    once = merged(*items)
    assert merged(*once.items) == DedupedItems(once.items)


@given(item_lists(), st.randoms(use_true_random=False))
def test_the_order_of_the_items_changes_only_the_order(items: tuple[FusedItem, ...], chance: random.Random) -> None:
    shuffled = list(items)
    chance.shuffle(shuffled)
    one, other = merged(*items), merged(*shuffled)
    assert {kept.item.chunk_id: kept for kept in one.items} == {kept.item.chunk_id: kept for kept in other.items}
    assert set(one.merges) == set(other.merges)


@given(item_lists())
def test_each_item_stands_where_its_first_version_came(items: tuple[FusedItem, ...]) -> None:
    outcome = merged(*items)
    first = {merge.kept: len(items) for merge in outcome.merges}
    for merge in outcome.merges:
        first[merge.kept] = min(first[merge.kept], int(merge.dropped), int(merge.kept))
    places = [first.get(kept.item.chunk_id, int(kept.item.chunk_id)) for kept in outcome.items]
    assert places == sorted(places)


def many_items(count: int, copies: int) -> tuple[FusedItem, ...]:
    """Return texts of 800 characters, some of which say again what another one says, in another dress."""
    chance = random.Random(11)
    words = ["".join(chance.choices("aeioubcdfghlmnprst", k=chance.randint(3, 9))) for _ in range(3000)]
    weights = [1 / (rank + 3) for rank in range(len(words))]  # as words are used, Zipf
    sentence = lambda: " ".join(chance.choices(words, weights, k=12)).capitalize() + "."  # noqa: E731
    texts = ["\n".join(sentence() for _ in range(10)) for _ in range(count - copies)]
    dresses = (lambda t: t.replace("\n", "\n> "), lambda t: f"{sentence()} {t}", lambda t: t[: t.rindex("\n")])
    texts += [chance.choice(dresses)(text) for text in chance.sample(texts, copies)]
    vectors = np.random.Generator(np.random.PCG64(5)).standard_normal((count, 384)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return tuple(
        fused(f"{place}", text, 1 - place / count / 2, vector=vectors[place], encoder="e")
        for place, text in enumerate(texts)
    )


def test_many_items_merge_as_a_few_would() -> None:
    """Pairs are chosen by their runs of words: nothing that says the same may be missed for it."""
    items = many_items(1000, 200)
    outcome = merged(*items)
    assert len(outcome.merges) >= 0.98 * 200
    assert all(int(merge.dropped) >= 800 or int(merge.kept) >= 800 for merge in outcome.merges)
    assert merged(*outcome.items) == DedupedItems(outcome.items)


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=24).map(" ".join), max_size=8))
def test_every_pair_of_a_few_that_shares_enough_runs_of_words_is_proposed(texts: list[str]) -> None:
    found = candidate_pairs(texts)
    assert found == sorted(set(found))
    runs = [{*zip(words, words[1:], words[2:], strict=False)} for words in map(words_of, texts)]
    for one, other in combinations(range(len(texts)), 2):
        shared = len(runs[one] & runs[other])
        if shared and shared >= 0.5 * min(len(runs[one]), len(runs[other])):
            assert (one, other) in found


def test_words_are_the_same_in_any_dress_and_script() -> None:
    assert words_of("Never delete user_id 42") == words_of("**never**\n> delete... `USER_ID`, 42!")
    assert words_of("never — delete") == ["never", "delete"]
    assert [len(words_of(text)) for text in ("备份每天运行", "프린터", "ひらがな")] == [6, 3, 4]


def test_the_cost_grows_with_the_items() -> None:
    def items(count: int) -> tuple[FusedItem, ...]:
        return many_items(count, count // 20)

    with threadpool_limits(1, user_api="blas"):  # as the engine has it
        assert_subquadratic(deduplicate, items, 800)


def test_templates_in_great_number_end_in_time() -> None:
    """Their words are the same but for a few numbers: almost every pair is a candidate."""

    def rows(count: int) -> list[FusedItem]:
        texts = [
            f"Row {n} of the table holds {n * 7} units of the article {n % 40} in hall {n % 9}." for n in range(count)
        ]
        return [fused(f"{n}", text) for n, text in enumerate(texts)]

    def merge(rows: list[FusedItem]) -> None:
        assert not merged(*rows).merges

    assert_subquadratic(merge, rows, 2000, times=8)


@pytest.mark.parametrize(
    "text",
    ["[a](" * 9000, "<p " * 9000, "`" * 30_001, "> " * 20_000, "a: " * 9000, '."' * 9000, "|" * 30_000, "\n" * 30_000,
     '"""' * 9000, "(" * 20_000, "w." * 20_000, "\ud800 abc " * 2000, "备" * 20_000, "&" * 30_000, "1," * 9000],
)  # fmt: skip
@pytest.mark.parametrize("domain", ["documentation", "code", "conversations"])
def test_hostile_texts_end_in_time(text: str, domain: str) -> None:
    def merge(text: str) -> None:
        outcome = merged(fused("a", text, domain=domain), fused("b", f"{text} {text}", domain=domain))
        assert len(outcome.items) in {1, 2}

    merge(text)  # more than is read of it
    assert_subquadratic(merge, lambda size: (text * 3)[:size], LONGEST_READ // 2 - 1)


def test_long_texts_merge_only_if_they_are_equal() -> None:
    """Reading two hundred near-identical texts of 100,000 characters against each other took 18 s."""
    book = " ".join(f"word{number % 977}" for number in range(4_000))
    assert len(book) > LONGEST_READ
    outcome = merged(fused("a", f"{book} ending"), fused("b", f"{book}  ending"), fused("c", f"{book} ending"))
    assert [(merge.kept, merge.dropped) for merge in outcome.merges] == [("a", "c")]


def test_a_reference_with_thousands_of_digits_is_text() -> None:
    from nornweave.ask.fuse.deduplication.normalized_text import _strip_marks

    assert "9999" in _strip_marks(f"a &#{'9' * 5_000}; b", conversation=False)
