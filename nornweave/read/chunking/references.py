"""The uses of a name in source files, and its definition as far as each file shows it.

A file is read for one name on demand, because few texts contain it. ``references.yaml`` says what
names of a language refer to. ``meanings.Meanings`` finds definitions in other files.

The definition that a reference means, by imports, folders and re-exports, if it is certain.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from pathlib import PurePosixPath
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import yaml
from tree_sitter import Node, Query, QueryCursor

from nornweave.core.text.spans import Lines
from nornweave.core.types import JsonValue, Span
from nornweave.read.chunking import parsing
from nornweave.read.chunking.languages import Grammar, grammar_of, language_of
from nornweave.read.chunking.symbols import DefinedName, Definitions

_TABLES = resources.files("nornweave.read.chunking").joinpath("references.yaml")
LANGUAGES = cast(dict[str, dict[str, Any]], yaml.load(_TABLES.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader))

ReferenceKind: TypeAlias = Literal["call", "import", "inherit", "name"]

INDEX_FILES = frozenset({"__init__", "index", "mod"})
"""Stems of files that are called as their folder."""
_ONESELF = frozenset({"self", "cls", "this"})
_DOT = re.compile(r"\?\.|!\.|\.|::|->")
_OWNED = re.compile(r"(?:\?\.|!\.|\.|::|->)\s*\Z")
_CHAIN = re.compile(
    r"(?<![\w$)\]}\"'`.>:])[A-Za-z_$@][\w$]*(?:(?:\?\.|!\.|\.|::|->)[A-Za-z_$]\w*)*(?=(?:\?\.|!\.|\.|::|->)\s*\Z)"
)
_CHAIN_CHARACTERS = 200
_CALLED = re.compile(r"\s*(?:\?\.)?(?:<[\w, .\[\]]*>)?\(")
_NAME_NODES = ("identifier", "name", "constant", "word")

MOST_REEXPORTS = 8
_ROOTS = frozenset({"", "src", "lib", "python"})
"""Folders from which modules are imported, whoever imports."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """The definition that a name in a file means, as far as the file shows it.

    Attributes:
        module: the place of the definition. ``.`` is this file. ``/src/db`` is a file or folder at this path in the
            source. ``pkg/db`` is a file or folder whose path ends with this.
        names: the qualified name of the definition in that place, outermost name first.
    """

    module: str
    names: tuple[str, ...]


HERE = "."


@dataclass(frozen=True, slots=True)
class Reference:
    """A place in a program that uses a name. The first ``line`` is 1.

    ``meaning`` is the definition that the name means; ``None`` if the file does not show it.
    """

    line: int
    kind: ReferenceKind
    meaning: Meaning | None


@dataclass(frozen=True, slots=True)
class Import:
    """The module in an import statement, and the imported name."""

    line: int
    module: str
    written: str
    name: str | None


@dataclass(frozen=True, slots=True)
class FileReferences:
    """All uses of a name in a file.

    Attributes:
        definitions: qualified name → line, for the definitions with this name.
        bindings: imported name → its meaning. Other files may import these names from this file.
    """

    path: str
    definitions: Mapping[str, int]
    bindings: Mapping[str, Meaning]
    references: tuple[Reference, ...]
    imports: tuple[Import, ...]
    is_read: bool = True


def read_references(values: Mapping[str, JsonValue], raw: bytes) -> list[FileReferences]:
    """Read files to find the uses of a name. This function runs in the sandbox's process.

    ``values`` has the ``name``, and ``raw`` is a JSON list of paths and texts.
    """
    return [references_of(path, text, str(values["name"])) for path, text in json.loads(raw)]


def references_from(sent: Mapping[str, Any]) -> FileReferences:
    """Return the references in the output of ``read_references``."""

    def meaning(sent: Mapping[str, Any] | None) -> Meaning | None:
        return Meaning(sent["module"], tuple(sent["names"])) if sent else None

    return FileReferences(
        sent["path"],
        sent["definitions"],
        {name: found for name, told in sent["bindings"].items() if (found := meaning(told))},
        tuple(Reference(one["line"], one["kind"], meaning(one["meaning"])) for one in sent["references"]),
        tuple(Import(**one) for one in sent["imports"]),
        sent["is_read"],
    )


def references_of(path: str, text: str, name: str) -> FileReferences:
    """Read one file. If the name is empty, only the imports are read."""
    language = language_of(path, text)
    grammar = grammar_of(language, path, text) if language else None
    tree = parsing.parse(grammar, parsing.mask(text)) if grammar else None
    if grammar is None or tree is None:
        return FileReferences(path, {}, {}, (), (), is_read=False)
    return _File(path, text, tree.root_node, grammar).of(name)


def module_of(path: str) -> str:
    """Return the module of a file: ``src/db.py`` and ``src/db/__init__.py`` → ``/src/db``."""
    file = PurePosixPath("/", path)
    return str(file.parent) if file.stem in INDEX_FILES else str(file.parent / file.stem)


def shares_folder(path: str) -> bool:
    """Tell whether a file can use the names of other files in its folder without an import, as in Go and Java."""
    return bool(LANGUAGES.get(language_of(path) or "", {}).get("folders"))


class _Nest:
    """Spans of which any two are either apart or one inside the other."""

    def __init__(self, spans: Sequence[tuple[int, int]]) -> None:
        """Store the spans. They must be sorted by start.

        Of two spans with the same start the longer one comes first.
        """
        self._starts = [start for start, _ in spans]
        self._ends = [end for _, end in spans]
        self._parents: list[int] = []
        open_spans: list[int] = []
        for number, (start, _) in enumerate(spans):
            while open_spans and self._ends[open_spans[-1]] <= start:
                open_spans.pop()
            self._parents.append(open_spans[-1] if open_spans else -1)
            open_spans.append(number)

    def around(self, at: int) -> Iterator[int]:
        """Yield the numbers of the spans around a position, innermost first."""
        number = bisect_right(self._starts, at) - 1
        while number >= 0:
            if at < self._ends[number]:
                yield number
            number = self._parents[number]


@dataclass(slots=True)
class _Scope:
    """A part of a file in which names are defined."""

    names: set[str]
    bindings: dict[str, Meaning | None]


class _File:
    def __init__(self, path: str, text: str, root: Node, grammar: Grammar) -> None:
        self._path, self._text, self._root, self._grammar = path, text, root, grammar
        self._table = LANGUAGES.get(grammar.name, {})
        self._lines = Lines(text)
        found = _captures(grammar.name, "names", root)
        self._sites = {node.start_byte for node in found.get("defined", ())}
        self._bases = {node.start_byte for node in found.get("base", ())}
        self._keywords = {node.start_byte for node in found.get("keyword", ())}
        defined = (one for one in Definitions(root, grammar, text).all if not one.is_declared)
        self._around = sorted(defined, key=lambda one: (one.start, -one.end, one.name))
        self._definition_nest = _Nest([(one.start, one.end) for one in self._around])
        self._classes = {one.name for one in self._around if one.is_class}
        self._places: dict[str, int] = {}
        for one in self._around:
            self._places.setdefault(one.name, one.start)
        self._file_scope = _Scope(set(), {})
        spans = sorted({(node.start_byte, -node.end_byte) for node in found.get("scope", ())})
        self._scopes = [_Scope(set(), {}) for _ in spans]
        self._scope_nest = _Nest([(start, -end) for start, end in spans])
        self._read_locals(found.get("local", ()), {self._said(node) for node in found.get("outer", ())})
        statements = _captures_of(grammar.name, grammar.imports, root)
        self._statements = _Nest(sorted((node.start_byte, node.end_byte) for node in statements))
        self._imports: list[Import] = []
        self._import_names: dict[int, Meaning] = {}
        self._read_imports()

    def of(self, name: str) -> FileReferences:
        """Return all uses of a name in the file."""
        definitions = {
            qualified: self._line(start)
            for qualified, start in self._places.items()
            if name and qualified.rpartition(".")[2] == name
        }
        bindings = {given: meaning for given, meaning in self._file_scope.bindings.items() if meaning}
        references = tuple(self._references(name)) if name else ()
        return FileReferences(self._path, definitions, bindings, references, tuple(self._imports))

    def _read_locals(self, nodes: Sequence[Node], outer: set[str]) -> None:
        """Assign local names to the scopes around them. A name without such a scope belongs to the file or a class."""
        for node in nodes:
            name, start = self._said(node), node.start_byte
            scopes = self._scopes_at(start)
            if scopes and name in outer:
                continue
            if scopes:
                scopes[0].names.add(name)
                continue
            around = [one.name for one in self._enclosing(start) if one.name.rpartition(".")[2] != name]
            self._file_scope.names.add(name)
            self._places.setdefault(".".join((*around[-1:], name)), start)
            self._sites.add(start)

    def _read_imports(self) -> None:
        """Read the imported names and their modules."""
        for _, captured in _matches(self._grammar.name, self._root):
            nodes = {name: node for name, (node, *_) in captured.items()}
            written = self._said(nodes["module"]).strip("\"'`")
            module, imported, alias = self._module(written), nodes.get("imported"), nodes.get("alias")
            name, start = self._said(imported) if imported else None, nodes["module"].start_byte
            if self._grammar.name == "java" and imported is None:
                module, _, name = module.rpartition("/")
                start = nodes["module"].end_byte - len(name)
            self._imports.append(Import(self._line(start), module, written, name))
            if "all" in nodes:
                continue
            whole = Meaning(module, (name,) if name else ())
            if name:
                self._import_names[imported.start_byte if imported else start] = whole
            given = self._said(alias) if alias else name
            if given is None and self._grammar.name == "go":
                given = module.rpartition("/")[2]
            if given is None and self._grammar.name == "python":  # ``import a.b`` gives ``a``
                given, whole = module.partition("/")[0], Meaning(module.partition("/")[0], ())
            if given is None:
                continue
            scope = next(iter(self._scopes_at(start)), self._file_scope)
            known = scope.bindings.get(given, whole)
            # One of two, as where the first may fail.
            scope.bindings[given] = whole if known == whole and given not in scope.names else None

    def _module(self, written: str) -> str:
        """Return the module that an import statement names, in the form of ``Meaning.module``."""
        language, folder = self._grammar.name, PurePosixPath("/", self._path).parent
        if language == "python":
            name = written.lstrip(".")
            rest = name.replace(".", "/")
            if len(name) == len(written):
                return rest
            up = len(written) - len(name) - 1
            base = [folder, *folder.parents][min(up, len(folder.parents))]
            return str(base / rest)
        if language == "java":
            return written.replace(".", "/")
        if written.startswith("."):
            parts: list[str] = []
            for part in (folder / written).parts[1:]:
                parts = parts[:-1] if part == ".." else [*parts, part]
            place = "/".join(parts)
            stem = re.sub(r"\.[cm]?[jt]sx?\Z", "", place)
            return f"/{stem.removesuffix('/index')}"
        return written

    def _references(self, name: str) -> Iterator[Reference]:
        aliases = [name]
        for scope in (self._file_scope, *self._scopes):
            aliases += [given for given, meaning in scope.bindings.items() if meaning and meaning.names[-1:] == (name,)]
        written = "|".join(map(re.escape, dict.fromkeys(aliases)))
        unnamed = {one.start for one in self._around if one.name.rpartition(".")[2] == name}
        for found in re.finditer(rf"(?<![\w$])(?:{written})(?![\w$])", self._text):
            start, said = found.start(), found[0]
            node = self._root.descendant_for_byte_range(start, found.end())
            if node is None or node.child_count or node.end_byte != found.end() or node.start_byte != start:
                continue
            if not node.type.endswith(_NAME_NODES) or start in self._sites:
                continue
            if not self._table.get("names") and (own := self._begun(unnamed, start)) is not None:
                unnamed.remove(own)
                continue
            line = self._line(start)
            if imported := self._import_names.get(start):
                yield Reference(line, "import", imported)
                continue
            if next(self._statements.around(start), None) is not None:
                if said == name:
                    yield Reference(line, "import", None)
                continue
            meaning, is_local = self._meaning(said, start)
            if is_local or (said != name and not (meaning and meaning.names[-1:] == (name,))):
                continue
            called = _CALLED.match(self._text, found.end()) is not None and start not in self._keywords
            yield Reference(line, "inherit" if start in self._bases else "call" if called else "name", meaning)

    def _begun(self, starts: set[int], at: int) -> int | None:
        """Return the start of the innermost definition around ``at`` that is in ``starts``; ``None`` if there is none.

        This is for languages whose table does not say where the name of a definition is.
        """
        return next((one.start for one in reversed(self._enclosing(at)) if one.start in starts), None)

    def _meaning(self, name: str, start: int) -> tuple[Meaning | None, bool]:
        """Return the meaning of a name at a position (``None`` if unknown or local), and whether the name is local."""
        if start in self._keywords or not self._table:
            return None, False
        before = self._text[max(0, start - _CHAIN_CHARACTERS) : start]
        enclosing = self._enclosing(start)
        if _OWNED.search(before):
            chain = _CHAIN.search(before)
            return (self._member(_DOT.split(chain[0]), name, start) if chain else None), False
        bound = self._bound(name, start)
        if bound != "free":
            return (None, True) if bound == "local" else (bound, False)
        for inner, one in enumerate(reversed(enclosing)):
            if one.name not in self._classes or inner == 0 or self._table.get("bare_members"):
                qualified = f"{one.name}.{name}"
                if qualified in self._places:
                    return Meaning(HERE, (qualified,)), False
        if name in self._file_scope.bindings:
            if name in self._places:
                return None, False
            return self._file_scope.bindings[name], False
        if name in self._places:
            return Meaning(HERE, (name,)), False
        folder = str(PurePosixPath("/", self._path).parent)
        return (Meaning(folder, (name,)) if self._table.get("folders") else None), False

    def _bound(self, name: str, start: int) -> Meaning | Literal["local", "free"] | None:
        """Return what the scopes around a position say of a name.

        The result is the meaning of an imported name, ``"local"`` for a local name, ``"free"`` if no scope has the
        name, or ``None`` if the name is both imported and assigned.
        """
        for scope in self._scopes_at(start):
            if name in scope.bindings:
                return scope.bindings[name] if name not in scope.names else None
            if name in scope.names:
                return "local"
        return "free"

    def _member(self, owner: Sequence[str], name: str, start: int) -> Meaning | None:
        """Return the meaning of ``owner.name``; ``None`` if it is unknown."""
        first, *rest = owner
        if first in _ONESELF and not rest:
            classes = [one.name for one in self._enclosing(start) if one.name in self._classes]
            qualified = f"{classes[-1]}.{name}" if classes else ""
            return Meaning(HERE, (qualified,)) if qualified in self._places else None
        bound = self._bound(first, start)
        if bound == "free":
            qualified = ".".join((*owner, name))
            if qualified in self._places and first not in self._file_scope.bindings and first in self._classes:
                return Meaning(HERE, (qualified,))
            bound = self._file_scope.bindings.get(first) if first not in self._places else None
        return Meaning(bound.module, (*bound.names, *rest, name)) if isinstance(bound, Meaning) else None

    def _scopes_at(self, start: int) -> list[_Scope]:
        """Return the scopes around a position, innermost first."""
        return [self._scopes[number] for number in self._scope_nest.around(start)]

    def _enclosing(self, start: int) -> list[DefinedName]:
        """Return the definitions around a position, outermost first."""
        return [self._around[number] for number in self._definition_nest.around(start)][::-1]

    def _said(self, node: Node) -> str:
        return self._text[node.start_byte : node.end_byte]

    def _line(self, start: int) -> int:
        return self._lines.range(Span(start, start + 1))[0]


@lru_cache(maxsize=64)
def _query(name: str, table: str) -> Query | None:
    written = LANGUAGES.get(name, {}).get(table)
    return Query(parsing.language(name), written) if written else None


def _captures(name: str, table: str, root: Node) -> Mapping[str, Sequence[Node]]:
    query = _query(name, table)
    return QueryCursor(query).captures(root) if query else {}


def _matches(name: str, root: Node) -> Sequence[tuple[int, Mapping[str, Sequence[Node]]]]:
    query = _query(name, "imports")
    return QueryCursor(query).matches(root) if query else ()


@lru_cache(maxsize=64)
def _statements(name: str, types: frozenset[str]) -> Query:
    return Query(parsing.language(name), f"[{' '.join(f'({each})' for each in sorted(types))}] @statement")


def _captures_of(name: str, types: frozenset[str], root: Node) -> Sequence[Node]:
    """Return the nodes with one of some types, in any order."""
    return QueryCursor(_statements(name, types)).captures(root).get("statement", ()) if types else ()


class Place(NamedTuple):
    """The place of a definition: its file and its qualified name."""

    path: str
    name: str


class Meanings:
    """The definitions of a name in the files of one source."""

    def __init__(self, files: Iterable[FileReferences], paths: Collection[str]) -> None:
        """Store the definitions in the files.

        ``paths`` are the paths of all documents. They show which folders are packages.
        """
        self._files = {file.path: file for file in files}
        self._paths = set(paths)
        self._modules = Modules(self._files, self._paths)

    def definition(self, path: str, meaning: Meaning | None, depth: int = MOST_REEXPORTS) -> Place | None:
        """Return the definition that a name means in the file ``path``; ``None`` if this is not certain.

        ``depth`` is the number of files through which an imported name is followed at most.
        """
        if meaning is None:
            return None
        if meaning.module == HERE:
            name = meaning.names[0]
            return Place(path, name) if name in self._files[path].definitions else None
        for cut in reversed(range(len(meaning.names))):
            module, names = "/".join((meaning.module.rstrip("/"), *meaning.names[:cut])), meaning.names[cut:]
            files = self._modules.files(path, module or "/")
            defining = [file for file in files if ".".join(names) in self._files[file].definitions]
            if len(defining) == 1:
                return Place(defining[0], ".".join(names))
            bound = self._files[files[0]].bindings.get(names[0]) if len(files) == 1 else None
            if bound and depth and bound.module != HERE:
                return self.definition(files[0], Meaning(bound.module, (*bound.names, *names[1:])), depth - 1)
        return None


class Modules:
    """Finds the files that the name of a module means."""

    def __init__(self, paths: Iterable[str], all_paths: Collection[str]) -> None:
        """Store the paths that a module may mean, and all existing paths."""
        self._all_paths = all_paths
        self._by_end: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for path in paths:
            module = module_of(path) if not shares_folder(path) else f"/{path}".rpartition("/")[0] or "/"
            self._by_end[module.rpartition("/")[2]].append((module, path))

    def files(self, importer: str, module: str) -> Sequence[str]:
        """Return the files that a module means: one file or all files of a folder; empty if it may mean several."""
        family = _family(importer)
        known = [
            (name, path) for name, path in self._by_end.get(module.rpartition("/")[2], ()) if _family(path) == family
        ]  # fmt: skip
        if module.startswith("/"):
            found = [(name, path) for name, path in known if name == module]
        elif shares_folder(importer):
            # Of Go a folder ends the name of a module; one alone may be called as one of somebody else.
            found = [
                (name, path)
                for name, path in known
                if name.endswith(f"/{module}") or (f"/{module}".endswith(name) and name.count("/") > 1)
            ]
        elif family == "python":
            found = [(name, path) for name, path in known if self._is_root(name, module, importer)]
        else:
            found = []
        names = {name for name, _ in found}
        paths = [path for _, path in found]
        return paths if len(names) == 1 and (len(paths) == 1 or shares_folder(importer)) else ()

    def _is_root(self, name: str, module: str, importer: str) -> bool:
        """Tell whether a Python import of ``module`` in the file ``importer`` means the file or folder ``name``.

        The folder in which ``module`` is found must not be a package. ``import db`` in ``/src/a.py`` means ``/src/db``.
        """
        if not name.endswith(f"/{module}"):
            return False
        root = name.removesuffix(f"/{module}")[1:]
        if f"{root}/__init__.py".lstrip("/") in self._all_paths:
            return False
        return "/" in module or root.rpartition("/")[2] in _ROOTS or f"/{importer}".startswith(f"/{root}/")


def _family(path: str) -> str:
    language = language_of(path) or ""
    return "javascript" if language == "typescript" else language
