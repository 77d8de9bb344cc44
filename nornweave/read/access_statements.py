"""Access statements in a text: who may see it.

All statements must be met. A part that could be a statement and is not understood hides the text from everybody. So the
text is read in this order, in every format: *headers* (YAML, TOML or JSON, between fences or in braces) and
further places of the format (fields of RST, ``<meta>``) are read; then no other line, outside of code,
may begin with the word as a key. So if a format's reader misses a statement, this last check finds it. A line that goes
on as a sentence (``- **Access**: by badge, day and night.``), or is indented as code is, hides only where access is
configured.
Every pass is linear in the length of the text.
"""

from __future__ import annotations

import json
import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

import yaml

from nornweave.core.access import ACCESS_NOTICE, KEY, UNCONFIGURED, every_of
from nornweave.core.files.yaml_files import Pairs, load_pairs
from nornweave.core.text.function_words import FUNCTION_WORDS
from nornweave.core.text.inline_markup import closing_fence, unescaped
from nornweave.core.text.terminal import LINE_ENDS
from nornweave.core.types import JsonValue

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_JSON = json.JSONDecoder(object_pairs_hook=Pairs)
_BROKEN = (yaml.YAMLError, ValueError, RecursionError)

HIDDEN: JsonValue = ()
"""The statement that nobody meets."""

# Characters that nobody sees, and what stands for a byte order mark that was read in another encoding.
_UNSEEN = (
    "\x00-\x08\x0e-\x1f\x7f\u00ad\u034f\u061c\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\ufe00-\ufe0f\ufeff\ufff9-\ufffd\U000e0000-\U000e0fff"
)
_INVISIBLE = re.compile(f"[{_UNSEEN}]")
# YAML, JSON and HTML can write a letter of the word as its number.
_ESCAPED = re.compile(r"(?:\\[xu]|&#x)0*+([4-7][0-9a-f]);?|&#0*+([0-9]{2,3});?", re.I)

_WORD = re.compile(r"(?<!\w)(?<!\w-)access(?!\w|-\w)", re.I)
_NAME = re.compile(r"[\W_]*(?:x[\W_]+)?access[\W_]*", re.I)
# The word as a key: at the beginning of a line, after marks (`"access" :`, `- [x] access:`, `1. access:`,
# `.. access:`, `!!str access:`, `? access`, `access.groups =`), or in a line after a brace, a comma or a quote.
# `[access]:` is a link of Markdown, `# 3. Access:` a heading, and inline code begins no line. A tag of HTML begins one,
# unless it is inline.
_MARKS = r"(?:\[x\]|(?<!# )(?:\d{1,9}|[a-z]|[ivxl]{2,5})[.)](?!\w)|[^\w\n`]|_)*+"
_COLON = r"(?:[^\w\n`\]:=]|_)*+[:=]"
_BEGIN = "\x1f"  # stands for a tag that begins a line of what is shown
_LINE_KEY = re.compile(
    rf"^{_MARKS}(?:(?<=[!&])[\w:.,/-]++[ \t]++{_MARKS})*+(?:x[-_])?access"
    rf"(?:{_COLON}|(?:[ \t]*+\.[ \t]*+[\w\"'-]++)++[ \t]*+=)"
    rf"|^[^\w\n`?]*+\?{_MARKS}access[^\w\n]*+$",
    re.I | re.M,
)
# A run of marks is looked at once, from its first.
_KEY = re.compile(
    rf"{_LINE_KEY.pattern}|(?<![^\w\n`])(?<!_)(?:[^\w\n`{{,\"'{_BEGIN}]|_)*+[{{,\"'{_BEGIN}](?:[^\w\n`]|_)*+access{_COLON}",
    re.I | re.M,
)

# What may stand above a header: blanks, comments, directives of YAML.
_ABOVE = re.compile(rf"(?:[\s{_UNSEEN}]|<!--.*?-->|/\*.*?\*/|(?:#!|//|%YAML|%TAG)[^\n]*\n)*+", re.S)
_OPENING = re.compile(r"(?P<fence>---|\+\+\+)[ \t]*(?:\w*[ \t]*|(?P<rest>[#!&{][^\n]*))\n")
_BRACE = re.compile(r"\{(?![{%])")
_MOST_DOTS = 1_000
"""In one line of TOML: a key of many parts takes ``tomllib`` quadratic time."""

