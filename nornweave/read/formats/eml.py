"""Read e-mail, .eml and .mbox: who wrote to whom, the body (plain text before HTML), attachments that can be read.

A mailbox (RFC 4155, as Thunderbird, Gmail and mail servers export it) is its mails, one after another.
"""

from __future__ import annotations

import email
import email.policy
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from email.message import EmailMessage
from email.utils import getaddresses, parsedate_to_datetime
from typing import Any

from nornweave.core.access import KEY, single_statements
from nornweave.core.errors import DocumentError
from nornweave.core.text.dates import utc
from nornweave.core.text.inline_markup import one_line
from nornweave.core.text.messages import passages
from nornweave.core.types import JsonValue, freeze
from nornweave.read.access_statements import access_metadata
from nornweave.read.formats.html import markdown_of
from nornweave.read.formats.markdown import heading, joined, lowered, plain
from nornweave.read.parsed import Parsed

MAX_DEPTH = 3
"""Of messages in messages."""
MAX_ATTACHMENTS = 50
_SHOWN = ("From", "To", "Cc", "Date", "Subject")
_MAX_HEADER = 2_000
_REPLY = re.compile(r"(?:re|aw|sv|vs|antw|odp)\s?(?:\[\d+\])?:", re.IGNORECASE)


@dataclass(slots=True)
class _Reading:
    """What a message shares with the messages attached to it: the attachments so far, and those left out."""

    read_attachment: Callable[[str, bytes], Parsed]
    attachments: int = 0
    names: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    attached: list[tuple[str, object]] = field(default_factory=list)


def read_eml(raw: bytes, read_attachment: Callable[[str, bytes], Parsed]) -> Parsed:
    """Turn an e-mail into Markdown: its headers, its body, and a section for each readable attachment.

    ``metadata`` has ``authors``, ``recipients``, ``attachments`` (the names of all attachments) and ``left_out``
    (attachments that were not read).

    Args:
        read_attachment: a function that turns the name and the bytes of an attachment into text and metadata. It raises
            ``DocumentError`` if it cannot.

    Raises:
        DocumentError: the bytes are not an e-mail.
    """
    message = _message(raw)
    if not any(name in message for name in ("From", "Subject", "Date", "Received", "Message-ID", "To")):
        raise DocumentError("not an e-mail: it has no From, To, Date or Subject; check what the file really is")
    reading = _Reading(read_attachment)
    text = joined(_blocks(message, reading, depth=0))
    senders, recipients = _people(message, "From"), (*_people(message, "To"), *_people(message, "Cc"))
    metadata: dict[str, JsonValue] = {
        "authors": senders or None,
        "recipients": recipients or None,
        "attachments": tuple(reading.names) or None,
        "left_out": tuple(reading.left_out) or None,
        **_access(message, reading.attached),
    }
    return Parsed(
        text=text, title=_header(message, "Subject") or None, updated_at=_date(message), metadata=freeze(metadata)
    )


def _access(message: EmailMessage, attached: Sequence[tuple[str, object]]) -> Mapping[str, JsonValue]:
    """Return the access statements in the headers and texts of a message and of messages attached to it.

    Statements in hidden text count too.
    """
    parts = [part for part in message.walk() if isinstance(part, EmailMessage)]
    texts = [(_content(part), part.get_content_subtype()) for part in parts if part.get_content_maintype() == "text"]
    # What stands between the parts is shown by no program, and counts.
    texts += [(between, "plain") for part in parts for between in (part.preamble, part.epilogue) if between]
    headers = ((name, str(value)) for part in parts for name, value in part.raw_items())
    return access_metadata(*texts, fields=(*headers, *attached))


class _BoundedHeaders(email.policy.EmailPolicy):
    """A policy that cuts long headers of an e-mail, because the standard library parses them in quadratic time."""

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(sourcelines)
        return name, value[:_MAX_HEADER]


_POLICY: Any = _BoundedHeaders()


def _message(raw: bytes) -> EmailMessage:
    if raw[:2] in {b"\xff\xfe", b"\xfe\xff"}:  # saved as a text by a program of Windows
        raw = raw.decode("utf-16", "replace").encode("utf-8")
    try:
        return email.message_from_bytes(raw, _class=EmailMessage, policy=_POLICY)
    except (ValueError, LookupError, RecursionError) as error:
        raise DocumentError(f"broken e-mail: {error}; export it again") from error


