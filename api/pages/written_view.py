"""A text that a model wrote, as the page shows it: its citations are links with the numbers of their passages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from api.pages.addresses import passage_address
from nornweave.ask.answer.synthesis.citations import citation_key
from nornweave.ask.fuse.records import Synthesis
from nornweave.ask.views.answer import FusionResult

_BRACKET = re.compile(r"\[([^\[\]]+)\]")


class WrittenPiece(NamedTuple):
    """A piece of the text, and the citation behind it, if any."""

    text: str
    label: str = ""
    href: str = ""


@dataclass(frozen=True, slots=True)
class WrittenView:
    """The text, and what to know of it."""

    pieces: tuple[WrittenPiece, ...]
    note: str


def written_view(synthesis: Synthesis, document: FusionResult) -> WrittenView:
    """Return what the page shows of a text about the items of an answer; without a text the note says why."""
    passages = {
        citation_key(item["citation"]["domain_id"], item["chunk_id"]): (str(number), passage_address(item["chunk_id"]))
        for number, item in enumerate(document["items"], 1)
    }
    text, pieces, at = synthesis.text or "", [], 0
    for bracket in _BRACKET.finditer(text):
        if passage := passages.get(bracket[1]):
            pieces.append(WrittenPiece(text[at : bracket.start()], *passage))
            at = bracket.end()
    said = f"Written by {synthesis.model} out of the passages below." if text else "No answer was written."
    reason = f"{synthesis.reason}." if synthesis.reason else ""
    return WrittenView((*pieces, WrittenPiece(text[at:])), f"{said} {reason}".strip())
