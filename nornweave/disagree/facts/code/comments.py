"""Find comments and docstrings, each with the declaration that it documents."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.facts.code.reading import Base, owner_of
from nornweave.disagree.facts.code.sites import NAMED_ROLES, ValueSite

MAX_BETWEEN = 600
"""Characters of annotations and modifiers between a comment and what it documents."""
_DOCUMENTED = NAMED_ROLES
_BETWEEN = lazy_pattern(
    r"(?:\s|@[\w.]{1,80}(?:\([^()\n]{0,200}\))?|#!?\[[^\]\n]{0,200}\]|\[[^\]\n]{0,200}\]"
    r"|\b(?:export|default|pub|public|private|protected|internal|static|final|const|var|let|val|async|abstract|override|"
    r"declare|readonly|type|open|inline|unsafe|local|data|sealed|extern|func|return|template\s?<[^<>\n]{0,100}>)\b|\(crate\))*"
)
_BELOW = lazy_pattern(r"\s{0,80}([A-Za-z_$][\w$]*)(?=[ \t]+[*\[\w]|\??:|\s?=)")


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment block or a docstring.

    Attributes:
        start: offset in the text of the passage; ``end`` the one behind it.
        subject: the written name of the declaration that it documents; empty for a class, which is the owner.
        owner: what the declaration stands in, outermost first.
        is_remark: it documents no declaration that the grammar knows; its subject is the word below, if any.
    """

    start: int
    end: int
    subject: str = ""
    owner: str = ""
    is_remark: bool = False


def read_comments(text: str, sites: list[ValueSite], base: Base) -> Iterator[Comment]:
    """Yield the comments of a text in order.

    Adjacent line comments are one. A comment belongs to the declaration that follows directly, a docstring to what it
    opens. Others are remarks; those behind code are left out.
    """
    declared = [site for site in sites if site.role in _DOCUMENTED and site.name]
    starts = [site.start for site in declared]
    for block, is_doc in _blocks(text, sites):
        subject = (
            _docstring_subject(text, block, declared, starts) if is_doc else _subject(text, block, declared, starts)
        )
        if subject is None:
            if _is_alone(text, block):
                below = _BELOW.match(text, block.end)
                yield Comment(block.start, block.end, below[1] if below else "", base.owner, is_remark=True)
        elif subject.role == "class":  # what it says of values is said of its members
            yield Comment(block.start, block.end, "", f"{owner_of(subject, base)} {subject.bare_name}".strip())
        else:
            yield Comment(block.start, block.end, subject.bare_name, owner_of(subject, base).strip())


def _blocks(text: str, sites: list[ValueSite]) -> Iterator[tuple[ValueSite, bool]]:
    """Yield runs of comments as one place each; and docstrings."""
    open_block: ValueSite | None = None
    for site in sites:
        if site.role not in {"comment", "doc"}:
            continue
        if site.role == "comment" and open_block is not None:
            between = text[open_block.end : site.start] if site.start - open_block.end < 400 else "x"
            if (
                not between.strip()
                and between.count("\n") <= 1
                and _is_alone(text, open_block)
                and _is_line(text, site)
            ):
                open_block.end = max(open_block.end, site.end)
                continue
        if open_block is not None:
            yield open_block, False
            open_block = None
        if site.role == "doc":
            yield site, True
        else:
            open_block = ValueSite("comment", site.start, site.end, parent=site.parent)
    if open_block is not None:
        yield open_block, False


def _is_alone(text: str, site: ValueSite) -> bool:
    """Tell whether nothing stands before a comment on its line."""
    line = text.rfind("\n", 0, site.start) + 1
    return not text[max(line, site.start - 400) : site.start].strip()


def _is_line(text: str, site: ValueSite) -> bool:
    return not text.startswith("/*", site.start)


def _subject(text: str, block: ValueSite, declared: list[ValueSite], starts: list[int]) -> ValueSite | None:
    if not _is_alone(text, block):
        return None
    at = bisect_left(starts, block.end)
    # What starts behind the comment, or around what its annotations belong to.
    if at >= len(declared) or declared[at].start - block.end > MAX_BETWEEN:
        return None
    between = text[block.end : declared[at].start]
    if between.count("\n\n") or not _BETWEEN.fullmatch(between):
        return None
    return declared[at]


def _docstring_subject(text: str, block: ValueSite, declared: list[ValueSite], starts: list[int]) -> ValueSite | None:
    """Return the definition that a string opens, or the assignment that it follows."""
    around = block.parent
    while around is not None and around.role not in {"class", "function"}:
        around = around.parent
    at = bisect_left(starts, block.start) - 1
    before = declared[at] if at >= 0 else None
    if before is not None and before.role in {"assign", "field"} and before.end <= block.start:
        return before if not text[before.end : block.start].strip() and before.parent is around else None
    if around is None:
        return None
    header = text[max(around.start, block.start - 200) : block.start].rstrip()
    return around if header.endswith(":") or header.rpartition("\n")[2].lstrip().startswith("#") else None
