"""``drift.lock``: the agreements that a team holds documentation and code to.

Each line is an agreement, sorted, so that branches merge: page, name and value, file of the code, by content and not by
line number. The last column is for the machine: the spelling in the code, and a mark for each side, a digest of the
lines that state the value. As long as both marks are found, the agreement holds and nothing has to be read, so a check
takes a second.

The baseline has disagreements that a team already knows.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path, PurePosixPath

from nornweave.core.errors import ConfigError
from nornweave.core.files.writing import write_whole
from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.text.terminal import legible, lines_of
from nornweave.disagree.conflicts import LocatedFact
from nornweave.disagree.conflicts.decision import CandidatePair
from nornweave.disagree.drift.agreements import Agreement, Lines, agreement_of, agreements_of, decided, shown
from nornweave.disagree.drift.records import Finding
from nornweave.disagree.facts.comparison import FactComparison

FILE_NAME = "drift.lock"
MAX_BYTES = 32 * 1024 * 1024
_HEADER = "# drift.lock 2: page, what it says, the code that says the same; the last column is for `nornweave drift`."
_LINES = lazy_pattern(r"[1-9]\d{0,6}/[1-9]\d{0,6}")
_MARK = lazy_pattern(r"[0-9a-f]{12}\.[1-9]\d{0,6}\.[1-9]\d{0,6}")

_COLUMNS = 4
_FIELDS = 7
"""Of the last column."""

TextOf = Callable[[str], str]

VERSION = 1
MAX_BASELINE_BYTES = 16 * 1024 * 1024
_FINGERPRINT = lazy_pattern(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True, order=True)
class LockedAgreement:
    """A line of the lock: an agreement, its number of lines, and a mark for each side."""

    agreement: Agreement
    lines: Lines
    documented_mark: str
    coded_mark: str


@dataclass
class Marks:
    """Computes and finds the marks by which a lock recognises lines of one text."""

    text: str
    _counted: dict[int, Counter[str]] = field(default_factory=dict)

    @cached_property
    def _lines(self) -> list[str]:
        return [line.strip() for line in lines_of(self.text)]

    def of(self, located: LocatedFact) -> str:
        """Return the mark of a fact's lines: their digest, their number, and how often they occur in the text."""
        span = located.fact.span
        count = 1 + self.text.count("\n", span.start, max(span.start, span.end - 1))
        digest = _digest(self._lines[located.fact.line : located.fact.line + count])
        return f"{digest}.{count}.{self._count(count)[digest]}"

    def has(self, mark: str) -> bool:
        """Tell whether the text has the lines of a mark exactly as often as when the mark was made."""
        digest, count, times = mark.split(".")
        return self._count(int(count))[digest] == int(times)

    def _count(self, count: int) -> Counter[str]:
        if count not in self._counted:
            lines = self._lines
            self._counted[count] = Counter(_digest(lines[at : at + count]) for at in range(len(lines)))
        return self._counted[count]


def _digest(lines: Sequence[str]) -> str:
    return blake2b("\n".join(lines).encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def locked(compared: Sequence[CandidatePair], text_of: TextOf) -> list[LockedAgreement]:
    """Return the lines of a lock: the agreement of each documented value that ``--list`` calls held."""
    places: dict[tuple[str, int, str], list[CandidatePair]] = defaultdict(list)
    for pair in compared:
        places[pair.other.path, pair.other.fact.line, pair.other.fact.name].append(pair)
    marks: dict[str, Marks] = {}
    entries = set()
    counted = agreements_of(compared)
    for of in places.values():
        verdict, pair = decided(of, of[0].other.fact.name)
        if verdict is not FactComparison.AGREE:
            continue
        of_page, of_code = (
            marks.setdefault(side.path, Marks(text_of(side.path))).of(side) for side in (pair.other, pair.code)
        )
        agreement = agreement_of(pair)
        entries.add(LockedAgreement(agreement, counted[agreement], of_page, of_code))
    return sorted(entries)


def moved_since(entries: Iterable[LockedAgreement], text_of: TextOf) -> list[LockedAgreement]:
    """Return the entries of a lock of which the page's or the code's lines are not found any more."""
    marks: dict[str, Marks] = {}

    def has(path: str, mark: str) -> bool:
        return marks.setdefault(path, Marks(text_of(path))).has(mark)

    return [
        one
        for one in entries
        if not (has(one.agreement.key[0], one.documented_mark) and has(one.agreement.key[2], one.coded_mark))
    ]


def followed(entries: Iterable[LockedAgreement], paths: Collection[str]) -> dict[Agreement, Lines]:
    """Return the agreements of a lock with their lines, after files were moved.

    A path that is missing now is replaced by the new path with the same file name if there is exactly one.

    Args:
        paths: the paths of the present files.
    """
    listed = list(entries)
    held = {path for one in listed for path in one.agreement.key[::2]}
    by_name: dict[str, list[str]] = {}
    for path in set(paths) - held:
        by_name.setdefault(PurePosixPath(path).name, []).append(path)

    def now(path: str) -> str:
        others = by_name.get(PurePosixPath(path).name, [])
        return others[0] if path not in paths and len(others) == 1 else path

    def moved(one: Agreement) -> Agreement:
        page, name, code, code_name = one.key
        return replace(one, key=(now(page), name, now(code), code_name))

    return {moved(one.agreement): one.lines for one in listed}


def read_lock(root: Path) -> list[LockedAgreement] | None:
    """Read the lock of a folder; ``None`` if it has none.

    Raises:
        ConfigError: the file cannot be read, or is not a lock.
    """
    file = root / FILE_NAME
    try:
        if file.stat().st_size > MAX_BYTES:
            raise ConfigError(f"{FILE_NAME}: larger than {MAX_BYTES:,} bytes; write it again with --update")
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{FILE_NAME}: cannot be read ({error})") from error
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip() and line[0] != "#"]
    return [_entry(number, line) for number, line in lines]


