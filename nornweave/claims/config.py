"""Configuration → claims: YAML, TOML, INI, ``.env``, properties, JSON and Dockerfiles, line by line.

A chunk of a configuration file may begin and end anywhere, and no parser reads half a file. What is needed is little:
which key stands in which line, under which other keys, and where its value starts and ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from nornweave.claims import vocabulary
from nornweave.claims.comments import remark_at
from nornweave.claims.literals import UNIT_NAMES
from nornweave.claims.named import Named, claim_of
from nornweave.claims.passage import Passage
from nornweave.types import Claim, Span

MAX_LINE = 1000
MAX_DEPTH = 40
MAX_FOUND = 200

_SUFFIXES = {
    "yaml": "yaml yml",
    "json": "json json5 jsonc webmanifest",
    "toml": "toml",
    "ini": "ini cfg conf properties env editorconfig service tfvars tf hcl sh bash zsh mk",
}
_BY_SUFFIX = {f".{suffix}": syntax for syntax, suffixes in _SUFFIXES.items() for suffix in suffixes.split()}
# What lists other people's versions says nothing that anybody would contradict.
_LOCK_FILES = re.compile(
    r"(?:package-lock|npm-shrinkwrap|composer\.lock|poetry\.lock|cargo\.lock|pnpm-lock|yarn\.lock|uv\.lock)"
)

_YAML = re.compile(
    r"(?P<indent>[ \t]*)(?P<item>(?:-[ \t]+){0,4})"
    r"(?P<quote>[\"']?)(?P<key>[A-Za-z_][\w.\-/ ]{0,79}?)(?P=quote)[ \t]*:(?:[ \t]+|$)"
    r"(?P<value>\"[^\"\n]{0,400}\"|'[^'\n]{0,400}'|[^#\n]*)[ \t]*(?:#[^\n]*)?$"
)
_INI = re.compile(
    r"[ \t]*(?:export[ \t]+|ENV[ \t]+|ARG[ \t]+)?"
    r"(?P<key>[A-Za-z_][\w.\-]{0,79}|\"[\w.\- ]{1,79}\")[ \t]*(?:=|:(?=\s))[ \t]*"
    r"(?P<value>\"[^\"\n]{0,400}\"|'[^'\n]{0,400}'|[^#;\n]*)[ \t]*\\?(?:[#;][^\n]*)?$"
)
_SECTION = re.compile(r"[ \t]*\[{1,2}[ \t]*(?P<name>[\w.\-\"' :/]{1,120}?)[ \t]*\]{1,2}[ \t]*(?:[#;][^\n]*)?$")
_JSON_TOKEN = re.compile(
    r"\"(?P<text>(?:[^\"\\\n]|\\.){0,2000})\"(?P<colon>[ \t\n]{0,80}:)?|(?P<word>-?\d[\d.eE+-]*|true|false|null)|"
    r"(?P<mark>[{}\[\],])|//[^\n]*"
)
_BLOCK = re.compile(r"[|>][+-]?\d?")
_EXPOSED = re.compile(r"EXPOSE[ \t]+(\d{2,5})\b")
_BASE_IMAGE = re.compile(r"FROM[ \t]+(?:--\S+[ \t]+)?(?:[\w.\-/:]+/)?([a-z][\w.-]*):(\d[\w.]*)")
_FLAG = re.compile(r"--([a-z][a-z-]{1,40})[= ](\d[\w.]*)")


@dataclass(frozen=True, slots=True)
class _Entry:
    """A key with its value: where they stand, and the keys above."""

    key: str
    value: str
    span: Span
    parents: tuple[str, ...]


def config_syntax(format_: str, path: str) -> str | None:
    """Tell how a configuration file is written, by its format or its name; ``None`` when it is none."""
    if _LOCK_FILES.search(path.lower()):
        return None
    name = PurePosixPath(path).name.lower()
    if name.startswith("dockerfile") or name.endswith(".dockerfile") or format_ == "dockerfile":
        return "dockerfile"
    if name == ".env" or name.startswith(".env."):
        return "ini"
    known = format_ if format_ in _SUFFIXES else None
    return known or _BY_SUFFIX.get(PurePosixPath(name).suffix) or _BY_SUFFIX.get(f".{format_}")


def config_claims(passage: Passage, syntax: str) -> list[Claim]:
    """Return the claims of a passage of configuration.

    Args:
        passage: may be cut anywhere.
        syntax: ``yaml``, ``json``, ``toml``, ``ini`` or ``dockerfile``.
    """
    text = passage.text
    entries = {"yaml": _yaml, "json": _json, "dockerfile": _dockerfile}.get(syntax, _sections)(text)
    found = []
    for entry in entries:
        claim = claim_of(_named(entry, text), passage)
        if claim is not None:
            found.append(claim)
            if len(found) == MAX_FOUND:
                break
    return found


def _named(entry: _Entry, text: str) -> Named:
    """Give a key that is only a unit (``retention: {days: 30}``) the name of the key above."""
    key, parents, unit = entry.key, entry.parents, None
    if key.lower() in UNIT_NAMES and parents:
        key, parents, unit = parents[-1], parents[:-1], key.lower()
    elif not vocabulary.topics_of(key) and parents and vocabulary.attribute_of(vocabulary.split_name(key)) is None:
        key, parents = f"{parents[-1]}_{key}", parents[:-1]
    remarks = remark_at(text, entry.span.start, "yaml")
    return Named(key, entry.value, entry.span, around=parents, remarks=remarks, unit=unit, configured=True)


def _yaml(text: str) -> Iterator[_Entry]:
    stack: list[tuple[int, str]] = []
    skipped_below: int | None = None
    for at, line in _lines(text):
        match = _YAML.match(line) if ":" in line else None
        if match is None:
            continue
        depth = len(match["indent"]) + len(match["item"])
        if skipped_below is not None and depth > skipped_below:
            continue
        skipped_below = None
        while stack and stack[-1][0] >= depth:
            stack.pop()
        parents = tuple(key for _, key in stack)
        value = match["value"].rstrip()
        if _BLOCK.fullmatch(value):
            skipped_below = depth
        elif value.startswith("{"):
            yield from _flow(value, at + match.start("value"), (*parents, match["key"]))
        elif value and value[0] not in "[&*!":
            start = at + match.start("key")
            yield _Entry(match["key"], value, Span(start, at + match.start("value") + len(value)), parents)
        if not value and len(stack) < MAX_DEPTH:
            stack.append((depth, match["key"]))


_FLOW = re.compile(
    r"[\"']?(?P<key>[A-Za-z_][\w.\-]{0,60})[\"']?\s*:\s*(?P<value>\"[^\"]{0,200}\"|'[^']{0,200}'|[^,{}\[\]\"']{1,200})"
)


def _flow(value: str, at: int, parents: tuple[str, ...]) -> Iterator[_Entry]:
    """Read a mapping in braces of one level."""
    for match in _FLOW.finditer(value):
        end = match.start("value") + len(match["value"].rstrip())
        yield _Entry(match["key"], match["value"].strip(), Span(at + match.start("key"), at + end), parents)


def _sections(text: str) -> Iterator[_Entry]:
    section: tuple[str, ...] = ()
    for at, line in _lines(text):
        header = _SECTION.match(line)
        if header is not None:
            section = tuple(part.strip("\"' ") for part in header["name"].split("."))
            continue
        match = _INI.match(line) if "=" in line or ":" in line else None
        if match is None:
            continue
        *parents, key = match["key"].strip('"').split(".")
        value = match["value"].rstrip(" \t\\")
        if value.startswith("{"):
            yield from _inline_table(value, at + match.start("value"), (*section, *parents, key))
        elif value:
            span = Span(at + match.start("key"), at + match.start("value") + len(value))
            yield _Entry(key, value, span, (*section, *parents))


_INLINE = re.compile(
    r"(?P<key>[A-Za-z_][\w\-]{0,60})\s*=\s*(?P<value>\"[^\"]{0,200}\"|'[^']{0,200}'|[^,{}\[\]\"']{1,200})"
)


def _inline_table(value: str, at: int, parents: tuple[str, ...]) -> Iterator[_Entry]:
    for match in _INLINE.finditer(value):
        end = match.start("value") + len(match["value"].rstrip())
        yield _Entry(match["key"], match["value"].strip(), Span(at + match.start("key"), at + end), parents)


def _json(text: str) -> Iterator[_Entry]:
    """Read keys with plain values; braces that the passage does not show to open are taken as open."""
    stack: list[str] = []
    key: re.Match[str] | None = None
    for token in _JSON_TOKEN.finditer(text):
        if token["text"] is not None and token["colon"]:
            key = token
        elif token["mark"]:
            if token["mark"] in "{[" and len(stack) < MAX_DEPTH:
                stack.append(key["text"] if key else "")
            elif token["mark"] in "}]" and stack:
                stack.pop()
            key = None
        elif key is not None and (token["word"] or token["text"] is not None):
            span = Span(key.start(), token.end())
            yield _Entry(key["text"], token[0], span, tuple(name for name in stack if name))
            key = None


def _dockerfile(text: str) -> Iterator[_Entry]:
    yield from _sections(text)
    for at, line in _lines(text):
        if exposed := _EXPOSED.match(line):
            yield _Entry("port", exposed[1], Span(at, at + exposed.end()), ())
        elif image := _BASE_IMAGE.match(line):
            yield _Entry(f"{image[1]}_version", image[2].split("-")[0], Span(at, at + image.end()), ())
        elif line.startswith("HEALTHCHECK"):
            for flag in _FLAG.finditer(line):
                yield _Entry(flag[1], flag[2], Span(at + flag.start(), at + flag.end()), ("healthcheck",))


def _lines(text: str) -> Iterator[tuple[int, str]]:
    at = 0
    for line in text.split("\n"):
        if len(line) <= MAX_LINE:
            yield at, line.rstrip("\r")
        at += len(line) + 1