_META = re.compile(r"<(?:[\w.-]{1,40}:)?meta\b", re.I)
_TAG = re.compile(r"<[\w.:-]+((?>\"[^\"]*\"|'[^']*'|[^'\">])*+)>")
_ATTRIBUTE = re.compile(r"([^\s\"'=<>/]+)(?:\s*+=\s*+(\"[^\"]*\"|'[^']*'|[^\s\"'>]+))?")
_OPEN_META = re.compile(r"=\s*+[\"']?\s*+access\b", re.I)
_RST_FIELD = re.compile(
    r"^(?P<indent>[ \t]*+):[^\w\n:]*+(?:[\w-]+=)?access[^\w\n: \t]*+(?:[ \t][^:\n]*)?:(?!\S)"
    r"(?P<value>[^\n]*(?:\n(?:[ \t]*+\n)*+(?P=indent)[ \t]+\S[^\n]*)*)",
    re.I | re.M,
)
_ITEM = re.compile(r"[-*+]\s+")
_SHOWN_TAG = re.compile(r"</?(?!access)([a-z][\w:-]*+)(?>\"[^\"<>]*\"|'[^'<>]*'|[^'\"<>])*+>", re.I)
_INLINE_TAGS = frozenset(("a", "abbr", "b", "big", "cite", "del", "em", "font", "i", "ins", "mark", "q", "s", "small"))
_INLINE_TAGS |= {"span", "strong", "sub", "sup", "u"}
_CODE_TAGS = frozenset(("code", "kbd", "samp", "tt", "var"))
_CODE_ELEMENT = re.compile(r"<!--.*?(?:-->|\Z)|<(script|style|pre|textarea|title)(?=[\s/>])[^>]*+>", re.I | re.S)
# Tags in them are text.
_TEXT_ELEMENTS = frozenset(("textarea", "title"))
_CODE_SPAN = re.compile(r"(?<!`)(`++)[^`\n]*+\1")
_CLOSES = re.compile(r"^[ \t>]*+")
# A fence of MyST that is no code: ``{meta}``.
_DIRECTIVE = re.compile(r"[ \t]*\{[\w:.-]+\}")


# The name of a group is shorter than a sentence.
_SENTENCE_WORDS = 4


class NotUnderstoodError(Exception):
    """A part of a text could be an access statement, but it cannot be understood.

    ``is_prose`` tells that this part is a sentence that names no group, or a line of indented code.
    """

    def __init__(self, reason: str, *, is_prose: bool = False) -> None:
        super().__init__(reason)
        self.is_prose = is_prose


def access_statements(text: str, format: str) -> tuple[tuple[JsonValue, ...], str | None]:  # noqa: A002 - as ``Document``
    """Read all access statements of a text.

    Args:
        format: the format of the text. Only ``rst`` has fields; all other forms of statements count in every format.

    Returns:
        The statements for ``rules.read_statement``, without repetitions. A reader must meet all of them. The second
        value is ``None`` if the whole text is understood. Otherwise it says which part is not understood, and one of
        the statements hides the document. If that part is prose, it hides the document only where access is configured.
    """
    stated: dict[JsonValue, None] = {}
    try:
        for value in _stated(LINE_ENDS.sub("\n", text), format):
            stated[value] = None
    except NotUnderstoodError as error:
        return ((*stated, UNCONFIGURED) if error.is_prose else (HIDDEN,)), str(error)
    return tuple(stated), None


def access_metadata(*texts: tuple[str, str], fields: Iterable[tuple[object, object]] = ()) -> dict[str, JsonValue]:
    """Return the access statements of a document, which may consist of several texts, as metadata.

    Args:
        texts: each text with its format.
        fields: pairs of key and value from outside the texts: headers of an e-mail, metadata of a notebook, a sidecar
            file. A repeated key gives several pairs. An access key without a value hides the document, and so does an
            access key inside another value.
    """
    read = [access_statements(text, format_) for text, format_ in texts]
    values = [value for stated, _ in read for value in stated]
    notices = [notice for _, notice in read if notice]
    for key, value in fields:
        if names_access(key):
            values.append(_value(value))
        elif _has_key(value):
            values.append(HIDDEN)
            notices.append(f"the key 'access' stands inside of {str(key)!r}")
    return {KEY: every_of(values), ACCESS_NOTICE: notices[0] if notices else None}


def names_access(key: object) -> bool:
    """Tell whether a key is ``access`` or ``X-Access``. Case and punctuation around the key do not matter."""
    return isinstance(key, str) and _NAME.fullmatch(_seen(key)) is not None


def _stated(text: str, format: str) -> Iterator[JsonValue]:  # noqa: A002
    """Yield the statements of a text.

    Raises:
        NotUnderstoodError: another part of the text could be a statement.
    """
    stated, body = _headers(text)
    yield from stated
    if format == "rst":
        yield from (_field(field["value"]) for field in _RST_FIELD.finditer(body))
        body = _RST_FIELD.sub(lambda field: _lines(field[0]), body)
    if _KEY.search(_shown(body)) or _META.search(body):
        prose = _without_code(body, format)
        yield from _metas(text if format == "html" else prose)
        keys = [*_KEY.finditer(shown := _shown(prose))]
        unlike = [key for key in keys if not (_is_prose(shown, key.end()) or _is_indented(shown, key.end(), format))]
        if keys:
            line = shown.count("\n", 0, (unlike or keys)[0].end()) + 1
            reason = f"line {line:,} has 'access' as a key and is not read as a statement"
            raise NotUnderstoodError(reason, is_prose=not unlike)


