"""What pages document: every entry that names an option in code markup, read or not, and what became of it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from nornweave.disagree.conflicts.decision import CandidatePair
from nornweave.disagree.drift.agreements import shown
from nornweave.disagree.drift.files import SourceFile
from nornweave.disagree.drift.records import Coverage, DocumentedOption
from nornweave.disagree.facts.comparison import FactComparison
from nornweave.disagree.facts.documentation.blocks import DocumentedBlock, blocks_of
from nornweave.disagree.facts.documentation.surface import surface_of
from nornweave.disagree.facts.documentation.tables import read_table
from nornweave.disagree.facts.documentation.tokens import Token, tokens_of
from nornweave.disagree.facts.names import read_name

NO_CODE = "the code has no such name"
NO_VALUE = "no value of it is read on the page"
NO_PARTNER = "no value beside the name in code is read"
_SPELT = re.compile(r"\w[._-]\w|[a-z][A-Z]|^--?\w")
"""As only names are spelt."""
_AROUND = frozenset("`:<>(_*[|")
_NOT_OPTIONS = re.compile(r"[/\\(){}<>=]|\.\w{1,4}$|^\d")
"""Of a name in code markup: a path, a call, a file, an expression."""


def documented_options(text: str) -> Iterator[tuple[str, int]]:
    """Yield the name and the line, from 0, of each entry of a page that names an option in code markup.

    Entries are headings, items of lists, rows of tables, and terms that stand on a line of their own.
    """
    plain = surface_of(text, comment=False)
    starts = [0, *(match.end() for match in re.finditer("\n", plain))]
    for block in blocks_of(plain, plain):
        if block.kind != "code":
            for token in _named(plain, block):
                name = read_name(token.name)
                if name is not None and len(name.name) > 1 and not _NOT_OPTIONS.search(token.name):
                    yield token.name, bisect_right(starts, token.start) - 1


def _named(text: str, block: DocumentedBlock) -> Iterator[Token]:
    if block.kind == "table":
        for row in read_table(text, block)[0]:
            words = _words(text[row[0].start : row[0].end], row[0].start)
            if len(words) == 1 and (words[0].quoted or _SPELT.search(words[0].text)):
                yield words[0]
        return
    for match in re.finditer(r"[^\n]+", text[block.body : block.end]):
        words = _words(match[0], block.body + match.start())
        if block.kind == "heading" and len(words) == 1 and _SPELT.search(words[0].text):
            yield words[0]
            return
        is_lead = match.start() == 0 and block.kind != "paragraph"
        if words and (words[0].quoted or words[0].text.startswith("-")) and (is_lead or len(words) == 1):
            yield words[0]
        if block.kind != "paragraph":
            return


def _words(text: str, start: int) -> list[Token]:
    return [one for one in tokens_of(text.replace("\n", " "), start) if one.text not in _AROUND]


def states_of(
    pages: Iterable[SourceFile],
    text_of: Callable[[SourceFile], str],
    pairs: Sequence[CandidatePair],
    stated: Collection[tuple[str, str]],
    in_code: Callable[[str], bool],
) -> list[DocumentedOption]:
    """Return every documented option with its state, by page and line.

    Args:
        pairs: documented values beside those of the code.
        stated: path and name, in canonical form, of every value that a page states.
        in_code: whether a name, in canonical form, stands in the code in any spelling.
    """
    compared: dict[tuple[str, str], list[CandidatePair]] = defaultdict(list)
    for pair in pairs:
        compared[pair.other.path, pair.other.fact.name].append(pair)
    found = []
    for file in pages:
        seen: set[str] = set()
        for written, line in documented_options(text_of(file)):
            name = read_name(written)
            if name is None or name.name in seen:
                continue
            seen.add(name.name)
            found.append(_state(written, file.path, line, name.name, compared, stated, in_code))
    return found


def _state(
    written: str, path: str, line: int, name: str,
    compared: dict[tuple[str, str], list[CandidatePair]], stated: Collection[tuple[str, str]],
    in_code: Callable[[str], bool],
) -> DocumentedOption:  # fmt: skip
    pairs = compared.get((path, name), [])
    agreeing = [pair for pair in pairs if pair.outcome is FactComparison.AGREE]
    if pairs:
        pair = max(agreeing or pairs, key=lambda one: one.strength)
        code = f"{pair.code.path}:{pair.code.fact.line + 1}"
        return DocumentedOption(
            path=path, line=line + 1, name=written, value=shown(pair.other.fact),
            state="held" if agreeing else "differs",
            reason="" if agreeing else f"the code says {shown(pair.code.fact)}", code=code,
        )  # fmt: skip
    reason = NO_CODE if not in_code(name) else NO_PARTNER if (path, name) in stated else NO_VALUE
    return DocumentedOption(
        path=path, line=line + 1, name=written, value="", state="not_compared", reason=reason, code=""
    )


def with_options(coverage: Coverage, options: Sequence[DocumentedOption]) -> Coverage:
    """Add what pages document to what was read of them."""
    states = Counter(one.state for one in options)
    missing = Counter(one.reason for one in options if one.state == "not_compared")
    return Coverage(
        read=coverage.read, compared=coverage.compared, agree=coverage.agree, not_compared=coverage.not_compared,
        documented=len(options), options_compared=states["held"] + states["differs"], options_held=states["held"],
        options_not_compared=dict(missing.most_common()),
    )  # fmt: skip
