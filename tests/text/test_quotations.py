"""What somebody says, and what they quote."""

import pytest

from nornweave.core.text.messages import Passage, passages

HEADER = "{}: Rosa Lima <rosa@example.org>\n{}: Monday\n{}: Ops\n{}: Retention\n\nKeep them 400 days."


@pytest.mark.parametrize(("announced", "author"), [
    ("On Mon, 13 Oct 2025, Rosa Lima wrote:", "Rosa Lima"),
    ("On Mon, Oct 13, 2025 at 9:00 AM Rosa Lima <rosa@example.org> wrote:", "Rosa Lima"),
    ("On Mon, Oct 13, 2025 at 9:00 AM Rosa Lima <rosa@example.org>\nwrote:", "Rosa Lima"),
    ("Am 13.10.2025 um 09:00 schrieb Rosa Lima:", "Rosa Lima"),
    ("Le lun. 13 oct. 2025 à 09:00, Rosa Lima <rosa@example.org> a écrit :", "Rosa Lima"),
    ("rosa@example.org wrote:", ""), ("", ""),
])  # fmt: skip
def test_the_author_of_a_quotation_is_named_where_it_is_announced(announced: str, author: str) -> None:
    said = passages(f"Too long.\n\n{announced}\n> Keep them\n> 400 days.\n\nNinety.")
    assert said == (Passage("Too long."), Passage("Keep them\n400 days.", author), Passage("Ninety."))


@pytest.mark.parametrize(("rule", "keys", "is_forwarded"), [
    ("-----Original Message-----", ("From", "Sent", "To", "Subject"), False),
    ("________________________________", ("From", "Sent", "To", "Subject"), False),
    ("", ("**Von**", "**Gesendet**", "**An**", "**Betreff**"), False),
    ("-----Message d'origine-----", ("De", "Envoyé", "À", "Objet"), False),
    ("---------- Forwarded message ---------", ("From", "Date", "Subject", "To"), True),
    ("Begin forwarded message:", ("From", "Subject", "Date", "To"), True),
    ("Anfang der weitergeleiteten Nachricht:", ("Von", "Betreff", "Datum", "An"), True),
])  # fmt: skip
def test_below_the_header_of_another_message_its_author_speaks(
    rule: str, keys: tuple[str, ...], is_forwarded: bool
) -> None:
    header = HEADER.format(*keys)
    assert passages(f"See below.\n\n{rule}\n{header}") == (
        Passage("See below."),
        Passage("Keep them 400 days.", "Rosa Lima", is_forwarded),
    )
    quoted = "\n".join(f"> {line}" for line in header.split("\n"))
    assert passages(f"See below.\n\n{rule}\n\n{quoted}")[1] == Passage("Keep them 400 days.", "Rosa Lima", is_forwarded)


@pytest.mark.parametrize("text", [
    "Run this:\n```\n> npm install\n```\nand wait.",
    "From: a to b\nis short", "x > y: yes", "Result: two doors", "a -> b",
])  # fmt: skip
def test_what_only_looks_like_a_quotation_is_said(text: str) -> None:
    assert passages(text) == (Passage(text),)
