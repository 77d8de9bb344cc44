"""Run one scan: list, read, compare, look up who wrote the lines."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

from nornweave.connect.git.blame import is_shallow_clone, origins
from nornweave.core.errors import ConfigError, DocumentError
from nornweave.core.files.paths import PathFilter
from nornweave.core.text.decode import decode
from nornweave.disagree.conflicts import FactConflict, LocatedFact, find_conflicts
from nornweave.disagree.conflicts.comparable import NameMatch, match_names, value_of
from nornweave.disagree.conflicts.decision import CandidatePair, Rivals, conflict_of, rivals_of
from nornweave.disagree.drift.agreements import (
    LEARNED,
    Agreement,
    Before,
    BrokenAgreement,
    before,
    broken,
    calls_default,
    coverage_of,
    differing,
    key_of,
    own_pairs,
    standing,
    values_of,
)
from nornweave.disagree.drift.files import (
    Commit,
    SourceFile,
    Texts,
    WorkingTree,
    commits_of,
    is_repository,
    read_or_reason,
    renames,
    text_of_page,
)
from nornweave.disagree.drift.findings import (
    broken_finding,
    finding_of,
    is_ignored,
    is_suppressed,
    lines_whose_writer_matters,
    stale_finding,
    with_origins,
)
from nornweave.disagree.drift.gone import gone, others_stated
from nornweave.disagree.drift.induced.believing import CodeFact
from nornweave.disagree.drift.induced.code import DECLARED
from nornweave.disagree.drift.induced.learning import (
    HOLDS_FROM,
    CodeNames,
    CodeNotation,
    Compared,
    Notation,
    Templates,
    believed,
    code_rates,
    stated,
)
from nornweave.disagree.drift.induced.unset import unset_pairs
from nornweave.disagree.drift.lock import LockedAgreement, followed, moved_since, read_lock
from nornweave.disagree.drift.options import CodeWords, held_by, is_elsewhere, not_held, states_of, with_options
from nornweave.disagree.drift.ranking import CANDIDATES_FROM, RIGHT, SHOWN_FROM, Affinity, ranked, stale_pages
from nornweave.disagree.drift.reading import FileFacts, read_facts
from nornweave.disagree.drift.records import Coverage, DocumentedOption, Finding, Report, UnreadFile
from nornweave.disagree.drift.replaced import replaced
from nornweave.disagree.drift.settings import NO_SETTINGS, DriftSettings
from nornweave.disagree.facts.code import Comment
from nornweave.disagree.facts.comparison import compared_kinds

MAX_GONE = 20
"""Agreements of a lock, or entries of a baseline, that are named when they are gone."""
MAX_FINDINGS = 500
"""Findings that are looked into; of more the most confident."""
SHALLOW = "a shallow clone: who wrote older lines is not known; fetch the whole history (fetch-depth: 0)"


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftOptions:
    """The options of a run.

    Attributes:
        diff: ``BASE..HEAD``; empty for the working tree.
        baseline: known fingerprints → their subjects; ``None`` if there is no baseline.
        min_confidence: the least confidence of a finding, in [0, 1].
        exclude: globs of files that are left out.
        use_lock: whether broken agreements of ``drift.lock`` are findings.
        only_lock: whether nothing else is a finding.
        settings: the settings of the repository.
    """

    diff: str = ""
    baseline: Mapping[str, str] | None = None
    min_confidence: float = SHOWN_FROM
    exclude: tuple[str, ...] = ()
    use_lock: bool = True
    only_lock: bool = False
    settings: DriftSettings = NO_SETTINGS

    def listed(self, tree: WorkingTree | Commit) -> tuple[SourceFile, ...]:
        """Return the files of a tree that will be read.

        Raises:
            ConfigError: a glob of ``exclude`` is broken.
        """
        asked = PathFilter(("**",), (*self.exclude, *self.settings.exclude))
        return tuple(file for file in tree.list() if asked.matches(file.path))


@dataclass(frozen=True, slots=True)
class Scanned:
    """A report, the texts of the files, and all documented values, each with a value of the code."""

    report: Report
    text_of: Callable[[str], str]
    pairs: Sequence[CandidatePair] = ()


def scan(root: Path, options: DriftOptions) -> Scanned:
    """Find the disagreements in a folder, or those that a range of commits introduced.

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
    texts = Texts(lambda path: (root / path).read_bytes())
    revision = "HEAD" if is_repository(root) else ""
    entries = read_lock(root) if options.use_lock else None
    moved = moved_since(entries, texts) if entries else []
    listed = options.listed(tree)
    read_file = partial(read_or_reason, tree)
    if options.only_lock and entries is not None:
        paths = {path for one in moved for path in one.agreement.key[::2]}
        near_files = [file for file in listed if file.path in paths]
        near = _Read.of(near_files, *read_facts(near_files, read_file))
        if len(near.files) == len(paths) and (report := _kept(root, entries, moved, near, texts)):
            return Scanned(report, texts)
    read = _Read.of(listed, *read_facts(listed, read_file))
    pairs, defaults = read.all_pairs(texts)
    held = _held(pairs)
    seen = followed(moved, {file.path for file in read.files})
    lost = broken(Before(seen), pairs)
    conflicts = [] if options.only_lock else _conflicts(read, options, pairs)
    pages = [] if options.only_lock else [stale_finding(*one, texts) for one in stale_pages(defaults)]
    unread = tree.unread()
    stated = _documented(read, held, lambda file: texts(file.path), is_whole=not unread)
    documented = [one for one, _ in stated]
    plain = [] if options.only_lock else [conflict_of(pair, RIGHT) for _, pair in stated if pair is not None]
    held_here = held_by(documented)
    conflicts = [one for one in conflicts if one.second.fact.attribute == "requires"
                 or not is_elsewhere(held_here, one.second.path, one.first.path)]  # fmt: skip
    seen_at = {(one.second.path, one.second.fact.line) for one in conflicts}
    conflicts += (one for one in plain if (one.second.path, one.second.fact.line) not in seen_at)
    report = _report(root, options, lost, _without(conflicts, lost), texts, revision, read, pages)
    values = values_of(read.facts, held)
    coverage = replace(with_options(coverage_of(values), documented), unread=dict(Counter(unread.values())),
                       programs=sum(file.kind == "code" for file in read.files),
                       others=others_stated(read.files, lambda file: texts(file.path)))  # fmt: skip
    notices = (*_gone(seen, pairs), *report.notices)
    report = replace(report, coverage=coverage, options=tuple(documented), not_held=not_held(values),
                     is_against_lock=entries is not None, notices=notices)  # fmt: skip
    return Scanned(report, texts, held)


