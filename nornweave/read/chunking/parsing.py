"""Parse source code into a syntax tree whose byte offsets are character offsets.

C, C++ and Objective-C, whose preprocessor the grammars do not know.

Macros occur where no grammar expects a word, and branches of ``#if`` open braces that others close. If parsing
fails, the text is changed without changing its length, and parsed again: without branches that
no grammar can read beside the first, and word by word without possible macros. The tree with the smallest
errors is used.
"""

from __future__ import annotations

import ctypes
import re
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from itertools import islice

from tree_sitter import Language, Node, Parser, Tree

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

# tree-sitter ends a macro at a comment; what follows it on further lines would be code.
_MACRO = re.compile(rb"^[ \t]*#[ \t]*define\b(?:[^\\\n]|\\\r?\n|\\.)*", re.MULTILINE)
_IN_MACRO = re.compile(rb"/\*[^\n]*?\*/(?=[^\n]*\\\r?\n)")

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
    if grammar.name in C_FAMILY and b"/*" in source:
        source = _MACRO.sub(lambda macro: _IN_MACRO.sub(lambda said: b" " * len(said[0]), macro[0]), source)
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
        tree = repaired(source, tree, parse)
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


@dataclass(frozen=True, slots=True)
class _Guess:
    """Edits to try in a statement of C. ``start`` and ``end`` are the statement's place.

    Each edit has a start, an end and the new text. If the new text is empty, blanks replace the old text.
    """

    start: int
    end: int
    edits: Sequence[tuple[int, int, bytes]]


ROUNDS = 9
"""Guesses at one place; every round parses the file again."""
_MISSING = 20
"""What a token counts that the parser had to make up, in characters of an error."""
MOST = 200
"""Errors that a round looks at."""
_REACH = 600
"""Characters of a statement that are looked at, to either side of an error."""

_QUIET = re.compile(
    rb"//[^\n]*|/\*.*?(?:\*/|\Z)|R\"(\w*)\(.*?\)\1\"|\"(?:\\.|[^\"\\\n])*\"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n]){1,8}'",
    re.DOTALL,
)
_SHOWN = re.compile(rb"[^\n]+")
_DIRECTIVE = re.compile(rb"^[ \t]*#[ \t]*(\w*)(?:[^\n\\]|\\.)*", re.MULTILINE | re.DOTALL)
_WORD = re.compile(
    rb"(?<![\w.>:@#])([A-Za-z_]\w*)(?!\w)(?P<given>\s*\((?:[^()]++|\((?:[^()]++|\([^()]*+\))*+\))*+\))?(?!\s*::)"
)
_LOUD = re.compile(rb"_*[A-Z][A-Z0-9_]{2,}")
_HANDLES = re.compile(rb"(?:[A-Z0-9]+_)*(?:TRY|CATCH|EXCEPT|FINALLY)(?:_[A-Z0-9]+)*")
"""Begins a block of a function where exceptions are macros."""
_ENDS = re.compile(rb"[;{}]")
_PAIRS = ((b"{", b"}"), (b"(", b")"))
_GOES_ON = frozenset([b",", b"(", b")", b"=", b"|", b"&", b"+", b"?"]) - {b")"}
_DEFINES = re.compile(
    rb"\s*(?:(?:static|inline|extern|[A-Z][A-Z0-9_]+)\s+)*(?P<word>[A-Za-z_]\w+)\s*(?P<given>\((?:[^()]++|\((?:[^()]++|\([^()]*+\))*+\))*+\))"
    rb"\s*(?:\([^()]*\))?\s*\Z"
)
_MARKED = re.compile(rb"[*&>)]\s*([A-Za-z_]\w*)\s*\Z")
_CLOSES = frozenset([b"", b";", b"{", b"}", b")", b":"])
_BEGINS = re.compile(rb"[\w~}#;@+-]|\Z|\[\[")
_DECLARES = re.compile(rb"\b(typedef\s+\w+\s*\([^(),]*,\s*)(\w+)\s*\)\s*\Z")
"""``typedef NS_ENUM(NSInteger, Name) {`` is written as an ``enum``."""
_STATEMENTS = frozenset([b"if", b"for", b"while", b"switch", b"catch", b"return", b"sizeof", b"defined"])
_NAME = re.compile(r"\s*(?:(\w+)|\"((?:[^\"\\\n]|\\.)*)\")\s*\Z")


