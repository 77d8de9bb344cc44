"""Extract the facts of a passage: HTML tables first, then the blocks of its text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from nornweave.core.types import Fact
from nornweave.disagree.facts.documentation.blocks import blocks_of
from nornweave.disagree.facts.documentation.layout import Cell, html_tables
from nornweave.disagree.facts.documentation.page import Page, Subject
from nornweave.disagree.facts.documentation.reader import Reader
from nornweave.disagree.facts.documentation.statements import lowered
from nornweave.disagree.facts.documentation.tables import table_facts


def read_passage(page: Page, subject: str, owner: str) -> Iterator[Fact]:
    """Yield the facts of a page.

    Args:
        subject: what all of it documents; empty if it is no comment.
        owner: of the subject.
    """
    root = Subject(name=subject, form="field", owner=owner) if subject else None
    reader = Reader(page, root)
    passage = page.passage
    if "<t" in passage.text or "<T" in passage.text:
        text = list(page.text)
        for begin, end, rows, has_header in html_tables(passage.text):
            cells = [[Cell(" ".join(page.text[a:b].split()), a, b) for a, b in row] for row in rows]
            header = cells.pop(0) if has_header else None
            yield from table_facts(page, cells, header, root, reader.path)
            text[begin:end] = [character if character == "\n" else " " for character in text[begin:end]]
        blanked = "".join(text)
        page = replace(page, text=blanked, lower=lowered(blanked))
        reader.page, reader.text = page, page.text
    suffix = passage.path.lower()
    is_rst = passage.format == "rst" or suffix.endswith((".rst", ".txt")) or page.comment or not passage.format
    markdown = (
        not page.comment
        and not root
        and (passage.format == "markdown" or suffix.endswith((".md", ".mdx", ".markdown")))
    )
    blocks = blocks_of(page.text, page.text if page.comment else passage.text, rst=is_rst, markdown_code=markdown)
    yield from reader.read(blocks)
