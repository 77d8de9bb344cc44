"""Who may see a text, as the text itself says.

Every statement counts. What could be a statement and is not understood hides the text from everybody. A statement
stands in front matter (YAML or TOML between fences, JSON or a flow mapping), in a field ``:access:`` of RST, or in
``<meta name="access">`` of HTML, wherever in the file. A text is read as its writer may have meant it: blank lines,
lone carriage returns and a byte order mark before the fence do not matter, nor does how long the header is. Every pass
is linear in the length of the text.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import yaml

from nornweave.core.access.rules import ACCESS_NOTICE, KEY, every_of
from nornweave.core.text.inline_markup import closing_fence, unescaped
from nornweave.core.text.legible import field_key
from nornweave.core.types import JsonValue
from nornweave.read.plain_yaml import check_yaml

HIDDEN: JsonValue = ()
"""The statement that nobody meets."""

_FENCE = re.compile(r"(---|\+\+\+)[ \t]*\n")
_FIRST_KEY = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n){0,50}[ \t]*(?:[?!\"'{\[]|<<|[\w.-][\w .-]{0,80}[\"']?\s*[:=])")
_FIRST_BOUND = 8_192
# The word as a key, however it is spelt: `"access" :`, `? access`, `access=`.
_KEY = re.compile(r"(?<![\w-])access(?![\w-])[\"']?\s*(?:[:=]|$)|\?\s+[\"']?access\b", re.I | re.M)
_LINE_KEY = re.compile(
    r"^[ \t]*+(?:[?{][ \t]*+)?(?:!\S{0,80}+[ \t]++)?[\"']?access[\"']?[ \t]*+[:=]"
    r"|^[ \t]*+\?[ \t]++[\"']?access[\"']?[ \t]*+$",
    re.I | re.M,
)
_META = re.compile(r"<meta\b", re.I)
_META_BOUND = 16_384
_TAG = re.compile(r"<meta\b(?>\"[^\"]*\"|'[^']*'|[^'\">])*+>", re.I)
_ATTRIBUTE = re.compile(r"([^\s\"'=<>/]+)(?:\s*+=\s*+(\"[^\"]*\"|'[^']*'|[^\s\"'>]+))?")
_RST_FIELD = re.compile(r"^ {0,3}:access:[ \t]*(?P<value>[^\n]*(?:\n[ \t]+\S[^\n]*)*)", re.I | re.M)
_ITEM = re.compile(r"[-*+]\s+")
_UNSEEN = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff\ufffd]")
# Also a byte order mark that was read in another encoding.
_LEADING = re.compile(r"[\s\ufeff\ufffd]*+")


@dataclass(frozen=True, slots=True)
class AccessStatements:
    """What a text says about who may see it.

    Attributes:
        values: as ``rules.read_statement`` takes them, each once; all have to be met.
        notice: what was not understood; ``None`` if all was.
    """

    values: tuple[JsonValue, ...] = ()
    notice: str | None = None


def access_statements(text: str, format: str) -> AccessStatements:  # noqa: A002 - the word of ``Document.format``
    """Read all statements of a text.

    Args:
        format: ``html`` and ``rst`` have statements of their own; front matter may stand in every format.
    """
    plain = _LEADING.sub("", text, count=1).replace("\r\n", "\n").replace("\r", "\n")
    readers = [_front_matter, *({"html": [_metas], "rst": [_fields]}.get(format, []))]
    values: list[JsonValue] = []
    notice = None
    for reader in readers:
        try:
            values += reader(plain)
        except NotUnderstoodError as error:
            values.append(HIDDEN)
            notice = str(error)
    stated = [value for value in values if value is not None]
    return AccessStatements(tuple(each for place, each in enumerate(stated) if each not in stated[:place]), notice)


def access_metadata(*texts: tuple[str, str], fields: Iterable[Mapping[str, object]] = ()) -> dict[str, JsonValue]:
    """Return what a document of several texts says about who may see it, as metadata.

    Args:
        texts: each with its format.
        fields: mappings beside the texts (headers of an e-mail, metadata of a notebook), where ``access`` and
            ``X-Access`` are statements; the key anywhere inside of their values hides.
    """
    read = [access_statements(text, format_) for text, format_ in texts]
    values = [value for statements in read for value in statements.values]
    notices = [statements.notice for statements in read if statements.notice]
    for key, value in ((key, value) for mapping in fields for key, value in mapping.items()):
        if field_key(key).removeprefix("x_") == KEY and value is not None:
            values.append(_value(value))
        elif _has_key(value):
            values.append(HIDDEN)
            notices.append(f"the key 'access' stands inside of {key!r}")
    distinct = tuple(value for place, value in enumerate(values) if value not in values[:place])
    return {KEY: every_of(distinct), ACCESS_NOTICE: notices[0] if notices else None}


class NotUnderstoodError(Exception):
    """Something could be a statement and is not understood."""


def _front_matter(text: str) -> list[JsonValue]:
    """Read the statements of the header of a text.

    Raises:
        NotUnderstoodError: the header is broken, or does not close, and has the word as a key.
    """
    fence = _FENCE.match(text)
    if fence is None:
        return _bare_mapping(text) if text.startswith("{") else []
    if not _FIRST_KEY.match(_spelt(text[fence.end() : fence.end() + _FIRST_BOUND])):
        return []  # a rule above text
    closing = closing_fence(fence[1]).search(text, fence.end())
    if closing is None:
        if _LINE_KEY.search(_spelt(text[fence.end() :])):
            raise NotUnderstoodError("the header does not close, and has a line that begins with 'access'")
        return []
    head = text[fence.end() : closing.start()]
    try:
        stated = _toml(head) if fence[1] == "+++" else list(_yaml(head))
    except (yaml.YAMLError, tomllib.TOMLDecodeError, ValueError, RecursionError) as error:
        if _KEY.search(_spelt(head)):
            raise NotUnderstoodError("the header is broken, and has the key 'access'") from error
        return []
    if len(_LINE_KEY.findall(_spelt(head))) > len(stated):
        raise NotUnderstoodError("a line of the header begins with 'access' and is no key of its own")
    return stated


def _spelt(head: str) -> str:
    """Return a header as it looks: without characters that nobody sees, a wide colon as a colon."""
    return _UNSEEN.sub("", unicodedata.normalize("NFKC", head))


def _bare_mapping(text: str) -> list[JsonValue]:
    """Read a header in braces that stands at the beginning without fences."""
    head = text.partition("\n\n")[0]
    end = head.rfind("}") + 1
    try:
        return list(_yaml(head[: end or None]))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if _KEY.search(_spelt(head)):
            raise NotUnderstoodError("the header in braces is broken, and has the key 'access'") from error
        return []


def _toml(head: str) -> list[JsonValue]:
    loaded = tomllib.loads(head)
    stated = [_value(value) for key, value in loaded.items() if field_key(key) == KEY]
    nested = [value for key, value in loaded.items() if field_key(key) != KEY]
    if any(map(_has_key, nested)):
        raise NotUnderstoodError("the key 'access' stands in a table; it belongs to the top of the header")
    return stated


def _yaml(head: str) -> Iterator[JsonValue]:
    """Yield the statements of a YAML mapping: of repeated keys every one, also those that ``<<`` merges in."""
    check_yaml(head)
    node = yaml.compose(head, Loader=yaml.CSafeLoader)
    if not isinstance(node, yaml.MappingNode):
        if _KEY.search(_spelt(head)):
            raise NotUnderstoodError("the header is no mapping, and has the key 'access'")
        return
    for key, value in node.value:
        name = field_key(key.value) if isinstance(key, yaml.ScalarNode) else ""
        if name == KEY:
            yield _value(_plain(value))
        elif any(_names_key(each) for each in ((value,) if name else (key, value))):
            raise NotUnderstoodError("the key 'access' stands inside another; it belongs to the top of the header")


def _names_key(node: yaml.Node) -> bool:
    """Tell whether a node is a mapping with the key, or holds one; without recursion."""
    pending = [node]
    while pending:
        current = pending.pop()
        if isinstance(current, yaml.MappingNode):
            for key, value in current.value:
                if isinstance(key, yaml.ScalarNode) and field_key(key.value) == KEY:
                    return True
                pending += (key, value)
        elif isinstance(current, yaml.SequenceNode):
            pending += current.value
    return False


def _has_key(value: object) -> bool:
    if isinstance(value, dict):
        return any(field_key(str(key)) == KEY or _has_key(inner) for key, inner in value.items())
    return isinstance(value, list) and any(map(_has_key, value))


def _plain(node: yaml.Node) -> object:
    """Return a node's value as far as statements have one: a text, or a list of texts."""
    if isinstance(node, yaml.SequenceNode):
        return [_plain(each) for each in node.value]
    if not isinstance(node, yaml.ScalarNode):
        return {}
    if node.tag == "tag:yaml.org,2002:null":
        return None
    return node.value if node.tag == "tag:yaml.org,2002:str" else 0


