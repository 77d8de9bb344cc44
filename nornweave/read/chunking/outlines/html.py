"""The outline of HTML: its readable text, the blocks of that text, and their places in the file.

``html.parser`` is the parser that BeautifulSoup drives. Its events are used without BeautifulSoup's tree: that is four
times faster (8.6 against 2.2 MB a second), knows where every run of text starts and not only every tag, and needs no
recursion, however deep the nesting. What is left out (scripts, navigation, footers) would only add noise.
"""

from __future__ import annotations

import re

from nornweave.core.types import Span
from nornweave.read.chunking.outlines.blocks import paragraphs
from nornweave.read.chunking.outlines.html_reader import HtmlReader, Readable, Run

_NEVER = frozenset({"script", "style", "template", "title", "svg"})
_SKIPPED = _NEVER | {"nav", "footer", "aside", "noscript", "iframe", "object", "select"}
_TAG = re.compile(r"<[^<>]*>")
# html.parser of Python 3.11 looks for the end of every tag, comment and CDATA section up to the end of the file.
_UNCLOSED_BOUND = 50


def read_html(text: str) -> Readable:
    """Take the readable text out of HTML; broken, unclosed and deeply nested markup included.

    An element that is left out as a rule but never closed, or that holds all there is to read, is read.
    """
    if not is_sound(text):
        return _without_tags(text)
    skipped = set(_SKIPPED)
    while True:
        reader = HtmlReader(text, skipped, by_mark=skipped != _NEVER)
        try:
            reader.read()
        except AssertionError:  # what html.parser raises at ``<![word`` with a word that it does not know
            return _without_tags(text)
        if reader.skipping and reader.skipping in skipped:
            skipped.discard(reader.skipping)
        elif reader.skipping:
            return _without_tags(text)
        elif not reader.length and skipped - _NEVER:
            skipped = set(_NEVER)
        else:
            return reader.readable()


def is_sound(text: str) -> bool:
    """Say whether html.parser will get through: nothing that ends nowhere occurs more than a few times."""
    return all(
        text.count(opening, text.rfind(closing) + 1) <= _UNCLOSED_BOUND
        for opening, closing in (("<", ">"), ("<!--", "-->"), ("<![", "]>"))
    )


def _without_tags(text: str) -> Readable:
    """Blank out what looks like a tag; offsets stay."""
    blank = _TAG.sub(lambda tag: " " * len(tag[0]), text)
    blocks = paragraphs(blank) if not blank.isspace() else []
    return Readable(blank, blocks, [Run(0, len(text), Span(0, len(text)))], {})
