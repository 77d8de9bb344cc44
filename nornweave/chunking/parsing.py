"""Text → syntax tree, whose byte offsets are the text's character offsets."""

from __future__ import annotations

import re
import time
from functools import lru_cache
from typing import cast

from tree_sitter import Language, Parser, Tree
from tree_sitter_language_pack import SupportedLanguage, get_language

from nornweave.chunking.languages import Grammar

# Ordinary source takes less than a second a megabyte; text that is no source of that language makes tree-sitter's error
# recovery quadratic (600 kB of random punctuation as tsx: 11 s). CPU time, so that a busy machine gives up
# on the same files.
SECONDS_AT_LEAST = 4.0
SECONDS_PER_MEGABYTE = 6.0
READ_BYTES = 1 << 16

# ``class TORCH_API Holder : public Base {``: tree-sitter does not expand macros and takes such a class for a function.
_EXPORT_MACRO = re.compile(rb"\b(class|struct) ([A-Z][A-Z0-9_]{3,60})(?= \w{1,120}(?: final)?[ ]?[:{\n])")

# Only a parse that reads through a callback can be given a deadline, and tree_sitter 0.26 never frees what the callback
# returned. Error recovery is quadratic at worst; up to this size that is half a second.
UNTIMED_BYTES = 128 * 1024


@lru_cache(maxsize=32)
def _language(name: str) -> Language:
    language: Language = get_language(cast(SupportedLanguage, name))
    return language


def mask(text: str) -> bytes:
    """Encode ``text`` with exactly one byte for each character, so that byte offsets *are* character offsets.

    Letters beyond ASCII become ``x``, blank space a space; what they say is always read from the text itself.
    """
    if text.isascii():
        return text.encode("ascii")
    spaced = re.sub(r"[^\S\x00-\x7f]|\ufeff", " ", text)
    return re.sub(r"[^\x00-\x7f]+", lambda match: "x" * len(match[0]), spaced).encode("ascii")


def parse(grammar: Grammar, source: bytes) -> Tree | None:
    """Parse ``source``; ``None`` when the grammar gets lost in it and would take out of all proportion."""
    if grammar.name == "cpp":
        source = _EXPORT_MACRO.sub(lambda match: match[1] + b" " * (len(match[0]) - len(match[1])), source)
    parser = Parser(_language(grammar.name))
    if len(source) <= UNTIMED_BYTES:
        return parser.parse(source)
    deadline = time.thread_time() + SECONDS_AT_LEAST + SECONDS_PER_MEGABYTE * len(source) / 1e6

    def give_up(_offset: int, _has_error: bool) -> bool:
        return time.thread_time() > deadline

    try:
        return parser.parse(lambda at, _point: source[at : at + READ_BYTES], progress_callback=give_up)
    except ValueError:  # "Parsing failed": what the binding makes of a cancelled parse (tree_sitter 0.26)
        return None