def _documented(
    read: _Read, pairs: Sequence[CandidatePair], text_of: Callable[[SourceFile], str], *, is_whole: bool
) -> list[tuple[DocumentedOption, CandidatePair | None]]:
    """Return each documented option with its state, and the pair that plainly differs; ``None`` if no pair does."""
    words = CodeWords(is_whole=is_whole)
    for file in read.files:
        words.add(file, text_of)
    pages = [file for file in read.files if file.kind == "documentation" or file.path.endswith(".d.ts")]
    stated = (one for one in read.facts if one.fact.side == "documentation")
    return states_of(pages, text_of, pairs, stated, words)


def _kept(
    root: Path, entries: Sequence[LockedAgreement], moved: Sequence[LockedAgreement], near: _Read, texts: Texts
) -> Report | None:
    """Return a report if no agreement of a lock broke; ``None`` if one may have broken, so that all must be read.

    Args:
        moved: the lines of the lock whose places or spellings changed.
        near: the files of these lines.
    """
    base = Before({one.agreement: one.lines for one in moved})
    pairs = [*near.pairs, *(one.pair for one in near.compared(texts)[0])]
    if near.failed or any(True for _ in differing(base, pairs)):
        return None
    there = {key_of(pair) for pair in pairs}
    count = len(entries) - sum(one.agreement.key not in there for one in moved)
    coverage = Coverage(read=len(entries), compared=count, agree=count)
    notices = _gone(base.agreements, pairs)
    return Report(root=str(root), findings=(), coverage=coverage, is_against_lock=True, notices=notices)


