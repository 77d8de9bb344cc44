"""Links and images in a model's text: all are removed except links to the given passages.

A chat client loads an image without being asked, so its address can send data to an attacker. Clients read
Markdown and HTML each in their own way, so nothing is parsed here, not even code: the signs that every reader needs
for a link or an image are broken by one blank (``](``, ``]:``, ``![``, ``<a``), and plain addresses are removed.
"""

from __future__ import annotations

import re
from collections.abc import Collection

LEFT_OUT = "(link left out)"

# GFM 6.9 links what begins so, wherever it stands; some readers do after they have resolved backslashes, or without a
# scheme. An address ends at a blank, `<`, a bracket or a sign that is not ASCII.
_ADDRESS = re.compile(
    r"([a-z][a-z0-9+.-]{0,31}\\*:(?:\\*/){2}(?=\S)|(?<![a-z0-9])www\\*\.(?=\S)|//(?=localhost|[^\s/]{1,64}\.\S))"
    r"((?:[!-;=-Z\\^-~]|\w)*)(?=(\S{0,8}))",
    re.IGNORECASE,
)
_AFTER_AN_ADDRESS = ">.,;:!?)]}'\"*_`|~"
_IMAGE = r"(?<=!)(?=\[)|(?<=<)(?=[A-Za-z/!?])"
_MAIL = r"(?<=[^\s@])(?=@[^\s@])"
_PLAIN = re.compile(r"https?://[^\s<>()\[\]\\\"'`|]+")


def has_address(text: str) -> bool:
    """Tell whether a Markdown reader could make a link of a text without blanks and brackets."""
    return bool(_ADDRESS.search(text) or re.search(_MAIL, text))


def without_images(text: str) -> str:
    """Return the text of documents so that a Markdown reader loads no images; links stay."""
    return re.sub(_IMAGE, " ", text)


class Links:
    """Removes links and images from a text, part by part. A part ends before a blank.

    Attributes:
        left_out: how many addresses were removed so far.
    """

    def __init__(self, urls: Collection[str], shown: str) -> None:
        self._urls = frozenset(filter(_PLAIN.fullmatch, urls))
        self._shown = shown
        own = "|".join(map(re.escape, sorted(self._urls))) or r"\b\B"
        self._gaps = re.compile(rf"{_IMAGE}|(?<=\])(?=:|\((?!(?:{own})\)))|{_MAIL}")
        self.left_out = 0

    def take_out(self, text: str) -> str:
        """Return a part of the text without links and images.

        An address of a passage stays a link. An address in the model's input stays as text, with a blank
        before its host. Any other address is replaced by ``LEFT_OUT``.
        """
        without = _ADDRESS.sub(self._keep_allowed, text).replace(f"({LEFT_OUT})", LEFT_OUT)
        return self._gaps.sub(" ", without)

    def _keep_allowed(self, found: re.Match[str]) -> str:
        address = found[0].rstrip(_AFTER_AN_ADDRESS)
        after = found[0][len(address) :]
        if address in self._urls:
            return (
                f"{found[0]} " if found[3].strip(_AFTER_AN_ADDRESS) else found[0]
            )  # a reader may go on to the next blank
        if address in self._shown:
            return f"{found[1]} {_ADDRESS.sub(self._keep_allowed, found[2])}"
        self.left_out += 1
        return LEFT_OUT + after
