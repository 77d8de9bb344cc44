"""Read the title, dates, authors and more from front matter, docinfo fields and the head of HTML."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from types import MappingProxyType

import yaml

from nornweave.core.access import VALUE_NOTICE
from nornweave.core.files.yaml_files import load_plain_yaml
from nornweave.core.text.dates import iso_moment, utc
from nornweave.core.text.inline_markup import front_matter, one_line, plain_line, without_long_references
from nornweave.core.text.terminal import field_key
from nornweave.core.types import JsonValue, freeze
from nornweave.read.access_statements import access_metadata
from nornweave.read.blocks.man import pod_title_of, title_of
from nornweave.read.blocks.reader import read_blocks
from nornweave.read.parsed import Parsed

FORMATS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys((".md", ".markdown", ".mdown", ".mdx", ".qmd", ".scd"), "markdown"),
        **dict.fromkeys((".adoc", ".asciidoc"), "asciidoc"),
        ".org": "org",
        ".pod": "pod",
        ".rst": "rst",
        **dict.fromkeys((".txt", ".text", ""), "text"),
        **dict.fromkeys((".html", ".htm", ".xhtml"), "html"),
    }
)
"""Format by file name suffix, lower case with the dot; files without one (README, LICENSE) are plain text."""

# Everything that describes a document stands at its head.
_HEAD = 65_536
_VALUE_BOUND = 500
_LIST_BOUND = 200
_TITLES = ("title", "citation_title", "og:title")
_UPDATED = ("updated", "last_modified", "lastmod", "last_updated", "modified_time", "date_modified", "revised")
_PUBLISHED = ("publication_date", "published", "published_time", "citation_publication_date", "citation_date", "date")
_URLS = ("canonical", "url", "permalink", "og:url")
_AUTHORS = ("authors", "author", "citation_author", "dc_creator")
_YES, _NO = ("true", "yes", "1"), ("false", "no", "0")
_NOT_PUBLISHED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"draft": _YES, "unlisted": _YES, "published": _NO, "status": ("draft",)}
)
"""Values by which generators of sites (Hugo, Jekyll, Docusaurus, Pelican) keep a page back."""
_TAGS = ("tags", "keywords", "categories")
_DATE_FORMATS = ("%Y/%m/%d", "%Y/%m", "%Y-%m", "%Y", "%d %B %Y", "%B %d, %Y", "%d %b %Y", "%b %d, %Y", "%d.%m.%Y")
_RST_FIELD = re.compile(r":([A-Za-z][\w ._-]{0,60}):[ \t]+([^\n]{1,2000})")
_ORG_FIELD = re.compile(r"^#\+(\w+):[ \t]+(\S.{0,1000})$", re.MULTILINE)
_MAN_DATE = re.compile(r"^[.'](?:Dd[ \t]+(\S.*)|TH[ \t]+\S+[ \t]+\S+[ \t]+(\"[^\"\n]*\"|\S+))", re.MULTILINE)
_RST_DATE = re.compile(r"\$\w+:([^$]*)\$")
_LEADING_HTML = re.compile(r"<h1\b[^<>]*>(.{1,1000}?)</h1\s*>", re.I | re.S)

_VERSION = re.compile(r"\W{0,3}(?:(?:version|release|ver\.?)\s+)?v?\d+[.-]\d", re.IGNORECASE)

MAX_FIELDS = 200
"""Of one mapping that a head states, and members of one list."""
MAX_CHARACTERS = 1_024
MAX_DEPTH = 5
_LARGEST = 2**63 - 1


def describe(text: str, format: str) -> Parsed:  # noqa: A002 - the word of ``Document.format``
    """Read the title, dates and other fields at the head of a text. A broken header counts as text.

    The keys of ``metadata`` are, if the text states them: ``authors``, ``tags``, ``publication_date`` (ISO), ``doi``,
    ``venue``, ``citation_count``, ``source_type`` and ``access``. ``access_notice`` has the part of an access statement
    that is not understood. ``front_matter`` has every field as it is written. A date without a zone is taken as UTC.

    Args:
        format: a format of ``read.blocks``. Any other format is plain text, from which only access statements are read.
    """
    readers = {"asciidoc": _rst_fields, "html": _html_fields, "man": _man_fields, "markdown": _markdown_fields,
               "org": _org_fields, "pod": _pod_fields, "rst": _rst_fields}  # fmt: skip
    access = access_metadata((text, format))
    if format not in readers:
        return Parsed(text=text, metadata=freeze(access))
    fields = readers[format](text)
    published = _first_date(fields, _PUBLISHED)
    return Parsed(
        text=text,
        title=_first_text(fields, _TITLES) or first_heading(text, format),
        updated_at=_first_date(fields, _UPDATED) or published,
        url=_first_text(fields, _URLS),
        metadata=freeze(
            {
                "authors": _names(fields, _AUTHORS),
                "tags": _names(fields, _TAGS),
                "publication_date": published.date().isoformat() if published else None,
                "doi": _first_text(fields, ("doi", "citation_doi")),
                "venue": _first_text(
                    fields, ("venue", "journal", "citation_journal_title", "citation_conference_title")
                ),
                "citation_count": _count(fields.get("citation_count")),
                "source_type": _first_text(fields, ("source_type",)),
                **access,
                VALUE_NOTICE: _undated(fields),
                "front_matter": plain_fields(fields) or None,
            }
        ),
    )


def _markdown_fields(text: str) -> dict[str, object]:
    front = front_matter(text)
    try:
        loaded = _LOADERS[front.form](front.head) if front.form else None
    except (yaml.YAMLError, tomllib.TOMLDecodeError, ValueError, RecursionError):
        return {}
    if not isinstance(loaded, dict):
        return {}
    return {field_key(str(key)): value for key, value in loaded.items()}


def _pairs(head: str) -> dict[str, object]:
    """Read lines of ``Key: value``. An indented line continues the line above."""
    fields: dict[str, object] = {}
    for pair in re.finditer(r"^(\S[^:\n]*):[ \t]*(.*(?:\n[ \t]+.*)*)", head, re.MULTILINE):
        fields.setdefault(pair[1], one_line(pair[2]))
    return fields


_LOADERS: Mapping[str, Callable[[str], object]] = MappingProxyType(
    {
        "yaml": load_plain_yaml,
        "toml": tomllib.loads,
        "json": lambda head: json.loads(head if head.lstrip().startswith("{") else f"{{{head}}}"),
        "pairs": _pairs,
    }
)


def _rst_fields(text: str) -> dict[str, object]:
    fields: dict[str, object] = {}
    for line in text[:_HEAD].splitlines()[:100]:
        if field := _RST_FIELD.match(line):
            value = _RST_DATE.sub(r"\1", field[2]).strip()
            fields.setdefault(
                field_key(field[1]), re.split(r"\s*;\s*", value) if field[1].lower() == "authors" else value
            )
    return fields


def _org_fields(text: str) -> dict[str, object]:
    return {field_key(key): one_line(value) for key, value in reversed(_ORG_FIELD.findall(text[:_HEAD]))}


def _man_fields(text: str) -> dict[str, object]:
    said = _MAN_DATE.search(text[:_HEAD])
    date = one_line(said[1] or said[2]).strip('"') if said else ""
    return {"title": title_of(text), **({"date": date} if _moment(date) else {})}


def _pod_fields(text: str) -> dict[str, object]:
    return {"title": pod_title_of(text)}


def _html_fields(text: str) -> dict[str, object]:
    fields: dict[str, object] = {}
    for name, value in _html_pairs(_html_head(text)):
        known = fields.get(name)
        if name == "citation_author" and isinstance(known, list):
            known.append(value)
        elif known is None:
            fields[name] = [value] if name == "citation_author" else value
    if isinstance(fields.get("keywords"), str):
        fields["keywords"] = str(fields["keywords"]).split(",")
    return fields


def _html_head(text: str) -> str:
    head = without_long_references(text[:_HEAD])
    end = re.search(r"</head|<body", head, re.I)
    head = head[: end.start()] if end else head
    # The parser takes quadratic time over what ends nowhere.
    unclosed = head.count("<", head.rfind(">") + 1) + head.count("<!--", head.rfind("-->") + 1)
    return head if unclosed < 50 and len(re.findall("<title", head, re.I)) < 50 else ""


def _html_pairs(head: str) -> Iterator[tuple[str, str]]:
    from bs4 import BeautifulSoup  # a fifth of what a reading process would load for Markdown, too
    from bs4.exceptions import ParserRejectedMarkup
    from bs4.filter import SoupStrainer

    try:
        soup = BeautifulSoup(head, "html.parser", parse_only=SoupStrainer(["title", "meta", "link"]))
    except (ParserRejectedMarkup, RecursionError):
        return
    for tag in soup.find_all(["title", "meta", "link"]):
        if tag.name == "title":
            yield "title", tag.get_text()
        elif tag.name == "link" and "canonical" in str(tag.get("rel", "")):
            yield "canonical", str(tag.get("href") or "")
        elif tag.name == "meta":
            name = str(tag.get("name") or tag.get("property") or "")
            yield field_key(name.removeprefix("article:")), str(tag.get("content") or "")


def _first_text(fields: Mapping[str, object], keys: tuple[str, ...]) -> str | None:
    for key in keys:
        value = fields.get(key)
        if isinstance(value, str | int | float) and not isinstance(value, bool) and (text := _text(value)):
            return text
    return None


def _text(value: object) -> str:
    return one_line(str(value)[:_VALUE_BOUND])


def _names(fields: Mapping[str, object], keys: tuple[str, ...]) -> tuple[JsonValue, ...] | None:
    """Return the values of the first list field with one of the keys; ``None`` if all are missing or empty.

    A text is divided at its commas. A text of authors is divided at ``and`` and semicolons, because names have commas.
    """
    for key in keys:
        value = fields.get(key)
        if isinstance(value, str):
            value = value.split(",") if keys is _TAGS else re.split(r"\s+and\s+|;", value)
        if isinstance(value, list):
            names = tuple(name for name in map(_name, value[:_LIST_BOUND]) if name)
            if names:
                return names
    return None


def _name(value: object) -> str:
    if isinstance(value, dict):
        value = value.get("name", "")
    return _text(value) if isinstance(value, str | int | float) else ""


def _count(value: object) -> int | None:
    try:
        return int(value) if isinstance(value, int | str) and not isinstance(value, bool) else None
    except ValueError:
        return None


def _first_date(fields: Mapping[str, object], keys: tuple[str, ...]) -> datetime | None:
    return next((moment for key in keys if (moment := _moment(fields.get(key)))), None)


def _undated(fields: Mapping[str, object]) -> str | None:
    """Return a message about the date fields that have no valid date; ``None`` if all dates are valid."""
    stated = ((key, fields.get(key)) for key in (*_UPDATED, *_PUBLISHED))
    wrong = [f"{key}: {_text(value)!r} is not a date" for key, value in stated if value and _moment(value) is None]
    return "; ".join(wrong) or None


def _moment(value: object) -> datetime | None:
    if isinstance(value, datetime):
        return iso_moment(value.isoformat())
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, int) and not isinstance(value, bool) and 1000 <= value <= 9999:
        return datetime(value, 1, 1, tzinfo=UTC)
    return _parsed_moment(_text(value)) if isinstance(value, str) else None


def _parsed_moment(text: str) -> datetime | None:
    for parse in (datetime.fromisoformat, _in_known_format, parsedate_to_datetime):
        try:
            return utc(parse(text))
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
    return None


def _in_known_format(text: str) -> datetime:
    for form in _DATE_FORMATS:
        try:
            return datetime.strptime(text, form).replace(tzinfo=UTC)
        except ValueError:
            continue
    raise ValueError(text)


def first_heading(text: str, format: str) -> str | None:  # noqa: A002
    """Return the title of a text, which is its first heading; ``None`` if there is no title.

    The first heading is not the title if it only begins one of several equal sections. For a heading below the first
    level this is the case if another heading of the same level follows. For a heading of the first level this is the
    case only if the heading is a version: ``# 2.1.0`` above ``# 2.0.9``.
    """
    head = text[:_HEAD]
    if format == "html":
        found = _LEADING_HTML.search(without_long_references(head))
        return (plain_line(found[1].strip()) or None) if found else None
    headings = [block for block in read_blocks(head, format).blocks if block.kind == "heading"]
    if not headings:
        return None
    first = headings[0]
    following = next((block.level for block in headings[1:] if block.level <= first.level), 0)
    is_section = following == first.level and (first.level > 1 or _VERSION.match(first.info))
    return None if is_section else first.info


def draft_mark(described: Parsed) -> str | None:
    """Return the field that marks a page as unpublished, such as ``draft: true``; ``None`` without such a field."""
    fields = described.metadata.get("front_matter")
    for key, value in fields.items() if isinstance(fields, Mapping) else ():
        if str(value).strip().lower() in _NOT_PUBLISHED.get(key, ()):
            return f"{key}: {str(value).lower()}"
    return None


def plain_fields(fields: Mapping[str, object], depth: int = MAX_DEPTH) -> dict[str, JsonValue]:
    """Return fields as JSON, with dates as ISO 8601.

    Fields that are nested too deeply, too long or too many are cut.
    """
    plain = ((field_key(str(name)[:MAX_CHARACTERS]), _plain(value, depth)) for name, value in fields.items())
    return dict([(name, value) for name, value in plain if name and value is not None][:MAX_FIELDS])


def _plain(value: object, depth: int) -> JsonValue:
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, date):  # a datetime is one
        return value.isoformat()
    if isinstance(value, int):
        return value if abs(value) <= _LARGEST else str(value)[:MAX_CHARACTERS]
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return plain_fields(value, depth - 1) if depth > 1 else None
    if isinstance(value, list | tuple):
        return [_plain(member, depth - 1) for member in value[:MAX_FIELDS]] if depth > 1 else None
    return str(value)[:MAX_CHARACTERS].encode("utf-8", "replace").decode("utf-8")
