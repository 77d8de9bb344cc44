"""Records of drift."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from nornweave.core.types import Origin, Side

Which = Literal["first", "second"]
State = Literal["held", "differs", "not_compared"]


@dataclass(frozen=True, slots=True)
class UnreadFile:
    """A file that could not be read, and the reason."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One side of a disagreement, or another place with the same value.

    Attributes:
        path: relative to the scanned folder, with ``/``.
        line: its line, from 1.
        side: code, configuration, documentation, …
        value: the value as people write it.
        text: the line as written, without its end.
        origin: the author of the line; ``None`` if unknown.
    """

    path: str
    line: int
    side: Side
    value: str
    text: str
    origin: Origin | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A disagreement.

    Attributes:
        rule: the id of one of the ``RULES``, such as ``nornweave/default``.
        fingerprint: identifies the finding. It changes with the paths, the name or a value, but not with the lines.
        confidence: the probability, in [0, 1], that an engineer who reads both sides calls it a contradiction.
        first: the side that probably describes the running system; ``second`` the documentation, or the less informed
            side.
        newer: the line that was written later; ``None`` if unknown or at the same time.
        since: when the newer of the two was written; ``None`` if unknown or not committed yet.
        moved: the side that changed since both agreed; ``None`` if they are not known to have agreed.
        was: the value that both had when they agreed.
    """

    rule: str
    name: str
    attribute: str
    message: str
    fingerprint: str
    confidence: float
    first: Place
    second: Place
    also: tuple[Place, ...] = ()
    newer: Which | None = None
    since: datetime | None = None
    moved: Which | None = None
    was: str = ""

    @property
    def marked(self) -> Place:
        """Return the place to annotate: the changed side, else the documentation."""
        return self.first if self.moved == "first" else self.second


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentedOption:
    """An entry of a page that names an option in code markup, or a value that a page gives an option.

    Attributes:
        line: its line, from 1.
        name: the name as the page writes it.
        value: the value that the page states; empty if none was read.
        reason: why the value differs or is not compared.
        code: the path and line of the code's value with which it is compared; empty if it is not compared.
    """

    path: str
    line: int
    name: str
    value: str
    state: State
    reason: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How many documented values are held to the code.

    Attributes:
        documented: the number of documented options. ``options_compared`` of them have a value that is compared with
            the code, and ``options_held`` have a value that agrees with the code.
        options_not_compared: reason → number of options.
        read: the number of documented values that were read. ``compared`` of them also have a value in the code, and
            ``agree`` are equal to it.
        not_compared: reason → number of values.
        others: names, lists of choices, statuses or required versions → how many of them pages state, and how many of
            these the code has too. A range of commits can break only the latter.
        programs: the number of code files that are read. ``unread`` counts the other programs by language.
    """

    read: int = 0
    compared: int = 0
    agree: int = 0
    not_compared: Mapping[str, int] = field(default_factory=dict)
    documented: int = 0
    options_compared: int = 0
    options_held: int = 0
    options_not_compared: Mapping[str, int] = field(default_factory=dict)
    others: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    programs: int = 0
    unread: Mapping[str, int] = field(default_factory=dict)

    @property
    def held_share(self) -> float | None:
        """The share of the documented options that agree with the code; ``None`` if no option is documented."""
        return self.options_held / self.documented if self.documented else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result of one run.

    Attributes:
        findings: the new findings, the most confident first.
        known: the number of findings left out because the baseline has them.
        ignored: the number of findings left out by ``drift-ignore`` comments.
        files: the number of files that were read; ``failed`` are those that could not be read.
        facts: the number of facts, by side.
        coverage: the counts of the documented values; ``None`` if only the lock was checked.
        options: the documented options; ``not_held`` are values that were read and that the code does not have.
        is_against_lock: whether the findings are broken agreements of the lock.
        notices: notes on the run for readers.
    """

    root: str
    findings: tuple[Finding, ...]
    known: int = 0
    ignored: int = 0
    files: int = 0
    facts: Mapping[str, int] = field(default_factory=dict)
    coverage: Coverage | None = None
    options: tuple[DocumentedOption, ...] = ()
    not_held: tuple[DocumentedOption, ...] = ()
    is_against_lock: bool = False
    failed: tuple[UnreadFile, ...] = ()
    notices: tuple[str, ...] = ()
    seconds: float = 0.0
    compared: tuple[str, str] | None = None
    is_against_baseline: bool = False


@dataclass(frozen=True, slots=True)
class DriftRule:
    """A kind of disagreement. ``id`` never changes, because baselines and dashboards use it."""

    id: str
    name: str
    description: str


RULES = {
    attribute: DriftRule(f"nornweave/{kind}", f"{kind.title()}Differs", description)
    for kind, description, attributes in (
        ("default", "Documentation and code give another default for the same setting.", "default"),
        ("value", "Documentation and code give another value for the same constant or setting.", "value setting"),
        ("version", "Documentation and manifests require another version.", "requires"),
        ("status", "Documentation and code name another HTTP status.", "status"),
    )
    for attribute in attributes.split()
}
"""Attribute of a fact → its rule."""
STALE = DriftRule("nornweave/page", "PageDiffers", "Most values of a page differ from the file that declares them.")
GONE = DriftRule("nornweave/gone", "NameGone", "Documentation says a name that the code had and has no more.")
