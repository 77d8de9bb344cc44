"""Extract the facts of a documentation passage by a walk over its blocks, with the headings above them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Attribute, Fact, Form
from nornweave.disagree.facts.documentation.blocks import DocumentedBlock
from nornweave.disagree.facts.documentation.defaults import Announced, announced, is_assigned, is_member, says_all
from nornweave.disagree.facts.documentation.naming import (
    QUANTITIES,
    heading_name,
    heading_path,
    identifier_of,
    noun_before,
)
from nornweave.disagree.facts.documentation.page import Page, Subject
from nornweave.disagree.facts.documentation.prose import sentence_facts
from nornweave.disagree.facts.documentation.qualifiers import sentences
from nornweave.disagree.facts.documentation.tokens import Token
from nornweave.disagree.facts.documentation.walk import Item, Literal, Walk
from nornweave.disagree.facts.names import words_of

MAX_HEADING = 80
"""Characters of a heading; what is longer states something, as a paragraph does."""
_APART = frozenset((*".;?!¶", "and", "but", "if", "when", "while", "use", "uses"))
"""What does not stand between a name and what is stated of it."""
NEAR = 6
"""Tokens between a name and what is stated of it, at most."""
_COLUMN = lazy_pattern(r"\bdefaults?\b")
_NEGATION = lazy_pattern(r"(?<!or )\b(?:not|n't|never|no longer|doesn't|isn't)\s+(?:\w+\s+)?$", re.IGNORECASE)


@dataclass
class Reader:
    """Reads one page; holds the headings and entries that stand above the block at hand."""

    page: Page
    root: Subject | None
    headings: list[tuple[int, str]] = field(default_factory=list)
    entries: list[tuple[int, Subject]] = field(default_factory=list)
    heading: Subject | None = None

    def __post_init__(self) -> None:
        """Take the headings above the passage."""
        self.heading = self.root
        self.walk = Walk(self._is_name, is_strict=True)
        passage = self.page.passage
        if self.root is None:
            parts = [part.strip() for part in heading_path(passage.section, passage.title)]
            self.headings += [(level - len(parts), part) for level, part in enumerate(parts)]
            if parts and not self.page.talk:
                self._head(parts[-1])

    def _is_name(self, token: Token) -> bool:
        is_code = self.page.comment or self.root is not None
        return _is_mention(token) or (is_code and token.text.islower() and bool(identifier_of(token.text)))

    def _head(self, heading: str) -> None:
        owner = " > ".join(text for _, text in self.headings[:-1])
        name, is_strong = heading_name(heading)
        self.heading = Subject(name=name, form="heading" if is_strong else "topic", owner=owner) if name else None

    @property
    def path(self) -> str:
        """Return the headings above, outermost first, and the owner given by the caller."""
        if self.root is not None:
            return self.root.path
        return "" if self.page.talk else " > ".join(text for _, text in self.headings)

    @property
    def subject(self) -> Subject | None:
        """Return what the block at hand is about: the entry above it, or the heading."""
        return self.entries[-1][1] if self.entries else self.heading

    def _below(self, block: DocumentedBlock) -> None:
        """Take a heading as what the following is about."""
        written = self.page.text[block.body : block.end].split("\n")[0].strip(" #*=")
        self.entries.clear()
        self.walk.leave()
        if self.root is not None:
            return
        if self.headings and self.headings[-1][0] < 0 and self.headings[-1][1].strip("`") == written.strip("`"):
            self.headings.pop()  # the passage's own heading path ends with it
        while self.headings and self.headings[-1][0] >= block.level:
            self.headings.pop()
        self.headings.append((block.level, written))
        self._head(written)

    def read(self, blocks: Iterable[DocumentedBlock]) -> Iterator[Fact]:
        """Yield the facts of the blocks, in order."""
        for block in blocks:
            if block.kind == "heading":
                self._below(block)
            if block.kind != "heading" or block.end - block.body > MAX_HEADING:
                yield from self._block(block)

    def _block(self, block: DocumentedBlock) -> Iterator[Fact]:
        while self.entries and self.entries[-1][0] >= block.indent:
            self.entries.pop()
        if not self.entries:
            self.walk.leave()
        said, outer, item = sentences(self.page.text, block.start, block.end), self.entries[-1:], self.walk.item
        told = set()
        for literal in self.walk.literals(self.page.text, block):
            if self.walk.item is not item and (item := self.walk.item):
                self._enter(outer, block, item)
            at = literal.token.start
            sentence = next((one for one in said if one[0] <= at < one[1]), None)
            if literal.role[0] == "T":
                sentence = literal.row[0].start, literal.row[-1].end
            fact = self._default(literal, sentence if block.kind != "code" else None)
            if fact is not None:
                told.add(sentence)
                yield fact
        if self.walk.item is not item and self.walk.item:
            self._enter(outer, block, self.walk.item)
        if block.kind not in {"table", "code"}:
            for one in said:
                yield from sentence_facts(self.page, one, self.subject, self.path, has_default=one in told)

    def _enter(self, outer: Sequence[tuple[int, Subject]], block: DocumentedBlock, item: Item) -> None:
        if self.page.talk and item.role == "P":  # who speaks
            return
        above = outer[-1][1] if outer else self.heading
        owner = above.path if above and not above.is_weak else self.path
        is_field = block.kind == "field" or (block.kind == "entry" and bool(self.page.comment or self.root))
        form: Form = "field" if is_field else "list" if item.role == "L" else "heading"
        self.entries = [*outer, (block.indent, Subject(name=item.name, form=form, owner=owner))]

    def _default(self, literal: Literal, sentence: tuple[int, int] | None) -> Fact | None:
        """Read a literal as a default, if a seed template says that it is one."""
        token, row, text = literal.token, literal.row, self.page.text
        if literal.value.kind == "string" and not token.is_plain:
            return None
        subject = self._of_row(literal.item) if literal.item and literal.item.role == "row" else self.subject
        if literal.item and (literal.column == "value" or _COLUMN.search(literal.column)):
            attribute: Attribute = "value" if literal.column == "value" else "default"
            if subject is None or not says_all(literal, text):
                return None
            return self.page.fact(subject, attribute, literal.value, literal.item.start, token.end)
        said = announced(row, literal.at)
        if said is not None:
            word = row[said.place]
            about = self._about(literal, said, subject)
            start, end = min(token.start, word.start), max(token.end, word.end)
            negated = bool(_NEGATION.search(text[max(0, start - 20) : start]))
        else:
            start, end, negated = token.start, token.end, False
            about = subject if is_assigned(literal) else None
            if subject is not None and is_member(literal):
                about = Subject(name=row[literal.at - 2].name, form="list", owner=subject.path)
        if about is None:
            return None
        return self.page.fact(about, "default", literal.value, start, end, sentence=sentence, negated=negated)

    def _of_row(self, item: Item) -> Subject:
        subject = self.subject
        owner = subject.path if subject is not None and not subject.is_weak else self.path
        return Subject(name=item.name, form="table", owner=owner)

    def _about(self, literal: Literal, said: Announced, subject: Subject | None) -> Subject | None:
        """Decide what a default is about: a name right before it, the entry or row it is in, the heading."""
        row, mark = literal.row, min(said.place, literal.at)
        if literal.role[0] == "F":  # [ rows: <int> | default = 7 ]
            head = [one for one in row[:4] if one.text not in "[<"]
            flags = [one.name for one in head if one.text[:1] == "-"]
            is_option = flags or (len(head) > 1 and head[1].text == ":")
            name = max(flags or [head[0].name], key=len) if is_option else ""
            return Subject(name=name, form="list", owner=self.path) if is_option else None
        if said.name is not None:
            return self._named(said.name, subject)
        strong = subject if subject is not None and not subject.is_weak else None
        if strong is not None and mark and row[mark - 1].text == "(":
            return strong
        names = [at for at in range(mark) if _is_mention(row[at])]
        is_near = bool(names) and mark - names[-1] <= NEAR
        if is_near and not any(one.text.lower() in _APART for one in row[names[-1] + 1 : mark]):
            return self._named(row[names[-1]], subject)
        if strong is not None:
            return strong
        if len({row[at].name for at in names}) == 1:
            return self._named(row[names[-1]], subject)
        lead = self.page.text[max(0, row[mark].start - 70) : row[mark].start].rstrip(" ,(*_`")
        noun = noun_before(lead, 0, len(lead))
        is_quantity = noun and noun.split()[-1].lower() in QUANTITIES
        return Subject(name=noun, form="topic", owner=self.path) if is_quantity else subject

    def _named(self, token: Token, subject: Subject | None) -> Subject:
        if subject is not None and words_of(token.name) == words_of(subject.name):
            return subject
        return Subject(name=token.name, form="sentence", owner=self.path)


def _is_mention(token: Token) -> bool:
    return (token.quoted or token.is_identifier) and bool(identifier_of(token.name))
