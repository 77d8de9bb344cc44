"""Exact evidence: a query names a chunk's definition or file, or quotes a run of words that few chunks hold.

The four retrieval sources vote. This is evidence of another kind: three sources that prefer a test which calls
``Table.upsert`` five times must not outvote the one chunk that defines it. So it is not a fifth weight:

    score = 1 − (1 − combined) · (1 − evidence)

Evidence is in [0, 1] and comparable between domains: how rare the name or the run of words is in the domain, times how
much of the query it covers. There is no list of query types. A question that happens to contain a common name has
next to no evidence, however it is written, and an error message has much, whatever values it carries.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial, reduce
from itertools import chain, combinations

import numpy as np

from nornweave.ask.search.combine import ExactEvidence
from nornweave.ask.search.history import commits_in, newest_releases
from nornweave.ask.search.pasted import messages_in, nearest_paths, said_words, tails
from nornweave.ask.search.query import Query, TermStatistics, Word
from nornweave.ask.search.runs import Runs
from nornweave.core.text.analyzer import FUNCTION_TERMS, sequence
from nornweave.core.text.index_fields import (
    ASIDE,
    IMPORTS,
    MOST_WORDS_OF_NAME,
    RELEASE,
    RELEASE_PAGE,
    SHELL,
    VARIANT,
    WORDS,
    WORDS_DONE_TO,
    has_entries,
    is_changelog,
    is_identifier,
    release_of,
    versions_in,
    words_key,
)
from nornweave.core.text.negation import is_question
from nornweave.disagree.facts.names import is_generic, read_name
from nornweave.index.index import Index
from nornweave.index.port import NO_HITS, Mask, Numbers, Scores, found

# Fitted on click, mux, commander.js, gson, got and xsv, and held against the judged sets (docs/recall.md).
DEFINED = 0.9
"""Of a chunk that defines a name which is all of the query and defined nowhere else."""
SAID = 0.8
"""Of a chunk that alone holds the words of the query side by side."""
OTHER_SPELLING = 0.9
"""Share for a name in another case or with other separators."""
MISSPELLED, MIN_MISSPELLED = 0.8, 5
"""Share for a name that one letter parts from the query's, and from how many letters on that is looked for."""
IN_SENTENCE = 0.6
"""Share for a name that a sentence holds as an ordinary word ("set", "payments")."""
FUNCTION_SHARE, UNKNOWN_SHARE, VALUE_SHARE = 0.15, 0.25, 0.15
"""What function words, words that the domain does not know, and values in a quoted text count of their rarity."""
NAME_POWER, QUALIFIED_POWER, RUN_POWER = 1.5, 0.6, 2.0
"""How fast evidence falls with the share of the query that is accounted for."""
LONG_RUN = 12.0
"""Summed idf of a run of words from which the rest of the query counts less and less."""
MOST_READ, MESSAGE_WORDS = 50, 4
"""Chunks that are read for what makes a message, and words from which on a text may be one."""
ALIKE = 0.9
"""Chunks with this share of the best evidence hold the run too."""
NAMED_ALONE, LONG_QUESTION = 0.55, 32
"""Least share that the only identifier of a question for a value accounts for, whatever else is said in up to so many
words."""
LEAST = 0.25
"""Evidence up to this is chance; what is above is stretched to 1."""
FURTHER_FRAME, MAX_POINTED = 0.85, 2_000
"""What each further place of a traceback counts of the one before, and chunks of which no line is looked for."""
ELSEWHERE_SHARE = 0.5
"""Share for a value that the section of a changelog says, a test or an example."""
OF_USE_SHARE = 0.8
"""Share for what sets a value or falls back to one, where a default is asked for that is declared elsewhere."""
ASIDE_SHARE, IMPORT_SHARE, SHELL_SHARE = 0.3, 0.5, 0.5
"""What tests and examples lose where there is full evidence; import blocks, and headings without text, always."""
ASIDE_WHERE, ASIDE_KEPT, RELEASE_SHARE = 0.6, 0.85, 0.9
"""What tests and examples keep where one asks where something is done, and elsewhere; and sections of changelogs in a
question."""

