"""Tokenizers of two makers of models, whose files a dependency carries."""

import importlib.util
from functools import cache
from pathlib import Path

import tiktoken
from tiktoken.load import load_tiktoken_bpe
from tokenizers import Tokenizer

PATTERN = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)


@cache
def _loaded() -> tuple[tiktoken.Encoding, Tokenizer]:
    # Found without importing litellm, which takes seconds.
    found = importlib.util.find_spec("litellm")
    assert found
    assert found.origin
    folder = Path(found.origin).parent / "litellm_core_utils" / "tokenizers"
    ranks = load_tiktoken_bpe(str(folder / "9b5ad71b2ce5302211f9c61530b329a4922fc6a4"))
    openai = tiktoken.Encoding("cl100k", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={})
    return openai, Tokenizer.from_file(str(folder / "anthropic_tokenizer.json"))


def most_tokens(text: str) -> int:
    """Count the tokens of a text, by the tokenizer that needs more."""
    openai, anthropic = _loaded()
    return max(len(openai.encode(text)), len(anthropic.encode(text).ids))
