"""Judge who uses a name against jedi: ``python -m lab.uses FOLDER…``, each a checkout of Python code.

Jedi is no dependency: install it beside (``PYTHONPATH``). Of each checkout a seeded sample of definitions is asked for.
Precision is that of *resolved* references, recall that of both classes; a reference is a path and a line.
"""

from __future__ import annotations

import argparse
import random
import re
import time
from importlib import import_module
from pathlib import Path

from nornweave.core.text.terminal import print_text
from nornweave.read.chunking.references import Meanings, Place, references_of

Lines = set[tuple[str, int]]


def definitions_of(texts: dict[str, str]) -> list[tuple[Place, int]]:
    """Return what a checkout defines outside its tests, with lines, by path and name."""
    found = []
    for path, text in texts.items():
        names = set(re.findall(r"^[ ]*(?:async def|def|class) (\w+)", text, re.MULTILINE))
        for name in sorted(names):
            if "test" not in path and not name.startswith("__"):
                defined = references_of(path, text, name).definitions
                found += [(Place(path, qualified), line) for qualified, line in defined.items()]
    return sorted(found)


def our_uses(texts: dict[str, str], place: Place) -> tuple[Lines, Lines]:
    """Return the resolved uses of a definition, and those that may be by their name."""
    name = place.name.rpartition(".")[2]
    files = [references_of(path, text, name) for path, text in texts.items() if re.search(rf"\b{name}\b", text)]
    meanings = Meanings(files, texts)
    resolved: Lines = set()
    by_name: Lines = set()
    for file in files:
        for reference in file.references:
            meant = meanings.definition(file.path, reference.meaning)
            if meant in {None, place}:
                (resolved if meant else by_name).add((file.path, reference.line))
    return resolved, by_name - resolved


def judged_uses(folder: Path, texts: dict[str, str], place: Place, line: int) -> Lines | None:
    """Return what jedi finds; ``None`` when it does not find the definition, or gets lost."""
    jedi = import_module("jedi")
    name, rows = place.name.rpartition(".")[2], texts[place.path].splitlines()
    for at in range(line, min(line + 20, len(rows) + 1)):  # below its decorators
        if match := re.match(rf"\s*(?:async def|def|class) ({name})\b", rows[at - 1]):
            script = jedi.Script(path=folder / place.path, project=jedi.Project(folder))
            try:
                found = script.get_references(at, match.start(1))
            except RecursionError:
                return None
            places = [(one.module_path, one.line) for one in found]  # imports are definitions to jedi
            inside = [(path.resolve(), line) for path, line in places if path]
            uses = {(str(path.relative_to(folder)), line) for path, line in inside if path.is_relative_to(folder)}
            return uses - {(place.path, at)}
    return None


def main() -> None:
    """Print precision and recall of each checkout, and where the two disagree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--sample", type=int, default=60)
    parser.add_argument("--seed", type=int, default=44)
    parser.add_argument("--verbose", action="store_true")
    asked = parser.parse_args()
    for folder in map(Path.resolve, asked.folders):
        texts = {str(path.relative_to(folder)): path.read_text("utf-8") for path in sorted(folder.rglob("*.py"))}
        all_definitions = definitions_of(texts)
        sample = random.Random(asked.seed).sample(all_definitions, min(asked.sample, len(all_definitions)))  # noqa: S311
        right = resolved_count = met = expected_count = judged = 0
        took_s = 0.0
        for place, line in sample:
            started = time.perf_counter()
            resolved, by_name = our_uses(texts, place)
            took_s += time.perf_counter() - started
            expected = judged_uses(folder, texts, place, line)
            if expected is None:
                continue
            judged += 1
            right += len(resolved & expected)
            resolved_count += len(resolved)
            met += len(expected & (resolved | by_name))
            expected_count += len(expected)
            if asked.verbose and (resolved - expected or expected - resolved - by_name):
                wrong, missed = sorted(resolved - expected)[:5], sorted(expected - resolved - by_name)[:5]
                print_text(f"{place.path} {place.name}: not jedi's {wrong}, missed {missed}")
        print_text(
            f"{folder.name}: {judged} of {len(all_definitions)} definitions; resolved {resolved_count}, precision "
            f"{right / max(1, resolved_count):.3f}; jedi {expected_count}, recall {met / max(1, expected_count):.3f}, "
            f"of resolved alone {right / max(1, expected_count):.3f}; "
            f"{1000 * took_s / max(1, len(sample)):.0f} ms a name"
        )


if __name__ == "__main__":
    main()