def repaired(source: bytes, tree: Tree, parse: Callable[[bytes], Tree | None]) -> Tree:
    """Return ``tree``, or the tree that ``parse`` makes of an edited ``source`` if fewer bytes in it are errors."""
    cost, tried = _cost(tree), set[int]()
    for number in range(ROUNDS):
        quiet = _quiet(source)
        guesses = list(
            _alone(quiet)
            if number == 1
            else _torn(quiet, every=number == 2)
            if number < 3
            else _guesses(tree, quiet, tried)
        )
        while cost and guesses:
            written = bytearray(source)
            for guess in guesses:
                for start, end, instead in guess.edits:
                    written[start:end] = instead or _blank(source[start:end])
            again = parse(bytes(written))
            if again is not None and (least := _cost(again)) < cost:
                source, tree, cost = bytes(written), again, least
                break
            # Together they made it no better: those that left their statement without an error may.
            wrong = [node.start_byte for node in _errors(again)] if again is not None else [0]
            right = [guess for guess in guesses if not any(guess.start <= at <= guess.end for at in wrong)]
            guesses = right if len(right) < len(guesses) else []
        if not cost:
            break
    return tree


def _errors(tree: Tree) -> Iterator[Node]:
    """Yield the errors and the missing tokens in a tree.

    Errors inside of functions are left out, because they hide no definitions.
    """
    waiting = [tree.root_node]
    while waiting:
        node = waiting.pop()
        if node.is_error or node.is_missing:
            yield node
        elif node.has_error and node.type != "compound_statement":
            waiting.extend(node.children)


def _cost(tree: Tree) -> int:
    return sum(_MISSING if node.is_missing else node.end_byte - node.start_byte + 1 for node in _errors(tree))


def _quiet(source: bytes) -> bytes:
    """Return the source with blanks for comments, and ``_`` for the content of strings."""

    def hide(match: re.Match[bytes]) -> bytes:
        said = match[0]
        return _blank(said) if said[:1] == b"/" else said[:1] + b"_" * (len(said) - 2) + said[-1:]

    return _QUIET.sub(hide, source)


def _blank(source: bytes) -> bytes:
    return _SHOWN.sub(lambda match: b" " * len(match[0]), source)


def _torn(quiet: bytes, *, every: bool = False) -> Iterator[_Guess]:
    """Yield edits that remove ``#if`` directives which cut a statement or a block in two. The first branch stays.

    Args:
        every: whether all ``#if`` directives are removed, because a class may have too many of them for the grammar.
    """
    groups: list[list[re.Match[bytes]]] = []
    for directive in _DIRECTIVE.finditer(quiet):
        if directive[1].startswith(b"if"):
            groups.append([directive])
        elif groups and directive[1].startswith((b"el", b"endif")):
            groups[-1].append(directive)
            if directive[1] == b"endif" and (_is_torn(quiet, group := groups.pop()) or every):
                first, end = group[0], directive.end()
                yield _Guess(first.start(), end, [(*first.span(), b""), (group[1].start(), end, b"")])


def _is_torn(quiet: bytes, group: list[re.Match[bytes]]) -> bool:
    branches = [quiet[a.end() : b.start()] for a, b in zip(group, group[1:], strict=False)]
    if any(branch.count(opens) != branch.count(closes) for branch in branches for opens, closes in _PAIRS):
        return True
    before = _DIRECTIVE.sub(b";", quiet[max(0, group[0].start() - _REACH) : group[0].start()]).rstrip()[-1:]
    after = quiet[group[-1].end() : group[-1].end() + _REACH].lstrip()[:1]
    ends = [_DIRECTIVE.sub(b";", branch).rstrip()[-1:] for branch in branches]
    if before in _GOES_ON or after in _GOES_ON or any(end in _GOES_ON for end in ends):
        return True
    return after == b"{" and any(end not in {b"", b";", b"}"} for end in ends)


