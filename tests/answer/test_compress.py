"""Shortening: the units that answer, whole and in order, every cut marked, never longer than asked."""

from itertools import permutations

import pytest
from growth import assert_subquadratic
from hypothesis import given
from hypothesis import strategies as st

from nornweave.ask.answer.snippet import CONSIDERED_CHARACTERS, MARK, cut, fair_share, shorten
from nornweave.core.text.analyzer import query_terms

PROSE = (
    "Heron Pay keeps every payment in a ledger. The ledger is written once a day. Entries are never deleted. "
    "A webhook that is not answered is sent again. The retry limit is five attempts, after which it is parked. "
    "Parked webhooks wait for a person. Colours of the dashboard can be changed. The logo is a heron."
)
CODE = '''@route("/charge")
# one at a time
def charge(
    card: Card,
    amount: int,
) -> Receipt:
    """Charge a card."""
    account = find_account(card)
    if account.closed:
        raise AccountClosed(card)
    audit(account)
    receipt = acquirer.capture(card, amount)
    audit(receipt)

    notify(account, receipt)
    return receipt
'''


def tokens_of(text: str) -> list[str]:
    return [word for word in text.split() if word != MARK]


def is_subsequence(words: list[str], of: list[str]) -> bool:
    rest = iter(of)
    return all(word in rest for word in words)


def test_what_fits_stays_as_it_is() -> None:
    assert shorten(PROSE, query_terms("retry"), len(PROSE), is_code=False) is PROSE
    assert cut(PROSE, len(PROSE), is_code=False) is PROSE


def test_the_sentence_that_answers_stays_with_the_first_one() -> None:
    short = shorten(PROSE, query_terms("what is the retry limit?"), 130, is_code=False)
    assert short == (
        "Heron Pay keeps every payment in a ledger. […] The retry limit is five attempts, after which it is parked. […]"
    )


def test_neighbours_are_joined_without_a_mark_and_room_goes_to_what_touches() -> None:
    short = shorten(PROSE, query_terms("what is the retry limit?"), 230, is_code=False)
    assert "A webhook that is not answered is sent again. The retry limit is five attempts" in short
    assert short.count(MARK) == 2
    assert len(short) <= 230


def test_words_are_compared_by_their_stems() -> None:
    assert "never deleted" in shorten(PROSE, query_terms("deleting an entry"), 100, is_code=False)


def test_what_is_rare_in_the_text_tells_more_than_what_is_frequent() -> None:
    text = (
        "About fees. "
        + "The card card card is a card. " * 8
        + "Another card has a surcharge. "
        + "The card is fine. " * 8
    )
    assert "surcharge" in shorten(text, query_terms("card surcharge"), 80, is_code=False)


def test_function_words_are_no_reason_to_stay() -> None:
    filler = "Herons eat fish. " * 5
    text = f"Start here. {filler}What is it that they do when it is so? {filler}Quotas reset daily. {filler}"
    short = shorten(text, query_terms("when is it that quotas reset"), 70, is_code=False)
    assert "Quotas reset daily." in short
    assert "What is it" not in short


def test_what_says_nothing_fills_up_only_beside_what_does() -> None:
    filler = "Herons stand in shallow water and wait for fish, which takes some time. "
    text = f"Start here. {filler}The quota is five. {filler}Tiny. {filler}"
    short = shorten(text, query_terms("quota"), 60, is_code=False)
    assert short == "Start here. […] The quota is five. […]"


def test_without_a_hit_the_beginning_stays() -> None:
    assert shorten(PROSE, query_terms("kangaroo"), 100, is_code=False) == (
        "Heron Pay keeps every payment in a ledger. The ledger is written once a day. […]"
    )


def test_a_signature_stays_whole_with_the_lines_that_answer() -> None:
    short = shorten(CODE, query_terms("where is the card captured"), 165, is_code=True)
    assert short == (
        '@route("/charge")\n[…]\ndef charge(\n    card: Card,\n    amount: int,\n) -> Receipt:\n'
        '    """Charge a card."""\n[…]\n'
        "    receipt = acquirer.capture(card, amount)\n[…]"
    )