_ROUNDING = 1 - 1e-5
"""Bounds are compared with a little less: they are summed in another order."""
_FILE, _PIECE = "path:", re.compile(r"[\w$]+(?:-[\w$]+)*")
_SECTION = re.compile(
    r"(?i)(?:\b(?:sections?|sec\.|chapter|clause|article|paragraph|appendix|annex)|§)\s*([A-Z0-9]{1,3}(?:\.\d{1,3})+)"
)
"""A section that a query calls by its number; what only refers to it says the number as well."""
ASKS_FOR_VALUE = frozenset({
    "default", "defaults", "value", "values", "set", "setting", "settings", "configured", "configuration", "config",
    "limit", "limited", "read", "option", "flag", "parameter", "environment", "variable", "env",
})  # fmt: skip
"""What a question says beside the name of a setting."""
ASKS_VALUE = re.compile(
    r"\bhow (?!do|did|can|could|should|would|is|are|to)\w+|\bwhich\b|\bdefaults?\b|\bunless\b"
    r"|\bwhat (?!(?:an?|the|do|does|did|can|could|should|would|happens?|happened|if|about|was|were|changed|to"
    r"|it|I|my|we|you)\b)(?![^?,]*\bto (?:be done|do|happen)\b)\w+",
    re.IGNORECASE,
)
"""How one asks for a value: "how long", "which port", "what is the lowest version", "by default"."""
ASKS_QUANTITY = re.compile(
    r"\bhow (?:big|deep|far|fast|few|frequently|high|large|late|long|low|many|much|often|old|short|small|soon|wide)\b"
    r"|\b(?:which|what) (?:port|size|number)\b|\bat (?:most|least)\b"
    r"|\bthe (?:biggest|fewest|greatest|highest|largest|least|longest|lowest|maximum|minimum|most|shortest|smallest)\b",
    re.IGNORECASE,
)
"""How one asks for a number."""
_ASKS_WHICH = re.compile(r"\b(?:which|what|where)\b", re.IGNORECASE)
_ASKS_SEVERAL = re.compile(
    r"\b(?:which|what) (?!does\b)(?:\w{2,}[^\Wsu]s\b|(?:\w+ ){1,2}\w{2,}[^\Wsu]s"
    r" (?:are|were|do|does|did|have|can|could|may|must|should|will|exist)\b)",
    re.IGNORECASE,
)
"""How one asks for several things: "which formats are", "what color themes does"."""
MEANS_DEFAULT = re.compile(
    r"\b(?:unless|(?:if|when)(?=[^,?]*\b(?:no|not|nothing|none|un(?:set|specified|configured|changed))\b)"
    r"(?=[^,?]*\b(?:un)?(?:set|configured?|given?|specif(?:y|ied)|changed?|chosen?|choose|pass(?:ed)?|provided?|says?)\b))"
    r"[^,?]*",
    re.IGNORECASE,
)
"""What only says that the default is meant: "unless I say otherwise", "if nothing is set"."""
ASKS_FOR_RELEASE = frozenset({
    "version", "release", "released", "releases", "notes", "changed", "changes", "changelog", "new", "upgrade", "fixed",
})  # fmt: skip
"""What a question says beside a version."""
_ASKS_FOR_CHANGES = ASKS_FOR_RELEASE - {"version", "release", "released", "releases"}
ASKS_WHERE = frozenset({"function", "method", "class", "file", "code", "implemented", "defined", "called"})
"""What a question says beside what something does."""
_DONE = re.compile(r"\bwhere\s+(?:is|are|was|were|do|does|did)\b", re.IGNORECASE)
"""What ends with what is done, for which the code may have another word."""
ASKS_PLACE = re.compile(r"\bwhere\b|\b(?:which|what) (?:function|method|class|file)\b|\bin the code\b", re.IGNORECASE)
MOST_TRIED = 6
ASKS_FOR_NEWEST = frozenset({"latest", "newest", "last", "recent", "recently", "current"})
"""What a question says that asks for the newest release."""
OF_ITS_DAY = frozenset({"came", "come", "date", "dated", "day", "published"})
"""What a question says that asks when a release came out."""
MAX_SETTING_WORDS = 4
NEWEST_SHARES = 1.0, 0.95, 0.9
"""What the newest section of a changelog, the newest release and the version in a manifest count."""
_OF_THIS = re.compile(
    r"\b(?:which|what) version (?:(?:of \S+ )?is this|is it|am i (?:on|running|using))\b", re.IGNORECASE
)
_NEEDED = r"(?:needed|required|supported|minimum|minimal|lowest|oldest|necessary)"
_OF_VERSION = re.compile(
    rf"\b(?:which|what|{_NEEDED}) versions? of (?:the )?([\w.+#-]+)"
    rf"|\b(?:which|what|{_NEEDED})(?: {_NEEDED})? (?!{_NEEDED}|current|latest|newest)([\w.+#-]+) versions?\b"
    rf"|([\w.+#-]+) versions? (?:is |are )?{_NEEDED}\b"
    r"|\b(?:which|what) (go|golang|java|node(?:\.?js)?|perl|php|python|ruby|rust|typescript) (?:do|does|is|are|must)\b",
    re.IGNORECASE,
)
_MANIFESTS = frozenset({
    "cargo.toml", "composer.json", "gemfile", "go.mod", "package.json", "pyproject.toml", "requirements.txt",
    "rust-toolchain.toml", "setup.cfg", "setup.py",
})  # fmt: skip
_OF_NEEDED = ASKS_FOR_RELEASE | {
    "build", "compile", "develop", "install", "js", "minimum", "need", "needed", "require", "required", "run",
    "support", "supported", "use", "versions",
}  # fmt: skip
"""What a question says beside what is needed."""
_HEAD = 200
_REPOSITORY = re.compile(r"//[^/]+/(?:[^/]+/)*?([^/]+)/(?:-/)?(?:blob|commit|raw|src|tree)/")
_README = re.compile(r"(?i)(?:^|/)readme[^/]*$")
_UNRELEASED = re.compile(
    r"^.{0,40}\b(?:unreleased|not (?:yet )?released|in development)\W*$", re.IGNORECASE | re.MULTILINE
)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PLACES = {
    ASIDE: frozenset(sequence("test spec example benchmark fixture mock")),
    IMPORTS: frozenset(sequence("import")),
    VARIANT: frozenset[str](),
    SHELL: frozenset[str](),
    RELEASE: (
        _SAID_OF_RELEASES := frozenset(
            sequence("released changed changelog changes new newest latest fixed since upgrade history")
        )
    ),
    RELEASE_PAGE: _SAID_OF_RELEASES,
}
"""What shares a place or is of less worth, unless a query says one of these words."""


