"""A question that leans on the one before it is asked with it; one that stands alone is not."""

import pytest
from growth import assert_subquadratic

from api.requests.chat import in_thread, leans

EARLIER = "How much is a tyre change on the Heron X?"


@pytest.mark.parametrize(("question", "searched"), [
    ("What about a windscreen replacement?", "How is a on the Heron X"),
    ("and the Falcon 3?", "How much is a tyre change on the"),
    ("and in production?", EARLIER), ("why?", EARLIER), ("which port?", EARLIER), ("what is the default?", EARLIER),
    ("how long does it wait before it gives up?", EARLIER), ("But why is that so?", EARLIER),
    ("can it be read while I do it?", EARLIER), ("does that need a restart of the oven?", EARLIER),
    ("are the old curves lost then?", EARLIER), ("which values are allowed?", EARLIER),
    ("what is the smallest value?", EARLIER),
    ("how many at once?", EARLIER), ("how much at most?", EARLIER), ("how often per minute?", EARLIER),
    ("what was chosen instead?", EARLIER), ("what can I drive instead?", EARLIER), ("what happens otherwise?", EARLIER),
    ("who else may order one?", EARLIER), ("must I sign anything else?", EARLIER),
    ("what does a higher one cost?", EARLIER), ("can people still order one by hand?", EARLIER),
    ("how do I return one?", EARLIER), ("which ones are cheaper?", EARLIER), ("do smaller ones last as long?", EARLIER),
    ("who maintains them?", EARLIER),
    ("how long do they lie there before they are thrown away again?", EARLIER),
    ("and if the dry ice only lasts for a short moment?", EARLIER), ("is there a cheaper one, the same one?", EARLIER),
])  # fmt: skip
def test_what_leans_is_asked_with_what_it_leans_on(question: str, searched: str) -> None:
    assert leans(question)
    assert in_thread(question, ["How do I pay?", EARLIER]) == f"{searched}\n{question}"


@pytest.mark.parametrize("question", [
    "when are you open", "what is allowed in the staging oven", "is that kiln supported on Windows 11 and on macOS",
    "is there a webmail?", "what is Lavalink?", "how do I sort files by their extension?",
    "which currency does a refund use", "MAX_RETRIES", "what is parse_duration?",
    "which kiln do we use instead of gas?", "how do I greet everyone else",
    "which glaze do painters of small pots choose for blue and red instead?",
    "are pots fired one by one in the oven?", "which kiln has only one shelf", "can one oven fire two shelves",
    "which one of the kilns is electric?",
    "how many kilns are fired at once?", "how do I dry pots in the sun and glaze them without a second firing?",
    "list all endpoints", "how do I install the command line tools on macOS", "where do we log failed payments",
])  # fmt: skip
def test_what_stands_alone_is_asked_alone(question: str) -> None:
    assert in_thread(question, [EARLIER]) == question


def test_a_chain_of_leaning_questions_is_asked_as_a_whole() -> None:
    before = ["What is the webhook timeout", "and in staging?"]
    assert in_thread("how long does it wait?", before) == "\n".join([*before, "how long does it wait?"])


@pytest.mark.parametrize(("earlier", "question", "kept"), [
    ("how do I enable login with Dropbox?", "and for Bitbucket?", "how do I enable login with"),
    ("how do I connect to Rabbit?", "and for kafkaesque?", "how do I connect to"),
    ("how do I connect to Rabbit?", "and for production?", "how do I connect to Rabbit?"),
    ("what changed for Ovens in v3?", "and in v4?", "what changed for Ovens in"),
    ("is glaze_limit counted by Kiln in 2.1?", "what about slot_limit?", "is counted by Kiln in 2.1"),
    ("what is the default of glaze_limit?", "and for Kiln?", "what is the default of glaze_limit?"),
    ("what is the default of --kiln-pool-size?", "and of --most-pots-per-shelf?", "what is the default of"),
    ("what does -q do?", "and how about --quiet-kiln?", "what does do"),
    ("default of pool-size?", "and of shelf-depth?", "default of"),
    ("default of kiln.pool.size?", "and of kiln.shelf.depth?", "default of"),
    ("is it fired with --quiet?", "and in one-pot mode?", "is it fired with --quiet?"),
    ("how do I set up end-to-end tests?", "and --dry-run?", "how do I set up end-to-end tests?"),
])  # fmt: skip
def test_another_of_a_kind_takes_the_place_of_the_one_before(earlier: str, question: str, kept: str) -> None:
    assert in_thread(question, [earlier]) == f"{kept}\n{question}"


@pytest.mark.parametrize(("question", "is_alone"), [
    ("how do I install it?", True), ("does it support Windows 11?", True), ("can it print labels?", True),
    ("is there a container image for it?", True), ("is there a tour of it?", True),
    ("which Python versions does it work with?", True),
    ("and how do I upgrade it?", True), ("how do I change it?", False), ("is it counted per worker?", False),
    ("does it apply to small pots?", False), ("which ovens use it?", False),
    ("is there an environment variable for it?", False),
])  # fmt: skip
def test_after_the_value_of_a_setting_it_may_be_the_product(question: str, is_alone: bool) -> None:
    earlier = "what is the default of kiln_slots?"
    assert in_thread(question, [earlier]) == (question if is_alone else f"{earlier}\n{question}")
    assert leans(question, "How does the Sieve filter work?")


@pytest.mark.parametrize(("question", "is_alone"), [
    ("does it read .kilnrc files?", True), ("can I start it in quiet mode?", True), ("will it print labels?", True),
    ("how often is it saved?", False), ("which columns does it drop?", False), ("is it safe?", False),
    ("must I be an admin to do it?", False), ("can the oven run while I do it?", False),
    ("which environment variable?", False), ("what unit?", False), ("and does it cost more?", False),
])  # fmt: skip
def test_after_a_question_that_names_nothing_it_may_be_the_product(question: str, is_alone: bool) -> None:
    earlier = "where is the firing curve stored?"
    assert in_thread(question, [earlier]) == (question if is_alone else f"{earlier}\n{question}")


@pytest.mark.parametrize("piece", ["items ", "items. their ", "items x their "])
def test_a_pasted_text_of_plurals_is_read_in_its_length(piece: str) -> None:
    assert_subquadratic(lambda text: leans(text, "what is it"), lambda count: piece * count, 4_000)