def test_marks_in_code_stand_on_their_own_lines() -> None:
    for room in range(60, len(CODE)):
        lines = shorten(CODE, query_terms("account closed audit"), room, is_code=True).splitlines()
        assert all(line == MARK or line in CODE.splitlines() for line in lines)


def test_the_line_that_opens_a_block_comes_with_what_it_holds() -> None:
    methods = "".join(
        f"    def method{number}(self):\n        first()\n        second()\n        return self.{name}\n\n"
        for number, name in enumerate(["area", "width", "quota", "height", "depth"])
    )
    short = shorten(f"class Box:\n{methods}", query_terms("quota"), 85, is_code=True)
    assert short == ("class Box:\n[…]\n    def method2(self):\n[…]\n        return self.quota\n[…]")


@pytest.mark.parametrize("sentence", [
    "Ask Dr. Weber, e.g. by mail, cf. Fig. 3, before you rotate the signing key.",
    "The signing key is rotated whenever the certificate authority of the\ncompany says so, and never in between.",
    "- the signing key is rotated by hand, once a year",
    "1. Rotate the signing key.",
    "dana: rotated the signing key, nothing broke",
    "Is the signing key rotated?! (Yes, it is.)",
])  # fmt: skip
def test_units_stay_whole(sentence: str) -> None:
    filler = "Nothing of interest is said in this line of the handbook."
    text = "\n".join(["A handbook.", *[filler] * 5, sentence, *[filler] * 5])
    short = shorten(text, query_terms("signing key rotation"), len(sentence) + 30, is_code=False)
    assert sentence in short
    assert filler not in short


def test_sentences_without_blanks_between_them_are_told_apart() -> None:
    text = "支付失败时会重试。" * 20 + "退款需要三天。" + "支付失败时会重试。" * 20
    short = shorten(text, query_terms("nothing"), 40, is_code=False)
    assert short == "支付失败时会重试。" * 3 + f" {MARK}"
    assert cut("支付失败时会重试" * 50, 40, is_code=False) == ("支付失败时会重试" * 50)[:34] + f" {MARK}"


def test_a_sentence_longer_than_the_room_is_cut_between_words_where_it_answers() -> None:
    text = "so um we talked and " * 60 + "the quota is ninety requests " + "and um then we went on " * 60
    short = shorten(text, query_terms("quota of requests"), 300, is_code=False)
    assert "quota is ninety requests" in short
    assert short.startswith(MARK)
    assert short.endswith(MARK)
    assert is_subsequence(tokens_of(short), text.split())


@pytest.mark.parametrize("shortener", [lambda text, room: shorten(text, (), room, is_code=False),
                                       lambda text, room: cut(text, room, is_code=True)])  # fmt: skip
def test_where_no_word_fits_only_the_mark_is_left(shortener) -> None:  # type: ignore[no-untyped-def]
    blob = "QmFzZTY0" * 100
    assert shortener(blob, 50) == MARK
    assert shortener(blob, 2) == ""
    assert shortener(blob, 0) == ""


def test_a_cut_keeps_the_beginning_up_to_the_end_of_a_sentence() -> None:
    assert cut(PROSE, 100, is_code=False) == (
        "Heron Pay keeps every payment in a ledger. The ledger is written once a day. […]"
    )
    assert cut(CODE, 60, is_code=True) == '@route("/charge")\n# one at a time\ndef charge(\n[…]'


def test_a_cut_of_a_long_sentence_is_between_words() -> None:
    text = "Short. " + "word " * 100
    assert cut(text, 60, is_code=False) == "Short. " + "word " * 9 + MARK


def test_a_second_cut_in_the_same_place_is_not_marked_twice() -> None:
    once = f"{PROSE[:43]}{MARK} The logo is a heron."
    assert cut(once, 60, is_code=False).count(MARK) == 1


