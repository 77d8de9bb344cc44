"""Extract facts from documentation, conversations and papers: from structure first, then from prose.

A passage is read by a walk over its blocks, with the headings above them.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Attribute, Fact, Form, Side, Span
from nornweave.disagree.facts.configuration import MAX_BLANKS, is_secret, settings_of_block, value_of
from nornweave.disagree.facts.documentation.blocks import DocumentedBlock, blocks_of
from nornweave.disagree.facts.documentation.defaults import (
    ANNOUNCES,
    IS_ABOUT_DEFAULTS,
    STATES_DEFAULT,
    Announced,
    announced,
    chosen,
    is_assigned,
    is_choice,
    is_member,
    only_value,
    says_all,
)
from nornweave.disagree.facts.documentation.prose import (
    QUANTITIES,
    flagged,
    identifier_of,
    noun_before,
    qualifiers_of,
    quantities,
    sentences,
    stated,
)
from nornweave.disagree.facts.documentation.tokens import MAX_LINE, Token, surface_of, tokens_of
from nornweave.disagree.facts.documentation.walk import Item, Literal, Walk, flag_of
from nornweave.disagree.facts.names import words_of
from nornweave.disagree.facts.passage import Passage, fact_of
from nornweave.disagree.facts.values import FALSE, TRUE, Value
from nornweave.read.blocks.block import Block
from nornweave.read.blocks.reader import read_blocks, shown_text
from nornweave.read.chunking.languages import language_of

MAX_FACTS = 2_000
"""Of one passage."""
_TAG_NAME = lazy_pattern(r"[\w.-]{2,}")
_SIDES: dict[str, Side] = {"conversations": "conversation", "research": "research"}
_LONG = lazy_pattern(rf"^([^\n]{{{MAX_LINE}}})([^\n]+)", re.MULTILINE)

MAX_HEADING = 80
"""Characters of a heading; what is longer states something, as a paragraph does."""
_APART = frozenset((*".;?!¶", "and", "but", "if", "when", "while", "use", "uses"))
"""What does not stand between a name and what is stated of it."""
NEAR = 6
"""Tokens between a name and what is stated of it, at most."""
_LABEL = lazy_pattern(r"[ \t]*(?:\*\*`?|__|`)(?P<name>[\w.$/-]{2,80})(?:`?\*\*|__|`):?[ \t]*(?:\([^()\n]*\))?\s*")
_KEY = lazy_pattern(r"[\s*_]*\w+(?: \w+)?:")
_COLUMN = lazy_pattern(r"\bdefaults?\b")
_SWITCH = lazy_pattern(r"[^\n]*\[\W*0\W+1\W*\]")
"""The head of an entry that takes 0 or 1: ``**glow=** [**0** | **1**]``."""
_NEGATION = lazy_pattern(r"(?<!or )\b(?:not|n't|never|no longer|doesn't|isn't)\s+(?:\w+\s+)?$", re.IGNORECASE)

Stretch = tuple[int, int]


def documentation_facts(passage: Passage, *, subject: str = "", owner: str = "") -> Iterator[Fact]:
    """Yield the facts about named things in a passage of documentation, a conversation or a paper.

    Lines are read only up to ``MAX_LINE`` characters.

    Args:
        subject: the written name of the definition that a docstring or comment documents.
        owner: the owner of this definition (its class).

    Returns:
        At most ``MAX_FACTS`` facts, in the order of the text's blocks; their spans lie inside the passage.
    """
    if passage.format in {"man", "pod"}:
        yield from islice(_of_manual(passage), MAX_FACTS)
        return
    comment = bool(subject or passage.language or language_of(passage.path))
    shown = passage.text if comment else shown_text(passage.text, passage.format)
    text = _LONG.sub(lambda match: match[1] + " " * len(match[2]), shown)
    root = Subject(name=subject, form="field", owner=owner) if subject else None
    side = _SIDES.get(passage.domain, "documentation")
    surface = surface_of(text, comment=comment, talk=side == "conversation")
    reader = Reader(passage, surface, side, comment, root)
    yield from islice(reader.read(), MAX_FACTS)


def _of_manual(passage: Passage) -> Iterator[Fact]:
    """Yield the facts of a manual page. An item's text is about the option or key in its tag; the rest is prose."""
    read = read_blocks(passage.text, passage.format)
    page = replace(passage, text=read.text, format="")
    rest, at = [], 0
    for name, span, section in _items(read.blocks):
        said = read.text[span.start : span.end]
        part = replace(page, text=said.replace("\n", " "), start=passage.start + span.start)
        for fact in documentation_facts(part, subject=name, owner=section):
            first, last = fact.span.start - passage.start, fact.span.end - passage.start
            yield replace(fact, line=page.line_of(first), statement=page.lines_between(first, last))
        if span.start >= at:
            rest += [read.text[at : span.start], re.sub(r"[^\n]", " ", said)]
            at = span.end
    yield from documentation_facts(replace(page, text="".join((*rest, read.text[at:]))))


