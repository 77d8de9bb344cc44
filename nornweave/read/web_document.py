"""A page of a website as it is kept, and the document that it becomes."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from nornweave.core.errors import DocumentError
from nornweave.core.text.decode import decode
from nornweave.core.types import Document, Domain, Entry, SourceId
from nornweave.read.file import assemble, parse_version
from nornweave.read.front_matter import describe
from nornweave.read.isolated import metadata_from
from nornweave.read.parsed import Parsed
from nornweave.read.pdf.document import parse_pdf
from nornweave.read.web_page import VERSION as PAGE_VERSION

# Raise it when the same page comes out as another document.
_VERSION = "web-1"


def document_version() -> str:
    """Return what changes when the same page may come out as another document."""
    return f"{_VERSION},{PAGE_VERSION},{parse_version()}"


def write_page(body: Mapping[str, Any], changed_at: str | None) -> bytes:
    """Return a stored page as bytes: one line of JSON with what is known of it, then its content."""
    known = {key: body.get(key) for key in ("url", "format", "title", "metadata")}
    content = base64.b64decode(body["raw"]) if "raw" in body else str(body["content"]).encode("utf-8", "replace")
    line = json.dumps({**known, "updated_at": changed_at}, sort_keys=True)
    return line.encode() + b"\n" + content


def web_document(source_id: SourceId, entry: Entry, raw: bytes, *, domain: Domain) -> Document:
    """Build the document of a page.

    Raises:
        DocumentError: its content is broken or empty.
    """
    line, _, content = raw.partition(b"\n")
    try:
        known = json.loads(line)
        kind, address = str(known["format"]), str(known["url"])
    except (ValueError, KeyError, TypeError) as error:
        raise DocumentError(f"a stored page of another form ({error!r}); sync again") from error
    parsed = _parsed(kind, content)
    stated = known.get("updated_at")
    parsed = replace(
        parsed,
        title=known.get("title") or parsed.title,
        url=address,
        updated_at=parsed.updated_at or (datetime.fromisoformat(stated) if stated else None),
        metadata=metadata_from(known.get("metadata") or dict(parsed.metadata)),
    )
    return assemble(source_id, domain, entry, raw, parsed, kind, is_dated=False)


def _parsed(kind: str, content: bytes) -> Parsed:
    if kind == "pdf":
        return parse_pdf(content)
    text = decode(content)
    return Parsed(text=text) if kind == "html" else describe(text, kind)
