"""``python -m lab.fuzz``: random documents, or snippets repeated to a size; exit 1 if any shows a defect."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track

from lab.fuzz.targets import TARGETS, FuzzOutcome, FuzzTarget, read

MAX_PIECES = 24
_SLOW_S = 2.0


def mixed(seed: int, count: int) -> Iterator[tuple[FuzzTarget, bytes]]:
    """Yield random documents, the same for a seed: snippets of a format, repeated, mixed with others and damaged."""
    for number in range(count):
        chance = random.Random(f"{seed}/{number}")  # noqa: S311 - nothing secret
        target = chance.choice(TARGETS)
        pieces = [
            _foreign(chance) if chance.random() < 0.1 else chance.choice(target.snippets) * chance.choice((1, 1, 2, 9))
            for _ in range(chance.randint(1, MAX_PIECES))
        ]
        yield target, _damaged(target.raw("".join(pieces)), chance)


def _foreign(chance: random.Random) -> str:
    if chance.random() < 0.5:
        return chance.choice(chance.choice(TARGETS).snippets)
    return "".join(chr(chance.choice((9, 10, 32, 92, 0x85, 0xA0, 0x301, 0x2028, 0x1F600))) for _ in range(4))


def _damaged(raw: bytes, chance: random.Random) -> bytes:
    """Cut, double or overwrite some bytes of every third document."""
    for _ in range(chance.choice((0, 0, 0, 0, 1, 3))):
        at = chance.randrange(len(raw) + 1)
        span = chance.randint(0, 20)
        middle = chance.choice((b"", raw[at : at + span] * 2, chance.randbytes(span)))
        raw = raw[:at] + middle + raw[at + span :]
    return raw


def repeated(size: int) -> Iterator[tuple[FuzzTarget, bytes]]:
    """Yield each snippet of each format, repeated to about ``size`` bytes."""
    for target in TARGETS:
        for snippet in target.snippets:
            yield target, target.raw(snippet * max(1, size // len(snippet.encode())))


def main(
    inputs: Annotated[int, typer.Option(help="How many random documents.")] = 100_000,
    seed: Annotated[int, typer.Option(help="Other seeds make other documents.")] = 1,
    size: Annotated[int, typer.Option(help="Instead: every snippet repeated to so many bytes.")] = 0,
    only: Annotated[str, typer.Option(help="With --size: only files whose name ends so.")] = "",
) -> None:
    """Read documents and print what became of them, and those that took more than 2 s of processor time."""
    cases: Iterable[tuple[FuzzTarget, bytes]] = repeated(size) if size else mixed(seed, inputs)
    total = sum(len(target.snippets) for target in TARGETS) if size else inputs
    states: Counter[str] = Counter()
    for target, raw in track(cases, "reading", total=total, console=Console(stderr=True)):
        if only and not target.path.endswith(only):
            continue
        outcome = read(target, raw)
        states[outcome.state] += 1
        if outcome.state in {"trouble", "lost"} or outcome.cpu_s > _SLOW_S:
            typer.echo(_line(target, raw, outcome))
    typer.echo(", ".join(f"{state} {count:,}" for state, count in sorted(states.items())))
    sys.exit(1 if states["trouble"] or (states["lost"] and not size) else 0)


def _line(target: FuzzTarget, raw: bytes, outcome: FuzzOutcome) -> str:
    parser, reason = target.parser.__name__, outcome.reason[:160]
    return f"{outcome.state} {outcome.cpu_s:.1f} s {parser} {target.path} {raw[:60]!r} {reason}"


if __name__ == "__main__":
    typer.run(main)