def _header(message: EmailMessage, name: str) -> str:
    """Return the text of a header. If the header is broken, return it unchanged."""
    try:
        value = str(message.get(name) or "")
    # The header parser of the standard library raises these on malformed headers (3.11).
    except (ValueError, IndexError, TypeError, AttributeError, LookupError):
        value = next((str(text) for key, text in message.raw_items() if key.lower() == name.lower()), "")
    return one_line(value.encode("utf-8", "replace").decode("utf-8"))[:_MAX_HEADER]


def _people(message: EmailMessage, name: str) -> tuple[str, ...]:
    people = getaddresses([_header(message, name)])
    return tuple(person for person in (shown or address for shown, address in people) if person)


def _date(message: EmailMessage) -> datetime | None:
    try:
        return utc(parsedate_to_datetime(_header(message, "Date")))
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _blocks(message: EmailMessage, reading: _Reading, *, depth: int) -> Iterator[str]:
    subject = _header(message, "Subject")
    yield heading(1, subject or "E-mail")
    yield "\n".join(f"{name}: {value}  " for name in _SHOWN if (value := _header(message, name)))
    body = _body(message)
    if body is not None:
        yield from _own_text(body, reading, is_reply=_is_reply(message, subject))
    for part in _attachments(message, body):
        yield _attachment(part, reading, depth=depth)


def _body(message: EmailMessage) -> EmailMessage | None:
    found = message.get_body(preferencelist=("plain", "html"))
    if isinstance(found, EmailMessage) and found.get_content_type() == "text/plain" and not _content(found).strip():
        found = message.get_body(preferencelist=("html",)) or found
    return found if isinstance(found, EmailMessage) else None


def _is_reply(message: EmailMessage, subject: str) -> bool:
    return "In-Reply-To" in message or "References" in message or _REPLY.match(subject) is not None


def _own_text(part: EmailMessage, reading: _Reading, *, is_reply: bool) -> Iterator[str]:
    """Yield the sender's text, and forwarded text with its author. If ``is_reply``, quotations are left out."""
    is_html = part.get_content_type() == "text/html"
    quoted = 0
    for passage in passages(_shown(part)):
        text = lowered(passage.text) if is_html else plain(passage.text)
        if passage.author is None:
            yield text
        elif is_reply and not passage.is_forwarded:
            quoted += len(passage.text.split("\n"))
        else:
            yield heading(2, f"Passed on from {passage.author or 'somebody'}")
            yield lowered(text, 2) if is_html else text
    if quoted:
        reading.left_out.append(f"{quoted:,} quoted lines of other mails")


def _shown(part: EmailMessage) -> str:
    """Return the text of a part of a message. HTML is returned as Markdown."""
    content = _content(part)
    if part.get_content_type() == "text/html":
        return markdown_of(content)
    return content.replace("\r\n", "\n").replace("\u200b", "")


def mail_record(raw: bytes) -> dict[str, JsonValue]:
    """Return an e-mail as a message record with ``id``, ``from``, ``date``, ``text`` and ``in_reply_to``.

    Raises:
        DocumentError: the bytes are not an e-mail.
    """
    message = _message(raw)
    subject, body = _header(message, "Subject"), _body(message)
    is_reply = _is_reply(message, subject)
    kept = [
        passage.text if passage.author is None else f"From: {passage.author}\nTo: -\nSubject: -\n{passage.text}"
        for passage in passages(_shown(body) if body is not None else "")
        if not is_reply or passage.author is None or passage.is_forwarded
    ]
    answered = (_header(message, "In-Reply-To") or _header(message, "References")).split()
    return {
        "id": _header(message, "Message-ID").strip("<> ") or None,
        "from": next(iter(_people(message, "From")), ""),
        "date": _header(message, "Date"),
        "text": "\n\n".join([*([] if is_reply else [subject]), *kept]),
        "in_reply_to": answered[-1].strip("<>") if answered else None,
    }


def _content(part: EmailMessage) -> str:
    """Decode a text part.

    If its encoding is unknown, wrong or missing, UTF-8 is used, and invalid bytes are replaced.
    """
    try:
        content = part.get_content() if part.get_content_charset() else part.get_payload(decode=True)
    except (LookupError, ValueError, KeyError, AttributeError, TypeError):
        content = part.get_payload(decode=True)
    return content.decode("utf-8", "replace") if isinstance(content, bytes) else str(content or "")