def _is_prose(shown: str, at: int) -> bool:
    """Tell whether the rest of a line is a sentence, with words such as *by* and *the*, and not the name of a group."""
    words = re.findall(r"\w+", shown[at : at + 1_000].partition("\n")[0].lower())
    return len(words) >= _SENTENCE_WORDS and not FUNCTION_WORDS.isdisjoint(words)


def _is_indented(shown: str, at: int, format: str) -> bool:  # noqa: A002
    """Tell whether a line is indented as far as code. An access key in such a line belongs to an example."""
    line = shown[shown.rfind("\n", 0, at) + 1 : at].expandtabs(4)
    return len(line) - len(line.lstrip(" ")) >= (2 if format == "rst" else 4)


def _shown(text: str) -> str:
    """Return a text as ``_seen`` does, but without tags.

    ``_BEGIN`` replaces a tag at the beginning of a line.
    """
    return _SHOWN_TAG.sub(_break, _seen(text)) if "<" in text or "&" in text else _seen(text)


def _break(tag: re.Match[str]) -> str:
    name = tag[1].lower()
    return "" if name in _INLINE_TAGS else "`" if name in _CODE_TAGS else _BEGIN + _lines(tag[0])


def _seen(text: str) -> str:
    """Return a text with letters in place of escapes (``&#97;``), and a colon in place of a wide colon."""
    text = _ESCAPED.sub(_letter, text) if "\\" in text or "&#" in text else text
    return _INVISIBLE.sub("", text if text.isascii() else unicodedata.normalize("NFKC", text))


def _letter(escaped: re.Match[str]) -> str:
    letter = chr(int(escaped[1], 16) if escaped[1] else int(escaped[2]))
    return letter if letter.isascii() and letter.isalpha() else escaped[0]


def _without_code(text: str, format: str) -> str:  # noqa: A002
    """Blank the code in a text: code in closed fences, backticks, ``<pre>``, ``<script>`` and ``<style>``.

    Fences are found by the rules of CommonMark, because these tell where a list or a quotation ends. Outside of
    Markdown a line of tildes does not open a fence, because it may underline a heading.
    """
    if format == "html":
        return _without_code_elements(text)
    rows = text.split("\n")
    for token in _commonmark().parse(text):
        if token.type not in {"fence", "html_block"} or token.map is None:
            continue
        first, end = token.map
        if token.type == "html_block":
            rows[first:end] = _without_code_elements("\n".join(rows[first:end])).split("\n")
        elif (
            (format == "markdown" or token.markup[0] == "`")
            and end - first > 1
            and _CLOSES.sub("", rows[end - 1]).startswith(token.markup)
            and not _DIRECTIVE.match(token.info)
        ):
            rows[first:end] = [""] * (end - first)
    return _CODE_SPAN.sub("``", "\n".join(rows))


def _without_code_elements(text: str) -> str:
    """Blank the content of closed ``<pre>``, ``<script>`` and ``<style>``, unless the tag is in a comment."""
    shown: list[str] = []
    unclosed: set[str] = set()
    end = 0
    while element := _CODE_ELEMENT.search(text, end):
        shown.append(text[end : element.end()])
        end = element.end()
        name = (element[1] or "").lower()
        closing = re.compile(rf"</{name}(?=[\s/>])", re.I).search(text, end) if name and name not in unclosed else None
        if closing:
            content = text[end : closing.start()]
            shown.append(content if name in _TEXT_ELEMENTS else _lines(content))
            end = closing.start()
        else:
            unclosed.add(name)
    return "".join((*shown, text[end:]))


@cache
def _commonmark() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").disable("reference")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def _lines(text: str) -> str:
    """Return as many empty lines as a text has lines."""
    return "\n" * text.count("\n")


