"""Read .ipynb: cells as prose and code, with the text of their outputs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nornweave.core.errors import DocumentError
from nornweave.core.types import Section, Span, freeze
from nornweave.read.access_statements import access_metadata
from nornweave.read.formats.markdown import closed, fenced, joined, plain
from nornweave.read.front_matter import first_heading
from nornweave.read.parsed import Parsed

MAX_CELLS = 20_000
MAX_OUTPUT = 4_000
"""Characters of one cell's output; what is longer is a log or data, and its end is left out."""

# Tags of Jupyter Book, nbconvert and Quarto.
_UNSEEN_CELL = frozenset({"remove-cell", "hide-cell"})
_UNSEEN_INPUT = frozenset({"remove-input"})
_UNSEEN_OUTPUT = frozenset({"remove-output"})
_FOLDED = {"source_hidden": "remove-input", "outputs_hidden": "remove-output"}
_CONTENT = frozenset({"metadata", "cells", "source", "outputs", "attachments"})
_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_DATA = re.compile(r"\((?:data:|attachment:)[^)]*\)")


def read_ipynb(raw: bytes) -> Parsed:
    """Turn a notebook of format 4 into Markdown. There is one section for each cell, with a name such as ``cell 12``.

    Raises:
        DocumentError: the bytes are not a notebook.
    """
    notebook = _load(raw)
    language = _language(notebook)
    left_out: list[str] = []
    written: list[tuple[int, str]] = []
    for number, cell in enumerate(_cells(notebook), 1):
        tags = _tags(cell) if isinstance(cell, Mapping) else _UNSEEN_CELL
        if tags & _UNSEEN_CELL:
            left_out.append(f"cell {number}: hidden")
            continue
        text = _cell(cell, language, number, left_out, tags)
        if text:
            written.append((number, text))
    text = "\n\n".join(text for _, text in written)
    cells = [cell for cell in _cells(notebook) if isinstance(cell, Mapping)]
    access = access_metadata(
        *((_text(cell.get("source")), "markdown") for cell in cells if cell.get("cell_type") != "code"),
        fields=[
            pair
            for part in (notebook, *cells)
            for place in (part, part.get("metadata"))
            if isinstance(place, Mapping)
            for pair in place.items()
            if pair[0] not in _CONTENT
        ],
    )
    return Parsed(
        text=text,
        sections=tuple(_sections(written)),
        title=first_heading(text, "markdown"),
        metadata=freeze({"language": language or None, "left_out": tuple(left_out) or None, **access}),
    )


def _load(raw: bytes) -> Mapping[str, Any]:
    try:
        loaded = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"broken notebook: {error}; expected JSON, save it again") from error
    if not isinstance(loaded, dict) or "cells" not in loaded:
        raise DocumentError("not a notebook of format 4 (2015): it has no cells; open it in Jupyter and save it again")
    return loaded


def _cells(notebook: Mapping[str, Any]) -> Sequence[Any]:
    found = _list(notebook["cells"])
    if len(found) > MAX_CELLS:
        raise DocumentError(f"too long: {len(found):,} cells, at most {MAX_CELLS:,} are read; split the notebook")
    return found


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _language(notebook: Mapping[str, Any]) -> str:
    metadata = notebook.get("metadata")
    told = metadata if isinstance(metadata, dict) else {}
    for key in ("language_info", "kernelspec"):
        section = told.get(key)
        name = section.get("name" if key == "language_info" else "language") if isinstance(section, dict) else None
        if isinstance(name, str) and re.fullmatch(r"[\w+#.-]{1,40}", name):
            return name.lower()
    return ""


def _tags(cell: Mapping[str, Any]) -> frozenset[str]:
    """Return the tags of a cell, with ``-`` between words. What Jupyter folds away counts as tagged."""
    metadata = cell.get("metadata")
    told = metadata if isinstance(metadata, Mapping) else {}
    folded = told.get("jupyter")
    marks = [tag for key, tag in _FOLDED.items() if isinstance(folded, Mapping) and folded.get(key) is True]
    tags = [tag for tag in _list(told.get("tags")) if isinstance(tag, str)]
    return frozenset(tag.strip().lower().replace("_", "-") for tag in (*tags, *marks))


def _cell(cell: Mapping[str, Any], language: str, number: int, left_out: list[str], tags: frozenset[str]) -> str:
    kind, source = cell.get("cell_type"), _text(cell.get("source"))
    if kind != "code":
        return closed(_DATA.sub("()", source).strip("\n")) if kind == "markdown" else plain(source).strip("\n")
    outputs = joined(_outputs(_list(cell.get("outputs")), number, left_out)) if not tags & _UNSEEN_OUTPUT else ""
    if tags & _UNSEEN_INPUT:
        left_out.append(f"cell {number}: hidden code")
        source = ""
    return joined((fenced(source, language) if source.strip() else "", outputs))


def _outputs(outputs: Sequence[Any], number: int, left_out: list[str]) -> Iterator[str]:
    spent = 0
    for output in outputs:
        if not isinstance(output, Mapping):
            continue
        text = _COLOURS.sub("", _output(output)).strip("\n")
        if spent + len(text) > MAX_OUTPUT:
            left_out.append(f"cell {number}: output beyond {MAX_OUTPUT:,} characters")
            text = text[: MAX_OUTPUT - spent] + "\n…"
        spent += len(text)
        if text.strip() and text != "\n…":
            yield fenced(text, "text")
        if spent > MAX_OUTPUT:
            return


def _output(output: Mapping[str, Any]) -> str:
    if output.get("output_type") == "error":
        return f"{output.get('ename')}: {output.get('evalue')}"
    data = output.get("data")
    if isinstance(data, Mapping):
        return _text(data.get("text/markdown") or data.get("text/plain"))
    return _text(output.get("text"))


def _text(source: object) -> str:
    """Return a text of a notebook as a string. In the file it may be a list of lines."""
    if isinstance(source, list):
        return "".join(line for line in source if isinstance(line, str))
    return source if isinstance(source, str) else ""


def _sections(written: Sequence[tuple[int, str]]) -> Iterator[Section]:
    start = 0
    for place, (number, text) in enumerate(written):
        end = start + len(text) + (2 if place + 1 < len(written) else 0)
        yield Section(span=Span(start, end), heading=f"cell {number}")
        start = end