@dataclass(frozen=True, slots=True, eq=False)
class _Searched:
    """The query and the generation, prepared for finding evidence.

    Attributes:
        known: lookup key → chunks, for possible names in the query, and for marks of less valuable chunks.
        files: path in the query, perhaps with folders of another machine → chunks of the file that it means.
        reach: the logarithm of the number of chunks, the unit of rarity.
        within: the chunks that may be found; ``None`` means all.
        only_name: the identifier of a question for a value, if it has one and is not long; ``None`` otherwise.
    """

    query: Query
    statistics: TermStatistics
    generation: Index
    known: Mapping[str, Numbers]
    files: Mapping[str, Numbers]
    reach: float
    within: Mask | None
    only_name: Word | None

    def rarity(self, chunks: int) -> float:
        """Return how rare a property is, in [0, 1], if so many chunks have it."""
        return 1 - math.log(chunks) / self.reach

    def defined_in(self, chunks: Numbers) -> int:
        """Count the chunks that define something, without tests and examples unless there are no others."""
        aside = self.known.get(ASIDE, chunks[:0])
        return len(np.setdiff1d(chunks, aside, assume_unique=True)) or len(chunks)

    def nothing(self) -> Scores:
        """Return a score of 0 for every chunk."""
        return np.zeros(self.generation.size, np.float32)


def exact_evidence(
    query: Query,
    statistics: TermStatistics,
    generation: Index,
    quoting: Numbers,
    within: Mask | None = None,
    told: Scores | None = None,
) -> ExactEvidence:
    """Return the evidence for every chunk of a generation.

    Args:
        quoting: chunks that hold a quoted phrase of the query, word for word.
        told: how well each chunk describes the setting in question (``telling``).
    """
    asked = [word for word in query.words if not word.is_function_word]
    unasked = [place for place, terms in _PLACES.items() if terms.isdisjoint(query.in_order)]
    paths = {key.removeprefix(_FILE) for key in query.keys if key.startswith(_FILE)}
    paths |= {query.text.strip().lower(), *(place.path.lower() for place in query.places)}
    keys = {path: [f"{_FILE}{tail}" for tail in tails(path)] for path in paths}
    named = (f"{field}:{word.spelled}" for word in asked for field in ("defines", "declares"))
    known = generation.named([*unasked, *chain(*keys.values()), *named])
    if any(_defining_chunks(word, known) is not None or _may_be_misspelt(word, statistics) for word in asked):
        known |= generation.named([f"owner:{word.spelled}" for word in asked])
    files = {
        path: known[key]
        for path, of_path in keys.items()
        if (key := next((key for key in of_path if key in known), ""))
    }
    reach, only_name = math.log(statistics.count + 1) or 1.0, _only_name(query)
    searched = _Searched(query, statistics, generation, known, files, reach, within, only_name)
    found = (
        weigh(searched)
        for weigh in (
            _defining,
            _weigh_named_files,
            _named_in_words,
            _weigh_versions,
            _newest,
            _requiring,
            _weigh_named_lines,
            _saying,
            _making,
            _stating,
        )
    )
    proven = [each for each in found if each is not None]
    if told is not None:
        proven.append(DEFINED * told)
    if len(quoting):
        proven.append(searched.nothing())
        proven[-1][quoting] = SAID * searched.rarity(len(quoting))
    called = [f"name:{number.lower()}" for number in _SECTION.findall(query.text)]
    for chunks in generation.named([*called, *commits_in(query.text)]).values():
        proven.append(searched.nothing())
        proven[-1][chunks] = DEFINED * searched.rarity(len(chunks))
    scores = None
    if proven:
        scores = (np.maximum(reduce(np.maximum, proven) - LEAST, 0) / (1 - LEAST)).astype(np.float32)
    kept = []
    if ASIDE in known:
        aside = reduce(partial(np.setdiff1d, assume_unique=True), searched.files.values(), known[ASIDE])
        most = 0.0 if scores is None else float(scores.max(initial=0))
        if len(aside):
            share = ASIDE_WHERE if ASKS_PLACE.search(query.text) else min(1 - ASIDE_SHARE * most, ASIDE_KEPT)
            kept.append((aside, float(np.float32(share))))
    if RELEASE in known and is_question(query.text) and not versions_in(query.text):
        sections = np.setdiff1d(known[RELEASE], known.get(RELEASE_PAGE, NO_HITS.numbers), assume_unique=True)
        kept.extend([(sections, RELEASE_SHARE)] if len(sections) else [])
    if SHELL in known:
        kept.append((known[SHELL], SHELL_SHARE))
    if IMPORTS in known:
        kept.append((known[IMPORTS], IMPORT_SHARE))
    places = {place: known[place] for place in unasked if place in known}
    return ExactEvidence(scores if scores is None or within is None else scores * within, tuple(kept), places)


