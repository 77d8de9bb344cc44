"""Seed templates: the words around a literal that mark it as a default."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import dropwhile, islice, takewhile
from typing import NamedTuple

from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.facts.documentation.blocks import DocumentedBlock
from nornweave.disagree.facts.documentation.tokens import Token, tokens_of
from nornweave.disagree.facts.documentation.walk import HEADING, MARKS, VALUED, Literal
from nornweave.disagree.facts.names import words_of

_TITLE = "defaults?(?: (?:values?|settings|config(?:uration)?))?"
ANNOUNCES = lazy_pattern(
    r"(?:(?:(?<![a-z])WORDS[*_` ]*:+[*_` ]*|\n#+ WORDS[ \t]*)\n\s*(?:(?:```|~~~).*\n)?"
    r"|(?:```|~~~).*\btitle=[\"']WORDS[\"'].*\n)\s*$".replace("WORDS", _TITLE),
    re.IGNORECASE,
)
"""Before a block of code that is the default of its section."""
IS_ABOUT_DEFAULTS = lazy_pattern(rf"(?:the )?{_TITLE}$", re.IGNORECASE)
"""A heading whose settings are all defaults."""
MAX_ABOVE = 600
"""Characters before a block of code that may say what it is."""
_NO_TEXT = ("|", "```", "~~~", "#", "- ", "* ")
_DEFAULTS = lazy_pattern(
    r"\bdefault (?:values?|settings|options|config(?:uration)?)\b|\b(?:the|all|following|these) defaults\b",
    re.IGNORECASE,
)
_CHANGED = lazy_pattern(r"\b(?:overr|chang|custom|modif|replac|instead|other than|examples?\b|e\.g\b)", re.IGNORECASE)
"""What says that a block of code is the defaults, and what says that it is not."""
_LINKS = frozenset(
    """
    value values number setting settings is are was be to of being set up as at the a an either just currently now
    only it this that = : - – — ( ¶ " * _ ,
    """.split()  # noqa: SIM905
)
"""What may stand between ``default`` and its value."""
_POSSIBLE = frozenset(("can", "could", "may", "might"))
"""What *can be enabled by default* is not so by itself."""
_SIGNS = frozenset(("is", "are", "to", "of", "being", ":", "=", "-", "–", "—", "was", "be"))
_GIVEN = frozenset("( , - – — is as being which the its a an by in current overall server ¶ set".split())  # noqa: SIM905
"""What may stand between a value and the ``default`` behind it."""
_CLOSES = frozenset(("", ".", ",", ")", "]", ";", "|", "¶", "(", "of", "for", "in", "and", "but", "while", "if", "_"))
_IS_DEFAULT = frozenset((":default", "-default", "–default", "—default"))
_FOOTNOTE = lazy_pattern(r"\*(?!\*)")
STATES_DEFAULT = lazy_pattern(r"\b(?:by default|default is|defaults? to)\b", re.IGNORECASE)
_DEFAULT = lazy_pattern(r"default(?:s|ed|ing)?$", re.IGNORECASE)
_CHOICE = r"[*\"'`]{0,3}[A-Za-z][\w-]*+[*\"'`]{0,3}(?: \((?:the )?default\))?"
_CHOICES = lazy_pattern(
    r"(?:(?P<offers>\b(?:values?|choices|one of|can be)\b[^.;()\n]{0,40}?[: \n]\s*|\()|(?<![\w-]))"
    rf"(?P<all>{_CHOICE}(?:(?:,\s+(?:or\s+)?|\s*[|/]\s*|\s+or\s+){_CHOICE})+)"
)
_CHOSEN = lazy_pattern(r"\b(?P<word>[A-Za-z][\w-]*)[\"'`]? \((?:the )?default\)")
_EMPHASISED = lazy_pattern(r"(?<![\w*])(?P<marks>\*\*?)(?P<word>[A-Za-z][\w-]*)(?P=marks)(?![\w*])")
_CLOSES_HEAD = frozenset(("", ".", ",", ":", "-", "–", "—", "]", "("))
OWN = 4
"""Letters of a word that stands for a part of a name."""
LINKED = 2
"""A name and its ``=``."""
FAR = 9
"""Tokens of a statement between ``default`` and its value, at most."""
NEAR = 6
"""Tokens between a value and the ``default`` behind it, at most."""


class Announced(NamedTuple):
    """The words that announce a default: their place in the row, and the name after them, if any."""

    place: int
    name: Token | None = None


def announced(row: Sequence[Token], at: int, subject: str = "") -> Announced | None:
    """Return the words that announce a literal as a default (``default: 5``, ``5 by default``); ``None`` if none do.

    Args:
        subject: the name that is explained. Its words may stand behind *default*: *the default number of rows is 5*.
    """
    own = "".join(words_of(subject))
    before = [one.text.lower() for one in row[max(0, at - 3) : at]]
    if "be" in before and not _POSSIBLE.isdisjoint(before):
        return None
    stop, name = at - 1, None
    while stop >= max(0, at - FAR) and not _DEFAULT.match(row[stop].text):
        is_own = len(row[stop].text) >= OWN and row[stop].text.lower() in own
        if row[stop].text.lower() not in _LINKS and row[stop].text not in MARKS and not is_own:
            if name or stop == at - 1 or not (row[stop].quoted or row[stop].is_identifier):
                break
            name = row[stop]  # the default value of ``rows`` is 5
        stop -= 1
    if stop >= 0 and _DEFAULT.match(row[stop].text):
        between = {one.text.lower() for one in row[stop + 1 : at]}
        after = row[at + 1].text.lower() if at + 1 < len(row) else ""
        lead = row[stop - 1].text.lower() if stop else ""
        is_verb = row[stop].text.lower() == "defaults" and lead != "("
        if between & _SIGNS or (not is_verb and (after in _CLOSES or row[at].quoted)):
            return Announced(stop - (lead == "by"), name)
    stop = at + 1
    while stop < min(len(row), at + NEAR) and (row[stop].text.lower() in _GIVEN or row[stop].text in MARKS):
        stop += 1
    if stop < len(row) and row[stop].text.lower() == "default":
        after = row[stop + 1].text.lower() if stop + 1 < len(row) else ""
        if after in _CLOSES or row[stop - 1].text.lower() == "by":
            return Announced(stop)
    return None


def chosen(text: str, start: int, end: int) -> Iterator[Token]:
    """Yield the words of lists of choices that are marked as the default: *auto (default) or never*, *(*auto*, never)*.

    One word alone may be emphasised, in brackets or behind words such as *possible values*.
    """
    for listed in _CHOICES.finditer(text, start, end):
        marks = (_CHOSEN, _EMPHASISED) if listed["offers"] else (_CHOSEN,)
        marked = next(filter(None, ([*mark.finditer(text, *listed.span("all"))] for mark in marks)), [])
        if len(marked) == 1:
            word = Token(marked[0]["word"], *marked[0].span("word"), quoted=True)
            is_switch = word.value is not None and word.value.kind == "boolean"
            yield word if is_switch else replace(word, text=f'"{word.text}"')


def gives_defaults(text: str, start: int) -> bool:
    """Tell whether the paragraph before a block of code calls it the default settings."""
    lines = text[max(0, start - MAX_ABOVE) : start].rstrip(" \t\n").split("\n")
    lines = lines[:-1] if lines[-1].lstrip().startswith(_NO_TEXT) else lines
    above = dropwhile(lambda line: not line.strip(), reversed(lines))
    said = "\n".join(takewhile(lambda line: line.strip() and not line.lstrip().startswith(_NO_TEXT), above))
    return _DEFAULTS.search(said) is not None and _CHANGED.search(said) is None


def only_value(text: str, block: DocumentedBlock) -> Token | None:
    """Return the literal in a block of code that is announced as a default; ``None`` if the block holds more."""
    is_default = ANNOUNCES.search(text[max(0, block.start - 80) : block.start]) is not None
    words = list(islice(tokens_of(text[block.body : block.end], block.body), 2)) if is_default else []
    return words[0] if len(words) == 1 and words[0].value is not None else None


def says_all(literal: Literal, text: str) -> bool:
    """Tell whether a cell of a table states only this value. Text after the value may explain it."""
    row, at = literal.row, literal.at
    after = row[at + 1].text.lower() if at + 1 < len(row) else ""
    has_footnote = _FOOTNOTE.match(text, literal.token.end)
    return not has_footnote and after in _CLOSES and all(one.text in "(_" for one in row[:at])


def is_assigned(literal: Literal) -> bool:
    """Tell whether an entry's head (``-linger=4m``, ``(bool: false)``) or a heading (``rows `50```) sets a literal."""
    if literal.role == HEADING:
        said = [one for one in literal.row if one.text not in f"{MARKS}#"]
        if literal.at and literal.row[literal.at - 1].text in "<>" and literal.row[-1].text not in "<>":
            return False  # advice: rows: > 1
        is_set = said[1].text in "=:" if len(said) == VALUED + 1 else len(said) == VALUED and literal.token.quoted
        is_name = said[0].quoted or said[0].is_identifier or literal.value.kind != "string"
        return is_set and is_name and said[-1] is literal.token
    head = _head(literal)
    if head[-1:] == ["="]:
        after = literal.row[literal.at + 1].text if literal.at + 1 < len(literal.row) else ""
        return len(head) == LINKED and (after in _CLOSES_HEAD or head[0].startswith("-"))
    return head[1:2] == ["("] and head[3:] == [":"]


def is_choice(row: Sequence[Token], at: int) -> bool:
    """Tell whether a literal is a choice of the entry above: its item ends with *(default)*, or *Default.* follows."""
    said = [one.text.lower() for one in row[at + 1 :] if one.text != "_"]
    words = [text for text in said if text != "."]
    ends = words[-3:] in (["(", "default", ")"], ["[", "default", "]"])
    is_last = (ends and len(words) > len("(d)")) or "".join(words[-2:]) in _IS_DEFAULT
    is_first = "".join(said[:2]) in _IS_DEFAULT and _CLOSES.issuperset(said[2:3])  # not: the default colour
    return not at and (is_last or is_first)


def is_member(literal: Literal) -> bool:
    """Tell whether a value is in a mapping that is the default of an entry: ``(map: { turns = 3 })``."""
    head = _head(literal)
    return head[-1:] == ["="] and head[1:2] == ["("] and "{" in head


def _head(literal: Literal) -> list[str]:
    """Return the texts of the tokens from the name of the literal's entry up to the literal; empty without a name."""
    row, at, item = literal.row, literal.at, literal.item
    if item is None or literal.role[0] in "FT":
        return []
    first = next((place for place in range(at) if row[place].start == item.start), at)
    return [one.text for one in row[first:at] if one.text not in MARKS]
