"""Character references of HTML (``&amp;``, ``&#8212;``) in text from elsewhere."""

from __future__ import annotations

import html
import re

# Python converts no more than 4,300 digits: html.unescape and html.parser raise ValueError.
_LONG = re.compile(r"&#(?=[0-9]{1000})")


def without_long_references(text: str) -> str:
    """Make plain text of references with a thousand digits, which no parser gets through; offsets stay."""
    return _LONG.sub("& ", text)


def unescaped(text: str) -> str:
    """Replace references by their characters; one with a thousand digits stays."""
    return html.unescape(without_long_references(text)) if "&" in text else text