def _raise(scores: Scores, chunks: Numbers, written: Numbers | None, most: float, searched: _Searched) -> None:
    """Raise the evidence of chunks that define a name, by more if the name is rare.

    Chunks that are not in ``written`` spell the name in another way than the query and get less evidence.
    """
    if not len(chunks):
        return
    shares = np.full(len(chunks), most * OTHER_SPELLING * searched.rarity(searched.defined_in(chunks)), np.float32)
    as_written = chunks[:0] if written is None else np.intersect1d(chunks, written, assume_unique=True)
    if len(as_written):  # ``Opt`` makes ``opt`` no less rare
        shares[np.isin(chunks, as_written)] = most * searched.rarity(searched.defined_in(as_written))
    scores[chunks] = np.maximum(scores[chunks], shares)


@dataclass(frozen=True, slots=True, eq=False)
class _Defined:
    """A word of the query, the chunks that define it, and the highest evidence that it gives."""

    word: Word
    chunks: Numbers
    most: float


def _defining(searched: _Searched) -> Scores | None:
    """Return evidence for chunks that define names of the query; ``None`` if nothing is defined."""
    statistics, known = searched.statistics, searched.known
    asked = [word for word in searched.query.words if not word.is_function_word]
    defined = [each for word in asked if (each := _definers(word, searched)) is not None]
    if not defined:
        return None
    explained = {each.word for each in defined} | {word for word in asked if f"owner:{word.spelled}" in known}
    unknown = {word for word in asked if not statistics.frequencies[word.whole]}
    return _weigh_names(defined, _weights(searched, unknown - explained), searched)


def _named_in_words(searched: _Searched) -> Scores | None:
    """Return evidence for definitions named by words of the query: ``hashPassword`` of "where is a password hashed".

    It is not known which words make a name, so all combinations of the rarest words are tried. A word that is written
    as a name is left out, unless it has a dash, because it is looked up elsewhere. A person who asks where something is
    done may use another verb: ``read_cookie_header`` of "where is the Cookie header parsed". The result is ``None`` if
    no definition has such a name.
    """
    if not is_question(searched.query.text):
        return None
    idf = searched.statistics.idf
    asked = [word for word in searched.query.words if not word.is_function_word and word.whole not in ASKS_WHERE]
    words = [word for word in asked if not word.is_name or "-" in word.written]
    rarest = sorted(words, key=lambda word: -idf[word.whole])[:MOST_TRIED]
    fields = (WORDS, WORDS_DONE_TO) if ASKS_PLACE.search(searched.query.text) else (WORDS,)
    named = {
        key: chosen
        for count in range(1, MOST_WORDS_OF_NAME + 1)
        for chosen in combinations(rarest, count)
        for field in fields
        if (key := words_key(chain(*(sequence(word.written) for word in chosen)), field))
    }
    done = {asked[-1].whole} if asked and _DONE.search(searched.query.text) else set[str]()
    return _holding(named, ASKS_WHERE | done, searched.defined_in, searched)


def _weights(searched: _Searched, unexplained: Collection[Word]) -> dict[Word, float]:
    """Return the weight of each word of the query. Function words and ``unexplained`` words weigh less."""
    idf = searched.statistics.idf
    return {
        word: idf[word.whole]
        * (FUNCTION_SHARE if word.is_function_word else UNKNOWN_SHARE if word in unexplained else 1.0)
        for word in searched.query.words
    }


def _only_name(query: Query) -> Word | None:
    is_asked = len(query.words) <= LONG_QUESTION and ASKS_VALUE.search(query.text) is not None
    names = {word for word in query.words if is_identifier(word.written)} if is_asked else set[Word]()
    return names.pop() if len(names) == 1 else None


def _may_own(owner: Word, word: Word) -> bool:
    """Tell whether the first word may be the owner of the second: they differ, or the query repeats the word."""
    return owner != word or word.is_repeated


def _may_be_misspelt(word: Word, statistics: TermStatistics) -> bool:
    is_unknown = not statistics.frequencies[word.whole]
    return is_unknown and word.is_name and len(word.spelled) >= MIN_MISSPELLED


