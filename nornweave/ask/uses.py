"""Uses of a name: documents that contain the word are parsed on demand, and nothing is stored.

So a use disappears with its document, and viewers only get and count uses that they may see.
"""

from __future__ import annotations

import json
import re
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from nornweave.ask.views.texts import (
    DependencyDocument,
    GraphDocument,
    NotLookedAtDocument,
    ReferenceDocument,
    UsesDocument,
)
from nornweave.core.errors import DocumentError, QueryError
from nornweave.core.sandbox import run_apart
from nornweave.index.index import Index
from nornweave.index.port import Mask
from nornweave.index.searching.finding import WordTexts
from nornweave.read.chunking.languages import EXTENSIONS
from nornweave.read.chunking.references import (
    HERE,
    FileReferences,
    Import,
    Meanings,
    Modules,
    Place,
    Reference,
    module_of,
    read_references,
    references_from,
    shares_folder,
)

MOST_DOCUMENTS = 500
MOST_CHARACTERS = 500_000
"""Of one file; a longer one is generated."""
MAX_NAME = 200
BATCH, BATCH_CPU_S = 50, 5.0
ENDINGS = tuple(f".{ending}" for endings in EXTENSIONS.values() for ending in endings.split())
_NAME = re.compile(r"[\w$]+(?:(?:\.|::|->|#)[\w$]+)*[!?]?")
_PARTING = re.compile(r"\.|::|->|#")


def check_name(name: str) -> str:
    """Return a name in dotted form, as definitions are stored.

    Raises:
        QueryError: the text cannot be a name in code.
    """
    if len(name) > MAX_NAME or not _NAME.fullmatch(name):
        raise QueryError(
            "name", f"expected a name as code has it, such as Ledger.add, of at most {MAX_NAME} characters"
        )
    return _PARTING.sub(".", name)


@dataclass(slots=True)
class _Read:
    """The parsed files by source, and the files that were not read."""

    files: dict[str, list[FileReferences]] = field(default_factory=lambda: defaultdict(list))
    not_looked_at: list[NotLookedAtDocument] = field(default_factory=list)

    def leave(self, documents: int | None, reason: str) -> None:
        if documents != 0:
            self.not_looked_at.append({"documents": documents, "reason": reason})


def find_uses(index: Index, name: str, deadline: float, within: Mask | None = None) -> UsesDocument:
    """Return the definitions and the uses of a name.

    Args:
        name: a name alone, or qualified by its class or module: ``Ledger.add``, ``payments.ledger.Ledger``.
        deadline: the ``time.monotonic()`` after which the uses found so far are returned.
        within: the chunks in which to look; ``None`` for all.
    """
    wanted = check_name(name)
    last = wanted.rpartition(".")[2]
    read = _read(index.texts_with(last, ENDINGS, MOST_DOCUMENTS, deadline, within), last, deadline)
    paths = index.paths() if read.files else ()
    document: UsesDocument = {
        "name": name, "definitions": [], "references": [], "resolved": 0, "by_name": 0,
        "documents": sum(map(len, read.files.values())), "not_looked_at": read.not_looked_at, "more": 0,
    }  # fmt: skip
    for source_id, files in sorted(read.files.items()):
        meanings = Meanings(files, paths)
        lines = {
            Place(file.path, qualified): line
            for file in files
            for qualified, line in file.definitions.items()
            if _is_called(wanted, (*module_of(file.path).split("/"), *qualified.split(".")))
        }
        document["definitions"] += [
            {"source_id": source_id, "path": place.path, "line": line, "name": place.name}
            for place, line in sorted(lines.items(), key=lambda one: (one[0].path, one[1]))
        ]
        for file in files:
            document["references"] += _references(source_id, file, meanings, wanted, lines)
    for reference in document["references"]:
        document[reference["certainty"]] += len(reference["lines"])
    return document


def _references(
    source_id: str, file: FileReferences, meanings: Meanings, wanted: str, lines: dict[Place, int]
) -> list[ReferenceDocument]:
    grouped: dict[tuple[str, Place | None], list[Reference]] = defaultdict(list)
    for reference in file.references:
        place = meanings.definition(file.path, reference.meaning)
        if place is not None and place not in lines:
            continue
        told = reference.meaning
        # It may be told to be something else: ``json.loads`` when ``Ledger.loads`` is asked for.
        is_outside = place is None and told is not None and told.module != HERE
        if is_outside and told and not _is_called(wanted, (*told.module.split("/"), *told.names)):
            continue
        known = grouped[reference.kind, place]
        if not known or known[-1].line != reference.line:
            known.append(reference)
    found: list[ReferenceDocument] = [
        {
            "source_id": source_id,
            "path": file.path,
            "lines": [reference.line for reference in references],
            "kind": references[0].kind,
            "certainty": "resolved" if place else "by_name",
            "definition": f"{place.path}:{lines[place]}" if place else None,
        }
        for (_, place), references in grouped.items()
    ]
    return sorted(found, key=lambda one: (one["lines"], one["kind"]))


