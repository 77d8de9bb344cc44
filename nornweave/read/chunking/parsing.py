"""Parse source code into a syntax tree whose byte offsets are character offsets."""

from __future__ import annotations

import ctypes
import re
import time
from bisect import bisect_right
from functools import lru_cache
from importlib import import_module

from tree_sitter import Language, Node, Parser, Tree

from nornweave.read.chunking import macros
from nornweave.read.chunking.languages import C_FAMILY, Grammar

# Ordinary source takes 0.1 to 0.5 s a megabyte; text that is no source of that language makes tree-sitter's error
# recovery quadratic (8 kB of ``/* a`` as Python: 3 s). CPU time, so that a busy machine gives up on the same files.
SECONDS_AT_LEAST = 0.5
SECONDS_PER_MEGABYTE = 1.5
READ_BYTES = 1 << 16

# ``class TORCH_API Holder : public Base {``: tree-sitter does not expand macros and takes such a class for a function.
_EXPORT_MACRO = re.compile(rb"\b(class|struct) ([A-Z][A-Z0-9_]{3,60})(?= \w{1,120}(?: final)?[ ]?[:{\n])")

# ``MACRO @interface Crate``: below another macro the two are taken for a declaration.
_BEFORE_CLASS = re.compile(
    rb"^[ \t]*(?!\w+_BEGIN\b)[A-Z_a-z]\w*(?:\((?:[^()\n]|\((?:[^()\n]|\([^()\n]*\))*\))*\))?[ \t]*\n?[ \t]*"
    rb"(?=@(?:interface|protocol|implementation)\b)",
    re.MULTILINE,
)

