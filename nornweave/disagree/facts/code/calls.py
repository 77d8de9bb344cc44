"""Extract facts from calls that declare options, and from fallback expressions."""

from __future__ import annotations

import re

from tree_sitter import Node

from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.facts.code.options import OptionCall, call_of
from nornweave.disagree.facts.code.reading import Reading
from nornweave.disagree.facts.code.sites import ValueSite
from nornweave.disagree.facts.values import Value

_MAX_ARGUMENTS = 12
_NAMED = lazy_pattern(r"^(?:\w+\s?[=:](?![=:])|\*\*|\.\.\.)")
_PATH = lazy_pattern(r"[A-Za-z_$@][\w$]*(?:(?:\.|\?\.|->|::)[A-Za-z_]\w*|\[['\"][\w.\-]{1,60}['\"]\])*")
_NO_NAMES = frozenset("true false null none nil undefined if else and or not is in typeof new".split())  # noqa: SIM905


def read_call(site: ValueSite, reading: Reading) -> None:
    """Read a call that declares an option, or that looks something up with a default."""
    called = call_of(site.name)
    if called is None:
        return
    arguments = _arguments(site, reading)
    positional = [argument for argument in arguments if not _NAMED.match(argument)]
    name = _name(called, positional, reading)
    if not name or " " in name or len(arguments) < called.least:
        return
    site.tag = name
    if called.default is not None and len(positional) > called.default:
        value = reading.constants.read(positional[called.default])
        if value is not None and not positional[called.default].startswith("{"):
            reading.add(site, value, called.attribute, called.form, name=name)


def _arguments(site: ValueSite, reading: Reading) -> list[str]:
    nodes: list[Node] = site.node.named_children[:_MAX_ARGUMENTS] if site.node is not None else []
    if site.node is None or site.value is None:
        return []
    shift = site.node.start_byte - site.value[0]
    texts = (reading.text[node.start_byte - shift : min(node.end_byte - shift, node.start_byte - shift + 400)]
             for node in nodes if "comment" not in node.type)  # fmt: skip
    return [text.strip() for text in texts]


def _name(called: OptionCall, positional: list[str], reading: Reading) -> str:
    if called.name is None:
        strings = [text.strip("'\"`") for text in positional[:4] if text[:1] in "'\"`"]
        flags = [part for text in strings[:1] + [s for s in strings[1:] if s.startswith("-")]
                 for part in re.split(r"[,|\s]+", text) if part.startswith("-")]  # fmt: skip
        return max(flags, key=len) if flags else strings[0] if strings and " " not in strings[0] else ""
    if called.name >= len(positional):
        return ""
    text = positional[called.name]
    value = reading.constants.read(text) if text[:1] not in ":" else Value("string", text[1:])
    return value.text if value is not None and value.kind == "string" else ""


def read_fallback(site: ValueSite, reading: Reading) -> None:
    """Read ``options.timeout || 30``, wherever it stands."""
    text = reading.value_text(site)
    paths = [path for path in _PATH.findall(site.name) if path.lower() not in _NO_NAMES]
    if not paths or site.name.endswith(")") or (text[:1].isalpha() and text.lower() not in _NO_NAMES):
        return
    path = paths[-1]  # ``PORT`` of ``process.env.PORT``, ``a`` of ``config['a']``
    name = path[path.rfind("[") :] if path.endswith("]") else re.split(r"[.:>]+", path)[-1]
    reading.add(site, reading.constants.read(text), "default", "fallback", name=name.strip("[]'\"@#$"))
