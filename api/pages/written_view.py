"""A text that a model wrote, as the page shows it: markup, its citations links with the numbers of their passages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from api.pages.addresses import passage_address
from api.pages.markup import Block, blocks_of
from api.pages.text_runs import CITE, TextRun
from nornweave.ask.answer.synthesis.citations import citation_key
from nornweave.ask.fuse.records import Synthesis
from nornweave.ask.views.answer import FusionResult

_BRACKET = re.compile(r"\[([^\[\]]+)\]")
# Stands for a citation while the text is read: Markdown would take brackets for links, and signs in ids for styles.
_PLACE = re.compile("\ue000(\\d+)\ue001")
_PLACE_ENDS = re.compile("[\ue000\ue001]")


def written_view(synthesis: Synthesis, document: FusionResult) -> tuple[tuple[Block, ...], str]:
    """Return a text about the items of an answer as blocks, and a note; without a text that says why."""
    items = document["items"]
    keys = {citation_key(item["citation"]["domain_id"], item["chunk_id"]): place for place, item in enumerate(items)}
    cites = [TextRun(str(place), "", CITE, passage_address(item["chunk_id"])) for place, item in enumerate(items, 1)]
    text = _PLACE_ENDS.sub("", synthesis.text or "")
    text = _BRACKET.sub(lambda found: f"\ue000{keys[found[1]]}\ue001" if found[1] in keys else found[0], text)
    said = f"Written by {synthesis.model} out of the passages below" if text else "No answer was written"
    note = (", " if text else ": ").join(filter(None, (said, synthesis.reason)))
    return tuple(_cited(blocks_of(text, ()), cites)), f"{note}."


def _cited(blocks: Sequence[Block], cites: Sequence[TextRun]) -> Iterator[Block]:
    for block in blocks:
        runs = tuple(piece for run in block.runs for piece in _pieces(run, cites))
        yield replace(block, runs=runs, blocks=tuple(_cited(block.blocks, cites)))


def _pieces(run: TextRun, cites: Sequence[TextRun]) -> Iterator[TextRun]:
    at = 0
    for place in _PLACE.finditer(run.text):
        yield run._replace(text=run.text[at : place.start()])
        yield cites[int(place[1])]
        at = place.end()
    yield run._replace(text=run.text[at:])
