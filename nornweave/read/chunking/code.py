"""``SYNTAX_AWARE``: functions, class headers, methods, imports and constants as tree-sitter sees them.

Components in one file (``.vue``, ``.svelte``, ``.astro``, ``.html``): its parts with their languages.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import accumulate, groupby
from pathlib import PurePosixPath

from tree_sitter import Node

from nornweave.core.text.spans import Lines, TokenIndex, pack, pack_outermost, split, strip_lines
from nornweave.core.types import Chunk, Document, Span, freeze
from nornweave.read.chunking import parsing, regions, syntax
from nornweave.read.chunking.division import BANNERS, TEXT_CUTS, Division, Sections
from nornweave.read.chunking.languages import C_FAMILY, Grammar, grammar_of
from nornweave.read.chunking.regions import SHORT_COMMENT, Kind, Region, follows_blank_line
from nornweave.read.chunking.symbols import NO_SCOPE, Definitions, Symbol, SymbolScope, describe, describe_value, joined
from nornweave.read.worth import licence_span, without

VERSION = "code-35"

# The encoder sees 256 tokens: the context must not crowd out the code.
CONTEXT_SIGNATURE = 72

GROUP_TOKENS = {Kind.PREAMBLE: 256, Kind.VALUE: 256, Kind.PROTOTYPE: 128}
"""Of a group of module-level statements, and of prototypes. One that no blank line parts may be longer."""

SMALL_COMPONENT = 192
"""Tokens up to which a component of one file stays in one piece."""
FEW_IMPORTS = 64
"""Tokens of a component's imports up to which they stand with what follows."""
SPLINTER = 12
"""Tokens below which a statement says nothing by itself."""

_WORDS = re.compile(r"[\w$]+")
# Where a part of a selector ends that may be all that several rules share.
_SELECTED = re.compile(r"(?<=[\w\])])(?![\w-])")
_SWITCHED_OFF = re.compile(r"^#(?:[ ](?=\w+[_-]\w))?([a-zA-Z][\w.-]*):(?=\s|$)", re.MULTILINE)
"""A setting in a comment of YAML."""
_MARK = re.compile(r"^---(?:[ \t][^\n]*)?\n(?:[ \t]*\n)*", re.MULTILINE)
"""Begins a document of YAML."""
_IMPORTED = re.compile(r"[\w$]++(?!\s*(?:\.|::|[\\/])\s*[\w$*{(])")
_IMPORT_WORDS = frozenset(
    [
        "import",
        "from",
        "as",
        "use",
        "using",
        "include",
        "require",
        "export",
        "const",
        "let",
        "var",
        "static",
        "type",
        "default",
    ]
)
_HANDED_ON = re.compile(
    r"export\s+(?:default\s*)?\{|(?:module\.)?exports\b[^=\n]*=\s*\{|(?:const|let|var)\s*[{\[][^=]*=\s*[\w.]+;?\s*$",
    re.MULTILINE,
)
"""Statements of JavaScript that run nothing: they export values, or take apart one that has a name."""
_IDENTIFIERS = frozenset({"name", "constant"})

_DATA_URL = re.compile(r"data:[\w/+.-]+(?:;[\w=-]+)*,[^\s\"'`()<>]{40,2000}(?=[\s\"'`)])")
"""It counts as no token when code is cut, so that it stays with what it is given to."""
_BEGUN = re.compile(r"BEGIN|START")
_LAST_LINES = 400
"""Characters at the end of a piece in which namespaces may end."""
FORMATS = frozenset({"vue", "svelte", "astro", "marko", "webpage"})

