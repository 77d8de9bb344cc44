"""What an option is that the code declares and nothing sets: a switch is off, a number 0, everything else empty.

It holds a page that says so of exactly that name (``Default: false``), if no place of the code gives the name a value.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator

from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.conflicts import LocatedFact
from nornweave.disagree.conflicts.decision import CandidatePair
from nornweave.disagree.drift.files import SourceFile, without_tests
from nornweave.disagree.drift.induced.believing import CodeFact, learned_fact
from nornweave.disagree.drift.induced.code import DECLARED, CodeStatement
from nornweave.disagree.facts.comparison import FactComparison
from nornweave.disagree.facts.names import is_generic, read_name, words_of
from nornweave.disagree.facts.values import FALSE, NONE, Value

STRENGTH = 0.6
"""Of a pair of a page and a declaration."""
MAX_PLACES = 3
"""Declarations of one name; more are of many things."""
_SWITCH = r"[bB]ool(?:ean)?|_Bool|gboolean"
_NUMBER = (
    r"(?:unsigned|signed|long|short|number|double|float(?:32|64)?|[ui](?:8|16|32|64|size)|u?int(?:8|16|32|64)?(?:_t)?"
    r"|size_t|time\.Duration)(?: (?:int|long))*"
)
_OTHER = r"[sS]tring|std::string|char ?\*|(?:Option|Vec|List|Set|Map)<[^=;\n]{1,60}>|\*[\w.]+|(?:\[\]|map\[)[\w.\]\[*]+"
_TYPE = rf"(?P<type>(?P<switch>(?:Option<|\*)?(?:{_SWITCH})>?)|(?P<number>{_NUMBER})|{_OTHER})"
_WORDS = r"(?:(?:public|private|protected|internal|static|final|readonly|volatile|const|pub(?:\([^)\n]*\))?) )*"
_FIELD = lazy_pattern(
    rf"^[ \t]+{_WORDS}(?:(?P<name>[A-Za-z_]\w*)(?:\??:[ \t]*|[ \t]+){_TYPE}(?:[ \t]*\|[ \t]*undefined)?"
    rf"[ \t]*(?:`[^`\n]*`)?[,;]?[ \t]*(?://.*)?$|{_TYPE.replace('?P<', '?P<c_')}[ \t*]+(?P<c_name>[A-Za-z_]\w*)"
    r"(?:[ \t]*:[ \t]*1)?[ \t]*;)"
    r"|[\"'](?:-\w[,/ |]+)*(?:--)?(?P<flag>[A-Za-z][\w-]+)[\"'](?=(?:[^()\n]|\n(?!\n)){0,300}?"
    r"\b(?:action=[\"']store_true|is_flag=True(?![^()]{0,200}\bdefault)))"
    r"|^[ \t]*[\"']?(?P<key>[A-Za-z][\w-]*)[\"']?:\s*\{(?=[^{}]{0,200}?\btype:\s*[\"']boolean[\"'])(?![^{}]*\bdefault)"
    r"|\.option\(\s*[\"'](?:-\w[, |]+)?--(?P<option>[A-Za-z][\w-]+)[\"']\s*,\s*(?:\"[^\"\n]*\"|'[^'\n]*')\s*\)",
    re.MULTILINE,
)
_NAMING = ("name", "c_name", "flag", "key", "option")
_OPENED = lazy_pattern(r"\b(?:struct|class|interface|type|record|object)[ \t]+(\w+)")


def unset_pairs(
    files: Iterable[SourceFile], facts: Iterable[LocatedFact], pairs: Iterable[CandidatePair],
    text_of: Callable[[SourceFile], str],
) -> list[CandidatePair]:  # fmt: skip
    """Return pairs of an empty default on a page and a declaration of its name, both agreeing.

    Args:
        facts: what extractors read on the pages.
        pairs: the documented values with values of the code: names among them are left out.
    """
    set_ = {(pair.other.path, pair.other.fact.name) for pair in pairs}
    said: dict[str, list[LocatedFact]] = defaultdict(list)
    for one in facts:
        fact = one.fact
        is_empty = fact.kind == "none" or fact.value in {"false", "0", "", "[]", "{}"}
        is_default = fact.side == "documentation" and fact.attribute == "default" and one.domain == "documentation"
        if is_default and is_empty and not fact.negated and (one.path, fact.name) not in set_:
            said["".join(fact.name.split())].append(one)
    declared: dict[str, list[CodeFact]] = defaultdict(list)
    for file in files if said else ():
        if file.kind == "code" and file.program is not None:
            for joined, one in _declared(file, without_tests(text_of(file), file.suffix), said):
                declared[joined].append(one)
    found = []
    for joined, pages in said.items():
        for page in pages:
            about = {*page.fact.owner.split(), *words_of(page.title or "")}
            near = [one for one in declared.get(joined, ()) if not about.isdisjoint(one.fact.owner.split())]
            codes = near or ([] if is_generic(page.fact.name) else declared.get(joined, []))
            if 0 < len(codes) <= MAX_PLACES and all(_is_so(one, page) for one in codes):
                named = max(codes, key=lambda one: one.standing)
                found.append(CandidatePair(named, page, FactComparison.AGREE, STRENGTH))
    return found


def _is_so(code: CodeFact, page: LocatedFact) -> bool:
    said = page.fact.value if page.fact.kind in {"boolean", "number"} else "none"
    return said in {code.fact.value, "none"} or (said == "0" and code.fact.value == "false")


def _declared(file: SourceFile, text: str, wanted: Collection[str]) -> Iterator[tuple[str, CodeFact]]:
    """Yield the declarations without a value of the wanted names, each with its name without blanks."""
    line = at = 0
    for match in _FIELD.finditer(text):
        written = next(filter(None, match.group(*_NAMING)))
        name = read_name(written)
        joined = name.name.replace(" ", "") if name else ""
        joined = joined if joined in wanted else joined.removeprefix("is")
        if name is None or joined not in wanted:
            continue
        start, end = match.span(next(one for one in _NAMING if match[one]))
        line, at = line + text.count("\n", at, start), start
        is_number = match["number"] or match["c_number"]
        is_other = (match["type"] or match["c_type"]) and not (match["switch"] or match["c_switch"])
        value = Value("number", "0") if is_number else NONE if is_other else FALSE
        statement = CodeStatement(written, name, value, line, start, end, ("", "", ""))
        opened = _OPENED.findall(text, max(0, start - 4000), start)
        fact = learned_fact(statement, name, " ".join(words_of(opened[-1] if opened else "")), "code")
        place = (line + 1, line + 1)
        standing = DECLARED if "`" in match[0] else 1  # a tag, which names what a file of settings has
        yield joined, CodeFact(fact=fact, domain="code", path=file.path, line_range=place, standing=standing)