WORDS = st.sampled_from(
    [
        "retry", "retries", "limit", "Limit.", "of", "a", "is", "e.g.", "no!", "x" * 30, "größer", "(yes.)", "- item",
        "7.", "end:",
    ]
)  # fmt: skip
BREAKS = st.sampled_from([" ", " ", " ", "  ", "\n", "\n\n", "\n    ", ".\n", ". ", "\t", "\r\n", " \n \n"])


@st.composite
def texts(draw: st.DrawFn) -> str:
    return "".join(draw(st.lists(st.tuples(WORDS, BREAKS).map("".join), max_size=60)))


@given(texts(), st.integers(0, 400), st.booleans())
def test_no_text_gets_longer_loses_its_order_or_breaks_a_word(text: str, room: int, is_code: bool) -> None:
    for short in (shorten(text, ["retri", "limit"], room, is_code=is_code), cut(text, room, is_code=is_code)):
        assert len(short) <= room
        assert is_subsequence(tokens_of(short), text.split())
        assert shorten(short, ["retri", "limit"], room, is_code=is_code) == short
        if short != text and text.split() != short.split():
            assert MARK in short or room < len(MARK)


@given(texts(), st.integers(20, 200), st.booleans())
def test_a_cut_is_a_beginning(text: str, room: int, is_code: bool) -> None:
    assert text.startswith(cut(text, room, is_code=is_code).removesuffix(MARK).rstrip())


@given(texts(), st.integers(20, 300))
def test_the_order_of_the_terms_does_not_matter(text: str, room: int) -> None:
    found = {shorten(text, terms, room, is_code=False) for terms in permutations(["retri", "limit", "end"])}
    assert len(found) == 1


@pytest.mark.parametrize("hostile", [
    ".", "!)", " ", "\n", "\n ", " .", "[", "a:", "a b ", "\t", "。", "1.", "`", "(", "e.g. ", "x", "- ", "\r\n",
    "((\n",
])  # fmt: skip
@pytest.mark.parametrize("is_code", [False, True])
def test_hostile_texts_take_no_longer_than_others(hostile: str, is_code: bool) -> None:
    def shortened(text: str) -> None:
        assert len(shorten(text, ["retri", "limit"], 1500, is_code=is_code)) <= 1500
        assert len(cut(text, 1500, is_code=is_code)) <= 1500

    shortened(hostile * (200_000 // len(hostile)))  # more than is read of it
    assert_subquadratic(shortened, lambda size: hostile * (size // len(hostile)), CONSIDERED_CHARACTERS)


def test_only_the_beginning_of_a_book_is_considered() -> None:
    book = "A page of nothing. " * 10_000 + "The answer is here."
    assert shorten(book, query_terms("answer"), 1000, is_code=False).endswith(MARK)


def test_fair_shares_by_hand() -> None:
    assert fair_share([100, 100, 100], 150) == 50
    assert fair_share([10, 100, 100], 150) == 70  # what the small one leaves goes to the others: (150 - 10) / 2
    assert fair_share([10, 20], 100) == 20
    assert fair_share([], 100) == 0
    assert fair_share([5], 0) == 0


@given(st.lists(st.integers(0, 500), min_size=1, max_size=20), st.integers(0, 2000))
def test_fair_shares_fill_the_total_and_never_exceed_it(sizes: list[int], total: int) -> None:
    share = fair_share(sizes, total)
    assert sum(min(size, share) for size in sizes) <= total
    assert share == max(sizes) or sum(min(size, share + 1) for size in sizes) > total


def test_a_fenced_example_is_shown_whole_or_not_at_all() -> None:
    example = "```python\nfor bed in beds():\n    water(bed)\n    log(1)\n```\n"
    text = f"Gardens need care.\n\n{'Soil is brown here. ' * 20}\n\nWater the beds like this.\n\n{example}\nEnd."
    shortened = shorten(text, query_terms("water beds"), 160, is_code=False)
    assert example.rstrip() in shortened
    assert "for bed" not in shorten(text, query_terms("brown soil"), 160, is_code=False)
