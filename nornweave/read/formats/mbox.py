"""Read .mbox (RFC 4155, as Thunderbird, Gmail and mail servers export it): its mails, one after another."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from nornweave.core.errors import DocumentError
from nornweave.core.types import freeze
from nornweave.read.formats.eml import mail_record, read_eml
from nornweave.read.formats.markdown import joined
from nornweave.read.parsed import Parsed

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
