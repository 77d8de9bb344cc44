"""Split an expression of any language into tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass

from nornweave.core.text.patterns import lazy_pattern

_TOKEN = lazy_pattern(
    r"""
    (?P<string>(?:[bBrRuUfF@$]{0,2}(?:\"\"\"[\s\S]*?\"\"\"|'''[\s\S]*?'''|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`[^`\n]*`)))
    |(?P<number>0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|(?:\d[\d_]*(?:,\d{3}(?!\d))*(?:\.\d[\d_]*)?|\.\d[\d_]*)(?:[eE][+-]?\d+)?)
      (?P<suffix>[a-zA-Zµ%][a-zA-Z0-9]*)?
    |(?P<name>[@$:]?[A-Za-z_][\w]*(?:(?:\.|::|->|\?\.|!\.)[A-Za-z_]\w*)*(?:!(?!=)|\?(?=[ ]\?))?)
    |(?P<op>\*\*|<<|>>|\|\||&&|\?\?|\?:|===?|!==?|<=|>=|=>|->|::|\.\.\.|[-+*/%()\[\]{}<>,;:?=!&|.~^@#])
    |(?P<other>\S)
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A word of an expression. ``suffix`` is the text directly after the digits of a number."""

    kind: str
    text: str
    suffix: str = ""


def tokens(text: str) -> list[Token]:
    """Split an expression into its words, without blank space."""
    found = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or ""
        if match["number"] is not None:
            found.append(Token("number", match["number"], match["suffix"] or ""))
        elif match["string"] is not None:
            found.append(Token("string", match["string"]))
        elif match["name"] is not None:
            found.append(Token("name", match["name"]))
        else:
            found.append(Token(kind, match[0]))
    return found
