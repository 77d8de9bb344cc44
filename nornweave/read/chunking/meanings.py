"""The definition that a reference means, by imports, folders and re-exports, if it is certain."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from nornweave.read.chunking.languages import language_of
from nornweave.read.chunking.references import HERE, FileReferences, Meaning, module_of, shares_folder

MOST_REEXPORTS = 8
_ROOTS = frozenset({"", "src", "lib", "python"})
"""Folders from which modules are imported, whoever imports."""


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