def _alone(quiet: bytes) -> Iterator[_Guess]:
    """Yield edits that remove macros: words in capitals alone on their lines, and words such as ``PG_CATCH() {``.

    An edit may be wrong, because a word alone on its line may also be the type of a declaration on the next line.
    """
    for word in _WORD.finditer(quiet):
        is_handler = _HANDLES.fullmatch(word[1]) and quiet[word.end() : word.end() + _REACH].lstrip()[:1] == b"{"
        if is_handler or (_LOUD.fullmatch(word[1]) and _stands_alone(quiet, word)):
            yield _Guess(*word.span(), [(*word.span(), b"")])


def _guesses(tree: Tree, quiet: bytes, tried: set[int]) -> Iterator[_Guess]:
    """Yield edits of each statement that the parser could not read. They replace or remove words that may be macros.

    A word whose position is in ``tried`` is not tried again. The positions of the words used are added to ``tried``.
    """
    quiet = _DIRECTIVE.sub(lambda match: b";" + _blank(match[0][1:]), quiet)
    seen, places = set[int](), dict[bytes, list[tuple[int, int, bytes]]]()
    for node in islice(_errors(tree), MOST):
        at, end = node.start_byte, max(node.end_byte, node.start_byte + 1)
        start = max(quiet.rfind(sign, max(0, at - _REACH), at) for sign in (b";", b"{", b"}")) + 1 or max(
            0, at - _REACH
        )
        ends = _ENDS.search(quiet, at, at + _REACH)
        stop = ends.start() if ends else min(len(quiet), at + _REACH)
        if start in seen:
            continue
        seen.add(start)
        defines = _DEFINES.match(quiet, start, stop) if ends and ends[0] == b"{" else None
        if defines and defines["word"] not in _STATEMENTS and defines.start("word") not in tried:
            begin, (opens, closes) = defines.start("word"), defines.span("given")
            tried.add(begin)
            yield _Guess(start, stop, [(begin + 1, begin + 2, b" "), (opens + 1, closes - 1, b"")])
            continue
        declares = _DECLARES.search(quiet, start, stop) if ends and ends[0] == b"{" else None
        if declares and declares.start(1) not in tried:
            tried.add(declares.start(1))
            kind = b"enum".ljust(declares.start(2) - declares.start(1))
            yield _Guess(
                start, stop, [(declares.start(1), declares.start(2), kind), (declares.end(2), declares.end(), b"")]
            )
            continue
        words = [word for word in _WORD.finditer(quiet, start, max(stop, end)) if word.start() not in tried]
        loud = [word for word in words if word.start() < stop and _LOUD.fullmatch(word[1])]
        wrong = _WORD.fullmatch(quiet, at, end) if node.is_error and at not in tried else None
        if wrong and (marked := _MARKED.search(quiet, start, at)) and marked.start(1) not in tried:
            wrong = _WORD.match(quiet, marked.start(1), at)  # ``char *nonnull out``
        alone = [word for word in words if _stands_alone(quiet, word)]
        chosen = alone or ([wrong] if wrong else sorted(loud, key=lambda word: _rank(word, quiet, stop))[:1])
        tried.update(word.start() for word in chosen)
        # A macro is one wherever it stands.
        names = {word[1] for word in chosen if _LOUD.fullmatch(word[1]) or word.start() < at}
        if names and not places:
            for word in _WORD.finditer(quiet):
                places.setdefault(word[1], []).append((*word.span(), b""))
        everywhere = (place for name in names for place in places.get(name, ()))
        if chosen:
            yield _Guess(start, max(stop, end), [*((*word.span(), b"") for word in chosen), *everywhere])