def _defining_chunks(word: Word, known: Mapping[str, Numbers]) -> Numbers | None:
    """Return the chunks that define a name or else those that declare it; ``None`` if there are neither."""
    chunks = known.get(f"defines:{word.spelled}")
    return chunks if chunks is not None else known.get(f"declares:{word.spelled}")


def _definers(word: Word, searched: _Searched) -> _Defined | None:
    chunks = _defining_chunks(word, searched.known)
    if chunks is not None:
        return _Defined(word, chunks, DEFINED)
    if not _may_be_misspelt(word, searched.statistics):
        return None
    chunks = searched.generation.named_nearly("defines", word.spelled)
    return _Defined(word, chunks, DEFINED * MISSPELLED) if len(chunks) else None


def _weigh_names(defined: Sequence[_Defined], weights: Mapping[Word, float], searched: _Searched) -> Scores:
    """Return evidence for names alone, and for names together with their class, module or package."""
    scores = searched.nothing()
    whole = math.fsum(weights.values()) or 1.0
    for each in defined:
        word, most = each.word, each.most * (1.0 if each.word.is_name else IN_SENTENCE)
        qualifiers = ["", *(f"{owner.written}." for owner in weights)]
        written = _as_written(each, qualifiers, searched.generation)
        coverage = max((weights[word] / whole) ** NAME_POWER, NAMED_ALONE if word == searched.only_name else 0.0)
        _raise(scores, each.chunks, written[0], most * coverage, searched)
        for as_written, (owner, weight) in zip(written[1:], weights.items(), strict=True):
            owned = searched.known.get(f"owner:{owner.spelled}") if _may_own(owner, word) else None
            if owned is not None:
                both = np.intersect1d(each.chunks, owned, assume_unique=True)
                most = each.most * (1.0 if word.is_name or owner.is_name else IN_SENTENCE)
                coverage = min(1.0, (weights[word] + weight) / whole) ** QUALIFIED_POWER
                _raise(scores, both, as_written, most * coverage, searched)
    return scores


def _as_written(defined: _Defined, qualifiers: Sequence[str], generation: Index) -> list[Numbers | None]:
    """Return for each qualifier (``Ledger.``) the chunks that define the name after it exactly as the query writes it.

    A qualifier without such chunks has ``None``. If no chunk defines ``upsertAll``, definitions of ``upsert_all`` are
    returned, but not the type ``UpsertAll``.
    """
    written = defined.word.written
    if defined.most < DEFINED:
        return [generation.named_nearly("spelled", written), *[None] * (len(qualifiers) - 1)]
    forms = dict.fromkeys((written, _HUMP.sub("_", written).lower() if written[0].islower() else written))
    found = generation.named([f"spelled:{qualifier}{form}" for qualifier in qualifiers for form in forms])
    keys = [[f"spelled:{qualifier}{form}" for form in forms] for qualifier in qualifiers]
    return [next((found[key] for key in of_one if key in found), None) for of_one in keys]


def _weigh_named_files(searched: _Searched) -> Scores | None:
    """Return evidence for the first chunk of each file that the query names; ``None`` if it names none."""
    if not searched.files:
        return None
    weights, scores = _weights(searched, ()), searched.nothing()
    whole, imports = math.fsum(weights.values()) or 1.0, searched.known.get(IMPORTS, NO_HITS.numbers)
    for path, chunks in searched.files.items():
        files = np.cumsum(np.diff(chunks, prepend=-2) != 1)  # in a file numbers follow each other
        order = np.lexsort((np.isin(chunks, imports), files))
        first = chunks[order[np.unique(files, return_index=True)[1]]]
        pieces = frozenset(_PIECE.findall(path))
        coverage = math.fsum(weight for word, weight in weights.items() if word.whole in pieces) / whole
        scores[first] = np.maximum(scores[first], DEFINED * coverage * searched.rarity(len(first)))
    return scores


def _weigh_named_lines(searched: _Searched) -> Scores | None:
    """Return evidence for the chunks with lines to which the query points; ``None`` if no file here has such lines.

    The first place counts most: a traceback first names the place of the error. Line numbers differ in
    another version, so the nearest chunk of the file counts.
    """
    scores, share = searched.nothing(), DEFINED
    for place in searched.query.places:
        chunks = searched.files.get(place.path.lower(), NO_HITS.numbers)
        if not 0 < len(chunks) <= MAX_POINTED:
            continue
        named = searched.generation.chunks(chunks)
        meant = nearest_paths(place.path, {chunk.path for chunk in named.values()})
        distances = {
            number: max(chunk.line_range[0] - place.line, place.line - chunk.line_range[1], 0)
            for number, chunk in named.items()
            if chunk.path in meant
        }
        nearest = min(distances.values(), default=0)
        holding = np.array([number for number, distance in distances.items() if distance == nearest], np.int32)
        if len(holding):
            scores[holding] = np.maximum(scores[holding], share * searched.rarity(len(holding)))
            share *= FURTHER_FRAME
    return scores if share < DEFINED else None