def _is_called(wanted: str, names: Sequence[str]) -> bool:
    return f".{'.'.join(names)}".endswith(f".{wanted}")


def draw_graph(
    index: Index, path: str, source_id: str | None, deadline: float, within: Callable[[str], Mask | None]
) -> GraphDocument | None:
    """Return the imports of a file and the files that import it; ``None`` if this viewer can see no such file.

    Args:
        within: returns the chunks of a source in which to look; ``None`` for all its chunks.

    Raises:
        QueryError: several sources have the path.
    """
    sources = [source for source in index.sources_of(path) if source_id in {None, source}]
    if len(sources) > 1:
        raise QueryError("source", f"several sources have {path}: {', '.join(sources)}; name one")
    stored = index.document(sources[0], path) if sources else None
    if stored is None:
        return None
    paths = [each for each in index.paths() if each.lower().endswith(ENDINGS)]
    modules = Modules(paths, frozenset(index.paths()))
    own = _read(WordTexts(((sources[0], path, stored.text),), 0, is_complete=True), "", deadline)
    word = (path.rpartition("/")[0] if path.endswith(".go") else module_of(path)).rpartition("/")[2]
    found = index.texts_with(word, ENDINGS, MOST_DOCUMENTS, deadline, within(sources[0]))
    others = _read(found, "", deadline)
    imports = [each for file in own.files[sources[0]] for each in file.imports]
    met = {each: [other for other in _imported(modules, path, each) if other != path] for each in imports}
    seen = index.seen_places([(sources[0], other) for others_met in met.values() for other in others_met])
    depends_on = _dependencies(
        (other, each) for each, files in met.items() for other in files if (sources[0], other) in seen
    )
    used_by = _dependencies(
        (file.path, each)
        for file in others.files[sources[0]]
        if file.path != path
        for each in file.imports
        if path in _imported(modules, file.path, each)
    )
    return {
        "source_id": sources[0],
        "path": path,
        "depends_on": depends_on,
        "used_by": used_by,
        "outside": sorted({each.written for each, files in met.items() if not files}),
        "not_looked_at": [*own.not_looked_at, *others.not_looked_at],
    }


def _imported(modules: Modules, importer: str, statement: Import) -> Sequence[str]:
    """Return the files that an import statement means: the file of the imported name, or else of the module."""
    if statement.name and not shares_folder(importer):
        below = modules.files(importer, f"{statement.module.rstrip('/')}/{statement.name}")
        if below:
            return below
    files = modules.files(importer, statement.module)
    named = [file for file in files if module_of(file).rpartition("/")[2] == statement.name]
    return named if named and shares_folder(importer) else files


def _dependencies(found: Iterable[tuple[str, Import]]) -> list[DependencyDocument]:
    by_path: dict[str, list[Import]] = defaultdict(list)
    for path, statement in found:
        by_path[path].append(statement)
    return [
        {
            "path": path,
            "lines": sorted({one.line for one in statements}),
            "names": sorted({one.name for one in statements if one.name}),
        }
        for path, statements in sorted(by_path.items())
    ]


def _read(found: WordTexts, name: str, deadline: float) -> _Read:
    """Parse texts in separate processes; return the parsed files, and why others were not parsed."""
    read = _Read()
    read.leave(found.beyond, f"more than {MOST_DOCUMENTS} documents hold the name; ask in one source")
    if not found.is_complete:
        read.leave(None, "the time was up before all documents were searched")
    short = [text for text in found.texts if len(text[2]) <= MOST_CHARACTERS]
    read.leave(len(found.texts) - len(short), f"longer than {MOST_CHARACTERS:,} characters")
    unread = 0
    batches = deque(short[start : start + BATCH] for start in range(0, len(short), BATCH))
    while batches:
        if time.monotonic() >= deadline:
            read.leave(sum(map(len, batches)), "the time was up")
            break
        batch = batches.popleft()
        raw = json.dumps([(path, text) for _, path, text in batch]).encode()
        try:
            sent = cast(list[Any], run_apart(read_references, {"name": name}, raw, cpu_s=BATCH_CPU_S))
        except DocumentError as error:
            if len(batch) > 1:  # one of them is to blame
                batches.extendleft([text] for text in reversed(batch))
            else:
                read.leave(1, f"{batch[0][1]}: {error}")
            continue
        for (source_id, _, _), file in zip(batch, map(references_from, sent), strict=True):
            unread += not file.is_read
            if file.is_read:
                read.files[source_id].append(file)
    read.leave(unread, "cannot be parsed")
    return read
