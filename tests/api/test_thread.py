"""A question that leans on the one before it is asked with it; one that stands alone is not."""

import pytest

from api.requests.thread import in_thread, leans

EARLIER = "How much is a tyre change on the Heron X?"


@pytest.mark.parametrize(("question", "searched"), [
    ("What about a windscreen replacement?", "How is a on the Heron X"),
    ("and the Falcon 3?", "How much is a tyre change on the"),
    ("and in production?", EARLIER), ("why?", EARLIER), ("which port?", EARLIER), ("what is the default?", EARLIER),
    ("how long does it wait before it gives up?", EARLIER), ("But why is that so?", EARLIER),
    ("who maintains them?", EARLIER), ("is there a cheaper one, the same one?", EARLIER),
])  # fmt: skip
def test_what_leans_is_asked_with_what_it_leans_on(question: str, searched: str) -> None:
    assert leans(question)
    assert in_thread(question, ["How do I pay?", EARLIER]) == f"{searched}\n{question}"


@pytest.mark.parametrize("question", [
    "when are you open", "which currency does a refund use", "MAX_RETRIES", "what is parse_duration?",
    "list all endpoints", "how do I install the command line tools on macOS", "where do we log failed payments",
])  # fmt: skip
def test_what_stands_alone_is_asked_alone(question: str) -> None:
    assert in_thread(question, [EARLIER]) == question


def test_a_chain_of_leaning_questions_is_asked_as_a_whole() -> None:
    before = ["What is the webhook timeout", "and in staging?"]
    assert in_thread("how long does it wait?", before) == "\n".join([*before, "how long does it wait?"])
