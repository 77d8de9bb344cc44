"""The options that pages document: every entry that names an option in code markup, with its state."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from nornweave.core.text.patterns import lazy_pattern
from nornweave.disagree.conflicts import LocatedFact
from nornweave.disagree.conflicts.decision import CandidatePair
from nornweave.disagree.drift.agreements import MORE, calls_default, option_of, plain_difference
from nornweave.disagree.drift.files import SourceFile
from nornweave.disagree.drift.induced.code import code_uses
from nornweave.disagree.drift.records import Coverage, DocumentedOption
from nornweave.disagree.facts.comparison import FactComparison
from nornweave.disagree.facts.configuration import settings_of_block
from nornweave.disagree.facts.documentation.blocks import INNERMOST, DocumentedBlock, blocks_of, read_table
from nornweave.disagree.facts.documentation.tokens import Token, surface_of, tokens_of
from nornweave.disagree.facts.documentation.walk import flag_of
from nornweave.disagree.facts.names import read_name, words_of

NO_CODE = "the code has no such name"
NO_READ_CODE = "the code that is read has no such name"
NO_VALUE = "no value of it is read on the page"
ELSEWHERE = "other code has the values of its page"
_COMMON = frozenset(("true", "false", "none", "0", "1", '""', "[]"))
NO_PARTNER = "no value beside the name in code is read"
_SPELT = re.compile(r"\w[._-]\w|[a-z][A-Z]|^--?\w")
"""As only names are spelt."""
_AROUND = frozenset("`:<>(_*[|")
_NOT_OPTIONS = re.compile(
    r"[/\\(){}<>=\s]|^\d|^__\w+__$|\w#\w|^\.\w{1,4}$|\.(?:md|rst|te?xt|json|ya?ml|toml|ini|cfg|conf|xml|html?|[sp]?css|less"
    r"|lock|log|env|[bz]?sh|py|rb|[cm]?[jt]sx?|go|rs|java|kts?|[ch]|cc|[ch]pp|cs|php|vue|svg|png|jpe?g|gif|sql|db|exe|bat"
    r"|csv|tf|zip|t?gz|tar|pem|crt|so|lua|exs?|swift)$"
)
"""Of a name in code markup: a path, a call, a file, an expression, a sentence, a placeholder, a method."""
_WRITTEN = lazy_pattern(
    r"`(?:-\w(?:,[ ]?|[ ]?[|/][ ]?|[ ]))?"
    r"(?P<name>\.[A-Za-z]\w*(?=\()|--\w[\w.-]*(?=[= \[])|[A-Za-z_][\w.-]*(?=[ ]?=(?![=>])|[ ][<\[$(]|:[ ]\w))[^`\n]+`"
)
"""A name in code markup with what it takes: ``.rows(int)``, ``--rows=<n>``, ``a.b=10``, ``rows <n>``, ``rows: int``."""
_KEY = lazy_pattern(r"[ \t]*[#!]?[ \t]*(?P<name>[A-Za-z][\w-]*(?:\.[\w-]+)+)=(?!.*[;({])")
"""On a line of properties."""
_SAYS_DEFAULT = frozenset(("default", "defaults", "to", "is", ":", "=", "(", ")"))
"""What may stand in a heading between a name and its value."""
_TERM = lazy_pattern(r"[ \t]*(?:\*\*)?\\?--?[A-Za-z][^\n]{0,80}$")
MOST_KNOWN = 2 / 3
"""Share of a column of words that are names of the code from which they are options."""
_BELOW = lazy_pattern(r"[ \t]{2,}[^\s-]|:[ \t]")
_FLAGS = lazy_pattern(r"(?<![\w-])--?[A-Za-z][\w-]*")
"""A flag with its explanation below it."""
_EXPLAINS = lazy_pattern(r"[*_]*(?:[ \t]*\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\))?[ \t]*(?::|[-\u2013\u2014]+[ \t]|$)")
"""Behind a name that begins a paragraph about it."""
_BETWEEN = frozenset(("or", "and", ",", "/", "|", "]", ")", "**", "alias", "aliases"))
"""What may stand between the spellings of a name."""
_SET_BELOW = lazy_pattern(
    r"\b(?:defaults?|default values?|config(?:uration)? reference|contents? of [^\n]{0,40}config[^\n]{0,20})\b",
    re.IGNORECASE,
)
_GIVEN = lazy_pattern(
    r"[ \t]*[\"']?(?P<name>[a-z][\w-]*)[\"']?(?:[ \t]*=>(?![ \t]*\[$)|(?::[ \t]+|[ \t]*=[ \t]*)[^\s{>](?!.*\())[^\n;]*$"
)
"""On a line of a configuration."""
_VARIABLE = re.compile(r"(?:^[ \t]*(?:export |set )?|[ \[:])(?P<name>[A-Z][A-Z0-9]*_[A-Z0-9_]+)=")
_EXPLAINED = lazy_pattern(
    r"[ \t]*(?:\*|//+|#)?[ \t]*[@\\](?:property|prop|param|option)[ \t]+(?:\{[^{}\n]{1,120}\}[ \t]*)?"
    r"\[?(?P<name>[A-Za-z_$][\w.$-]*)"
)
"""In a comment of a block of code."""
_COMMANDS = frozenset(("sh", "bash", "console", "shell", "shell-session", "zsh", "powershell", "batch"))


def documented_options(text: str, known: Container[str] = ()) -> Iterator[tuple[str, int]]:
    """Yield name and line (from 0) of each entry of a page that names an option in code markup.

    Entries are headings, items of lists, rows of tables, terms that stand on a line of their own, and in blocks of code
    the flags of a help text and variables of the environment. A table whose first column has single words needs no
    markup if most of them are ``known``, which has the names of the code.
    """
    plain = surface_of(text, comment=False)
    written = {match.start() for match in _WRITTEN.finditer(plain)}
    plain = _WRITTEN.sub(lambda match: f"`{match['name']}`".ljust(len(match[0])), plain)
    starts = [0, *(match.end() for match in re.finditer("\n", plain))]
    for block in blocks_of(plain, plain):
        for token in _in_code(plain, block) if block.kind == "code" else _named(plain, block, known):
            name = read_name(token.name)
            is_option = token.start in written or block.kind == "code" or not _NOT_OPTIONS.search(token.name)
            if name is not None and (len(name.name) > 1 or token.name.startswith("-")) and is_option:
                as_written = text[token.start : token.end]  # *Row size* for ``row_size``
                is_title = " " in as_written and "_" in token.name
                yield as_written if is_title else token.name, bisect_right(starts, token.start) - 1


def _in_code(text: str, block: DocumentedBlock) -> Iterator[Token]:
    """Yield the flags that a help text explains, each in its longest form, and the variables that the block sets."""
    is_continued = block.info.lower() in _COMMANDS
    said = text[max(0, block.start - 600) : block.start].rstrip().rpartition("\n\n")
    is_reference = not is_continued and _SET_BELOW.search(said[0].rpartition("\n\n")[2] + said[2])
    nested = [*settings_of_block(text, block.start, block.end, block.info.lower())] if is_reference else []
    yield from (Token(name, entry.start, entry.end, quoted=True) for name, entry in nested)
    for match in re.finditer(r"[^\n]+", text[block.start : block.end]):
        start, line = block.start + match.start(), match[0]
        is_command = is_continued or line.rstrip().endswith("\\")
        is_continued = block.info.lower() in _COMMANDS or line.rstrip().endswith("\\")
        if not is_command and (flag := flag_of(line)):
            yield replace(flag, start=start + flag.start, end=start + flag.end)
        for named in (
            *filter(None, (_KEY.match(line),)),
            *filter(None, (_GIVEN.match(line) if is_reference and not nested else None,)),
            *_VARIABLE.finditer(line),
            *_EXPLAINED.finditer(line),
        ):
            yield Token(named["name"], start + named.start("name"), start + named.end("name"), quoted=True)


def _named(text: str, block: DocumentedBlock, known: Container[str]) -> Iterator[Token]:
    if block.kind == "table":
        cells = [_words(text[row[0].start : row[0].end], row[0].start) for row in read_table(text, block)[0]]
        first = [[one for one in words if one.text.lower() not in _BETWEEN] for words in cells]
        names = [name for words in first if words and (name := read_name(words[0].name))]
        is_plain = all(len(words) <= 1 for words in first) and MOST_KNOWN * len(first) <= sum(
            f"{name.owner}{name.name}".replace(" ", "") in known for name in names
        )
        for spellings in filter(None, first):
            if is_plain or all(one.quoted or _SPELT.search(one.text) for one in spellings):
                yield max(spellings, key=lambda one: (one.text.startswith("--"), len(one.text)))
        return
    for match in re.finditer(r"[^\n]+", text[block.body : block.end]):
        words = _words(match[0], block.body + match.start())
        if block.kind == "heading" and words:
            said = [one for one in words[1:] if one.text.lower() not in _SAYS_DEFAULT and one.text != "#"]
            is_given = len(words) > 1 and all(
                one.value is not None or "".join(words_of(one.name)).endswith("".join(words_of(words[0].name)))
                for one in said
            )
            is_name = block.level == INNERMOST or _SPELT.search(words[0].text)
            if is_name if not said else is_given and (words[0].quoted or words[0].is_identifier):
                yield words[0]
            return
        following = text[block.body + match.end() + 1 : block.body + match.end() + 200].lstrip("\n")
        term = _TERM.match(match[0]) if _BELOW.match(following) else None
        if block.kind == "paragraph" and term:
            flag = max(_FLAGS.finditer(match[0], 0, term.end()), key=lambda one: len(one[0]))
            start = block.body + match.start()
            yield Token(flag[0], start + flag.start(), start + flag.end(), quoted=True)
            continue
        is_lead = match.start() == 0 and block.kind != "paragraph"
        is_marked = words and (words[0].quoted or words[0].text.startswith("-") or _is_bold(text, words[0]))
        is_term = is_marked and (len(words) == 1 or _EXPLAINS.match(text, words[0].end, block.body + match.end()))
        is_set = is_marked and text.startswith("=**", words[0].end)
        if is_marked and (is_lead or is_set or is_term):
            yield words[0]
        if block.kind != "paragraph":
            return


def _is_bold(text: str, word: Token) -> bool:
    """Tell whether a word stands alone in bold and does not begin a sentence."""
    is_name = word.text[0].islower() or _SPELT.search(word.text) is not None
    return is_name and text.endswith(("**", "__"), 0, word.start) and text.startswith(("**", "__", "=**"), word.end)


def _words(text: str, start: int) -> list[Token]:
    return [one for one in tokens_of(text.replace("\n", " "), start) if one.text not in _AROUND]


class CodeWords:
    """The names of the code in all spellings, and which of them only name functions, types or packages."""

    def __init__(self, *, is_whole: bool = True) -> None:
        """Start without names. ``is_whole`` tells whether all programs of the repository are read."""
        self.missing = NO_CODE if is_whole else NO_READ_CODE
        self._all: set[str] = set()
        self._values: set[str] = set()
        self._types: set[str] = set()

    def add(self, file: SourceFile, text_of: Callable[[SourceFile], str]) -> None:
        """Add the names of a program, and those of the file and its folders."""
        path = PurePosixPath(file.path)
        if file.kind != "code":
            return
        self._types |= {part for part in (*path.parts[:-1], path.stem) if part[0].isupper()}
        for word, use in code_uses(text_of(file), file.suffix):
            name = read_name(word)
            if name is not None:
                self._all.add(name.name.replace(" ", ""))
                if use == "type":
                    self._types.add(word)
                elif use != "function":
                    self._values.add(name.name.replace(" ", ""))

    def __contains__(self, name: object) -> bool:
        """Tell whether the code has a name."""
        return str(name).replace(" ", "") in self._all

    def is_no_option(self, written: str, name: str) -> bool:
        """Tell whether the code has a name only as a function, type or package."""
        joined = name.replace(" ", "")
        return written in self._types or (joined in self._all and joined not in self._values)


def states_of(
    pages: Iterable[SourceFile],
    text_of: Callable[[SourceFile], str],
    pairs: Sequence[CandidatePair],
    stated: Iterable[LocatedFact],
    words: CodeWords,
) -> list[tuple[DocumentedOption, CandidatePair | None]]:
    """Return every documented option with its state, by page and line, and the pair that plainly differs or ``None``.

    Args:
        pairs: the documented values, each with a value of the code.
        stated: all values on pages, compared or not.
        words: the names of the code.
    """
    compared: dict[tuple[str, str], list[CandidatePair]] = defaultdict(list)
    for pair in pairs:
        compared[pair.other.path, pair.other.fact.name].append(pair)
    read_on: dict[tuple[str, str], list[LocatedFact]] = defaultdict(list)
    for one in stated:
        read_on[one.path, one.fact.name].append(one)
    found = []
    for file in pages:
        entries: dict[tuple[str, str], tuple[str, int]] = {}
        places: dict[str, list[int]] = defaultdict(list)
        is_page = file.kind == "documentation"
        for written, line in documented_options(text_of(file), words) if is_page else ():
            read = read_name(written)
            is_known = read is None or (read.owner, read.name) in entries or (not read.owner and read.name in places)
            if read is not None and not is_known:
                entries[read.owner, read.name] = written, line
                places[read.name].append(line)
        for (_, name), (written, line) in entries.items():
            of = [one for one in compared.get((file.path, name), ()) if _is_nearest(one.other, line, places[name])]
            own = [one for one in of if _may_own(written, one.code)]
            if own or any(one.outcome is not FactComparison.AGREE for one in of):
                of = own  # another value of a mere word is no difference
            said = [one for one in read_on.get((file.path, name), ()) if _is_nearest(one, line, places[name])]
            # What a page says besides is no default where it names another.
            is_unread = any(calls_default(one.fact) for one in said) and not any(
                calls_default(one.other.fact) for one in of
            )
            if of and not is_unread:
                plain = plain_difference(of, line)
                found.append((option_of(of, written, line, plain), plain))
            elif written[0] == "." or not words.is_no_option(written, name):
                reason = NO_PARTNER if (file.path, name) in read_on else NO_VALUE
                reason = reason if name in words else words.missing
                found.append((DocumentedOption(path=file.path, line=line + 1, name=written, value="",
                                               state="not_compared", reason=reason), None))  # fmt: skip
        for (path, name), of in compared.items():  # held in a sentence, or in a copy of the code
            if path == file.path and name not in places and of[0].other.fact.attribute != "requires":
                option = option_of(of, name)
                is_default = is_page or any(calls_default(one.other.fact) for one in of)
                found += [(option, None)] if option.state == "held" and is_default else []
    held = held_by([option for option, _ in found])
    return [
        (replace(option, state="not_compared", reason=ELSEWHERE, code=""), None)
        if is_elsewhere(held, option.path, file)
        and (option.state == "differs" or _is_chance(option, held[option.path][file]))
        else (option, pair)
        for option, pair in found
        for file in (option.code.rpartition(":")[0],)
    ]


def _may_own(written: str, code: LocatedFact) -> bool:
    """Tell whether code says a word of a name's owner (``xml`` of ``xml.indent``), if the rest is one word."""
    said = read_name(written)
    of = {*words_of(f"{code.fact.owner} {code.fact.statement} {code.path}")}
    return said is None or not said.owner or " " in said.name or not of.isdisjoint(said.owner.split())


