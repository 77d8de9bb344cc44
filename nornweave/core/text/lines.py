"""Split text into lines as git counts them: only a line feed ends one."""

from __future__ import annotations


def lines_of(text: str) -> list[str]:
    """Split a text into lines, without their ends."""
    return [line.removesuffix("\r") for line in text.split("\n")]