def _items(blocks: Iterable[Block], section: str = "") -> Iterator[tuple[str, Span, str]]:
    """Yield each item of a manual page: the name in its tag, the span of its text, and its section or outer item."""
    for block in blocks:
        section = block.info if block.kind == "heading" else section
        tags = block.info.split(", ") if block.kind == "term" else []
        flags = [flag.name for tag in tags if (flag := flag_of(tag))]
        name = max(flags, key=len) if flags else named[0] if tags and (named := _TAG_NAME.match(tags[0])) else ""
        own = [part for part in block.parts if part.kind not in {"term", "heading"}]
        if name and own:
            bracket = block.info.find(" (")  # rows (number, default: 5)
            start = block.span.start + bracket + 1 if bracket > 0 else own[0].span.start
            yield name, Span(start, own[-1].span.end), section
        yield from _items((part for part in block.parts if part.kind == "term"), name or section)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The subject of a text: its name as written, its form, and its owner."""

    name: str
    form: Form
    owner: str = ""

    @property
    def path(self) -> str:
        """Return the subject's owner and name, which are the owner of all things that belong to the subject."""
        return f"{self.owner} > {self.name}" if self.owner else self.name


@dataclass
class Reader:
    """Reads one passage. It remembers the entries above the current block.

    Attributes:
        text: the passage's text with blanks for its markup (``surface_of``).
        root: the definition that the passage documents, if it is a docstring or comment.
        label: the name in the paragraph above, if that paragraph is only a name.
    """

    passage: Passage
    text: str
    side: Side
    is_comment: bool
    root: Subject | None
    entries: list[tuple[int, Subject]] = field(default_factory=list)
    label: Subject | None = None

    def __post_init__(self) -> None:
        """Store the headings above the passage."""
        self.is_talk = self.side == "conversation"
        self.walk = Walk(self._is_name, is_strict=True)
        above = [*(self.passage.section or "").split(" > "), *(self.passage.title or "").split(" > ")]
        parts = [part.strip() for at, part in enumerate(above) if part and part not in above[max(0, at - 1) : at]]
        if self.root is None and not self.is_talk:
            for level, part in enumerate(parts, -len(parts)):
                self.walk.enter(part, level)

    def _is_name(self, token: Token) -> bool:
        is_code = self.is_comment or self.root is not None
        return _is_mention(token) or (is_code and token.text.islower() and bool(identifier_of(token.text)))

    @property
    def path(self) -> str:
        """Return the headings above the current block, outermost first; in a docstring the path of its definition."""
        return self.root.path if self.root else " > ".join(text for _, text in self.walk.headings)

    @property
    def subject(self) -> Subject | None:
        """Return the subject of the current block: the entry above it, the heading, or ``None``."""
        if self.entries:
            return self.entries[-1][1]
        if self.label:
            return self.label
        if self.root or not self.walk.head:
            return self.root
        owner = " > ".join(text for _, text in self.walk.headings[:-1])
        return Subject(name=self.walk.head, form="heading", owner=owner)

    def read(self) -> Iterator[Fact]:
        """Yield the facts of the passage, in the order of its blocks."""
        for block in blocks_of(self.text, self.text if self.is_comment else self.passage.text):
            if block.kind == "heading" and self.root is None and not self.is_talk:
                self._below(self.text[block.body : block.end].split("\n")[0].strip(" #*="), block.level)
            is_named = self.root is None and not self.is_talk and bool(self.walk.head)
            if block.kind != "heading" or is_named or block.end - block.body > MAX_HEADING:
                yield from self._block(block)
            self._take_label(block)

    def _take_label(self, block: DocumentedBlock) -> None:
        """If a paragraph is only a name, store this name as the subject of the fields or the paragraph below it."""
        said = _LABEL.fullmatch(self.text, block.start, block.end) if block.kind == "paragraph" else None
        if not _KEY.match(self.text, block.body):
            self.label = None
        if said and not self.is_talk and any(one.is_identifier for one in tokens_of(said["name"])):
            self.label = Subject(
                name=said["name"], form="heading", owner=self.subject.path if self.subject else self.path
            )

    def _below(self, written: str, level: int) -> None:
        self.entries.clear()
        self.label = None
        above = self.walk.headings
        if above and above[-1][0] < 0 and above[-1][1].strip("`") == written.strip("`"):
            above.pop()  # the passage's own heading path ends with it
        self.walk.enter(written, level)

    def _block(self, block: DocumentedBlock) -> Iterator[Fact]:  # noqa: C901 - one kind of block after another
        while self.entries and self.entries[-1][0] >= block.indent:
            self.entries.pop()
        if not self.entries:
            self.walk.leave()
        said, outer, item = sentences(self.text, block.start, block.end), self.entries[-1:], self.walk.item
        above = list(self.entries)
        told = set()
        only = only_value(self.text, block) if block.kind == "code" else None
        if only and only.value and (fact := self._fact(self.subject, "default", only.value, (only.start, only.end))):
            yield fact
            return
        if block.kind == "code" and (settings := [*self._entries(block)]):
            yield from settings
            return
        for literal in self.walk.literals(self.text, block):
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
        if block.kind == "code":
            self.entries = above
        elif self.walk.item is not item and self.walk.item:
            self._enter(outer, block, self.walk.item)
        is_title = block.kind == "heading" and block.end - block.body <= MAX_HEADING
        if block.kind not in {"table", "code"} and not is_title:
            for one in said:
                untold = () if one in told else [*self._untold(one)]
                yield from untold
                yield from self._stated(one, has_default=one in told or bool(untold))
            if self.side == "documentation" and self.root is None and self.subject is None:
                yield from self._flagged(said)

    def _entries(self, block: DocumentedBlock) -> Iterator[Fact]:
        """Yield the settings in a block of YAML, TOML or JSON that is announced or titled as the defaults."""
        is_titled = bool(self.walk.headings) and IS_ABOUT_DEFAULTS.match(self.walk.headings[-1][1])
        if not is_titled and not ANNOUNCES.search(self.text[max(0, block.start - 80) : block.start]):
            return
        for name, entry in settings_of_block(self.text, block.start, block.end, block.info.lower()):
            value = None if is_secret(entry) else value_of(entry.value)
            if value is not None and value.text.count(" ") <= MAX_BLANKS:
                about = Subject(name=name, form="list", owner=self.path)
                fact = self._fact(about, "default", value, (entry.start, entry.end))
                yield from filter(None, (fact,))

    def _enter(self, outer: Sequence[tuple[int, Subject]], block: DocumentedBlock, item: Item) -> None:
        if self.is_talk and item.role == "P":  # who speaks
            return
        self.entries = list(outer)
        above = self.subject
        is_field = block.kind == "field" or (block.kind == "entry" and bool(self.is_comment or self.root))
        form: Form = "field" if is_field else "list" if item.role == "L" else "heading"
        owner = above.path if above else self.path
        self.entries = [*outer, (block.indent, Subject(name=item.name, form=form, owner=owner))]

    def _default(self, literal: Literal, sentence: Stretch | None) -> Fact | None:
        """Return the fact of a literal that is announced as a default; ``None`` if it is not or has no subject."""
        token, row, text = literal.token, literal.row, self.text
        if token.text in {"0", "1"} and literal.item and _SWITCH.match(text, literal.item.start):
            literal = replace(literal, value=TRUE if token.text == "1" else FALSE)
        if literal.value.kind == "string" and not token.is_plain:
            return None
        subject = self.subject
        if literal.role == "XL" and is_choice(row, literal.at) and self.entries:  # - `auto`: if it can (default)
            choice = self.entries.pop()
            about = self.subject
            self.entries.append(choice)
            return self._fact(about, "default", literal.value, (token.start, row[-1].end))
        if literal.item and literal.item.role == "row":
            subject = Subject(name=literal.item.name, form="table", owner=subject.path if subject else self.path)
        if _COLUMN.search(literal.column):
            start = literal.item.start if literal.item else token.start
            is_below = "\n" in text[start : token.start]  # a cell a line
            place = token.start if is_below else start, token.end
            return self._fact(subject, "default", literal.value, place) if says_all(literal, text) else None
        said = announced(row, literal.at, subject.name if subject else "")
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
        return self._fact(about, "default", literal.value, (start, end), sentence, negated=negated)

    def _about(self, literal: Literal, said: Announced, subject: Subject | None) -> Subject | None:
        """Return the subject of a literal that is announced as a default; ``None`` if no subject is found."""
        row, mark = literal.row, min(said.place, literal.at)
        if literal.role[0] == "F":  # [ rows: <int> | default = 7 ]
            head = [one for one in row[:4] if one.text not in "[<"]
            flags = [one.name for one in head if one.text[:1] == "-"]
            is_option = flags or (len(head) > 1 and head[1].text == ":")
            name = max(flags or [head[0].name], key=len) if is_option else ""
            return Subject(name=name, form="list", owner=self.path) if is_option else None
        if said.name is not None:
            return self._named(said.name, subject)
        if subject is not None and mark and row[mark - 1].text == "(":
            return subject
        return self._before(row[:mark], row[mark].start, subject, QUANTITIES)

    def _before(
        self, row: Sequence[Token], at: int, subject: Subject | None, nouns: Container[str] | None
    ) -> Subject | None:
        """Return the subject before a place: a name in the row, a noun, or ``subject``, which may be ``None``.

        Args:
            nouns: the last words that a noun phrase may have; ``None`` if it may have any.
        """
        names = [one for one in row if _is_mention(one)]
        behind = row[row.index(names[-1]) + 1 :] if names else ()
        is_near = names and len(behind) <= NEAR and not any(one.text.lower() in _APART for one in behind)
        if is_near or (subject is None and len({one.name for one in names}) == 1):
            return self._named(names[-1], subject)
        lead = self.text[max(0, at - 70) : at].rstrip(" ,(*_`")
        noun = noun_before(lead, 0, len(lead)) if subject is None else ""
        is_said = noun and (nouns is None or noun.split()[-1].lower() in nouns)
        return Subject(name=noun, form="topic", owner=self.path) if is_said else subject

    def _named(self, token: Token, subject: Subject | None) -> Subject:
        if subject is not None and words_of(token.name) == words_of(subject.name):
            return subject
        return Subject(name=token.name, form="sentence", owner=self.path)

    def _stated(self, sentence: Stretch, *, has_default: bool) -> Iterator[Fact]:
        """Yield the requirements, statuses and quantities of a sentence; no quantities if it ``has_default``."""
        subject = self.subject
        for one in stated(self.text, *sentence):
            if one.name:  # what one function or option needs is not what the project needs
                about = None if subject else Subject(name=one.name, form="sentence", owner=self.path)
            else:
                row = list(tokens_of(self.text[sentence[0] : one.start], sentence[0]))
                about = self._before(row, one.start, subject, None if one.attribute == "status" else ())
            fact = self._fact(about, one.attribute, one.value, one[3:5], sentence)
            if fact is not None:
                yield fact
                has_default = True
        if has_default or subject is not None:
            return
        for one in quantities(self.text, *sentence, is_page=self.side == "documentation"):
            about = Subject(name=one.name, form="topic", owner=" > ".join(filter(None, (self.path, one.owner))))
            fact = self._fact(about, one.attribute, one.value, one[3:5], sentence)
            if fact is not None:
                yield fact

    def _untold(self, sentence: Stretch) -> Iterator[Fact]:
        """Yield the choice that a sentence marks as a default, or the one number of a sentence about a default.

        Such a number may be of something else: it is a ``value``, so that another one in code is no difference.
        """
        for one in chosen(self.text, *sentence):
            if one.value and (fact := self._fact(self.subject, "default", one.value, (one.start, one.end), sentence)):
                yield fact
                return
        if self.subject is None or not STATES_DEFAULT.search(self.text, *sentence):
            return
        row = list(tokens_of(self.text[slice(*sentence)], sentence[0]))
        numbers = [one for one in row if one.value and one.value.kind == "number"]
        named = [one.start for one in row if one.quoted or one.text[0] == "-"]
        if len(numbers) == 1 and numbers[0].value and numbers[0].start < min(named, default=sentence[1]):
            place = numbers[0].start, numbers[0].end
            yield from filter(None, (self._fact(self.subject, "value", numbers[0].value, place, sentence),))

    def _flagged(self, said: Sequence[Stretch]) -> Iterator[Fact]:
        """Yield the numbers of a paragraph that are values of neighbouring flags."""
        for value, flag, sentence in flagged(self.text, said):
            about = Subject(name=flag.name, form="sentence", owner=self.path)
            if value.value and (fact := self._fact(about, "default", value.value, (value.start, value.end), sentence)):
                yield fact

    def _fact(
        self, about: Subject | None, attribute: Attribute, value: Value, place: Stretch,
        sentence: Stretch | None = None, *, negated: bool = False,
    ) -> Fact | None:  # fmt: skip
        """Return a fact of the parts that were read; ``None`` if it has no subject or its sentence states no fact."""
        if about is None or sum(character.isalpha() for character in about.name) < 2:
            return None
        qualifiers = qualifiers_of(self.text, sentence, *place, talk=self.is_talk) if sentence else ()
        if qualifiers is None:
            return None
        return fact_of(
            self.passage, name=about.name, value=value, attribute=attribute, side=self.side, form=about.form,
            start=place[0], end=place[1], owner=about.owner, qualifiers=qualifiers, negated=negated,
        )  # fmt: skip


def _is_mention(token: Token) -> bool:
    return (token.quoted or token.is_identifier) and bool(identifier_of(token.name))
