"""Run one scan: list, read, compare, look up who wrote the lines."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from nornweave.connect.git.blame import is_shallow_clone, origins
from nornweave.core.errors import ConfigError, DocumentError
from nornweave.core.text.decode import decode
from nornweave.disagree.conflicts import MIN_CONFIDENCE, FactConflict, LocatedFact, find_conflicts
from nornweave.disagree.drift.files import Commit, SourceFile, WorkingTree, commits_of, is_repository, read_or_reason
from nornweave.disagree.drift.findings import (
    findings_of,
    fingerprint,
    is_suppressed,
    lines_whose_writer_matters,
    with_origins,
)
from nornweave.disagree.drift.reading import FILE_S, FileFacts, read_facts
from nornweave.disagree.drift.records import Finding, Report, UnreadFile

MAX_FINDINGS = 500
"""Findings that are looked into; of more the most confident."""
SHALLOW = "a shallow clone: who wrote older lines is not known; fetch the whole history (fetch-depth: 0)"


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftOptions:
    """The options of a run.

    Attributes:
        diff: ``BASE..HEAD``; empty for the working tree.
        baseline: fingerprints that are known; ``None`` if there is no baseline.
        min_confidence: in [0, 1].
        file_s: seconds that the facts of one file may take.
    """

    diff: str = ""
    baseline: frozenset[str] | None = None
    min_confidence: float = MIN_CONFIDENCE
    file_s: float = FILE_S


@dataclass
class _Texts:
    """Texts of files, decoded once."""

    read: Callable[[str], bytes]
    known: dict[str, str] = field(default_factory=dict)

    def __call__(self, path: str) -> str:
        if path not in self.known:
            try:
                self.known[path] = decode(self.read(path))
            except (OSError, DocumentError):  # it changed while we looked
                self.known[path] = ""
        return self.known[path]


@dataclass(frozen=True, slots=True)
class Scanned:
    """A report with the texts of the files in it."""

    report: Report
    text_of: Callable[[str], str]


def scan(root: Path, options: DriftOptions) -> Scanned:
    """Find disagreements in a folder, or those that a range of commits introduced.

    Args:
        root: an existing folder.

    Raises:
        ConfigError: the folder is missing, or ``diff`` names no commits of its repository.
    """
    if not root.is_dir():
        raise ConfigError(f"{str(root)!r} is not a folder; name one, or change to it")
    started = time.monotonic()
    found = _of_commits(root, options) if options.diff else _of_working_tree(root, options)
    return replace(found, report=replace(found.report, seconds=round(time.monotonic() - started, 3)))


def _of_working_tree(root: Path, options: DriftOptions) -> Scanned:
    tree = WorkingTree(root)
    files = tree.list()
    found, failed = read_facts(files, partial(read_or_reason, tree), file_s=options.file_s)
    texts = _Texts(lambda path: (root / path).read_bytes())
    located = _located(found)
    conflicts = find_conflicts(located, min_confidence=options.min_confidence)
    revision = "HEAD" if is_repository(root) else ""
    return Scanned(_report(root, options, conflicts, texts, revision, _Read(files, located, failed)), texts)


def _of_commits(root: Path, options: DriftOptions) -> Scanned:
    base, head = commits_of(root, options.diff)
    with closing(Commit(root, base)) as before, closing(Commit(root, head)) as after:
        old, new = before.list(), after.list()
        read: Callable[[SourceFile], bytes | str] = partial(read_or_reason, after)  # blobs are the repository's
        files = tuple(dict.fromkeys((*new, *old)))
        changed = {one.path for one in set(old) ^ set(new)}
        found, failed = read_facts(files, read, file_s=options.file_s)
        by_file = {one.file: one for one in found}
        earlier, later = (_located([by_file[one] for one in listed if one in by_file]) for listed in (old, new))
        known = {fingerprint(one) for one in find_conflicts(earlier, min_confidence=options.min_confidence)}
        conflicts = [
            one
            for one in find_conflicts(later, min_confidence=options.min_confidence)
            if {one.first.path, one.second.path} & changed
        ]
        versions = {one.path: one for one in new}
        texts = _Texts(lambda path: after.read(versions[path]))
        failed = [one for one in failed if one.path in versions]
        report = _report(root, options, conflicts, texts, head, _Read(new, later, failed), known)
    return Scanned(replace(report, compared=(base[:12], head[:12])), texts)


@dataclass(frozen=True, slots=True)
class _Read:
    """What was read: files, their facts, and what failed."""

    files: Sequence[SourceFile]
    facts: Sequence[LocatedFact]
    failed: Sequence[UnreadFile]


def _located(found: Sequence[FileFacts]) -> list[LocatedFact]:
    return [
        LocatedFact(
            fact=fact,
            domain=one.file.kind,
            path=one.file.path,
            line_range=(fact.line + 1, fact.line + 1),
        )
        for one in found
        for fact in one.facts
    ]


def _report(
    root: Path,
    options: DriftOptions,
    conflicts: Sequence[FactConflict],
    texts: _Texts,
    revision: str,
    read: _Read,
    known: Collection[str] = (),
) -> Report:
    heard = [one for one in conflicts if not is_suppressed(one, texts)]
    baseline = options.baseline or frozenset()
    new = [one for one in heard if fingerprint(one) not in baseline]
    fresh = findings_of([one for one in new if fingerprint(one) not in known], texts)
    old = findings_of([one for one in new if fingerprint(one) in known], texts)
    notices = [f"{len(fresh):,} findings; only the {MAX_FINDINGS} most confident are shown"] * (
        len(fresh) > MAX_FINDINGS
    )
    fresh = fresh[:MAX_FINDINGS]
    if revision and fresh:
        if is_shallow_clone(root):
            notices.append(SHALLOW)
        written = origins(root, revision, lines_whose_writer_matters(fresh))
        fresh = [with_origins(one, written) for one in fresh]
    return Report(
        root=str(root),
        findings=tuple(fresh),
        known=len(heard) - len(new),
        existing=tuple(old[:MAX_FINDINGS]),
        ignored=len(conflicts) - len(heard),
        files=len(read.files),
        facts=dict(sorted(Counter(one.fact.side for one in read.facts).items())),
        failed=tuple(read.failed),
        notices=tuple(notices),
        is_against_baseline=options.baseline is not None,
    )


def all_findings(report: Report) -> tuple[Finding, ...]:
    """Return all findings of a report, new or not."""
    return (*report.findings, *report.existing)