def _held(pairs: Sequence[CandidatePair]) -> list[CandidatePair]:
    """Return the pairs that are certain enough for a lock.

    Values of templates that seldom agree with the code are left out unless page and code both say *default*, and
    numbers that are compared with booleans.
    """
    return [
        pair
        for pair in _of_one_kind(pairs)
        if pair.other.fact.form != LEARNED
        or pair.strength >= HOLDS_FROM
        or (calls_default(pair.other.fact) and standing(pair) >= DECLARED)
    ]


def _of_one_kind(pairs: Sequence[CandidatePair]) -> list[CandidatePair]:
    """Return the pairs without those of a number and a boolean, which agree only by chance.

    Kept is what a page calls by default *off* where the code has 0 for this name.
    """
    return [
        pair
        for pair in pairs
        if compared_kinds(value_of(pair.other.fact), value_of(pair.code.fact)) != {"number", "boolean"}
        or (
            pair.other.fact.kind != "number"
            and calls_default(pair.other.fact)
            and match_names(pair.other, pair.code) in {NameMatch.SAME, NameMatch.OWNED}
        )
    ]


def _conflicts(read: _Read, options: DriftOptions, pairs: Sequence[CandidatePair]) -> list[FactConflict]:
    """Return the conflicts of a full scan."""
    found = find_conflicts(read.facts, min_confidence=CANDIDATES_FROM, rivals=read.rivals)
    learned = (pair for pair in pairs if pair.other.fact.form == LEARNED and not isinstance(pair.code, CodeFact))
    affinity = Affinity(read.pairs, [file.path for file in read.files])
    scored = ranked(found, affinity, len(read.files), learned)
    return [one for one in scored if one.confidence >= options.min_confidence]


def _gone(entries: Iterable[Agreement], pairs: Sequence[CandidatePair]) -> tuple[str, ...]:
    """Return sentences about the agreements of a lock of which a value on the page or in code is not found any more."""
    there = {key_of(pair) for pair in pairs}
    gone = [one for one in entries if one.key not in there]
    return _named(
        [f"no longer found: {one.key[1]} ({one.key[0]} and {one.key[2]} said {one.documented})" for one in gone]
    )


def _named(gone: Sequence[str]) -> tuple[str, ...]:
    more = [f"{len(gone) - MAX_GONE} more are no longer found"] if len(gone) > MAX_GONE else []
    return (*gone[:MAX_GONE], *more)


def _no_longer_known(baseline: Mapping[str, str], found: Iterable[Finding]) -> tuple[str, ...]:
    """Return sentences about the entries of a baseline that no finding matches, because they can be removed."""
    there = {one.fingerprint for one in found}
    return _named([f"no longer found, in the baseline: {about}" for key, about in baseline.items() if key not in there])


