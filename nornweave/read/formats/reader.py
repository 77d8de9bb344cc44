"""Choose the reader of a format that is turned into Markdown, and translate what its library raises."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import PurePosixPath
from types import MappingProxyType

from nornweave.core.access import KEY
from nornweave.core.errors import DocumentError
from nornweave.core.installation import optional
from nornweave.core.text.decode import decode
from nornweave.core.types import freeze
from nornweave.read.access_statements import access_metadata
from nornweave.read.formats.markdown import plain
from nornweave.read.front_matter import FORMATS
from nornweave.read.parsed import Parsed

_FOLDER = "nornweave.read.formats"
_MODULES: Mapping[str, str] = MappingProxyType({"mbox": "eml", "epub": "archive"})
"""The module of a format, if it has another name than the format."""
_LIBRARIES = ("mammoth", "markdownify", "openpyxl", "python-pptx")

CONVERTED: Mapping[str, str] = MappingProxyType(
    {f".{name}": name for name in ("docx", "pptx", "xlsx", "epub", "ipynb", "eml", "mbox")}
)
"""Formats by file name suffix, lower case with the dot."""


def _library(name: str) -> str:
    """Return the name and the version of a library. If it is not installed, the result says so."""
    try:
        return f"{name}-{version(name)}"
    except PackageNotFoundError:
        return f"no-{name}"


VERSION = ",".join(("formats-9", *map(_library, _LIBRARIES)))

MAX_TEXT = 5_000_000
"""Characters of one document, some 2,500 pages."""


def read_converted(format_: str, raw: bytes) -> Parsed:
    """Turn a file into Markdown. Its format must be one of ``CONVERTED``.

    Raises:
        DocumentError: the file is broken, encrypted, of another format, without text or too large.
    """
    parsed = _read(format_, raw)
    if not parsed.text or parsed.text.isspace():
        raise DocumentError(f"no text: nothing to read in this {format_} file; exclude it")
    if len(parsed.text) > MAX_TEXT:
        raise DocumentError(f"too long: {len(parsed.text):,} characters, at most {MAX_TEXT:,} are read; split the file")
    stated = access_metadata((parsed.text, "markdown")) if KEY not in parsed.metadata else {}
    return replace(parsed, metadata=freeze({**parsed.metadata, **stated}))


def _read(format_: str, raw: bytes) -> Parsed:
    # Loaded when they are needed: the libraries take a second, and most documents need none of them.
    with optional("office", f"{format_} files", DocumentError):
        module = import_module(f"{_FOLDER}.{_MODULES.get(format_, format_)}")
        read: Callable[..., Parsed] = getattr(module, f"read_{format_}")
    try:
        return read(raw, read_attachment) if format_ in {"eml", "mbox"} else read(raw)
    except (DocumentError, MemoryError):
        raise
    except RecursionError as error:
        raise DocumentError(f"broken {format_}: nested too deeply; save it again in its program") from error
    except Exception as error:  # the libraries share no base class and let errors of any class through
        reason = f"{type(error).__name__}: {error}"[:200]
        raise DocumentError(f"broken {format_}: {reason}; open it in its program and save it again") from error


def read_attachment(name: str, raw: bytes) -> Parsed:
    """Turn an attachment into Markdown. The suffix of its name decides the format. Its properties are returned as well.

    Raises:
        DocumentError: the attachment has a format that is not supported, or it is broken.
    """
    suffix = PurePosixPath(name.lower()).suffix
    if suffix in CONVERTED:
        return read_converted(CONVERTED[suffix], raw)
    if suffix == ".pdf":
        from nornweave.read.pdf.document import parse_pdf

        return Parsed(text=plain(parse_pdf(raw).text))
    if suffix and suffix in FORMATS:
        return _text(FORMATS[suffix], raw)
    raise DocumentError("of a format that is not read")


def _text(format_: str, raw: bytes) -> Parsed:
    from nornweave.read.formats.html import markdown_of

    text = decode(raw)
    shown = text if format_ == "markdown" else markdown_of(text) if format_ == "html" else plain(text)
    return Parsed(text=shown, metadata=freeze(access_metadata((text, format_))))
