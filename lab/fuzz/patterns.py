"""``python -m lab.fuzz.patterns``: texts that nearly match each regular expression; exit 1 if one takes too long.

A pattern that may split a text in many ways, as ``(a+)+b`` may, takes time that doubles with each character, and the
document with such a text is left out as too slow. Each pattern is tried with texts of its own form, long and broken
off, under a limit of processor time.
"""

from __future__ import annotations

import importlib
import pkgutil
import random
import re
import re._constants as codes  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType
from typing import Annotated, Any

import typer

import api
import nornweave

LIMIT_S = 1.0
"""Of processor time, for one text of at most ``LONGEST`` characters."""
LONGEST = 2_000
_ANY = "abcXY01.-_( \n"
_OF_CATEGORY: Mapping[Any, str] = {
    codes.CATEGORY_WORD: "abZ9_", codes.CATEGORY_NOT_WORD: " .-(", codes.CATEGORY_DIGIT: "09",
    codes.CATEGORY_NOT_DIGIT: "a .", codes.CATEGORY_SPACE: " \n\t", codes.CATEGORY_NOT_SPACE: "ab.(",
}  # fmt: skip


class TooSlowError(Exception):
    """The limit of processor time was reached."""


def patterns() -> dict[str, re.Pattern[str]]:
    """Import all modules of ``nornweave`` and ``api``. Return the patterns that they hold, each once, by place.

    A place is a module and a name; the patterns of a table are counted.
    """
    found: dict[tuple[str, int], tuple[str, re.Pattern[str]]] = {}
    for package in (nornweave, api):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                for name, value in vars(importlib.import_module(module.name)).items():
                    for count, each in enumerate(_held(value)):
                        place = f"{module.name}.{name}{f'[{count}]' if count else ''}"
                        found.setdefault((each.pattern, each.flags), (place, each))
    return dict(found.values())


def _held(value: object) -> Iterator[re.Pattern[str]]:
    if isinstance(value, dict | list | tuple):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _held(each)
    elif isinstance(getattr(value, "pattern", None), str) and hasattr(value, "finditer"):
        yield value  # type: ignore[misc]


def too_slow(pattern: re.Pattern[str], seed: int, tries: int) -> str | None:
    """Return a text on which a pattern takes longer than the limit, or ``None``."""
    chance = random.Random(f"{seed}/{pattern.pattern!a}")  # noqa: S311 - nothing secret
    tree = parser.parse(pattern.pattern, pattern.flags)
    for _ in range(tries):
        text = _near(tree, chance, 0)
        often = LONGEST // max(1, len(text))
        for tried in (f"{text * often}\0", f"{text[:-1]}\0", f"{text}\n" * often, text[: len(text) * 2 // 3]):
            if not _ends(pattern, tried[:LONGEST]):
                return tried[:LONGEST]
    return None


def _ends(pattern: re.Pattern[str], text: str) -> bool:
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT_S)
    try:
        for _ in pattern.finditer(text):
            pass
    except TooSlowError:
        return False
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return True


def _near(tree: Any, chance: random.Random, depth: int) -> str:
    """Return a text of the form of a parsed pattern. Assertions are not regarded."""
    parts: list[str] = []
    for code, value in tree:
        if code is codes.LITERAL:
            parts.append(chr(value))
        elif code in {codes.ANY, codes.NOT_LITERAL}:
            parts.append(chance.choice(_ANY.replace(chr(value or 0), "")))
        elif code is codes.IN:
            parts.append(_of_class(value, chance))
        elif code in {codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT}:
            least, most, repeated = value
            times = min(int(most), least + chance.choice((0, 1, 8, 6 if depth > 1 else 60)))
            parts.extend(_near(repeated, chance, depth + 1) for _ in range(min(times, LONGEST // (depth + 1))))
        elif code in {codes.SUBPATTERN, codes.ATOMIC_GROUP}:
            parts.append(_near(value[-1] if code is codes.SUBPATTERN else value, chance, depth))
        elif code is codes.BRANCH:
            parts.append(_near(chance.choice(value[1]), chance, depth))
    return "".join(parts)[:LONGEST]


def _of_class(members: Sequence[tuple[Any, Any]], chance: random.Random) -> str:
    held = "".join(
        chr(value) if code is codes.LITERAL
        else chr(value[0]) + chr(value[1]) if code is codes.RANGE
        else _OF_CATEGORY.get(value, "")
        for code, value in members
    )  # fmt: skip
    if members[0][0] is codes.NEGATE:
        held = "".join(each for each in _ANY if each not in held)
    return chance.choice(held or "~")


def _stop(_signal: int, _frame: FrameType | None) -> None:
    raise TooSlowError


def main(
    tries: Annotated[int, typer.Option(help="Texts for each pattern.")] = 40,
    seed: Annotated[int, typer.Option(help="Other seeds make other texts.")] = 1,
    only: Annotated[str, typer.Option(help="Only patterns whose module and name contain this.")] = "",
) -> None:
    """Try each regular expression of the program with texts that nearly match it."""
    signal.signal(signal.SIGVTALRM, _stop)
    found = {name: each for name, each in patterns().items() if only in name}
    slow = {name: text for name, each in found.items() if (text := too_slow(each, seed, tries)) is not None}
    for name, text in slow.items():
        typer.echo(f"{name}: {len(text)} characters: {text[:160]!r}")
    typer.echo(f"{len(found):,} patterns, {len(slow)} of them too slow")
    sys.exit(1 if slow else 0)


if __name__ == "__main__":
    typer.run(main)