# Only a parse that reads through a callback can be given a deadline, and tree_sitter 0.26 never frees what the callback
# returned: whatever parses many files is a process that ends (``sandbox``). Up to this size, which most chunks have,
# the worst that is known takes 0.2 s.
UNTIMED_BYTES = 2048
_NEVER_UNTIMED = frozenset({"kotlin"})
"""tree_sitter_kotlin 1.1 does not come back from 257 bytes that are no Kotlin: then this little is never freed."""
# tree_sitter_perl 2.0.3 looks for the end of ``<<X`` forever where there is none, and no deadline reaches it.
_HEREDOC = re.compile(rb"""<<(~?)[ \t]*(?:(["'`])([^\n]*?)\2|\\?([A-Za-z_]\w*))""")
_LINE = re.compile(rb"[^\n]+")
# What a template writes into YAML is none: a line of it is blank, what stands within a line is a word. What begins a
# branch is a comment, which belongs to what follows.
_TEMPLATE = re.compile(rb"\{\{-?[ \t]*/\*.*?\*/[ \t]*-?\}\}|\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
BRANCH = r"\{[{%]-?\s*(?:if|elif|else|range|with|for|define|block|macro)\b"
_BRANCH = re.compile(BRANCH.encode())
_TEST = re.compile(rb"^@test([ \t]+)(\"[^\"\n]*|'[^'\n]*)(?:\"|')[ \t]+(?=\{)", re.MULTILINE)
"""A test of bats, which is written as a function."""
_PACKAGES = {"csharp": "c_sharp", "tsx": "typescript", "shell": "bash", "dockerfile": "containerfile"}
LOOSE_TOKENS = 5000
"""Tokens right inside an error from which a grammar is lost; looking through them for anything is quadratic."""


@lru_cache(maxsize=32)
def language(name: str) -> Language:
    """Return a grammar by its name in ``languages.GRAMMARS``. Each grammar is in a separate package."""
    grammar = import_module(f"tree_sitter_{_PACKAGES.get(name, name)}")
    # Packages with several grammars name them: ``language_typescript``, ``language_tsx``, ``language_php``.
    make = getattr(grammar, f"language_{name}", None) or grammar.language
    made = make()
    if isinstance(made, int):  # the address alone, as older packages give it; the binding deprecates that
        capsule = ctypes.pythonapi.PyCapsule_New
        capsule.restype, capsule.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        made = capsule(made, b"tree_sitter.Language", None)
    return Language(made)


def mask(text: str) -> bytes:
    """Encode ``text`` with exactly one byte for each character, so that byte offsets *are* character offsets.

    A letter beyond ASCII becomes ``x``, and blank space becomes a space. Names are therefore read from the text and not
    from these bytes.
    """
    if text.isascii():
        return text.encode("ascii")
    spaced = re.sub(r"[^\S\x00-\x7f]|\ufeff", " ", text)
    return re.sub(r"[^\x00-\x7f]+", lambda match: "x" * len(match[0]), spaced).encode("ascii")


def parse(grammar: Grammar, source: bytes) -> Tree | None:
    """Return the syntax tree of ``source``; ``None`` if the grammar does not fit, so that parsing takes too long.

    The last tree is cached, so that chunks and facts are read from the same tree.
    """
    if grammar.name == "cpp":
        source = _EXPORT_MACRO.sub(lambda match: match[1] + b" " * (len(match[0]) - len(match[1])), source)
    elif grammar.name == "objc":
        source = _BEFORE_CLASS.sub(lambda match: re.sub(rb"\S", b" ", match[0]), source)
    elif grammar.name == "yaml" and (b"{{" in source or b"{%" in source):
        source = _TEMPLATE.sub(lambda match: _written(source, match), source)
    elif grammar.name == "shell" and b"@test" in source:
        source = _TEST.sub(lambda match: _word(b"_" + match[0][1:-2]) + b"()", source)
    elif grammar.name == "perl" and b"<<" in source:
        source = _without_endless_heredocs(source)
    return _parse(grammar.name, source)


def _written(source: bytes, template: re.Match[bytes]) -> bytes:
    before = source[source.rfind(b"\n", 0, template.start()) + 1 : template.start()]
    behind = source[template.end() :].partition(b"\n")[0]
    is_line = not (before.strip() or behind.strip())
    stands_alone = is_line or template[0].startswith(b"{%") or b"\n" in template[0]
    written = re.sub(rb"[^\n]", b" " if stands_alone else b"x", template[0])
    return b"#" + written[1:] if is_line and _BRANCH.match(template[0]) else written


def _word(text: bytes) -> bytes:
    return re.sub(rb"\W", b"_", text)


def _without_endless_heredocs(source: bytes) -> bytes:
    """Return the source with blanks in place of the marks of heredocs that never end.

    If a line begins several heredocs, the end of each is searched below the end of the one before it.
    """
    lines: dict[bytes, list[int]] = {}
    for line in _LINE.finditer(source):
        for ending in (line[0], b"~" + line[0].lstrip(b" \t")):
            lines.setdefault(ending, []).append(line.start())
    blanked, row, since = bytearray(source), -1, 0
    for begun in _HEREDOC.finditer(source):
        end = source.find(b"\n", begun.end())
        row, since = end, since if row == end else end
        places = lines.get(begun[1] + (begun[3] or begun[4] or b""), [])
        place = bisect_right(places, since)
        if place < len(places) and end >= 0:
            since = places[place]
        else:
            blanked[begun.start() : begun.start() + 2] = b"  "
    return bytes(blanked)


@lru_cache(maxsize=1)
def _parse(name: str, source: bytes) -> Tree | None:
    try:
        parser = Parser(language(name))
    except ModuleNotFoundError:  # an environment from before the grammar: text is cut at blank lines
        return None
    may_hang = len(source) > UNTIMED_BYTES or name in _NEVER_UNTIMED

    def parse(source: bytes) -> Tree | None:
        return _parse_in_time(parser, source) if may_hang else parser.parse(source)

    tree = parse(source)
    if tree is not None and name in C_FAMILY and tree.root_node.has_error:
        tree = macros.repaired(source, tree, parse)
    return None if tree is None or _is_lost(tree.root_node) else tree


def _is_lost(root: Node) -> bool:
    if not root.has_error:
        return False
    errors = [root, *(child for child in root.children if child.is_error)]
    return any(node.child_count - node.named_child_count > LOOSE_TOKENS for node in errors)


def _parse_in_time(parser: Parser, source: bytes) -> Tree | None:
    deadline = time.thread_time() + SECONDS_AT_LEAST + SECONDS_PER_MEGABYTE * len(source) / 1e6

    def give_up(_offset: int, _has_error: bool) -> bool:
        return time.thread_time() > deadline

    try:
        return parser.parse(lambda at, _point: source[at : at + READ_BYTES], progress_callback=give_up)
    except ValueError:  # "Parsing failed": what the binding makes of a cancelled parse (tree_sitter 0.26)
        return None