def _value(value: object) -> JsonValue:
    """Return a statement; what is neither a group nor a list of groups hides."""
    if isinstance(value, list | tuple):
        return tuple(each if isinstance(each, str) else "" for each in value)
    return value if isinstance(value, str | None) else HIDDEN


def _metas(text: str) -> list[JsonValue]:
    """Read every ``<meta name="access">`` of HTML: in the head, in the body, in a script or a comment.

    Raises:
        NotUnderstoodError: a tag that does not close holds the word.
    """
    places = [match.start() for match in _META.finditer(text)]
    stated: list[JsonValue] = []
    for start, following in pairwise((*places, len(text))):
        piece = text[start : min(following, start + _META_BOUND)]
        tag = _TAG.match(piece)
        if tag is None:
            if re.search(r"\baccess\b", piece[:500], re.I):
                raise NotUnderstoodError("a <meta> with the word 'access' does not close")
            continue
        named = {
            name.lower(): unescaped(value[1:-1] if value[:1] in "\"'" else value)
            for name, value in reversed(_ATTRIBUTE.findall(tag[0][5:-1]))
        }
        if KEY in (field_key(named.get("name", "")), field_key(named.get("property", ""))):
            stated.append(named.get("content", "") or HIDDEN)
    return stated


def _fields(text: str) -> list[JsonValue]:
    """Read every field ``:access:`` of RST; its value may stand on the next lines, also as a list."""
    stated: list[JsonValue] = []
    for field in _RST_FIELD.finditer(text):
        lines = [line.strip() for line in field["value"].splitlines() if line.strip()]
        items = tuple(_ITEM.sub("", line, count=1) for line in lines if _ITEM.match(line))
        if items and len(items) != len(lines):
            raise NotUnderstoodError("the value of the field 'access' is neither a text nor a list")
        stated.append(items or " ".join(lines) or None)
    return stated