def _is_chance(option: DocumentedOption, count: int) -> bool:
    """Tell whether an option has a common value that is all that its file holds of the page."""
    return option.state == "held" and count == 1 and option.value in _COMMON


def held_by(options: Iterable[DocumentedOption]) -> Mapping[str, Counter[str]]:
    """Return page → file of the code → how many options of the page it holds."""
    held: dict[str, Counter[str]] = defaultdict(Counter)
    for option in options:
        if option.state == "held":
            held[option.path][option.code.rpartition(":")[0]] += 1
    return held


def is_elsewhere(held: Mapping[str, Counter[str]], page: str, code: str) -> bool:
    """Tell whether another file holds far more options of a page than ``code``, which is then about other things.

    Args:
        held: as ``held_by`` returns it.
    """
    of_page = held.get(page, Counter())
    return max(of_page.values(), default=0) >= max(2, MORE * of_page[code])


def _is_nearest(said: LocatedFact, line: int, places: Sequence[int]) -> bool:
    """Tell whether a value is below the entry on ``line`` and before the next of the ``places`` of its name."""
    return line == max((place for place in places if place <= said.fact.line), default=places[0])


def not_held(values: Iterable[DocumentedOption]) -> tuple[DocumentedOption, ...]:
    """Return the documented values whose state is not ``held``."""
    return tuple(one for one in values if one.state != "held")


def with_options(coverage: Coverage, options: Sequence[DocumentedOption]) -> Coverage:
    """Return the coverage with counts of the documented options."""
    states = Counter(one.state for one in options)
    missing = Counter(one.reason for one in options if one.state == "not_compared")
    return Coverage(
        read=coverage.read, compared=coverage.compared, agree=coverage.agree, not_compared=coverage.not_compared,
        documented=len(options), options_compared=states["held"] + states["differs"], options_held=states["held"],
        options_not_compared=dict(missing.most_common()),
    )  # fmt: skip
