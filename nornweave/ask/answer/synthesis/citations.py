"""Citations as models write them, and links in a model's text.

The key of each chunk is made here, and an answer's citations are checked. All links and images are removed except links
to the given passages. A chat client loads an image without being asked, so its address can send data to an attacker.
Clients read Markdown and HTML each in their own way, so nothing is parsed here, not even code: the signs that every
reader needs for a link or an image are broken by one blank (``](``, ``]:``, ``![``, ``<a``), and plain addresses are
removed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias
from urllib.parse import quote

from nornweave.ask.answer.escaping import CLOSING, OPENING
from nornweave.core.text.terminal import IGNORABLE, JOINERS
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

LEFT_OUT = "(link left out)"

# GFM 6.9 links what begins so, wherever it stands; some readers do after they have resolved backslashes, or without a
# scheme. An address ends at a blank, `<`, a bracket or a sign that is not ASCII.
_ADDRESS = re.compile(
    r"([a-z][a-z0-9+.-]{0,31}\\*:(?:\\*/){2}(?=\S)|(?<![a-z0-9])www\\*\.(?=\S)|//(?=localhost|[^\s/]{1,64}\.\S))"
    r"((?:[!-;=-Z\\^-~]|\w)*)(?=(\S{0,8}))",
    re.IGNORECASE,
)
_AFTER_AN_ADDRESS = ">.,;:!?)]}'\"*_`|~"
_IMAGE = r"(?<=!)(?=\[)|(?<=<)(?=[A-Za-z/!?])"
_MAIL = r"(?<=[^\s@])(?=@[^\s@])"
_PLAIN = re.compile(r"https?://[^\s<>()\[\]\\\"'`|]+")


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


def has_address(text: str) -> bool:
    """Tell whether a Markdown reader could make a link of a text without blanks and brackets."""
    return bool(_ADDRESS.search(text) or re.search(_MAIL, text))


def without_images(text: str) -> str:
    """Return the text of documents so that a Markdown reader loads no images; links stay."""
    return re.sub(_IMAGE, " ", text)


class Links:
    """Removes links and images from a text, part by part. A part ends before a blank.

    Attributes:
        left_out: how many addresses were removed so far.
    """

    def __init__(self, urls: Collection[str], shown: str) -> None:
        self._urls = frozenset(filter(_PLAIN.fullmatch, urls))
        self._shown = shown
        own = "|".join(map(re.escape, sorted(self._urls))) or r"\b\B"
        self._gaps = re.compile(rf"{_IMAGE}|(?<=\])(?=:|\((?!(?:{own})\)))|{_MAIL}")
        self.left_out = 0

    def take_out(self, text: str) -> str:
        """Return a part of the text without links and images.

        An address of a passage stays a link. An address in the model's input stays as text, with a blank
        before its host. Any other address is replaced by ``LEFT_OUT``.
        """
        without = _ADDRESS.sub(self._keep_allowed, text).replace(f"({LEFT_OUT})", LEFT_OUT)
        return self._gaps.sub(" ", without)

    def _keep_allowed(self, found: re.Match[str]) -> str:
        address = found[0].rstrip(_AFTER_AN_ADDRESS)
        after = found[0][len(address) :]
        if address in self._urls:
            return (
                f"{found[0]} " if found[3].strip(_AFTER_AN_ADDRESS) else found[0]
            )  # a reader may go on to the next blank
        if address in self._shown:
            return f"{found[1]} {_ADDRESS.sub(self._keep_allowed, found[2])}"
        self.left_out += 1
        return LEFT_OUT + after
