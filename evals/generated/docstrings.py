"""Code: the first sentence of the description of a function or class → its lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from evals.generated.drafts import Draft, DraftCandidate, lines_of
from evals.generated.query_words import first_sentence, is_askable, is_prose, without_marks
from evals.judgments import HiddenText
from nornweave.core.text.index_fields import is_identifier
from nornweave.core.types import Span
from nornweave.index.index import Index
from nornweave.read.chunking import parsing, syntax
from nornweave.read.chunking.languages import Grammar, grammar_of

MAX_CHARACTERS = 400_000
"""Of a file that is parsed for its descriptions; larger ones were written by programs."""
# Every way to begin a docstring or a comment that the grammars know.
_MARKS = ('"""', "'''", "//", "/*", "#")
# What stands at the beginning of a comment's or docstring's lines, and at the end of all of it.
_LINE_MARK = re.compile(r"^[ \t]*(?:///?!?|/\*\*?!?|\*(?!\*)/?|#+(?!\[))?[ \t]?", re.MULTILINE)
_QUOTES = re.compile(r"\A[A-Za-z]{0,2}(?P<quote>\"\"\"|'''|\"|')")
# Where a description ends and the list of parameters, an example or a rule begins.
_END = re.compile(
    r"^[ \t]*(?:$|@\w|:\w[\w ]{0,60}:|\.\. |>>>|```|[-=~*]{3,}|-[ \t]|\*[ \t]|\d+[.)][ \t]|"
    r"(?:args|arguments|parameters|params|returns?|raises|yields|examples?|notes?|usage|see also|todo)[ \t]*:?[ \t]*$)",
    re.MULTILINE | re.IGNORECASE,
)
# Comments that say nothing of what stands below them.
_NO_SUMMARY = re.compile(
    r"copyright|licen[cs]e|\bnoqa\b|pylint|eslint|prettier|@ts-|nolint|clang-format|#?(?:end)?region\b|\btodo\b|\bfixme\b|"
    r"\bxxx\b|\bhack\b|inherit[ -]?doc|auto-?generated|see (?:the )?base class",
    re.IGNORECASE,
)
# Names that languages prescribe; nobody looks for them, and every class has them.
_PRESCRIBED = re.compile(r"__\w+__|constructor|init|deinit|toString|hashCode|equals")


@dataclass(frozen=True, slots=True)
class _Documented:
    """A definition and its description."""

    name: str
    described: Span
    lines: Span


class Docstrings:
    """Docstrings of Python, and comments directly above a definition in other languages."""

    kind = "docstring"
    distinct = False

    def candidates(self, generation: Index) -> Sequence[DraftCandidate]:
        """Return the functions and classes that may have a description, each once."""
        found: dict[tuple[int, str], DraftCandidate] = {}
        for chunk in generation.chunk_places(holding=_MARKS):
            named = chunk.metadata.get("function_name") or chunk.metadata.get("class_name")
            if named and chunk.title:
                candidate = DraftCandidate(kind=self.kind, key=chunk.title, chunks=(chunk,))
                found.setdefault((chunk.document_no, chunk.title), candidate)
        return list(found.values())

    def draft(self, candidate: DraftCandidate, text: str) -> Draft | None:
        """Return the first description in the chunk that is one sentence of prose."""
        chunk = candidate.chunks[0]
        if len(text) > MAX_CHARACTERS:
            return None
        grammar = grammar_of(chunk.format, chunk.path, text)
        tree = parsing.parse(grammar, parsing.mask(text)) if grammar else None
        if grammar is None or tree is None:
            return None
        for found in _find_documented(tree.root_node, grammar, text, chunk.span):
            summary = _summary(text[found.described.start : found.described.end], found.name, grammar.name)
            if summary:
                return Draft(
                    kind=self.kind,
                    text=summary,
                    hidden=HiddenText(chunk.path, found.described.start, found.described.end),
                    lines=lines_of(text, found.lines.start, found.lines.end),
                )
        return None