def _of_commits(root: Path, options: DriftOptions) -> Scanned:
    base, head = commits_of(root, options.diff)
    with closing(Commit(root, base)) as before_, closing(Commit(root, head)) as after:
        old, new = options.listed(before_), options.listed(after)
        both = tuple(dict.fromkeys((*new, *old)))
        found, failed = read_facts(both, partial(read_or_reason, after))  # blobs of either
        versions = {file.path: file for file in new}
        texts = Texts(lambda path: after.read(versions[path]))
        failed = [one for one in failed if one.path in versions]
        earlier, later = (_Read.of(files, found, failed) for files in (old, new))
        was, now = _pairs_of_both(earlier, later, lambda file: _text(after, file))
        lost = broken(before(was, renames(root, base, head)), now)
        unread = after.unread()
        names = gone(root, (base, head), old, new, lambda file: _text(after, file), sorted(unread))
        told = {(place.path, place.line) for one in names for place in (one.second, *one.also)}
        names += (one for one in replaced(old, new, lambda file: _text(after, file))
                  if (one.second.path, one.second.line) not in told)  # fmt: skip
        report = _report(root, options, lost, (), texts, head, later, names)
        others = others_stated(new, lambda file: _text(after, file))
        stated = _documented(later, _held(now), lambda file: _text(after, file), is_whole=not unread)
    values = values_of(later.facts, _held(now))
    documented = [one for one, _ in stated]
    counts = dict(Counter(unread.values()))
    coverage = replace(with_options(coverage_of(values), documented), others=others, unread=counts,
                       programs=sum(file.kind == "code" for file in new))  # fmt: skip
    report = replace(report, options=tuple(documented), not_held=not_held(values))
    return Scanned(replace(report, coverage=coverage, compared=(base[:12], head[:12])), texts, now)


def _pairs_of_both(
    earlier: _Read, later: _Read, text_of: Callable[[SourceFile], str]
) -> tuple[list[CandidatePair], list[CandidatePair]]:
    """Return the pairs of two commits. Both are read by templates learnt from the agreements of the earlier commit."""
    comments = {**earlier.comments, **later.comments}
    code = CodeNotation(text_of, comments)
    pairs = code.pairs(earlier.files, earlier.facts)
    rates = code_rates(pairs, CodeNames(earlier.facts).telling)
    names = CodeNames([*earlier.facts, *believed(pairs, rates)])
    names_now = CodeNames([*later.facts, *believed(code.pairs(later.files, later.facts), rates)])
    notation = Notation(text_of, comments, lambda name: names.is_known(name) or names_now.is_known(name))
    was = notation.compared(earlier.files, names, earlier.facts)
    templates = Templates(was, names.telling)
    now = notation.compared(later.files, names_now, later.facts)
    both = [*earlier.pairs, *stated(was, templates)], [*later.pairs, *stated(now, templates)]
    both[0].extend(unset_pairs(earlier.files, earlier.facts, both[0], text_of))
    both[1].extend(unset_pairs(later.files, later.facts, both[1], text_of))
    return own_pairs(_of_one_kind(both[0])), own_pairs(_of_one_kind(both[1]))


def _text(tree: Commit, file: SourceFile) -> str:
    raw = read_or_reason(tree, file)
    try:
        return "" if isinstance(raw, str) else text_of_page(decode(raw), file.path)
    except DocumentError:
        return ""


def _without(conflicts: Sequence[FactConflict], lost: Sequence[BrokenAgreement]) -> list[FactConflict]:
    """Return the conflicts without those on a page's line that also has a broken agreement."""
    places = {(one.conflict.second.path, one.conflict.second.fact.line) for one in lost}
    return [one for one in conflicts if (one.second.path, one.second.fact.line) not in places]


