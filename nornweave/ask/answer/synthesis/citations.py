"""Citations as models write them: the key of each chunk, and the check of an answer's citations."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias
from urllib.parse import quote

from nornweave.ask.answer.escaping import CLOSING, OPENING
from nornweave.ask.answer.synthesis.links import has_address
from nornweave.core.text.legible import IGNORABLE, JOINERS
from nornweave.core.types import Domain, digest

LONGEST_ID = 128
PLACEHOLDER = "domain"
QUOTES = " \t\n`*<>'\""

# Short names that models write for domains.
ALIASES: Mapping[str, str] = MappingProxyType(
    {"doc": "documentation", "docs": "documentation", "convo": "conversations", "conversation": "conversations"}
)

LONGEST_BRACKET = 2000

_ENDS = re.escape(OPENING + CLOSING)
_BRACKETS = re.compile(rf"\\?[{re.escape(OPENING)}]([^{_ENDS}]{{1,{LONGEST_BRACKET}}})[{re.escape(CLOSING)}]")
_UNREAD = re.compile(rf"[\\{IGNORABLE}{JOINERS}]")
_ENDS_A_WORD = re.compile(r"[.,;!?)\]]*(?!\S)")
_BETWEEN = re.compile(r"[,;|]| and | & ")


def citation_key(domain: str, chunk_id: str) -> str:
    """Return the citation of a chunk, without brackets.

    Remote agents choose their ids. Characters that would end a citation are percent-encoded; a long id or an address is
    replaced by its digest.
    """
    written = quote(chunk_id, safe="/#@+=:", errors="replace")
    named = quote(domain, safe="", errors="replace")
    if has_address(f"{named}:{written}"):
        return f"{digest(domain)}:{digest(chunk_id)}"
    return f"{named}:{written if len(written) <= LONGEST_ID else digest(chunk_id)}"


Citation: TypeAlias = tuple[str, tuple[str, str] | None]
"""A citation as it was written, and the domain and the chunk that it names, if they are allowed."""


class Citations:
    """Checks the citations of an answer, part by part. No citation may cross the end of a part.

    A citation is ``domain:chunk_id`` in brackets, alone or among others. Its domain is a value of ``Domain``, a domain
    of ``allowed``, an alias such as ``docs``, or the word ``domain`` before an id that only one chunk has. So ``[1]``,
    ``[note: x]`` and ``[code: 200 OK]`` are no citations. Letter case and blank space matter in the chunk id, but not
    in the domain.

    Attributes:
        unknown: citations of chunks that are not allowed, as written, in order, each once.
    """

    def __init__(self, allowed: Iterable[tuple[str, str]]) -> None:
        self.unknown: dict[str, None] = {}
        self._by_key = {citation_key(domain, chunk_id): (domain, chunk_id) for domain, chunk_id in sorted(allowed)}
        self._own = {key.partition(":")[0] for key in self._by_key}
        foreign = {name.casefold(): name for name in sorted(self._own)}
        self._domains = {**ALIASES, **foreign, **{domain.value: domain.value for domain in Domain}}

    def cited(self, text: str) -> tuple[str, ...]:
        """Return the ids of the chunks that a checked text cites, in order, each once."""
        keys = (bracket[1] for bracket in _BRACKETS.finditer(text))
        return tuple(dict.fromkeys(self._by_key[key][1] for key in keys if key in self._by_key))

    def check(self, text: str) -> str:
        """Return a part of the text with each known citation in its own bracket and without unknown ones.

        Brackets are checked again after a removal, which can complete another one: ``[code:[code:x]y]``.
        """
        pieces: list[str] = []
        end = 0
        for bracket in _BRACKETS.finditer(text):
            # Markdown shows ``\:`` as a colon, and people see a wide one as one.
            content = unicodedata.normalize("NFKC", _UNREAD.sub("", bracket[1]))
            parts = [_BracketPart(part, self.read) for part in _BETWEEN.split(content)]
            citations = [citation for part in parts for citation in part.citations]
            if not citations:
                continue
            self.unknown |= dict.fromkeys(written for written, name in citations if name is None)
            remaining = _remaining(parts)
            pieces += (text[end : bracket.start()], remaining)
            end = bracket.end() if remaining else _close_gap(pieces, text, bracket.end())
        return "".join((*pieces, text[end:]))

    def read(self, text: str) -> Citation | None:
        """Return a citation as written, with its chunk if that is allowed; ``None`` if the text is no citation."""
        domain, _, chunk_id = text.strip(QUOTES).partition(":")
        domain, chunk_id = domain.strip(f"{QUOTES}_"), chunk_id.strip()
        full = domain if domain in self._own else self._domains.get(domain.casefold())
        if not chunk_id or (full is None and domain.casefold() != PLACEHOLDER):
            return None
        return f"{domain}:{chunk_id}", self._by_key.get(f"{full}:{chunk_id}") or self._without_domain(domain, chunk_id)

    def _without_domain(self, domain: str, chunk_id: str) -> tuple[str, str] | None:
        """Return the chunk of a citation with the word ``domain`` for a domain; ``None`` if not just one has the id."""
        if domain.casefold() != PLACEHOLDER:
            return None
        inner = self.read(chunk_id)
        if inner is not None:
            return inner[1]
        meant = [name for key, name in self._by_key.items() if key.partition(":")[2] == chunk_id]
        return meant[0] if len(meant) == 1 else None


class _BracketPart:
    """The text between two commas of a bracket: words, with or without citations."""

    def __init__(self, text: str, read: Callable[[str], Citation | None]) -> None:
        self.words = text.split()
        whole = read(text) if len(text.partition(":")[2].split()) == 1 else None
        pairs = [whole] if whole else [read(word) for word in self.words]
        self.citations = [pair for pair in pairs if pair is not None]
        self.prose = not self.citations


def _remaining(parts: Sequence[_BracketPart]) -> str:
    """Return the rest of a bracket: known citations, each in its own bracket, and the parts that are plain words."""
    names = dict.fromkeys(name for part in parts for _, name in part.citations if name is not None)
    prose = ", ".join(" ".join(part.words) for part in parts if part.prose and part.words)
    return " ".join([f"[{citation_key(*name)}]" for name in names] + ([f"[{prose}]"] if prose else []))


def _close_gap(pieces: list[str], text: str, end: int) -> int:
    """Close the gap that a removed bracket left before ``text[end:]``; return the offset where the text continues.

    Parentheses that enclosed only the bracket are removed. Words before and after the bracket are not joined, because
    together they could be an address.
    """
    before = "".join(pieces[-2:])
    if before.rstrip(" \t").endswith("(") and text.startswith(")", end):
        before, end = before.rstrip(" \t")[:-1], end + 1
    pieces[-2:] = [before.rstrip(" \t") if _ENDS_A_WORD.match(text, end) else before]
    return end