def _find_documented(root: Node, grammar: Grammar, text: str, within: Span) -> Iterator[_Documented]:
    """Yield the described definitions that begin in a part of the text, in order."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        inner: list[Node] = []
        members = node.named_children if node is root else list(syntax.members(node, grammar))
        for at, member in enumerate(members):
            if member.end_byte <= within.start or member.start_byte >= within.end:
                continue
            found = syntax.definition(member, grammar, text)
            if found is None:
                if member.type in grammar.bodies | grammar.branches | grammar.namespaces | grammar.modules:
                    inner.append(member)
                continue
            if member.start_byte >= within.start:
                yield from _describe(found, member, members[:at], grammar, text)
            if found.is_class:
                inner.append(found.node)
        waiting.extend(reversed(inner))


def _describe(
    found: syntax.Definition, node: Node, before: Sequence[Node], grammar: Grammar, text: str
) -> Iterator[_Documented]:
    name = "".join(syntax.names_of(found, grammar, text)[-1:])
    described = _docstring(found.node) if grammar.name == "python" else _comment_above(node, before, grammar, text)
    if described is None or not name or _PRESCRIBED.fullmatch(name):
        return
    start = min(node.start_byte, described.start)
    yield _Documented(name, described, Span(start, _own_end(found, node, grammar, text)))


def _own_end(found: syntax.Definition, node: Node, grammar: Grammar, text: str) -> int:
    """Return the end of a definition; of a class the place before its first method, which counts by itself."""
    if found.is_class:
        for body in syntax.members(found.node, grammar):
            for member in [body] if body.type not in grammar.bodies else body.named_children:
                inner = syntax.definition(member, grammar, text)
                if inner is not None and not inner.is_class:
                    return member.start_byte
    return node.end_byte


def _docstring(node: Node) -> Span | None:
    body = node.child_by_field_name("body")
    first = next((child for child in body.named_children if child.type != "comment"), None) if body else None
    if first is not None and first.type == "expression_statement":
        first = first.named_child(0)
    return Span(first.start_byte, first.end_byte) if first is not None and first.type == "string" else None


def _comment_above(node: Node, before: Sequence[Node], grammar: Grammar, text: str) -> Span | None:
    """Return the comments that end directly above a definition or its attributes."""
    start, end, below = node.start_byte, 0, node.start_byte
    for sibling in reversed(before):
        # Some grammars count the line break behind a comment to it.
        if text.count("\n", max(0, sibling.end_byte - 1), below) > 1 + (text[sibling.end_byte - 1] == "\n"):
            break
        if sibling.type in grammar.comments:
            start, end = sibling.start_byte, end or sibling.end_byte
        elif sibling.type not in grammar.attributes or end:
            break
        below = sibling.start_byte
    return Span(start, end) if end else None


def _summary(described: str, name: str, language: str) -> str | None:
    """Return the first sentence of a docstring or comment; ``None`` if it is no good query."""
    quoted = _QUOTES.match(described)
    if quoted:
        described = described[quoted.end() :].removesuffix(quoted["quote"])
    if _NO_SUMMARY.search(described[:400]):
        return None
    plain = _LINE_MARK.sub("", described.removesuffix("*/")).strip()
    plain = re.sub(r"^<summary>\s*", "", plain)
    end = _END.search(plain)
    summary = first_sentence(without_marks(plain[: end.start()] if end else plain))
    # "ParseFile reads …", "Ledger: keeps …": with its own name in it, a query would be a look-up.
    named = re.escape(name) + ("" if is_identifier(name) or language == "go" else r"(?=\(|\s?:)")
    summary = re.sub(rf"^{named}(?!\w)(?:\(\))?[ :,-]*", "", summary).strip()
    if is_identifier(name) and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", summary):
        return None
    if not summary or not is_prose(summary) or not is_askable(summary):
        return None
    return summary
