"""Citations as models write them: what a chunk is cited by, and the check of an answer's citations."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from urllib.parse import quote

from nornweave.core.text.legible import legible
from nornweave.core.types import Domain, digest

LONGEST_ID = 128
DEEPEST = 5
"""Brackets inside of brackets that are looked through; an answer with more keeps none."""
PLACEHOLDER = "domain"
QUOTES = " \t\n`*'\""

# Short names that models write for domains.
ALIASES: Mapping[str, str] = MappingProxyType(
    {"doc": "documentation", "docs": "documentation", "convo": "conversations", "conversation": "conversations"}
)

LONGEST_BRACKET = 2000
RECHECK_SHARE = 256

_BRACKETS = re.compile(rf"\\?\[([^\[\]]{{1,{LONGEST_BRACKET}}})\]")
_BRACKET = re.compile(r"[\[\]]")
_BETWEEN = re.compile(r"[,;|]| and | & ")


@dataclass(frozen=True, slots=True)
class CheckedText:
    """A model's answer, with its citations checked.

    Attributes:
        text: with every known citation as ``[domain:chunk_id]``, one a bracket, and no unknown ones.
        cited: the chunks that it cites, in order, each once.
        unknown: citations as they were written that name nothing allowed, in order, each once.
    """

    text: str
    cited: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def citation_key(domain: str, chunk_id: str) -> str:
    """Return how an answer cites a chunk, without brackets.

    Foreign agents choose their ids: what would end a citation is percent-encoded, what is long goes by its digest.
    """
    written = quote(chunk_id, safe="/#@+=:", errors="replace")
    named = quote(domain, safe="", errors="replace")
    return f"{named}:{written if len(written) <= LONGEST_ID else digest(chunk_id)}"


def check_citations(text: str, allowed: Collection[tuple[str, str]]) -> CheckedText:
    """Check every citation of an answer.

    A citation is ``domain:chunk_id`` in square brackets, alone or among others, where the domain is one of ours, one of
    ``allowed``, an alias such as ``docs``, or the word ``domain`` before an id that only one chunk has; so ``[1]``,
    ``[note: x]`` and ``[code: 200 OK]`` are none. Letter case and blank space around the domain do not matter, those of
    the chunk id do.

    Returns:
        The text with known citations in full and without the unknown ones.
    """
    known = _KnownCitations(allowed)
    checked = _check_once(legible(text), known)
    unknown = dict.fromkeys(checked.unknown)
    for _ in range(DEEPEST):  # what is taken out of a bracket can make another whole: ``[code:[code:x]y]``
        if not checked.unknown:
            break
        checked = _check_once(checked.text, known)
        unknown |= dict.fromkeys(checked.unknown)
    if checked.unknown:
        checked = CheckedText(checked.text.replace("[", "("))
    return CheckedText(checked.text, checked.cited, tuple(unknown))


class CheckedStream:
    """Passes a model's text on while it is written, each citation whole and checked.

    What is passed on is the beginning of what ``check_citations`` makes of the whole text. If a later part changes it,
    which takes brackets that are nested too deeply, nothing more is passed on; the whole text is the one that counts.
    """

    def __init__(self, allowed: Collection[tuple[str, str]]) -> None:
        self._allowed = allowed
        self._checked_at = 0
        self._passed = ""
        self.written = ""

    def add(self, piece: str) -> str:
        """Add what the model wrote; return what can be passed on by now."""
        self.written += piece
        # Checking starts at the beginning each time: the longer the text, the more of it has to be new.
        if len(self.written) - self._checked_at <= len(self.written) // RECHECK_SHARE:
            return ""
        self._checked_at = len(self.written)
        checked = check_citations(self.written[: _settled(self.written)], self._allowed)
        # A citation that is taken out takes the blank or bracket before it along.
        return self._pass_on(checked.text.rstrip("( \t\n"))

    def rest(self) -> str:
        """Return what is left to pass on, when the text is complete."""
        return self._pass_on(check_citations(self.written, self._allowed).text)

    def _pass_on(self, checked: str) -> str:
        if not checked.startswith(self._passed):
            return ""
        piece = checked[len(self._passed) :]
        self._passed = checked
        return piece


def _settled(text: str) -> int:
    """Return how much of a text is not inside of a bracket that may still become a citation."""
    opened: list[int] = []
    for bracket in _BRACKET.finditer(text):
        if bracket[0] == "[":
            opened.append(bracket.start())
        elif opened:
            opened.pop()
    held = next((place for place in opened if len(text) - place <= LONGEST_BRACKET), len(text))
    return held - text[:held].endswith("\\")


def _check_once(text: str, known: _KnownCitations) -> CheckedText:
    pieces: list[str] = []
    cited: dict[str, None] = {}
    unknown: dict[str, None] = {}
    end = 0
    for bracket in _BRACKETS.finditer(text):
        parts = [_BracketPart(part, known) for part in _BETWEEN.split(bracket[1].removesuffix("\\"))]
        citations = [citation for part in parts for citation in part.citations]
        if not citations:
            continue
        for written, name in citations:
            if name is None:
                unknown[written] = None
            else:
                cited[name[1]] = None
        remaining = _remaining(parts)
        pieces += (text[end : bracket.start()], remaining)
        end = bracket.end() if remaining else _close_gap(pieces, text, bracket.end())
    return CheckedText("".join((*pieces, text[end:])).strip(), tuple(cited), tuple(unknown))


class _KnownCitations:
    """The citations that may occur, by how models write them."""

    def __init__(self, allowed: Iterable[tuple[str, str]]) -> None:
        self.by_key = {citation_key(domain, chunk_id): (domain, chunk_id) for domain, chunk_id in sorted(allowed)}
        self.own = {key.partition(":")[0] for key in self.by_key}
        foreign = {name.casefold(): name for name in sorted(self.own)}
        self.domains = {**ALIASES, **foreign, **{domain.value: domain.value for domain in Domain}}

    def read(self, text: str) -> tuple[str, tuple[str, str] | None] | None:
        """Return a citation and what it names; ``None`` for words that are no citation."""
        domain, _, chunk_id = text.strip(QUOTES).partition(":")
        domain, chunk_id = domain.strip(), chunk_id.strip()
        full = domain if domain in self.own else self.domains.get(domain.casefold())
        if not chunk_id or (full is None and domain.casefold() != PLACEHOLDER):
            return None
        return f"{domain}:{chunk_id}", self.by_key.get(f"{full}:{chunk_id}") or self._without_domain(domain, chunk_id)

    def _without_domain(self, domain: str, chunk_id: str) -> tuple[str, str] | None:
        """Return what an answer means that took ``[domain:chunk_id]`` literally."""
        if domain.casefold() != PLACEHOLDER:
            return None
        inner = self.read(chunk_id)
        if inner is not None:
            return inner[1]
        meant = [name for key, name in self.by_key.items() if key.partition(":")[2] == chunk_id]
        return meant[0] if len(meant) == 1 else None


class _BracketPart:
    """What stands between two commas of a bracket: words, with or without citations among them."""

    def __init__(self, text: str, known: _KnownCitations) -> None:
        self.words = text.split()
        whole = known.read(text) if len(text.partition(":")[2].split()) == 1 else None
        pairs = [whole] if whole else [known.read(word) for word in self.words]
        self.citations = [pair for pair in pairs if pair is not None]
        self.prose = not self.citations


def _remaining(parts: Sequence[_BracketPart]) -> str:
    """Return what stays of a bracket: known citations, each in its own, and the parts that are none."""
    names = dict.fromkeys(name for part in parts for _, name in part.citations if name is not None)
    prose = ", ".join(" ".join(part.words) for part in parts if part.prose and part.words)
    return " ".join([f"[{citation_key(*name)}]" for name in names] + ([f"[{prose}]"] if prose else []))


def _close_gap(pieces: list[str], text: str, end: int) -> int:
    """Close the gap that a removed bracket leaves before ``text[end:]``; return where the text goes on."""
    before = "".join(pieces[-2:]).rstrip(" \t")
    if before.endswith("(") and text.startswith(")", end):
        before, end = before[:-1].rstrip(" \t"), end + 1
    pieces[-2:] = [before]
    return end