def _headers(text: str) -> tuple[list[JsonValue], str]:
    """Read the headers at the beginning of a text. Several headers may follow each other directly.

    Returns:
        The statements in the headers, and the text with the lines of the headers empty.

    Raises:
        NotUnderstoodError: a header is broken or does not close, and it contains the word "access".
    """
    above = _ABOVE.match(text)
    start = above.end() if above else 0
    end = _end_of_braces(text, start)
    stated = _of_header(text[start:end], (_JSON.decode, load_pairs))
    while opening := _OPENING.match(text, end):
        closing = closing_fence(opening["fence"]).search(text, opening.end())
        if closing is None:
            if _WORD.search(_seen(text[opening.end() :].partition("\n\n")[0])):
                raise NotUnderstoodError("the header does not close, and has the word 'access'")
            break
        header = f"{opening['rest'] or ''}\n{text[opening.end() : closing.start()]}"
        # YAML goes before JSON, which cannot be told from it where it has no tabs.
        stated += _of_header(
            header, (_toml, load_pairs) if opening["fence"] == "+++" else (load_pairs, _JSON.decode, _toml)
        )
        # The second fence of an empty header opens the next one.
        end = closing.end() if header.strip() else closing.start()
    return stated, f"{text[:start]}{_lines(text[start:end])}{text[end:]}"


def _end_of_braces(text: str, start: int) -> int:
    """Return the end of a mapping in braces. If no valid mapping begins at ``start``, return ``start``."""
    if not _BRACE.match(text, start):
        return start
    with suppress(*_BROKEN):
        return _JSON.raw_decode(text, start)[1]
    end = start + text[start:].partition("\n\n")[0].rfind("}") + 1
    with suppress(*_BROKEN):
        load_pairs(text[start:end])
        return end
    return start


def _of_header(header: str, readers: Iterable[Callable[[str], object]]) -> list[JsonValue]:
    """Return the statements of a header. The first of the ``readers`` that can read it as a mapping is used.

    Raises:
        NotUnderstoodError: the header contains the word "access" in another place than as a key at its top level.
    """
    seen = _seen(header)
    if not _WORD.search(seen) and "\\" not in header:
        return []
    for read in readers:
        try:
            stated = list(_statements(read(header)))
        except _BROKEN:
            continue
        if len(_LINE_KEY.findall(seen)) > len(stated):
            raise NotUnderstoodError("a line of the header begins with 'access' and is no key of its own")
        return stated
    if _WORD.search(seen):
        raise NotUnderstoodError("the header is broken, and has the word 'access'")
    return []


def _statements(loaded: object) -> Iterator[JsonValue]:
    """Yield the statements in a header that was read as a mapping.

    Raises:
        NotUnderstoodError: an access key is not at the top level of the mapping.
        ValueError: the header is not a mapping.
    """
    if not isinstance(loaded, dict | Pairs):
        raise ValueError("no mapping")  # noqa: TRY004 - as a header that cannot be read
    for key, value in loaded.items():
        if names_access(key):
            yield _value(value)
        elif _has_key(value) or _has_key(key):
            raise NotUnderstoodError("the key 'access' stands inside another; it belongs to the top of the header")


def _toml(head: str) -> object:
    if any(line.count(".") > _MOST_DOTS for line in head.split("\n")):
        raise ValueError(f"more than {_MOST_DOTS:,} dots in a line")
    return tomllib.loads(head)


def _has_key(value: object) -> bool:
    """Tell whether an access key occurs anywhere inside a value."""
    if isinstance(value, dict | Pairs):
        return any(names_access(key) or _has_key(key) or _has_key(inner) for key, inner in value.items())
    return isinstance(value, list | tuple) and any(map(_has_key, value))


def _value(value: object) -> JsonValue:
    """Return a statement from its value. A value that is not a group or a list of groups hides the document."""
    if isinstance(value, list | tuple):
        return tuple(each if isinstance(each, str) else "" for each in value)
    return value if isinstance(value, str) else HIDDEN


def _metas(text: str) -> Iterator[JsonValue]:
    """Yield the statement of every ``<meta name="access">``, anywhere on the page, even in comments.

    Raises:
        NotUnderstoodError: a tag is not closed, and it has the word "access" as a value.
    """
    places = [match.start() for match in _META.finditer(text)]
    for start, following in pairwise((*places, len(text))):
        piece = text[start:following]
        tag = _TAG.match(piece)
        if tag is None:
            if _OPEN_META.search(_seen(unescaped(piece))):
                raise NotUnderstoodError("a <meta> with the word 'access' does not close")
            continue
        named = {
            name.lower(): unescaped(value[1:-1] if value[:1] in "\"'" else value)
            for name, value in reversed(_ATTRIBUTE.findall(tag[1]))
        }
        content = named.pop("content", "")
        # Dublin Core and its like: ``dc.access``, ``og:access``.
        if any(names_access(re.split(r"[.:]", value)[-1]) for value in named.values()):
            yield content or HIDDEN


def _field(value: str) -> JsonValue:
    """Return the value of an RST field: a text or a list."""
    lines = [line.strip() for line in value.splitlines() if line.strip()]
    items = tuple(_ITEM.sub("", line, count=1) for line in lines if _ITEM.match(line))
    if items:
        return items if len(items) == len(lines) else HIDDEN
    return " ".join(lines) or HIDDEN