_ATTRIBUTES = r"""(?P<attributes>(?:"[^"]*"|'[^']*'|[^>"'])*+)"""
_TAG = re.compile(
    rf"<!--.*?-->|<(?P<tag>script|style)\b{_ATTRIBUTES}>(?P<inner>.*?)(?P<end></(?P=tag)\s*>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_CLOSING = re.compile(r"</script\s*>\s*\Z", re.IGNORECASE)
_SCOPE_END = re.compile(
    r"^(?:\}[ \t]*(?://+|/\*)[ \t]*(?:end[ \t]+(?:of[ \t]+)?)?(?:\w+[ \t]+)?namespace\b[^\n]*+"
    r"|_*(?:[A-Z\d]+_)*END(?:_[A-Z\d]+)*_*(?:\([\w:, ]*\))?;?[ \t]*(?://[^\n]*)?)\n?"
    r"(?:#[ \t]*endif\b[^\n]*+|//[^\n]*+|\s++)*+\Z",
    re.MULTILINE,
)
"""The last line of a namespace of C++, which a macro may write."""
_LANGUAGE = re.compile(r"""\blang\s*=\s*["']?(\w+)""")
_TYPE = re.compile(r"""\btype\s*=\s*["']?(?:\w+/)?(?:\w+\+)?(\w+)""")
_FENCED = re.compile(r"\s*---[^\n]*\n(?P<inner>.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)
_LANGUAGES = {
    "script": {"": "javascript", "ts": "typescript", "tsx": "tsx", "js": "javascript", "jsx": "javascript",
               "module": "javascript", "javascript": "javascript", "babel": "javascript", "importmap": "json",
               "json": "json"},
    "style": {"": "css", "css": "css", "postcss": "css"},
}  # fmt: skip


def chunk_code(document: Document, index: TokenIndex, *, limit: int = 512) -> Iterator[Chunk]:
    """Cut source code at functions and classes. A function or class that is too long is cut at its inner scopes.

    Args:
        document: a document whose ``format`` is the language, as ``languages.language_of`` names it.
        index: the token index of ``document.text``.
        limit: the maximum number of tokens of a function, a method or a class header.

    Yields:
        Chunks in order without overlaps. They leave out only blank space, a licence at the head, the tag that
        closes a script, and the lines that close a namespace. A chunk of a function ends where the function ends. Code
        that cannot be parsed is cut at blank lines, or at other lines if it has no blank lines.
    """
    text, lines, licence = document.text, Lines(document.text), licence_span(document.text)
    whole, counted = Span(0, len(text)), index
    index = index.without(text, [Span(*url.span()) for url in _DATA_URL.finditer(text)])
    if document.format in FORMATS:
        name = name_of(document.path)
        scope = SymbolScope((), Symbol("component", (name,), f"<{name}>", class_name=name))
        parts = parts_of(text, document.format)
    else:
        begin = licence.end if not text[: licence.start].strip() else 0
        scope, parts = NO_SCOPE, [Part(Span(begin, len(text)), whole, document.format)]
    written: list[tuple[_Writer, _Piece]] = []
    for part in parts:
        grammar = grammar_of(part.language, document.path, text)
        source = parsing.mask(text)
        if part.inner != whole:
            outside = (source[: part.inner.start], source[part.inner.end :])
            before, after = (re.sub(rb"[^\n]", b" ", each) for each in outside)
            source = before + source[part.inner.start : part.inner.end] + after
        tree = parsing.parse(grammar, source) if grammar is not None else None
        if grammar is None or tree is None:
            none, sections = Definitions(None, None, text), Sections(text, document.path)
            writer = _Writer(document, licence, part.language, counted, lines, frozenset(), None, none, sections)
            plain = sections.pieces(part.span, index, limit)
            written += [(writer, _Piece(span, None, scope.symbol)) for span in plain]
            continue
        found = regions.Regions(text, grammar, index.count).walk(tree.root_node, scope)
        layout = _Layout(text, licence, grammar, index, limit, part.span, scope)
        defined = Definitions(tree.root_node, grammar, text)
        imported = _imported(found, text)
        sections = Sections(text, document.path, language=part.language, has_grammar=True)
        writer = _Writer(document, licence, part.language, counted, lines, imported, tree.root_node, defined, sections)
        written += [(writer, piece) for piece in layout.pieces(found)]
    if scope.symbol is not None:
        written = _joined_parts(written, index, scope.symbol)
    for writer, piece in written:
        yield from writer.write([piece])


def _joined_parts(
    written: Sequence[tuple[_Writer, _Piece]], index: TokenIndex, component: Symbol
) -> list[tuple[_Writer, _Piece]]:
    """Join parts of a component. A small component without functions becomes one part.

    In other components a few imports are joined with the part that follows them.
    """
    whole = Span(written[0][1].span.start, written[-1][1].span.end)
    functions = [piece for _, piece in written if piece.symbol is not None and piece.symbol.function_name]
    is_plain = all(piece.symbol is not None and "call" in piece.symbol.node_type for piece in functions)
    if index.count(whole) <= SMALL_COMPONENT and is_plain:
        writer = max((writer for writer, _ in written), key=lambda writer: len(writer.defined.all))
        return [(replace(writer, language=""), _Piece(whole, None, component))]
    joined: list[tuple[_Writer, _Piece]] = []
    for writer, piece in reversed(written):
        if joined and piece.label == Kind.IMPORT and index.count(piece.span) <= FEW_IMPORTS:
            after, following = joined.pop()
            joined.append((after, replace(following, span=Span(piece.span.start, following.span.end))))
        else:
            joined.append((writer, replace(piece, symbol=piece.symbol or component)))
    return joined[::-1]


def _imported(found: Iterable[Region], text: str) -> frozenset[str]:
    """Return the words of the import statements without the packages before a name: ``a.b.Map`` → ``Map``."""
    nodes = (node for region in found if region.kind is Kind.IMPORT for node in region.nodes)
    words = {word for node in nodes for word in _IMPORTED.findall(text, node.start_byte, node.end_byte)}
    return frozenset(words - _IMPORT_WORDS)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of the text that becomes a chunk.

    Attributes:
        label: the ``node_type`` of the chunk if the piece has no symbol.
        continues: whether the symbol of the piece began in an earlier piece.
    """

    span: Span
    label: str | None
    symbol: Symbol | None
    continues: bool = False


@dataclass(frozen=True)
class _Layout:
    """Lays out the regions of a file as pieces."""

    text: str
    licence: Span
    grammar: Grammar
    index: TokenIndex
    limit: int
    span: Span
    scope: SymbolScope

    def pieces(self, found: Sequence[Region]) -> Iterator[_Piece]:
        """Yield the pieces of a file that consists of the regions ``found``. The pieces cover the whole text."""
        if not found:
            yield from (_Piece(span, None, self.scope.symbol) for span in self._cut(self.span))
            return
        pieces: list[_Piece] = []
        for piece in self._laid_out(found):
            if pieces and self._belong(pieces[-1], piece):
                last = pieces.pop()
                is_head = self._is_splinter(last) and not self._is_splinter(piece)
                named = piece if is_head or (last.symbol is None and piece.symbol is not None) else last
                label = Kind.PREAMBLE.value if named.label == Kind.IMPORT != piece.label else named.label
                pieces.append(replace(named, span=Span(last.span.start, piece.span.end), label=label))
            else:
                pieces.append(piece)
        styles = [node for region in found for node in region.nodes] if self.grammar.name == "css" else []
        yield from (piece if piece.symbol else replace(piece, symbol=self._styled(piece, styles)) for piece in pieces)

    def _styled(self, piece: _Piece, rules: Sequence[Node]) -> Symbol | None:
        """Return the symbol of a piece with style rules; ``None`` if it has no named rule.

        The name is the shared beginning of the selectors. If they share no beginning, it consists of all selectors.
        """
        within = [rule for rule in rules if piece.span.start <= rule.start_byte < piece.span.end]
        named = [value for rule in within if (value := syntax.lone_value(rule, self.grammar, self.text)) is not None]
        symbols = [describe_value(name, rule, self.scope, self.text) for rule, name in named]
        if not symbols:
            return None
        first, *others = (name for _, name in named)
        begins = (first[: end.start()] for end in reversed([*_SELECTED.finditer(first)]))
        shared = next((part for part in begins if all(_begins(other, part) for other in others)), None)
        return replace(symbols[0], names=(*self.scope.names, shared)) if shared else joined(symbols)

    def _is_splinter(self, piece: _Piece) -> bool:
        is_said = piece.symbol is not None and not (self.grammar.name in C_FAMILY and piece.label == Kind.PREAMBLE)
        return not is_said and self.index.count(piece.span) < SPLINTER

    def _belong(self, last: _Piece, piece: _Piece) -> bool:
        """Tell whether two neighbouring pieces are joined, because one is too small and both fit into one chunk.

        Imports are joined with other small pieces. They are joined with the previous piece only if no piece follows.
        Nothing is joined to the end of a function.
        """
        if last.symbol and last.symbol.function_name and "\n" in self._between(last, piece):
            return False
        splinters, imports = (self._is_splinter(last), self._is_splinter(piece)), Kind.IMPORT.value
        ends = piece.span.end == self.span.end
        if piece.label == imports or (last.label == imports and not (ends and splinters[1])):
            wanted = all(splinters) and (ends or piece.label == last.label)
        else:
            wanted = any(splinters)
        whole = Span(last.span.start, piece.span.end)
        return wanted and self.index.count(whole) <= self.limit and without(self.licence, whole) == [whole]

    def _between(self, last: _Piece, piece: _Piece) -> str:
        before, after = (self.text[each.span.start : each.span.end] for each in (last, piece))
        return before[len(before.rstrip()) :] + after[: len(after) - len(after.lstrip())]

    def _laid_out(self, found: Sequence[Region]) -> Iterator[_Piece]:
        spanned = self._glue(_spanned(found, self.span, self._documents))
        for (kind, _), group in groupby(spanned, key=lambda item: (item[0].kind, id(item[0].scope))):
            if kind in {Kind.WHOLE, Kind.VALUE}:
                for region, span in group:
                    yield from self._whole(region, span)
            else:
                yield from self._grouped(list(group), kind)

    @cached_property
    def _documents(self) -> dict[int, int]:
        """Return the position after each document mark (``---``) of a YAML file → the position of the mark."""
        marks = _MARK.finditer(self.text) if self.grammar.name == "yaml" else ()
        return {at: mark.start() for mark in marks for at in (mark.start() + len("---"), mark.end())}

    def _paragraphs(self, spans: Sequence[Span]) -> Iterator[Span]:
        """Join the statements of code that no blank line parts, if they fit into one chunk."""
        begins = [not self.grammar.functions or follows_blank_line(self.text, span.start) for span in spans]
        for _, run in groupby(zip(spans, accumulate(begins), strict=True), key=lambda pair: pair[1]):
            parts = [span for span, _ in run]
            whole = Span(parts[0].start, parts[-1].end)
            yield from [whole] if self.index.count(whole) <= self.limit else parts

    def _packed(self, spans: Sequence[Span], limit: int, remarks: Collection[int]) -> Iterator[Span]:
        """Join neighbouring spans. A YAML document is joined with another one only as a whole.

        Args:
            remarks: the ends of spans that consist only of comments. Such a span is not parted from the next one.
        """
        if self.grammar.functions:
            yield from pack_outermost(
                spans, self.index, limit, lambda at: at in remarks, partial(follows_blank_line, self.text)
            )
            return
        begins = sorted(set(self._documents.values()))
        documents = [list(run) for _, run in groupby(spans, key=lambda span: bisect_right(begins, span.start))]
        wholes = [Span(document[0].start, document[-1].end) for document in documents]
        for is_whole, run in groupby(
            zip(documents, wholes, strict=True), key=lambda pair: self.index.count(pair[1]) <= limit
        ):
            if is_whole:
                yield from pack((whole for _, whole in run), self.index, limit)
            else:
                yield from (part for document, _ in run for part in pack(document, self.index, limit))

    def _cut(self, span: Span) -> list[Span]:
        return split(span, self.index, self.limit, TEXT_CUTS)

    def _limit_of(self, kind: Kind) -> int:
        is_whole = kind is Kind.VALUE and self.grammar.functions
        return self.limit if is_whole else min(GROUP_TOKENS.get(kind, self.limit), self.limit)

    def _glue(self, spanned: list[tuple[Region, Span]]) -> list[tuple[Region, Span]]:
        """Join each region that means little alone with the next region, if ``_fits`` allows it."""
        glued: list[tuple[Region, Span]] = []
        for region, span in reversed(spanned):
            following = glued[-1] if glued else None
            is_little = region.kind is Kind.HEADER and region.symbol is not None
            is_little = is_little and self.index.count(span) <= SHORT_COMMENT
            lonely = (region.bare or is_little) and (
                following is None or following[0].scope is not region.scope or following[0].kind is not Kind.HEADER
            )
            if region.kind is not Kind.GLUE and not lonely:
                glued.append((region, span))
                continue
            if following is not None and self._fits(span, following):
                glued[-1] = (following[0], Span(span.start, following[1].end))
                continue
            kind = Kind.PREAMBLE if region.scope.symbol is None else Kind.HEADER
            region.kind = kind
            glued.append((region, span))
        return glued[::-1]

    def _fits(self, span: Span, following: tuple[Region, Span]) -> bool:
        """Tell whether ``span`` may join the next region. One of three reasons is enough.

        Both fit into one chunk, the next region will be divided anyway, or ``span`` is too small to be found alone.
        """
        limit = self._limit_of(following[0].kind)
        return (
            self.index.count(span) <= SHORT_COMMENT
            or self.index.count(Span(span.start, following[1].end)) <= limit
            or self.index.count(following[1]) > limit
        )

    def _whole(self, region: Region, span: Span) -> Iterator[_Piece]:
        limit = self._limit_of(region.kind)
        if self.index.count(span) <= limit:
            yield _Piece(span, None, region.symbol)
            return
        for part in Division(self.text, self.grammar, self.index, limit, self.limit).parts(region, span):
            yield _Piece(part.span, None, part.symbol, part.continues)

    def _grouped(self, group: list[tuple[Region, Span]], kind: Kind) -> Iterator[_Piece]:
        """Join neighbouring statements to pieces.

        A statement that is too long is divided, and its parts may have names.
        """
        limit = self._limit_of(kind)
        most = self.limit if kind is Kind.PROTOTYPE or self.grammar.functions else limit
        regions_at = {span.start: region for region, span in group}
        symbol = group[0][0].scope.symbol if kind is Kind.HEADER else None
        first = next((region for region, _ in group if region.symbol is not None), None)
        remarks = {
            span.end for region, span in group if all(node.type in self.grammar.comments for node in region.nodes)
        }
        for span in self._packed(list(self._paragraphs([span for _, span in group])), limit, remarks):
            region = regions_at[span.start]
            if self.index.count(span) <= most:
                continues = first is None or span.start > first.start
                held = [each for at, each in regions_at.items() if span.start <= at < span.end]
                yield _Piece(span, kind.value, symbol or self._named(held, span), continues)
                continue
            for part in Division(self.text, self.grammar, self.index, most, self.limit).parts(region, span):
                yield _Piece(part.span, kind.value, part.symbol or symbol, part.continues or part.symbol is None)

    def _named(self, held: Sequence[Region], span: Span) -> Symbol | None:
        """Return the symbol of neighbouring regions; ``None`` if they define no name.

        It has the names of all prototypes and values in the regions, or the name that a single statement defines.
        """
        if not held or held[0].kind not in {Kind.PREAMBLE, Kind.PROTOTYPE}:  # of a licence nothing is held
            return None
        beside = self.grammar.comments | self.grammar.attributes
        nodes = [
            (region, node)
            for region in held
            for node in region.nodes
            if not syntax.is_heredoc(node)
            and (node.type not in beside or BANNERS.search(self.text, node.start_byte, node.end_byte))
        ]
        if not nodes and self.grammar.name != "yaml":
            return held[0].symbol
        if self.grammar.name in C_FAMILY:
            return joined(symbols) if (symbols := self._declared(nodes, span)) else held[0].symbol
        if len(held) == 1 and held[0].symbol is not None:
            return held[0].symbol
        if len(held) > 1 and self.grammar.name == "css":  # see ``_styled``
            return None
        values = [(region, syntax.given_values(node, self.grammar, self.text)) for region, node in nodes]
        ran = [
            not given and not _HANDED_ON.match(self.text, node.start_byte)
            for (_, node), (_, given) in zip(nodes, values, strict=True)
        ]
        is_little = self.index.count(Span(held[0].start, held[-1].nodes[-1].end_byte)) < SPLINTER
        # Where nothing runs, code is what it gives values to.
        if len(held) > 1 and self.grammar.functions and (is_little or any(ran)):
            return None
        symbols = [
            describe_value(name, node, region.scope, self.text) for region, given in values for node, name in given
        ]
        if self.grammar.name == "yaml" and not symbols:
            names = (match[1] for match in _SWITCHED_OFF.finditer(self.text, span.start, span.end))
            symbols = [describe_value(name, held[0].nodes[0], held[0].scope, self.text) for name in names]
        elif self.grammar.name == "yaml":
            symbols = list(self._documented([node for _, given in values for node, _ in given], symbols))
        return joined(symbols) if symbols else None

    def _documented(self, pairs: Sequence[Node], symbols: Sequence[Symbol]) -> Iterator[Symbol]:
        """Yield one symbol for each YAML document that states its kind, and for other documents one for each pair.

        Args:
            symbols: the symbol of each of the ``pairs``.
        """
        begins = sorted(set(self._documents.values()))
        stated = zip(pairs, symbols, strict=True)
        for _, run in groupby(stated, key=lambda pair: bisect_right(begins, pair[0].start_byte)):
            document = list(run)
            name = syntax.resource([pair for pair, _ in document], self.text)
            yield from [replace(document[0][1], names=(name,))] if name else (symbol for _, symbol in document)

    def _declared(self, nodes: Iterable[tuple[Region, Node]], span: Span) -> list[Symbol]:
        """Return the symbols of C declarations in a span: prototypes, types, variables, macros with a value.

        If there are none, return those of the macros without a value, except of one that guards a header.
        """
        waiting, symbols, marks = [*nodes][::-1], list[Symbol](), list[Symbol]()
        while waiting:
            region, node = waiting.pop()
            if node.type in self.grammar.branches:
                inside = [
                    each for each in syntax.members(node, self.grammar) if span.start <= each.start_byte < span.end
                ]
                waiting += [(region, each) for each in reversed(inside)]
                continue
            if (announced := syntax.prototype(node, self.grammar)) is not None:
                symbols.append(describe(announced, region.scope, self.grammar, self.text))
                continue
            named, value = node.child_by_field_name("declarator"), syntax.lone_value(node, self.grammar, self.text)
            if node.type == "declaration" and named is not None and named.type == "identifier":
                name = self.text[named.start_byte : named.end_byte]
                symbols.append(describe_value(name, node, region.scope, self.text))
            elif value:
                is_mark = node.type == "preproc_def" and node.child_by_field_name("value") is None
                asked = node.parent.child_by_field_name("name") if is_mark and node.parent is not None else None
                if asked is None or self.text[asked.start_byte : asked.end_byte] != value[1]:
                    symbol = describe_value(value[1], value[0], region.scope, self.text)
                    (marks if is_mark else symbols).append(symbol)
        return symbols or marks


def _begins(selector: str, part: str) -> bool:
    return selector == part or (selector.startswith(part) and _SELECTED.match(selector, len(part)) is not None)


def _spanned(found: Sequence[Region], whole: Span, marks: Mapping[int, int]) -> list[tuple[Region, Span]]:
    """Return each region with its span, which ends where the next region begins.

    The first span begins at the start of the text. A span includes the document mark above its region.
    """
    starts = [whole.start, *(marks.get(region.start, region.start) for region in found[1:]), whole.end]
    return [(region, Span(start, stop)) for region, start, stop in zip(found, starts, starts[1:], strict=False)]


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes pieces as chunks."""

    document: Document
    licence: Span
    language: str
    index: TokenIndex
    lines: Lines
    imported: frozenset[str]
    root: Node | None
    defined: Definitions
    sections: Sections

    def write(self, pieces: Iterable[_Piece]) -> Iterator[Chunk]:
        """Write a chunk for every piece that is not blank."""
        text = self.document.text
        for piece in pieces:
            closing = closing_tag(text, piece.span, self.document.format)
            for part in without(self.licence, Span(piece.span.start, closing.start)):
                span = strip_lines(text, part)
                content = text[span.start : span.end]
                if content and not content.isspace():
                    yield self._chunk(piece, span, content)

    def _chunk(self, piece: _Piece, span: Span, content: str) -> Chunk:
        symbol = piece.symbol
        metadata = freeze(
            {
                "language": self.language or self.document.format,
                "node_type": symbol.node_type if symbol is not None else piece.label,
                "function_name": symbol.function_name if symbol is not None else None,
                "class_name": symbol.class_name if symbol is not None else None,
                "parameter_count": symbol.parameter_count if symbol is not None else None,
                "return_type": symbol.return_type if symbol is not None else None,
                "defines": self.defined.within(span) or None,
                "declares": self.defined.declared_within(span) or None,
                "imports_used": None if piece.label == Kind.IMPORT else self._imports_used(span, content),
                "file_path": self.document.path,
                "line_range": self.lines.range(span),
                "commit_sha": self.document.revision,
            }
        )
        return Chunk(
            span=span,
            content=content,
            token_count=self.index.count(span),
            context=self._context(piece, content),
            title=symbol.title if symbol is not None else self._section(piece, span),
            metadata=metadata,
        )

    def _section(self, piece: _Piece, span: Span) -> str | None:
        return None if piece.label == Kind.IMPORT else self.sections.title(span)

    def _context(self, piece: _Piece, content: str) -> str:
        """Return the context of a piece: the class around a method, and the definition that the piece continues.

        The path is not part of the context, because a moved file would then be embedded again
        (docs/decisions/0003-embedded-text.md).
        """
        symbol = piece.symbol
        if symbol is None:
            return ""
        around = [symbol.class_signature] if symbol.class_signature is not None else []
        wanted = [*around, symbol.signature] if piece.continues else around
        return "\n".join(line[:CONTEXT_SIGNATURE] for line in wanted if line not in content)

    def _imports_used(self, span: Span, content: str) -> tuple[str, ...] | None:
        """Return the imported names that a chunk uses outside of comments and strings; ``None`` if it uses none."""
        if self.root is None or self.imported.isdisjoint(_WORDS.findall(content)):
            return None
        used: set[str] = set()
        for match in _WORDS.finditer(self.document.text, span.start, span.end):
            if match[0] in self.imported and match[0] not in used:
                node = self.root.descendant_for_byte_range(match.start(), match.end())
                if node is not None and ("identifier" in node.type or node.type in _IDENTIFIERS):
                    used.add(match[0])
        return tuple(sorted(used)) or None


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a document that is written in one language.

    Attributes:
        span: the span of the part, including the tags that open and close it. The parts of a document cover all of its
            text.
        inner: the span to parse, without the tags.
        language: the language, as ``languages.GRAMMARS`` names it.
    """

    span: Span
    inner: Span
    language: str


def name_of(path: str) -> str:
    """Return the name of a component, which is the name of its file.

    For a file called ``index`` or ``+page`` it is the name of the folder.
    """
    file = PurePosixPath(path)
    is_folder = file.stem.lower() == "index" or file.stem.startswith("+")
    return file.parent.name if is_folder and file.parent.name else file.stem


def parts_of(text: str, format_: str) -> list[Part]:
    """Cut a component into its parts, in order."""
    parts: list[Part] = []
    end = 0
    for part in _embedded(text, format_):
        before = Span(end, part.span.start)
        if text[before.start : before.end].strip():
            parts.append(Part(before, before, "html"))
        parts.append(replace(part, span=Span(parts[-1].span.end if parts else 0, part.span.end)))
        end = part.span.end
    rest = Span(end, len(text))
    if not parts or text[rest.start :].strip():
        return [*parts, Part(rest, rest, "html")]
    return [*parts[:-1], replace(parts[-1], span=Span(parts[-1].span.start, rest.end))]


def closing_tag(text: str, span: Span, format_: str) -> Span:
    """Return the span of the closing tag of a script (``</script>``) or the end of namespaces at the end of a piece.

    If the piece does not end with such a line, return an empty span at the end of the piece.
    """
    if format_ in C_FAMILY:
        return _scope_ends(text, span)
    found = _CLOSING.search(text, span.start, span.end) if format_ in FORMATS else None
    return Span(found.start() if found else span.end, span.end)


def _scope_ends(text: str, span: Span) -> Span:
    """Return the span of the lines at the end of a piece that close a namespace which began in an earlier piece."""
    end = span.end
    while (found := _SCOPE_END.search(text, max(span.start, end - _LAST_LINES), end)) is not None:
        said = text[span.start : end]
        is_own = said.count("{") >= said.count("}") if found[0].startswith("}") else _BEGUN.search(said) is not None
        if is_own or not said[: found.start() - span.start].strip():
            break
        end = found.start()
    return Span(end, span.end)


def _embedded(text: str, format_: str) -> Iterator[Part]:
    fenced = _FENCED.match(text) if format_ == "astro" else None
    if fenced is not None:
        yield Part(Span(0, fenced.end()), Span(*fenced.span("inner")), "typescript")
    for tag in _TAG.finditer(text, fenced.end() if fenced is not None else 0):
        if not (tag["inner"] or "").strip():  # a comment, and a script that lies elsewhere
            continue
        kind = tag["tag"].lower()
        told = _LANGUAGE.search(tag["attributes"]) or _TYPE.search(tag["attributes"])
        language = _LANGUAGES[kind].get(told[1].lower() if told else "", "")
        if kind == "script" and format_ == "astro" and not told:
            language = "typescript"
        yield Part(Span(*tag.span()), Span(*tag.span("inner")), language)