def _weigh_versions(searched: _Searched) -> Scores | None:
    """Return evidence for sections whose heading is a version in the query; ``None`` if there are none."""
    named: dict[str, list[Word]] = {}
    for version in versions_in(searched.query.text):
        pieces = frozenset((*version.split("."), f"v{version.split('.')[0]}"))
        named[f"name:{version}"] = [word for word in searched.query.words if word.whole in pieces]
    return _holding(named, ASKS_FOR_RELEASE, len, searched)


def version_asked_of(text: str) -> str:
    """Return what a question asks the needed version of, in lower case: ``go`` of "which Golang version"."""
    found = _OF_VERSION.search(text)
    return re.sub(r"(?<=go)lang$|(?<=node)\.?js$", "", next(filter(None, found.groups())).lower()) if found else ""


def stated_version(path: str, text: str, name: str) -> tuple[int, int] | None:
    """Return where a manifest states the version of ``name``, to the end of the line; ``None`` if it does not.

    ``version`` is the name of the project's own version.
    """
    if path.rpartition("/")[2].lower() not in _MANIFESTS or not name:
        return None
    key = rf"(?:requires?[-_]|required_|current_)?{re.escape(name)}(?:[-_]versions?|[-_]requires)?(?![\w-])"
    value = r"(?:=>|[=:(])?[^\S\n]*(?:\{\s*version\s*=\s*)?[\"']?[\^~=<>!v ]*\d[^\n]*"
    found = re.search(rf"^[^\S\n]*([\"']?{key}[\"']?[^\S\n]*{value})$", text, re.MULTILINE | re.IGNORECASE)
    return found.span(1) if found else None


def _stating_version(name: str, searched: _Searched) -> Numbers:
    """Return the chunks that state the version of ``name``, of the manifest nearest to the top of each source."""
    held = searched.generation.named([f"{_FILE}{manifest}" for manifest in _MANIFESTS])
    chunks = searched.generation.chunks(np.concatenate([NO_HITS.numbers, *held.values()]))
    best: dict[str, tuple[int, int]] = {}
    for number, chunk in chunks.items():
        if stated_version(chunk.path, chunk.content, name):
            place = chunk.path.count("/"), number
            best[chunk.source_id] = min(best.get(chunk.source_id, place), place)
    return np.array(sorted(number for _, number in best.values()), np.int32)


def _requiring(searched: _Searched) -> Scores | None:
    """Return evidence for the manifest that states the version a query asks for; ``None`` if there is none."""
    name = version_asked_of(searched.query.text)
    if not name or not len(chunks := _stating_version(name, searched)):
        return None
    held = searched.generation.chunks(chunks).values()
    own = frozenset[str]().union(*(own_names(each.source_id, each.url, "", None) for each in held))
    named = {name: [word for word in searched.query.words if word.written.lower().startswith(name)]}
    return _weigh_held({name: chunks}, named, _OF_NEEDED | own, len, searched)


def asks_for_newest(query: Query) -> bool:
    """Tell whether a query asks for the newest release, or for the version that this is."""
    words = {word.whole for word in query.words}
    is_newest = not ASKS_FOR_NEWEST.isdisjoint(words) and not ASKS_FOR_RELEASE.isdisjoint(words)
    return is_newest or _OF_THIS.search(query.text) is not None


def own_names(source_id: str | None, url: str | None, path: str, heading: str | None) -> frozenset[str]:
    """Return the words that name a passage's project, from its source, repository and, in a changelog, its heading."""
    is_headed = is_changelog(path) or _README.search(path)
    names = [source_id or "", *_REPOSITORY.findall(url or ""), (heading or "").partition(" > ")[0] if is_headed else ""]
    return frozenset(re.findall(r"[^\W_]+", " ".join(names).lower()))


def _stem(path: str) -> str:
    """Return the letters that a file's name begins with: *CHANGES* of ``old/CHANGES-4x.rst``."""
    return re.split(r"[^A-Za-z]", path.rpartition("/")[2])[0]