@dataclass(frozen=True)
class _Read:
    """What was read from some files: their facts and comments, and the files that could not be read."""

    files: Sequence[SourceFile]
    facts: Sequence[LocatedFact]
    comments: Mapping[SourceFile, Sequence[Comment]]
    failed: Sequence[UnreadFile]

    @classmethod
    def of(cls, files: Sequence[SourceFile], found: Sequence[FileFacts], failed: Sequence[UnreadFile]) -> _Read:
        """Return what was read from ``files``. ``found`` may have the facts of further files."""
        wanted = set(files)
        read = [one for one in found if one.file in wanted]
        return cls(files, located_facts(read), {one.file: one.comments for one in read}, failed)

    @cached_property
    def rivals(self) -> Rivals:
        """The comparisons of all facts."""
        return rivals_of(self.facts)

    @cached_property
    def pairs(self) -> list[CandidatePair]:
        """Pairs of a documented value and a value of the code, both read by the extractors."""
        return [
            pair
            for pairs_of_fact in self.rivals.values()
            for pair in pairs_of_fact
            if pair.other.fact.side == "documentation"
        ]

    def compared(self, text_of: Callable[[str], str]) -> tuple[list[Compared], CodeNames]:
        """Return each literal near a name on a page with each value of this name in code, and all values in code."""

        def text(file: SourceFile) -> str:
            return text_of(file.path)

        pairs = CodeNotation(text, self.comments).pairs(self.files, self.facts)
        rates = code_rates(pairs, CodeNames(self.facts).telling)
        names = CodeNames([*self.facts, *believed(pairs, rates)])
        return Notation(text, self.comments, names.is_known).compared(self.files, names, self.facts), names

    def all_pairs(self, text_of: Callable[[str], str]) -> tuple[list[CandidatePair], list[CandidatePair]]:
        """Return two lists of pairs of a documented value and a value of the code.

        The first list is read by the extractors and by learned templates. The second list is read by the extractors,
        and has also every other value that its page calls a default.
        """
        compared, names = self.compared(text_of)
        defaults = [one.pair for one in compared if "default" in one.page]
        read = [*self.pairs, *stated(compared, Templates(compared, names.telling))]
        read += unset_pairs(self.files, self.facts, read, lambda file: text_of(file.path))
        return own_pairs(read), [*self.pairs, *defaults]


def located_facts(found: Iterable[FileFacts]) -> list[LocatedFact]:
    """Return the facts of files with their places."""
    return [
        LocatedFact(fact=fact, domain=one.file.kind, path=one.file.path, line_range=(fact.line + 1, fact.line + 1))
        for one in found
        for fact in one.facts
    ]


def _report(
    root: Path, options: DriftOptions, lost: Sequence[BrokenAgreement], conflicts: Sequence[FactConflict],
    texts: Texts, revision: str, read: _Read, others: Sequence[Finding] = (),
) -> Report:  # fmt: skip
    broke = [one for one in lost if not is_suppressed(one.conflict, texts)]
    heard = [one for one in conflicts if not is_suppressed(one, texts)]
    told = {(one.conflict.second.path, one.conflict.second.fact.line + 1) for one in lost}
    told |= {(one.conflict.first.path, one.conflict.first.fact.line + 1) for one in lost}
    others = [one for one in others if told.isdisjoint((place.path, place.line) for place in (one.first, one.second))]
    rest = [one for one in others if not is_ignored(one)]
    ignored = len(lost) + len(conflicts) + len(others) - len(broke) - len(heard) - len(rest)
    found = [*(broken_finding(one, texts) for one in broke), *rest, *(finding_of(one, texts) for one in heard)]
    found = [one for one in found if options.settings.reports(one)]
    baseline = options.baseline or {}
    fresh = [one for one in found if one.fingerprint not in baseline]
    notices = [] if options.diff else list(_no_longer_known(baseline, found))
    if len(fresh) > MAX_FINDINGS:
        notices.append(f"{len(fresh):,} findings; only the {MAX_FINDINGS} most confident are shown")
    shown = fresh[:MAX_FINDINGS]
    if revision and shown:
        if is_shallow_clone(root):
            notices.append(SHALLOW)
        lines = lines_whose_writer_matters(shown)
        written = origins(root, revision, {one: texts.written(*one, text) for one, text in lines.items()})
        shown = [with_origins(one, written) for one in shown]
    return Report(
        root=str(root),
        findings=tuple(shown),
        known=len(found) - len(fresh),
        ignored=ignored,
        files=len(read.files),
        facts=dict(sorted(Counter(one.fact.side for one in read.facts).items())),
        failed=tuple(read.failed),
        notices=tuple(notices),
        is_against_baseline=options.baseline is not None,
    )