def _stands_alone(quiet: bytes, word: re.Match[bytes]) -> bool:
    """Tell whether a word with its arguments fills its lines and is not a part of a longer statement."""
    start, end = word.span()
    if not (word["given"] or _LOUD.fullmatch(word[1])) or word[1] in _STATEMENTS:
        return False
    before, after = quiet[max(0, start - _REACH) : start], quiet[end : end + _REACH]
    is_line = not before.rpartition(b"\n")[2].strip() and not after.partition(b"\n")[0].strip()
    return is_line and before.rstrip()[-1:] in _CLOSES and _BEGINS.match(after.lstrip()) is not None


def _rank(word: re.Match[bytes], quiet: bytes, end: int) -> tuple[bool, bool, int]:
    """Return the sort key of a word. Words that look more like a macro are tried earlier."""
    opens = quiet.find(b"(", word.start(), end)
    is_before = opens < 0 or (b"(" in quiet[word.start() : end] and word["given"] is None)
    return b"_" not in word[1].strip(b"_"), not is_before, -word.start()


def defined_by(node: Node, text: str) -> tuple[str, ...]:
    """Return the names that a macro gives to the function that it begins.

    The result is empty if the function itself has a name. ``TEST_F(Suite, name) {`` gives both names.
    ``PYBIND11_MODULE(name, m) {`` gives only the first name, because its body reads the other one as a value. Types and
    numbers are not names (``SYSCALL_DEFINE3(open, const char __user *, filename, …)``).
    """
    declarator, typed = node.child_by_field_name("declarator"), node.child_by_field_name("type")
    while declarator is not None and declarator.type == "function_declarator":
        declarator = declarator.child_by_field_name("declarator")
    if declarator is None or node.parent is None or node.parent.type == "field_declaration_list":
        return ()
    at = declarator.start_byte
    if declarator.type == "parenthesized_declarator" and typed is not None:
        start = typed.start_byte  # START_TEST(name) {
    elif declarator.type == "identifier" and at > 0 and (text[at - 1].isalnum() or text[at - 1] == "_"):
        start = at - 1
        while start > 0 and (text[start - 1].isalnum() or text[start - 1] == "_"):
            start -= 1
    elif declarator.type == "identifier" and typed is None:
        start = at
    else:
        return ()
    opens = text.find("(", start)
    closes = _closing(text, opens)
    body, names = node.child_by_field_name("body"), list[str]()
    for argument in _arguments(text[opens + 1 : closes]):
        match = _NAME.match(argument)
        if match is None or (match[1] and match[1][0].isdigit()):
            break
        if names and match[1] and body is not None and _is_read(match[1], text[body.start_byte : body.end_byte]):
            break
        names.append(match[1] or match[2])
        if match[2]:
            break
    return tuple(names[:2]) or (text[start:opens].strip(),)


def _closing(text: str, opens: int) -> int:
    depth = 0
    for match in re.compile(r'"(?:[^"\\\n]|\\.)*"|[()]').finditer(text, opens):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        if not depth:
            return match.start()
    return len(text)


def _arguments(text: str) -> list[str]:
    """Split a macro's arguments at commas outside of strings and brackets."""
    parts, depth, start = [], 0, 0
    for match in re.compile(r'"(?:[^"\\\n]|\\.)*"|[()<>\[\]{},]').finditer(text):
        depth += match[0] in "([{<"
        depth -= match[0] in ")]}>"
        if match[0] == "," and depth == 0:
            parts.append(text[start : match.start()])
            start = match.end()
    return [*parts, text[start:]]


def _is_read(name: str, body: str) -> bool:
    """Tell whether the code in ``body`` reads a variable with this name."""
    return re.search(rf"(?<![\w.>:]){name}\b(?!\s*(?:[\w(<]|::))", body) is not None
