"""The door: a passage → its claims, whatever it is written in.

Code goes through its syntax tree, configuration line by line, everything else through the patterns of prose and
tables. Comments and docstrings are prose inside code, fenced blocks are code inside prose.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from nornweave.chunking.languages import LANGUAGES, language_of
from nornweave.claims.code import code_claims
from nornweave.claims.comments import comment_blocks
from nornweave.claims.config import config_claims, config_syntax
from nornweave.claims.passage import Passage
from nornweave.claims.prose import prose_claims
from nornweave.claims.tables import table_claims
from nornweave.types import Claim, Span

MAX_CHARACTERS = 20_000
"""Of a passage that are read for claims: more is no chunk but a file, and no agent's item may hold up an answer."""
MAX_CLAIMS = 64
"""Of one passage: more is a table of constants, and noise."""

_FENCE = re.compile(
    r"^(?P<mark>[ \t]*(?:```|~~~))[ \t]*(?P<name>[\w+#.-]{0,30})[^\n]*\n"
    r"(?P<body>[\s\S]*?)(?:^[ \t]*(?:```|~~~)[ \t]*$|\Z)",
    re.MULTILINE,
)
_NAMES = {
    "py": "python",
    "python3": "python",
    "pycon": "python",
    "js": "javascript",
    "jsx": "javascript",
    "node": "javascript",
    "ts": "typescript",
    "tsx": "typescript",
    "golang": "go",
    "rs": "rust",
    "c++": "cpp",
    "rb": "ruby",
    "cs": "csharp",
    "c#": "csharp",
    "kt": "kotlin",
    "yml": "yaml",
    "env": "ini",
    "dotenv": "ini",
    "properties": "ini",
    "cfg": "ini",
    "conf": "ini",
    "jsonc": "json",
    "json5": "json",
}
_SYNTAXES = frozenset({"yaml", "json", "toml", "ini", "dockerfile"})
_LOOKS = {
    "python": r"^[ \t]*(?:async )?def \w+ ?\(|^[ \t]*class \w+[^{\n]*:|^(?:from [\w.]+ )?import \w|\bself\.",
    "go": r"^(?:func [(\w]|package \w+$|type \w+ (?:struct|interface))|:=",
    "rust": r"^[ \t]*(?:pub )?(?:fn|impl|struct|enum|trait) \w+|\blet mut\b|-> ?Result<",
    "java": r"\b(?:public|private|protected) (?:static |final |class ){0,3}\w[^\n]*[;{]",
    "c": r"^[ \t]*# ?(?:include|define)\b",
    "ruby": r"^[ \t]*def \w+[^:\n]*$",
    "php": r"<\?php|\$\w+ ?=|\bfunction \w+\(\$",
    "kotlin": r"\bfun \w+\(|\bval \w+ ?[:=]",
    "typescript": r"\b(?:const|let|var|function|export|interface) \w+[^\n]*[;={(]|=> ?[{(\w]",
    "python ": r"^[ \t]*[A-Z][A-Z0-9_]* ?= ?\S|^[ \t]*(?:return|raise) \w+\(|\w+\(\w+=",
}
_GUESSES = tuple((language.strip(), re.compile(looks, re.MULTILINE)) for language, looks in _LOOKS.items())
_PROSE_FILE = re.compile(r"\.(?:md|mdx|markdown|rst|txt|html?|adoc|org|tex)$", re.IGNORECASE)
_PROSE_FORMATS = frozenset({"markdown", "rst", "html", "text", "plain"})
_SAYS = re.compile(
    r"\d|\b(?:[Rr]emoved|[Dd]eprecated|[Ss]upport(?:s|ed)|[Ee]nabled|[Dd]isabled|[Dd]efaults?|[Oo]wn(?:ed|s)|"
    r"[Nn]o longer|[Mm]aintained|once|twice|half|one|two|three|four|five|six|seven|eight|nine|ten)\b"
)
MAX_LOOKED_AT = 4000
# What people say lies in JSON files (exports of Slack, GitHub, Stack Exchange) and is no configuration.
_TALK = frozenset({"conversations", "research"})


def extract_claims(passage: Passage) -> tuple[Claim, ...]:
    """Return what a passage states that can be checked.

    Returns:
        By place, then kind; none twice; at most ``MAX_CLAIMS``, of the first ``MAX_CHARACTERS``.
    """
    if len(passage.text) > MAX_CHARACTERS:
        passage = replace(passage, text=passage.text[:MAX_CHARACTERS])
    found = {_key(claim): claim for claim in reversed(list(_claims(passage))) if _inside(claim, passage)}
    return tuple(claim for _, claim in sorted(found.items()))[:MAX_CLAIMS]


def _key(claim: Claim) -> tuple[int, int, str, str, str, str]:
    return claim.span.start, claim.span.end, claim.kind, claim.attribute, claim.value, claim.unit or ""


def _inside(claim: Claim, passage: Passage) -> bool:
    return passage.start <= claim.span.start <= claim.span.end <= passage.start + len(passage.text)


def _claims(passage: Passage) -> Iterator[Claim]:
    language = _language(passage)
    syntax = None if language or passage.domain in _TALK else config_syntax(passage.format, passage.path)
    if language is not None:
        yield from code_claims(passage, language)
        yield from _remarks(passage, language)
    elif syntax is not None:
        yield from config_claims(passage, syntax)
        yield from _remarks(passage, syntax)
    else:
        yield from _prose(passage)


def _language(passage: Passage) -> str | None:
    """Return the language of a passage that is code; by its file, or by its looks where only the domain is known."""
    if passage.language in LANGUAGES:
        return passage.language
    if passage.domain != "code" or passage.language is not None:
        return None
    if passage.format in _PROSE_FORMATS or _PROSE_FILE.search(passage.path):
        return None
    return language_of(passage.path) or (None if config_syntax(passage.format, passage.path) else _guess(passage.text))


def _guess(text: str) -> str | None:
    return next((language for language, looks in _GUESSES if looks.search(text, 0, MAX_LOOKED_AT)), None)


def _remarks(passage: Passage, language: str) -> Iterator[Claim]:
    """Read comments and docstrings as prose."""
    if language == "json":
        return
    for remark in comment_blocks(passage.text, language):
        if _SAYS.search(remark.text):
            for claim in prose_claims(replace(passage, text=remark.text, start=0)):
                start, end = remark.place(claim.span.start), remark.place(claim.span.end - 1) + 1
                yield replace(claim, span=Span(passage.start + start, passage.start + end))


def _prose(passage: Passage) -> Iterator[Claim]:
    text = passage.text
    for match in _FENCE.finditer(text) if "```" in text or "~~~" in text else ():
        yield from _fenced(passage, match["name"].lower(), match["body"], match.start("body"))
    yield from prose_claims(passage)
    yield from table_claims(passage)


def _fenced(passage: Passage, name: str, body: str, at: int) -> Iterable[Claim]:
    """Read a fenced block: it shows how, so it is an example."""
    inner = replace(passage, text=body, start=passage.start + at)
    name = _NAMES.get(name, name)
    if name in _SYNTAXES:
        claims = config_claims(inner, name)
    else:
        language = name if name in LANGUAGES else (_guess(body) if not name else None)
        claims = code_claims(inner, language) if language else []
    return (replace(claim, mood="example") for claim in claims)
