"""Parse the bytes of one file into a ``Document``, by its domain and suffix."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from nornweave.core.access import KEY
from nornweave.core.errors import DocumentSkipped
from nornweave.core.text.decode import ENCODING, check_size, decode
from nornweave.core.types import ContentHash, Document, Domain, Entry, JsonValue, SourceId, digest, document_id, freeze
from nornweave.read.blocks.man import is_called_manual, is_man, is_pod
from nornweave.read.blocks.reader import shown_text
from nornweave.read.chunking.languages import PAGES, PROGRAMS, is_program_page, is_template_page
from nornweave.read.formats.reader import CONVERTED, read_converted
from nornweave.read.formats.reader import VERSION as CONVERTED_VERSION
from nornweave.read.front_matter import FORMATS, describe, draft_mark
from nornweave.read.holders import FOREIGN
from nornweave.read.kinds import (
    DATA_SUFFIXES,
    TEMPLATES,
    format_of,
    holds_code,
    is_licence_name,
    is_test_data,
    is_unknown,
    suffix_of,
)
from nornweave.read.parsed import Parsed
from nornweave.read.pdf.document import VERSION as PDF_VERSION
from nornweave.read.pdf.document import parse_pdf
from nornweave.read.pdf.document import version as ocr_version
from nornweave.read.pdf.port import library_version
from nornweave.read.worth import (
    PROSE_SHARE,
    is_bundled,
    is_empty_page,
    is_generated,
    is_json,
    is_licence,
    is_lock,
    is_measured,
    is_note,
    is_pasted_data,
    is_written_again,
    licence_span,
    minified_line,
    prose_share,
    speaks_of_rights,
    states_tool,
)

# Raise it when the same bytes come out as another document.
_VERSION = "documents-35"

# What ``Entry.metadata`` says about fields that documents have of their own.
_FIELDS = frozenset({"title", "url", "updated_at", "revision", FOREIGN})
_PDF, _ZIP = b"%PDF-", b"PK\x03\x04"
_LICENCE_NAME = re.compile(r"(?:un)?licen[sc]e|copying|notice|copyright|eula|patents|.*-notice\.", re.IGNORECASE)
_OF_NOTES = re.compile(
    r"(?:^|/)(?:news|changes|changelog|(?:release|change)[-_]?notes|newsfragments)(?:\.d)?/", re.IGNORECASE
)
"""Folders in which each change is a file of its own, of a line."""
_DATA = DATA_SUFFIXES | {".toml", ".hcl", ".txt"}
_COMPILED = frozenset({"javascript", "css"})
_OF_TEXT = frozenset({".ipynb", ".eml", ".mbox"})
LFS_POINTER = b"version https://git-lfs.github.com/spec/v1\n"


def parse_version() -> str:
    """Return a version that changes whenever the same bytes may become another document."""
    return ",".join((_VERSION, CONVERTED_VERSION, PDF_VERSION, library_version(), ocr_version()))


def read_document(
    source_id: SourceId,
    entry: Entry,
    raw: bytes,
    *,
    domain: Domain,
    is_dated: bool = False,
    is_handed_in: bool = False,
    is_asked_for: bool = False,
) -> Document:
    """Parse a file. Its domain, suffix and content decide how.

    Args:
        is_dated: whether ``entry.updated_at`` was stated by a commit, a sidecar or a client. A stated date is preferred
            to the document's own date. A modification time is not stated, and is used only if the document has no date.
        is_handed_in: whether somebody sent the file on purpose. If the suffix is that of a PDF or an office document
            but the bytes are not, the file is taken as the text of such a document.
        is_asked_for: whether somebody named the file. Generated, minified, licence and data files are then read, as for
            sent files.

    Raises:
        DocumentSkipped: the file is not worth reading, or it is a Git LFS pointer in place of the file. The message has
            a label and an explanation.
        DocumentError: the file is too large, binary, empty or broken.
    """
    check_size(len(raw))
    if raw.startswith(LFS_POINTER):
        raise DocumentSkipped("Git LFS pointer in place of the file; run 'git lfs pull' and use a source of type files")
    if domain is Domain.CODE:
        if not raw.removeprefix(b"\xef\xbb\xbf").strip():
            raise DocumentSkipped("empty")
        if is_unknown(entry.path) and b"\0" in raw and not (is_handed_in or is_asked_for):
            raise DocumentSkipped(f"binary: {PurePosixPath(entry.path.lower()).suffix}")
        parsed, format_ = Parsed(text=decode(raw, _text(entry.metadata.get(ENCODING)) or "")), None
    else:
        parsed, format_ = _prose(entry, raw, is_text=is_handed_in)
    if format_ is None:
        text, format_ = parsed.text, format_of(entry.path, parsed.text, domain)
        if not (is_handed_in or is_asked_for) and (reason := _not_worth_reading(entry, text, domain, format_)):
            raise DocumentSkipped(reason)
        format_ = format_ or "text"
        parsed = parsed if domain is Domain.CODE else describe(text, format_)
        if domain is Domain.DOCUMENTATION and not (is_handed_in or is_asked_for) and (mark := draft_mark(parsed)):
            raise DocumentSkipped(f"draft: its head says {mark}; name it in include to read it")
    return assemble(source_id, domain, entry, raw, parsed, format_, is_dated=is_dated)


def assemble(
    source_id: SourceId, domain: Domain, entry: Entry, raw: bytes, parsed: Parsed, format_: str, *, is_dated: bool
) -> Document:
    """Build a document from the parsed values and those of the source.

    If both have a value, the value of the source is used, except for front matter and access statements. The date of
    the source is preferred only if ``is_dated``.
    """
    known = entry.metadata
    own = {key: value for key, value in known.items() if key not in _FIELDS}
    # What stands at the head of the document is for the document to say.
    own |= {key: value for key, value in parsed.metadata.items() if key == "front_matter"}
    dates = (entry.updated_at, parsed.updated_at) if is_dated else (parsed.updated_at, entry.updated_at)
    return Document(
        id=document_id(source_id, entry.path),
        domain=domain,
        source_id=source_id,
        path=entry.path,
        text=parsed.text,
        format=format_,
        content_hash=ContentHash(digest(raw)),
        title=_text(known.get("title")) or parsed.title,
        updated_at=dates[0] or dates[1],
        revision=entry.revision,
        url=_text(known.get("url")) or parsed.url,
        # The document's own statement of who may see it stays: what the source says of it counts as well.
        metadata=freeze({**parsed.metadata, **own, KEY: parsed.metadata.get(KEY, own.get(KEY))}),
        sections=parsed.sections,
        page_starts=parsed.page_starts,
    )


def _not_worth_reading(  # noqa: C901 - one reason after another
    entry: Entry, text: str, domain: Domain, format_: str | None
) -> str | None:
    """Return why a text is left out because of its content, as a label and an explanation; ``None`` if it is read."""
    path = entry.path
    name, suffix = PurePosixPath(path).name, suffix_of(path)
    if domain is not Domain.CODE and format_ is None:
        is_page = is_called_manual(name)
        return f"{suffix}: not a manual page" if is_page else "code: its first line names a language"
    if domain is Domain.CODE:
        if is_called_manual(name) and (is_man(text) or is_pod(text)):
            return "manual page: documentation, not code"
        if format_ is None and is_licence_name(name):
            return "licence: a text of the law"
        if format_ is None and suffix in PAGES:
            return f"{suffix}: a page to read, not code"
        if format_ is None and not (is_unknown(path) and holds_code(text)):
            hint = f'; add "**/*{suffix}" to include to read it' if suffix else ""
            return f"{suffix or 'no language'}: neither its name nor what it holds says a language of code{hint}"
        if suffix not in TEMPLATES and is_generated(text):  # a template says it of what it writes
            return "generated: a comment at its head says so"
        if format_ in _COMPILED and is_bundled(text):
            return "compiled: its source map, or what a bundler begins with, says so"
        if vendored := _vendored(entry):
            return vendored
        if is_test_data(path, text):
            return "test data: what tests are given, compare with or put in the place of code, no test itself"
        if suffix in _DATA and (is_lock(text) or states_tool(text)):
            return "written by a tool: digests, a tool as the author, a baseline, or a schema that a build recorded"
        if suffix in _DATA and is_measured(text):
            return "data: numbers that a program measured"
        if format_ in PROGRAMS and is_json(text):
            return "data: JSON under the name of a program"
        if format_ in PROGRAMS and is_pasted_data(text):
            return "data: a literal in a program, with next to nothing else"
        if length := minified_line(text):
            return f"minified: lines of {length:,} characters"
        licence = licence_span(text)
        return None if (text[: licence.start] + text[licence.end :]).strip() else "empty: a licence and nothing else"
    if domain is not Domain.DOCUMENTATION:
        return None
    if vendored := _vendored(entry):
        return vendored
    if is_written_again(text):
        return "generated: it says that a tool writes it again"
    if speaks_of_rights(text) and is_licence(
        shown_text(text, format_ or ""), is_named_so=bool(_LICENCE_NAME.match(name))
    ):
        return "licence: a text of the law"
    if format_ == "html" and is_template_page(text, path):
        return "template: a program makes pages of it; a source of code reads it"
    if format_ == "html" and is_empty_page(text):
        return "no text: a page that a program fills; a source of code reads it"
    if format_ == "html" and is_program_page(text):
        return (
            f"example: {len(text.splitlines())} lines, nearly all of them script and style; a source of code reads it"
        )
    if (
        FORMATS.get(suffix) != "text"
        or name.lower().startswith("readme")
        or ((suffix or _OF_NOTES.search(path)) and is_note(text))
    ):
        return None
    share = prose_share(text)
    # A name without a suffix promises nothing.
    promised = suffix or format_ != "text"
    if not (suffix and format_ != "text") and share < (PROSE_SHARE if promised else 2 * PROSE_SHARE):
        return f"data: {share:.0%} of it stands in sentences"
    return None


def _vendored(entry: Entry) -> str | None:
    if holder := _text(entry.metadata.get(FOREIGN)):
        said = f"of {holder} and not of this project, as its head says, its folder or the licence there"
        return f"vendored: {said}; name it in include to read it"
    return None


def _prose(entry: Entry, raw: bytes, *, is_text: bool) -> tuple[Parsed, str | None]:
    """Read a document that is not code. The second value is its format; ``None`` if the text decides the format.

    If ``is_text``, the bytes may be text although the suffix is that of a PDF or an office document.
    """
    suffix = PurePosixPath(entry.path.lower()).suffix
    if suffix == ".pdf" and (not is_text or raw.startswith(_PDF)):
        return parse_pdf(raw), "pdf"
    if suffix in CONVERTED and (suffix in _OF_TEXT or not is_text or raw.startswith(_ZIP)):
        return read_converted(CONVERTED[suffix], raw), CONVERTED[suffix]
    return Parsed(text=decode(raw, _text(entry.metadata.get(ENCODING)) or "")), None


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) and value else None