def _entry(number: int, line: str) -> LockedAgreement:
    columns = line.split("\t")
    path, _, code_path, _ = columns if len(columns) == _COLUMNS else ("",) * _COLUMNS
    name, joint, documented = (columns[1] if path else "").partition(" = ")
    try:
        rest = json.loads(columns[-1])
    except (ValueError, RecursionError):
        rest = None
    is_whole = bool(joint) and isinstance(rest, list) and all(isinstance(one, str) for one in rest)
    if (
        not is_whole
        or len(rest) != _FIELDS
        or not all(pattern.fullmatch(text) for pattern, text in zip((_LINES, _MARK, _MARK), rest[-3:], strict=True))
    ):
        raise ConfigError(
            f"{FILE_NAME} line {number} is no agreement; merge it line by line, or write it with --update --accept"
        )
    attribute, documented, coded, code_name, lines, of_page, of_code = rest
    agreement = Agreement((path, name, code_path, code_name), attribute, documented, coded)
    on_page, _, in_code = lines.partition("/")
    return LockedAgreement(agreement, (int(on_page), int(in_code)), of_page, of_code)


def write_lock(root: Path, entries: Iterable[LockedAgreement]) -> None:
    """Write the sorted lock of a folder. The file is replaced as a whole.

    Raises:
        ConfigError: the file cannot be written.
    """
    lines = sorted(_line(one) for one in entries)
    try:
        write_whole(root / FILE_NAME, "\n".join([_HEADER, *lines]) + "\n", mode=0o644)
    except OSError as error:
        raise ConfigError(f"{FILE_NAME}: {error.strerror}") from error


def _line(one: LockedAgreement) -> str:
    said = one.agreement
    path, name, code_path, code_name = said.key
    rest = [said.attribute, said.documented, said.coded, code_name, f"{one.lines[0]}/{one.lines[1]}"]
    machine = json.dumps([*rest, one.documented_mark, one.coded_mark], ensure_ascii=False)
    return "\t".join((path, f"{name} = {' '.join(said.documented.split())}", code_path, machine))


@dataclass(frozen=True, slots=True)
class Dropped:
    """An agreement that only the old lock has. ``is_still_said`` means that the page still states it."""

    agreement: Agreement
    is_still_said: bool

    @property
    def sentence(self) -> str:
        """The agreement in words: ``retries = 3 (docs/jobs.md and src/jobs.py)``."""
        page, name, code, _ = self.agreement.key
        still = ", which the page still says" if self.is_still_said else ""
        return f"{name} = {self.agreement.documented} ({page} and {code}){still}"


def dropped(
    old: Iterable[LockedAgreement], new: Iterable[LockedAgreement], pairs: Iterable[CandidatePair]
) -> list[Dropped]:
    """Return the agreements of an old lock that a new one does not have.

    Args:
        pairs: all pairs that are compared now.
    """
    held = {(one.agreement.key[0], one.agreement.key[1], one.agreement.documented) for one in new}
    said = {(pair.other.path, pair.other.fact.name, shown(pair.other.fact)) for pair in pairs}
    gone = {one.agreement: (one.agreement.key[0], one.agreement.key[1], one.agreement.documented) for one in old}
    return [Dropped(one, place in said) for one, place in sorted(gone.items()) if place not in held]


def read_baseline(file: Path) -> dict[str, str]:
    """Read a baseline: fingerprint → its subject in words.

    Raises:
        ConfigError: the file is missing, too large, or not a baseline.
    """
    try:
        if file.stat().st_size > MAX_BASELINE_BYTES:
            raise ConfigError(f"--baseline {str(file)!r}: larger than {MAX_BASELINE_BYTES:,} bytes; write it again")
        stored = json.loads(file.read_text(encoding="utf-8"))
        if stored["version"] != VERSION:
            raise ConfigError(
                f"--baseline {str(file)!r}: version {stored['version']!r}, expected {VERSION}; write it again"
            )
        found = {one["fingerprint"]: str(one.get("about", "")) for one in stored["findings"]}
    except OSError as error:
        raise ConfigError(f"--baseline {str(file)!r}: {error.strerror}; make one with --write-baseline") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(
            f"--baseline {str(file)!r} is not a baseline ({error}); make one with --write-baseline"
        ) from error
    if not all(isinstance(one, str) and _FINGERPRINT.fullmatch(one) for one in found):
        raise ConfigError(f"--baseline {str(file)!r}: a fingerprint has 32 hexadecimal figures; write it again")
    return found


def write_baseline(file: Path, findings: Sequence[Finding]) -> None:
    """Write the sorted fingerprints of findings, each with words for people. The file is replaced as a whole.

    Raises:
        ConfigError: the file cannot be written.
    """
    rows = sorted({one.fingerprint: legible(one.message) for one in findings}.items(), key=lambda row: (row[1], row[0]))
    stored = {"version": VERSION, "findings": [{"fingerprint": key, "about": about} for key, about in rows]}
    text = json.dumps(stored, ensure_ascii=False, indent=1) + "\n"
    try:
        write_whole(file, text, mode=0o644)
    except OSError as error:
        raise ConfigError(f"--write-baseline {str(file)!r}: {error.strerror}") from error
