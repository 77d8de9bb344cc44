"""How often code that a page quotes is one item with the code, and code that was changed is not.

``python -m lab.quotations FOLDER`` draws functions from the Python files of a folder with a fixed seed. Each is quoted
in five ways, as it is and with one word or operator of its code changed. The table shows the share that merges.
"""

from __future__ import annotations

import ast
import random
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from lab.duplicates import LabelledPair, PairSide, judge

QUOTATIONS = {
    "fence": "```python\n{code}\n```\n",
    "fence under a sentence": "It is written so:\n\n~~~py\n{code}\n~~~\n",
    "directive": "It is written so:\n\n.. code-block:: python\n\n{indented}\n",
    "double colon": "It is written so::\n\n{indented}\n",
    "indented": "It is written so:\n\n{indented}\n",
}
LINES = range(4, 41)
_TOKEN = re.compile(r"\b\d+\b|\b[a-z_]{4,}\b|[=!<>]=")
_PROSE = re.compile(r"\"\"\".*?\"\"\"|'''.*?'''|#[^\n]*", re.DOTALL)


def functions(folder: Path) -> Iterator[str]:
    """Yield the functions of 4 to 40 lines, by path and line; files that are not Python are left out."""
    for path in sorted(folder.rglob("*.py")):
        try:
            text = path.read_text(encoding="utf-8")
            tree = ast.parse(text)
        except (OSError, SyntaxError, UnicodeDecodeError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = text.split("\n")[node.lineno - 1 : node.end_lineno]
                if len(lines) in LINES:
                    yield textwrap.dedent("\n".join(lines))


def changed(code: str, chance: random.Random) -> str | None:
    """Return code with one word, number or comparison changed, comments and docstrings aside; ``None`` without one."""
    prose = [range(*found.span()) for found in _PROSE.finditer(code)]
    tokens = [
        found
        for found in _TOKEN.finditer(code, code.find("\n"))
        if not any(found.start() in stretch for stretch in prose)
    ]
    if not tokens:
        return None
    token = chance.choice(tokens)
    word = token[0]
    other = {"==": "!=", "!=": "==", "<=": ">=", ">=": "<="}.get(word) or (
        str(int(word) + 1) if word.isdigit() else "another_name"
    )
    return code[: token.start()] + other + code[token.end() :]


def is_merged(code: str, page: str) -> bool:
    """Tell whether a function and a page become one item."""
    sides = PairSide(code, "code", "module.py"), PairSide(page, "documentation", "page.md")
    return judge(LabelledPair("quotation", *sides, duplicate=True, note="", split="test")).merged


def main(
    folder: Annotated[Path, typer.Argument(help="Python files of any kind.", exists=True, file_okay=False)],
    count: Annotated[int, typer.Option(help="Functions that are drawn.")] = 500,
    seed: Annotated[int, typer.Option(help="Of the draw and of the changes.")] = 5,
) -> None:
    """Print the share of quotations that merge: of equal code, and of code with one word changed."""
    chance = random.Random(seed)  # noqa: S311
    drawn = sorted(functions(folder))
    drawn = chance.sample(drawn, min(count, len(drawn)))
    pairs = [(code, other) for code in drawn if (other := changed(code, chance)) is not None]
    table = Table("quoted as", "equal", "one word changed", box=None, title=f"{len(pairs)} functions")
    for name, template in QUOTATIONS.items():
        pages = [
            [template.format(code=text, indented=textwrap.indent(text, "    ")) for text in pair] for pair in pairs
        ]
        shares = [
            sum(is_merged(code, page[side]) for (code, _), page in zip(pairs, pages, strict=True)) / len(pairs)
            for side in (0, 1)
        ]
        table.add_row(name, *(f"{share:.3f}" for share in shares))
    Console(width=100).print(table)


if __name__ == "__main__":
    typer.run(main)