def _newest(searched: _Searched) -> Scores | None:
    """Return evidence for the newest section of each changelog; ``None`` if the query does not ask for it.

    Sections are compared by version, or else by day. A section with the heading "unreleased" is skipped if the file has
    an older section. The newest release of the history and the version in the manifest follow, in this order, or in the
    other if the query asks for the current version.
    """
    if not asks_for_newest(searched.query):
        return None
    marked = searched.generation.named([RELEASE]).get(RELEASE, NO_HITS.numbers)[:MAX_POINTED]
    chunks = searched.generation.chunks(marked)
    current = {_stem(chunk.path): chunk.path for chunk in chunks.values() if "/" not in chunk.path}
    sections: dict[tuple[str, str], dict[tuple[int, ...], list[int]]] = {}
    own: frozenset[str] = frozenset()
    for number, chunk in sorted(chunks.items()):
        own |= own_names(chunk.source_id, chunk.url, chunk.path, chunk.section or chunk.title)
        release = release_of(chunk.path, chunk.title, chunk.section, chunk.metadata)
        pages = re.sub(r"\d[\d.]*", "0", chunk.path)  # one page may be about one release
        pages = current.get(_stem(chunk.path), pages)  # or about older ones than the current file
        sections.setdefault((chunk.source_id, pages), {}).setdefault(release, []).append(number)
    newest = [[numbers for _, numbers in sorted(of_file.items(), reverse=True)[:2]] for of_file in sections.values()]
    released = [
        next((one for one in of_file if not _UNRELEASED.search(chunks[one[0]].content[:_HEAD])), of_file[0])
        for of_file in newest
    ]
    for_changes = not _ASKS_FOR_CHANGES.isdisjoint(word.whole for word in searched.query.words)
    leading = np.array(
        sorted(
            next((one for one in each if for_changes and has_entries(chunks[one].content)), each[0])
            for each in released
        ),
        np.int32,
    )
    listed, stating = newest_releases(searched.generation), _stating_version("version", searched)
    for chunk in searched.generation.chunks(np.union1d(listed, stating)).values():
        own |= own_names(chunk.source_id, chunk.url, "", None)
    words = [word for word in searched.query.words if not word.is_function_word]
    newest_words = [word for word in words if word.whole in ASKS_FOR_NEWEST]
    is_now = not newest_words or any(word.whole == "current" for word in newest_words)
    asks = ASKS_FOR_RELEASE | OF_ITS_DAY | own if newest_words else frozenset[str]()
    return reduce(
        np.maximum,
        (
            share * _weigh_held({RELEASE: chunks}, {RELEASE: newest_words or words}, asks, len, searched)
            for share, chunks in zip(
                NEWEST_SHARES, (leading, *((stating, listed) if is_now else (listed, stating))), strict=True
            )
            if len(chunks)
        ),
        searched.nothing(),
    )


def _runs(searched: _Searched) -> Runs:
    query, statistics = searched.query, searched.statistics
    values = [term in query.values or not statistics.frequencies[term] for term in query.in_order]
    weights = [
        (FUNCTION_SHARE if term in FUNCTION_TERMS else VALUE_SHARE if is_value else 1.0) * statistics.idf[term]
        for term, is_value in zip(query.in_order, values, strict=True)
    ]
    held = searched.generation.paired({key for _, key in query.neighbours})
    return Runs([(place, held.get(key)) for place, key in query.neighbours] if held else [], weights, values)


def _saying(searched: _Searched) -> Scores | None:
    """Return evidence for runs of words that chunks share with the query; ``None`` if all runs are too short."""
    runs = _runs(searched)
    whole = math.fsum(runs.weights)
    if not runs.pairs or not whole:
        return None
    bounds = runs.bounds(searched.generation.size)
    # A chunk whose pairs weigh less than a run must, and less than a long one, is not looked at.
    least = min(whole * math.sqrt(LEAST / SAID), LONG_RUN) * _ROUNDING
    chunks = np.flatnonzero(bounds >= least).astype(np.int32)
    if not len(chunks):
        return None
    covered, longest = runs.weigh(chunks)
    alike = ALIKE * float(covered.max()) * _ROUNDING
    if alike < least:  # those that are nearly as good tell how rare the best are
        chunks = np.flatnonzero(bounds >= alike).astype(np.int32)
        covered, longest = runs.weigh(chunks)
    rarity = searched.rarity(int(np.count_nonzero(covered >= ALIKE * float(covered.max()))))
    scores = searched.nothing()
    power = RUN_POWER / np.maximum(1, longest / LONG_RUN)
    scores[chunks] = SAID * rarity * np.minimum(covered / whole, 1) ** power
    return scores


def _making(searched: _Searched) -> Scores | None:
    """Return evidence for chunks that make the message that the query is, with values in the place of some words.

    Values may be most of what was pasted, so that the message alone counts.
    """
    query = searched.query
    runs = _runs(searched) if len(query.in_order) >= MESSAGE_WORDS else None
    if runs is None or not runs.pairs:
        return None
    words, most_held = (
        said_words(query.text),
        found(runs.bounds(searched.generation.size).astype(np.float32), MOST_READ),
    )
    likely = most_held.numbers[most_held.scores >= LONG_RUN / 2]
    made = dict[int, float]()
    for number, chunk in searched.generation.chunks(likely).items():
        code = chunk.content if chunk.metadata.get("language") else ""  # prose that quotes a message makes none
        terms = [frozenset(sequence(text)) for text in messages_in(code, words)]
        weights = (math.fsum(searched.statistics.idf.get(t, 0.0) for t in each - FUNCTION_TERMS) for each in terms)
        if (most := max(weights, default=0.0)) > 0:
            made[number] = min(most / LONG_RUN, 1.0)
    if not made:
        return None
    scores = searched.nothing()
    scores[[*made]] = [SAID * searched.rarity(len(made)) * share for share in made.values()]
    return scores


