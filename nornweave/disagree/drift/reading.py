"""Read facts from files in the sandbox: a file that hangs or crashes its process affects no other file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from threading import Lock
from typing import Any, cast

from nornweave.core.errors import DocumentError
from nornweave.core.sandbox import run_apart
from nornweave.core.text.decode import decode
from nornweave.core.types import Fact
from nornweave.disagree.drift.files import Kind, SourceFile, format_of, without_tests
from nornweave.disagree.drift.records import UnreadFile
from nornweave.disagree.facts.code import Comment
from nornweave.disagree.facts.configuration import is_configuration
from nornweave.disagree.facts.extract import Extracted, extract
from nornweave.disagree.facts.passage import Passage, fact_from
from nornweave.read.chunking.languages import language_of
from nornweave.read.worth import is_built

PROCESSES = 2
FILE_S = 10.0
"""Processor time that the facts of one file may take."""
FEW = 8
"""So few files are read by one process."""


@dataclass(frozen=True, slots=True)
class FileFacts:
    """The facts and the comments of one file. Lines count from 0."""

    file: SourceFile
    facts: tuple[Fact, ...]
    comments: tuple[Comment, ...] = ()


def read_facts(
    files: Iterable[SourceFile], read: Callable[[SourceFile], bytes | str]
) -> tuple[list[FileFacts], list[UnreadFile]]:
    """Read the facts of files.

    Args:
        read: a function that returns the bytes of a file, or why it cannot be read. Only one thread calls it at a time.

    Returns:
        The facts of the files, and the files that could not be read, both sorted by path.
    """
    listed = sorted(files, key=lambda file: file.path)
    reading = Lock()

    def answer(file: SourceFile) -> FileFacts | UnreadFile:
        with reading:
            raw = read(file)
        if isinstance(raw, str):
            return UnreadFile(file.path, raw)
        try:
            sent = run_apart(facts_in_sandbox, {"path": file.path, "kind": file.kind}, raw, cpu_s=FILE_S)
        except DocumentError as error:
            return UnreadFile(file.path, str(error))
        said = cast(Mapping[str, Any], sent)
        comments = tuple(Comment(**one) for one in said["comments"])
        return FileFacts(file, tuple(map(fact_from, said["facts"])), comments)

    with ThreadPoolExecutor(1 if len(listed) <= FEW else PROCESSES) as pool:
        answers = list(pool.map(answer, listed))
    found = [one for one in answers if isinstance(one, FileFacts)]
    return found, [one for one in answers if isinstance(one, UnreadFile)]


def facts_in_sandbox(values: Mapping[str, Any], raw: bytes) -> Extracted:
    """Return the facts and comments of one file. This function runs in the sandbox's process."""
    return facts_of(values["path"], values["kind"], raw)


def facts_of(path: str, kind: Kind, raw: bytes) -> Extracted:
    """Return the facts and comments of one file. Generated and empty files have no facts or comments.

    Raises:
        DocumentError: the file is not text.
    """
    if not raw.strip():
        return Extracted(())
    text = without_tests(decode(raw), PurePosixPath(path).suffix)
    is_told = PurePosixPath(path).suffix == ""
    language = language_of(path, text if is_told else "") if kind == "code" else None
    if language and is_built(text):
        return Extracted(())
    if kind == "code" and not language and not is_configuration("", path):
        return Extracted(())
    read = extract(Passage(text=text, domain=kind, language=language, format=format_of(path, text), path=path))
    return replace(read, facts=tuple(fact for fact in read.facts if fact.form != "example"))
