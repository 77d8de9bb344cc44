"""Read the blocks of a document by its format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from nornweave.read.blocks.block import Blocks, paragraphs
from nornweave.read.blocks.markdown import read_markdown
from nornweave.read.blocks.rst import read_rst

LINED: Mapping[str, Callable[[str], Blocks]] = MappingProxyType({"markdown": read_markdown, "rst": read_rst})
"""Formats with lines, whose blocks stand in the text itself; HTML is read as text first."""

FORMATS = frozenset({*LINED, "html"})
"""Formats of documents that have blocks."""


def read_blocks(text: str, format: str) -> Blocks:  # noqa: A002 - the word of ``Document.format``
    """Read the blocks of a text that has lines; of an unknown format its paragraphs."""
    return LINED.get(format, paragraphs)(text)
