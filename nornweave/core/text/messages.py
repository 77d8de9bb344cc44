"""The text form of messages in a conversation, for writing and for reading, and the quotations in a message.

Only the first line of a message begins at the margin, with its speaker or a dash. So nothing in the text of a message
can look like the beginning of another one.

A quotation belongs to its author, never to the sender. Quoted are lines that begin with ``>`` outside fenced code, and
what stands below the header of another message: ``From: …``, ``Sent: …``, ``Subject: …``, in any language, as Outlook
and forwarding programs write it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

INDENT = "  "
"""Before the lines on which a message, or the turn of a speaker, goes on."""
NOBODY = "— "
"""Before a message that nobody is known to have said."""
_COLON = ": "
_LINE_START = re.compile(r"\n(?=[^\n])")

_QUOTED = re.compile(r" {0,3}> ?")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
# "On Mon, 13 Oct 2025 at 09:00, Rosa Lima <rosa@example.org> wrote:", "Am 13.10.2025 um 09:00 schrieb Rosa Lima:"
_WROTE = re.compile(r"(?=.{0,300}(?:\d|@)).{4,300}[:：]\s*")
_NO_NAME = re.compile(r"<[^>]*>|\([^)]*@[^)]*\)|\b(?:[AP]M|Uhr|UTC|GMT)\b")
_NAME = re.compile(r"[^\W\d_a-z][\w'’.-]*(?: (?:[^\W\d_a-z][\w'’.-]*|van|von|der|de|da)(?=\W))*")
_HEADER = re.compile(
    r"\s*[*_]{0,2}(?P<key>[^\W\d_][^\W\d_ -]{0,14}(?: ?[^\W\d_]{1,10})?)[*_]{0,2}\s?:[*_]{0,2}\s+(?P<value>\S.*)"
)
_FROM = re.compile(r"from|von|de|da|van|fra|från|od|lähettäjä|от|发件人|寄件者|差出人|보낸 ?사람", re.IGNORECASE)
_RULE = re.compile(r"\s*[-_=—–*]{3,}")
_HEADER_LINES = 3
_SHORT = 80
_FORWARDED = re.compile(
    r"f(?:or)?wd?\b|forward|weitergeleitet|transf[eé]r|reenviad|encaminhad|inoltrat|doorgestuurd|vidarebefordra|转发|轉寄|転送",
    re.IGNORECASE,
)


def line_of(speaker: str, body: str) -> str:
    """Return the text of a message: ``speaker: body``, or ``— body`` if the speaker is unknown."""
    return f"{label_of(speaker)}{indented_body(body)}"


def label_of(speaker: str) -> str:
    """Return the label in front of a message's text: ``speaker: ``, or ``— `` if the speaker is unknown."""
    return f"{speaker}{_COLON}" if speaker else NOBODY


def indented_body(body: str) -> str:
    """Return the text of a message with all lines indented except the first."""
    return _LINE_START.sub(f"\n{INDENT}", body)


def split_line(line: str) -> tuple[str, str]:
    """Split a line into speaker and text. The speaker is empty if unknown or if the line continues a message."""
    speaker, colon, said = line.partition(_COLON)
    return (speaker, said) if colon and not line[:1].isspace() and not line.startswith(NOBODY) else ("", line)


@dataclass(frozen=True, slots=True)
class Passage:
    """Consecutive lines of one author.

    Attributes:
        author: the author of a quotation; empty if unknown; ``None`` if the sender of the message wrote the passage.
        is_forwarded: whether the passage is forwarded. Its text may exist nowhere else.
    """

    text: str
    author: str | None = None
    is_forwarded: bool = False


def passages(text: str) -> tuple[Passage, ...]:
    """Return the passages of a message, the sender's own and quoted ones, in order.

    Lines that announce a quotation are left out.
    """
    if ">" not in text and ":" not in text:
        return (Passage(text),)
    return tuple(passage for passage in _passages(text.split("\n")) if passage.text.strip())


def _passages(lines: Sequence[str]) -> Iterator[Passage]:
    own: list[str] = []
    at, fence = 0, ""
    while at < len(lines):
        line = lines[at]
        opened = _FENCE.match(line)
        if opened and (not fence or opened[1].startswith(fence)):
            fence = "" if fence else opened[1]
        header = None if fence else _header(lines, at)
        if header:
            rule = _strip_rule(own)
            yield Passage("\n".join(own).strip("\n"))
            rest = "\n".join(lines[at + header[1] :]).strip("\n")
            yield Passage(rest, header[0], is_forwarded=bool(_FORWARDED.search(rule)))
            return
        if fence or not _QUOTED.match(line):
            own.append(line)
            at += 1
            continue
        end = at
        while end < len(lines) and _QUOTED.match(lines[end]):
            end += 1
        quoted = [_QUOTED.sub("", each, count=1) for each in lines[at:end]]
        author, is_forwarded = _announced(own)
        yield Passage("\n".join(own).strip("\n"))
        header = _header(quoted, next((place for place, each in enumerate(quoted) if each.strip()), 0))
        if header:
            author, quoted = header[0], quoted[header[1] :]
        yield Passage("\n".join(quoted).strip("\n"), author, is_forwarded)
        own, at = [], end
    yield Passage("\n".join(own).strip("\n"))


def _header(lines: Sequence[str], at: int) -> tuple[str, int] | None:
    """Return the author in the header of a quoted message, and the number of lines of the header.

    Return ``None`` if no header begins at line ``at``.
    """
    first = _HEADER.fullmatch(lines[at]) if at < len(lines) else None
    if first is None or not _FROM.fullmatch(first["key"]):
        return None
    end = at + 1
    while end < len(lines) and _HEADER.fullmatch(lines[end]):
        end += 1
    author = re.sub(r"\s*(?:[<\[(]|mailto:).*", "", first["value"]).strip("*_\"' ")
    return (author or first["value"], end - at) if end - at >= _HEADER_LINES else None


def _strip_rule(own: list[str]) -> str:
    """Remove a last line such as ``-----Original Message-----`` and return it; empty if there is none."""
    _strip_blank(own)
    is_rule = bool(own) and (_RULE.match(own[-1]) or (len(own[-1]) < _SHORT and _FORWARDED.search(own[-1])))
    return own.pop() if is_rule else ""


def _announced(own: list[str]) -> tuple[str, bool]:
    """Remove the last line (or two) that announces a quotation; return its author and whether it is forwarded."""
    _strip_blank(own)
    for count in (1, 2):
        line = " ".join(part.strip() for part in own[-count:])
        if len(own) >= count and _WROTE.fullmatch(line) and not own[-count].rstrip().endswith((".", "!", "?")):
            del own[-count:]
            named = _NAME.search(re.split(r"[\d,]", _NO_NAME.sub("", line))[-1])
            return named[0] if named else "", False
    return "", bool(_FORWARDED.search(_strip_rule(own)))


def _strip_blank(own: list[str]) -> None:
    while own and not own[-1].strip():
        own.pop()