def _stating(searched: _Searched) -> Scores | None:
    """Return evidence for chunks that state the value of a setting in the query; ``None`` if there are none.

    The value of a setting is stated where it is defined, read with a fallback, set or documented. Facts know these
    places; words alone cannot distinguish them from uses of the setting.
    """
    settings = {f"states:{name}": words for name, words in settings_in(searched.query.words).items()}
    held = searched.generation.named(settings)
    if not held:
        return None
    named = {
        key: [word for word in searched.query.words if word in settings[key] or word.whole in parts]
        for key in held
        if (parts := key.removeprefix("states:").split())
    }
    unless = {word for clause in MEANS_DEFAULT.findall(searched.query.text) for word in clause.lower().split()}
    asks = ASKS_FOR_VALUE | unless.difference(word.whole for key in held for word in named[key])
    scores = _weigh_held(held, named, asks, searched.defined_in, searched)
    if unless or not {"default", "defaults"}.isdisjoint(word.whole for word in searched.query.words):
        declared = searched.generation.named([key.replace("states:", "defaults:", 1) for key in held])
        for key, chunks in declared.items():
            stating = held.get(key.replace("defaults:", "states:", 1), chunks)
            scores[np.setdiff1d(stating, chunks, assume_unique=True)] *= OF_USE_SHARE
    return _set_back(scores, searched)


def _set_back(scores: Scores, searched: _Searched) -> Scores:
    """Return the scores, lowered for values of old releases and for values that tests and examples set."""
    for place in (RELEASE, ASIDE):
        scores[searched.known.get(place, NO_HITS.numbers)] *= ELSEWHERE_SHARE
    return scores


def kinds_asked(question: str) -> frozenset[str]:
    """Return the kinds of values that may answer a question.

    "How long" asks for a number, "which" never for a switch, and "which formats" never for a switch or a single text.
    """
    if ASKS_QUANTITY.search(question):
        return frozenset({"number", "unlimited"})
    named = frozenset({"number", "unlimited", "string", "list", "version"})
    if _ASKS_SEVERAL.search(question):
        return named - {"string"}
    return named if _ASKS_WHICH.search(question) else named | {"boolean"}


def _holding(
    named: Mapping[str, Sequence[Word]], asks: Collection[str], count: Callable[[Numbers], int], searched: _Searched
) -> Scores | None:
    """Return evidence for the chunks that have one of some keys; ``None`` if no chunk has one.

    The evidence is stronger the larger the part of the query that names the key, and the rarer the key.

    Args:
        named: key → the words of the query that name it.
        asks: words that only ask, such as ``value``; they have no weight.
        count: takes the chunks of a key and returns how many count for its rarity.
    """
    held = searched.generation.named(list(named))
    return _weigh_held(held, named, asks, count, searched) if held else None


def _weigh_held(
    held: Mapping[str, Numbers],
    named: Mapping[str, Sequence[Word]],
    asks: Collection[str],
    count: Callable[[Numbers], int],
    searched: _Searched,
) -> Scores:
    """Return evidence as ``_holding`` does, for the chunks in ``held`` (key → chunks)."""
    weights = {
        word: 0.0 if word.is_function_word or word.whole in asks else weight
        for word, weight in _weights(searched, ()).items()
    }
    whole, scores = math.fsum(weights.values()) or 1.0, searched.nothing()
    for key, chunks in held.items():
        coverage = min(1.0, math.fsum(weights[word] for word in named[key]) / whole) ** NAME_POWER
        coverage = max(coverage, NAMED_ALONE if searched.only_name in named[key] else 0.0)
        scores[chunks] = np.maximum(scores[chunks], DEFINED * coverage * searched.rarity(count(chunks)))
    return scores


@lru_cache(maxsize=256)
def settings_in(query: tuple[Word, ...]) -> Mapping[str, tuple[Word, ...]]:
    """Return name → its words in the query, for each name that may be a setting. Names are spelled as in facts.

    Names are identifiers and neighbouring words. A word with a dash counts as several words.
    """
    named: dict[str, tuple[Word, ...]] = {}
    for start in range(len(query)):
        for count in range(1, MAX_SETTING_WORDS + 1):
            words = query[start : start + count]
            if len(words) < count or words[-1].is_function_word or words[0].is_function_word:
                continue
            name = read_name(" ".join(word.written for word in words))
            is_one = count == 1 and not (words[0].is_name or "-" in words[0].written)
            if name and not is_one and not (count == 1 and is_generic(name.name)):
                named.setdefault(name.name, words)
                if count == 1:  # ``KeepRows`` is ``KEEPROWS`` where it is defined
                    named.setdefault(name.name.replace(" ", ""), words)
    return named