def _attachments(message: EmailMessage, body: EmailMessage | None) -> Iterator[EmailMessage]:
    """Yield the attachments of a message. A message that is attached counts as one attachment.

    Other versions of the ``body``, such as HTML beside plain text, are left out.
    """
    if message.get_content_type() == "message/rfc822" or not message.is_multipart():
        return
    for part in message.iter_parts():
        if not isinstance(part, EmailMessage) or part is body:
            continue
        if part.get_content_type() == "multipart/alternative":
            continue
        if part.is_multipart() and part.get_content_maintype() == "multipart":
            yield from _attachments(part, body)
        elif message.get_content_type() != "multipart/alternative":
            yield part


def _attachment(part: EmailMessage, reading: _Reading, *, depth: int) -> str:
    name = one_line(part.get_filename() or "") or part.get_content_type()
    reading.attachments += 1
    if reading.attachments > MAX_ATTACHMENTS or depth >= MAX_DEPTH:
        reading.left_out.append(f"attachment {name[:100]}: beyond {MAX_ATTACHMENTS} attachments or {MAX_DEPTH} levels")
        return ""
    reading.names.append(name[:200])
    try:
        text = _attached_text(part, name, reading, depth=depth)
    except DocumentError as error:
        reading.left_out.append(f"attachment {name[:100]}: {error}")
        text = ""
    return joined((heading(2, f"Attachment: {name}"), text or "(not read)"))


def _attached_text(part: EmailMessage, name: str, reading: _Reading, *, depth: int) -> str:
    """Return an attachment as Markdown. ``depth`` is the number of messages around it.

    Raises:
        DocumentError: the attachment has a format that is not supported, or it is broken.
    """
    if part.get_content_type() == "message/rfc822":
        inner = part.get_content()
        return lowered(joined(_blocks(inner, reading, depth=depth + 1)), 2) if isinstance(inner, EmailMessage) else ""
    if part.get_content_maintype() == "text" and not part.get_filename():
        return lowered(_shown(part) if part.get_content_type() == "text/html" else plain(_shown(part)), 2)
    payload = part.get_payload(decode=True)
    parsed = reading.read_attachment(name, payload if isinstance(payload, bytes) else b"")
    stated = single_statements(parsed.metadata.get(KEY))
    reading.attached += ((KEY, value) for value in stated if value is not None)
    return lowered(parsed.text, 2)


MAIL = (".mbox", ".eml")
_FROM_LINE = re.compile(rb"(?:\A|(?<=\n\n)|(?<=\n\r\n))From [^\r\n]*\r?\n(?=[\w-]+:)")
_ESCAPED = re.compile(rb"(?m)^>(>*From )")


def read_mbox(raw: bytes, read_attachment: Callable[[str, bytes], Parsed]) -> Parsed:
    """Turn a mailbox into Markdown. Each mail is written as ``read_eml`` writes it. ``metadata`` covers all mails.

    Raises:
        DocumentError: the mailbox has no mail.
    """
    mails = [read_eml(mail, read_attachment) for mail in _mails(raw)]
    lists: dict[str, list[Any]] = {}
    for mail in mails:
        for key, value in mail.metadata.items():
            known = lists.setdefault(key, [])
            known += [each for each in (value if isinstance(value, tuple) else (value,)) if each not in known]
    return Parsed(
        text=joined(mail.text for mail in mails),
        updated_at=max((mail.updated_at for mail in mails if mail.updated_at), default=None),
        metadata=freeze({key: tuple(values) for key, values in lists.items()}),
    )


def read_mail(raw: bytes) -> list[dict[str, Any]]:
    """Return the mails in a .mbox or .eml file as message records.

    Raises:
        DocumentError: the file has no mail.
    """
    return [mail_record(mail) for mail in _mails(raw)]


def _mails(raw: bytes) -> Iterator[bytes]:
    starts = [match.span() for match in _FROM_LINE.finditer(raw)]
    if not starts:
        yield raw
        return
    if starts[0][0]:
        raise DocumentError("not a mailbox: its first line does not begin with 'From '; export it again")
    for (_, begin), end in zip(starts, [start for start, _ in starts[1:]] + [len(raw)], strict=True):
        yield _ESCAPED.sub(rb"\1", raw[begin:end])
