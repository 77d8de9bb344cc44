"""Extract the facts of a documentation passage by a walk over its blocks, with the headings above them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Fact, Form
from nornweave.disagree.facts.documentation.blocks import DocumentedBlock
from nornweave.disagree.facts.documentation.entries import DocumentedEntry, read_entry, read_field
from nornweave.disagree.facts.documentation.literals import whole_value
from nornweave.disagree.facts.documentation.naming import heading_name, heading_path, identifier_of
from nornweave.disagree.facts.documentation.page import Page, Subject
from nornweave.disagree.facts.documentation.prose import prose_facts
from nornweave.disagree.facts.documentation.tables import read_table, table_facts

MAX_HEADING = 80
_PARAMETER = lazy_pattern(r"^[ \t]+\*{0,2}([A-Za-z_]\w*)[ \t]*:[ \t]", re.MULTILINE)
_PARAMETERS = lazy_pattern(r"(?:(?:Keyword )?Arg(?:ument)?s|Parameters|Attributes)[ \t]*:[ \t]*(?=\n)", re.IGNORECASE)
_TERM = lazy_pattern(
    r"[^\w`*\n]{0,4}(?:\*\*)?(?:(?P<mark>`{1,2})(?P<code>[^`\n]{2,80})(?P=mark)|\*\*(?P<bold>[\w.-]{2,60})"
    r"|(?P<bare>--?[\w-]{2,60}|[a-z]\w*(?:[_.]\w+)+"
    r"|[A-Z]+_[A-Z_]+))(?:\*\*)?(?:\s*\([^()\n]{0,60}\))?[ \t]*:?[ \t]*(?=\n)"
)


class Reader:
    """Reads one page; holds the headings and entries that stand above the block at hand."""

    def __init__(self, page: Page, subject: Subject | None) -> None:
        self.page = page
        self.text = page.text
        self.root = subject
        self.headings: list[tuple[int, str]] = []
        self.entries: list[tuple[int, Subject]] = []
        self.heading_subject: Subject | None = subject
        if subject is None:
            parts = [part.strip() for part in heading_path(page.passage.section, page.passage.title)]
            self.headings += [(level - len(parts), part) for level, part in enumerate(parts)]
            if parts and not page.talk:
                self._set_heading_subject(parts[-1])

    def _set_heading_subject(self, heading: str) -> None:
        owner = " > ".join(text for _, text in self.headings[:-1])
        name, strong = heading_name(heading)
        if not name:
            self.heading_subject = None
            return
        self.heading_subject = Subject(name=name, form="heading" if strong else "topic", owner=owner)

    @property
    def path(self) -> str:
        """Return the headings above, outermost first, and the owner given by the caller."""
        if self.root is not None:
            return self.root.path
        if self.page.talk:
            return ""
        return " > ".join(text for _, text in self.headings)

    def read(self, blocks: list[DocumentedBlock]) -> Iterator[Fact]:
        """Yield the facts of the blocks, in order."""
        for block in blocks:
            while self.entries and self.entries[-1][0] >= block.indent:
                self.entries.pop()
            if block.kind == "heading":
                self._heading(block)
            if block.kind == "table":
                rows, header = read_table(self.text, block)
                yield from table_facts(self.page, rows, header, self._subject(), self.path)
            elif block.kind == "field":
                field = read_field(self.text, block.start, block.end)
                yield from self._facts_of_entry(field, block, "field") if field is not None else ()
            elif block.kind in {"item", "entry"}:
                yield from self._entry(block)
            elif block.kind == "code":
                yield from _notation_facts(self.page, block.start, block.end, self.path)
            elif block.kind != "heading" or block.end - block.body > MAX_HEADING:  # a paragraph like a heading
                yield from self._paragraph(block)

    def _subject(self) -> Subject | None:
        return self.entries[-1][1] if self.entries else self.heading_subject

    def _heading(self, block: DocumentedBlock) -> None:
        written = self.text[block.body : block.end].split("\n")[0].strip(" #*=")
        self.entries.clear()
        if self.root is not None:
            return
        if self.headings and self.headings[-1][0] < 0 and self.headings[-1][1].strip("`") == written.strip("`"):
            self.headings.pop()  # the passage's own heading path ends with it
        while self.headings and self.headings[-1][0] >= block.level:
            self.headings.pop()
        self.headings.append((block.level, written))
        self._set_heading_subject(written)

    def _entry(self, block: DocumentedBlock) -> Iterator[Fact]:
        """Read an entry of a list or of a docstring; one without a name is prose."""
        entry = read_entry(self.text, block.body, block.end)
        is_field = block.kind == "entry" and bool(self.page.comment or self.root)
        if entry is not None:
            yield from self._facts_of_entry(entry, block, "field" if is_field else "list")
        else:
            yield from prose_facts(self.page, block.body, block.end, self._subject(), headings=self.path)

    def _facts_of_entry(self, entry: DocumentedEntry, block: DocumentedBlock, form: Form) -> Iterator[Fact]:
        outer = self._subject()
        is_known = outer is not None and not outer.is_weak
        above = outer.path if outer is not None and is_known else self.path
        owner = " > ".join(filter(None, (above, entry.owner)))
        subjects = [Subject(name=name, form=form, owner=owner) for name in reversed(entry.names)]
        if outer is not None and is_known and not entry.names:  # ``@default 5`` is about what the comment is about
            subjects = [replace(outer, form=form)]
        told = [(subject, value) for subject in subjects for value in entry.defaults]
        told += [(Subject(name=name, form=form, owner=subjects[-1].path), value) for name, value in entry.members]
        for subject, value in told:
            fact = self.page.fact(subject, "default", value, block.body, max(entry.body, block.body))
            if fact is not None:
                yield fact
        for subject in subjects if entry.body < block.end else ():
            yield from prose_facts(self.page, entry.body, block.end, subject, headings=owner)
        if entry.names:
            self.entries.append((block.indent, subjects[-1]))

    def _paragraph(self, block: DocumentedBlock) -> Iterator[Fact]:
        if _PARAMETERS.match(self.text, block.start, block.end):  # one a line, without types
            found = list(_PARAMETER.finditer(self.text, block.start, block.end))
            for match, stop in zip(found, [*(one.start() for one in found[1:]), block.end], strict=False):
                line = replace(block, start=match.start(), end=stop, indent=block.indent + 1, body=match.start(1))
                yield from self._facts_of_entry(DocumentedEntry(names=(match[1],), body=match.end()), line, "field")
            return
        term = _TERM.match(self.text, block.start, block.end)
        if term is not None and (name := identifier_of(term["code"] or term["bold"] or term["bare"] or "")):
            yield from self._facts_of_entry(DocumentedEntry(names=(name,), body=term.end()), block, "heading")
        else:
            start = block.body if block.kind == "directive" else block.start
            yield from prose_facts(self.page, start, block.end, self._subject(), headings=self.path)


_NOTATIONS = (
    # Prometheus and what follows its style: ``[ scrape_timeout: <duration> | default = 10s ]``
    lazy_pattern(
        r"^[ \t>#*-]*\[?[ \t]*(?P<name>[A-Za-z][\w.-]{1,60})[ \t]*:?[ \t]*<[\w ]{1,40}>[ \t]*"
        r"\|[ \t]*default[ \t]*[=:][ \t]*(?P<value>[^\n\]|]{1,80}?)[ \t]*(?:\]|$)",
        re.MULTILINE,
    ),
    # ``--rc-max-header-bytes int   Maximum size of a header (default 4096)``
    lazy_pattern(
        r"^[ \t]*(?:-\w,?[ \t]+)?(?P<name>--[a-z][\w-]{1,60})\b[^\n]{0,400}?"
        r"[(\[]default(?:s to)?:?[ \t]+(?P<value>[^()\[\]\n]{1,60})[)\]]",
        re.MULTILINE,
    ),
)


def _notation_facts(page: Page, start: int, end: int, owner: str) -> Iterator[Fact]:
    """Yield the defaults that lines of a block of code state in a notation for readers."""
    if "default" not in page.text[start:end].lower():
        return
    first = page.text.rfind("\n", 0, start) + 1
    for pattern in _NOTATIONS:
        for match in pattern.finditer(page.text, first, end):
            value = whole_value(match["value"])
            subject = Subject(name=match["name"], form="list", owner=owner)
            fact = page.fact(subject, "default", value, match.start("name"), match.end()) if value else None
            if fact is not None:
                yield fact
