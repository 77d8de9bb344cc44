"""Analyze a query into the parts that the retrievers need."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise

from nornweave.ask.search.pasted import Place, places_in
from nornweave.core.errors import QueryError
from nornweave.core.text import analyzer
from nornweave.core.text.analyzer import FUNCTION_TERMS
from nornweave.core.text.checked_values import MAX_QUERY_CHARACTERS
from nornweave.core.text.function_words import FUNCTION_WORDS
from nornweave.core.text.index_fields import asked_keys, folded, is_identifier
from nornweave.index.index import Index

MAX_TOP_K = 100

# What stands further back in a long query is pasted text, which shows before.
MAX_WORDS, MAX_IN_ORDER = 32, 64
MAX_PHRASES = 32
# What is longer was not typed.
MAX_ASKED_CHARACTERS = 200
# From so many words on a query is a sentence, whose ordinary words name nothing.
SENTENCE_WORDS = 4

_QUOTED = re.compile(r'"([^"\n]{1,512})"|`([^`\n]{1,512})`|“([^”\n]{1,512})”')
_NAMED_VERSION = re.compile(
    r"(?<![\w.-])(?!(?:version|release|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\w*)\b)(?-i:[A-Z])[\w+#.-]*"
    r"\s+v?\d{1,2}(?:\.\d{1,4})*(?![\w-]|\.\w)",
    re.IGNORECASE,
)
"""A product with its version, ``Python 3.10``: together they are one name, whose parts say little."""
FLAG = re.compile(r"(?<![\w-])--?(?=[A-Za-z])")
"""What stands before a word that is the name of a flag."""
_WORD = re.compile(r"[\w$]+(?:-[\w$]+)*")
_QUALIFIED = re.compile(r"(?<![\w$])([\w$]+)(?:\.|::|->|#)(?=([\w$]+))")
_CAPITALISED = re.compile(r"[A-Z][a-z]")
_NO_TEXT = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a query that may name something.

    Attributes:
        written: the word as written.
        spelled: the form that all its spellings share.
        is_name: whether it is written as a name, or the query is not a sentence.
        whole: the index's term for the whole word; the index also has terms for its parts.
        is_function_word: whether it only shapes the sentence.
        is_repeated: whether the query has it twice: ``delay.delay``.
    """

    written: str
    spelled: str
    is_name: bool
    whole: str
    is_function_word: bool
    is_repeated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query, analyzed once for all domains.

    Attributes:
        terms: distinct terms of the analyzer.
        pairs: distinct neighbours among them → the key of the pair in the index.
        phrases: text in quotation marks or backticks, and products with a version, each once; the first
            ``MAX_PHRASES``.
        keys: lookup keys of names that it may mean (``asked_keys``).
        places: lines of files to which it points, in order.
        words: the words that may be names, distinct by spelling.
        in_order: the terms in their order.
        neighbours: for each pair of neighbours the index of the first in ``in_order``, and the pair's key in the index.
        values: terms that an error message has and its source code does not: numbers, paths.
        meaning: content words → their terms: the whole word, then its parts.
        vocabulary: all terms and words, for counting in each domain.
    """

    text: str
    terms: tuple[str, ...]
    pairs: Mapping[tuple[str, str], int]
    phrases: tuple[str, ...]
    keys: tuple[str, ...]
    places: tuple[Place, ...]
    words: tuple[Word, ...]
    in_order: tuple[str, ...]
    neighbours: tuple[tuple[int, int], ...]
    values: frozenset[str]
    meaning: Mapping[str, tuple[str, ...]]
    vocabulary: frozenset[str]


@dataclass(frozen=True, slots=True)
class TermStatistics:
    """A domain's statistics of the query's terms: chunks per term, idf, and the number of chunks."""

    frequencies: Mapping[str, int]
    idf: Mapping[str, float]
    count: int


@lru_cache(maxsize=256)
def read_query(text: str) -> Query:
    """Return a query with its analysis. Recent results are cached, because all domains need the same."""
    quoted = dict.fromkeys(phrase for found in _QUOTED.findall(text) if (phrase := "".join(found).strip()))
    asked = text if len(text) <= MAX_ASKED_CHARACTERS else ""  # in what is pasted a number is a value
    named = filter(_is_product, _NAMED_VERSION.findall(asked))
    phrases = tuple(islice(dict.fromkeys([*quoted, *named]), MAX_PHRASES))
    terms, in_order = analyzer.query_terms(text), analyzer.sequence(text)
    words, meaning = _names_in(text), words_of(text)
    followed = enumerate(pairwise(in_order[:MAX_IN_ORDER]))
    in_paths = {term for token in text.split()[:MAX_IN_ORDER] if "/" in token for term in analyzer.sequence(token)}
    return Query(
        text=text,
        terms=tuple(terms),
        pairs={pair: analyzer.pair_key(pair) for pair in sorted(analyzer.word_pairs(in_order))},
        phrases=phrases,
        keys=tuple(sorted(asked_keys(text))),
        places=places_in(text),
        words=words,
        in_order=tuple(in_order[:MAX_IN_ORDER]),
        neighbours=tuple((place, analyzer.pair_key(pair)) for place, pair in followed if not {*pair} <= FUNCTION_TERMS),
        values=frozenset(term for term in in_order if len(term) == 1 or not term.isalpha()) | in_paths,
        meaning=meaning,
        vocabulary=frozenset(terms).union(in_order, (word.whole for word in words), *meaning.values()),
    )


def _is_product(found: str) -> bool:
    """Tell whether a word and a number are a product with its version, not a document such as ``ADR 4``."""
    name, version = found.split()
    return name.lower() not in FUNCTION_WORDS and ("." in version or not name.isupper())


def _names_in(text: str) -> tuple[Word, ...]:
    """Return the words of a query that may be names, distinct by spelling."""
    found = _WORD.findall(text)[:MAX_WORDS]
    qualified = {folded(part) for match in _QUALIFIED.finditer(text) for part in match.groups()}
    qualified.update(folded(word[0]) for flag in FLAG.finditer(text) if (word := _WORD.match(text, flag.end())))
    times = Counter(map(folded, found))
    words: dict[str, Word] = {}
    for place, word in enumerate(found):
        spelled, whole = folded(word), word.lower()
        is_name = len(found) < SENTENCE_WORDS or spelled in qualified or is_identifier(word)
        is_name = is_name or (place > 0 and _CAPITALISED.search(word) is not None)
        if spelled:
            is_function_word = whole in FUNCTION_WORDS and spelled not in qualified
            words.setdefault(spelled, Word(word, spelled, is_name, whole, is_function_word, times[spelled] > 1))
    return tuple(words.values())


@lru_cache(maxsize=256)
def words_of(text: str) -> Mapping[str, tuple[str, ...]]:
    """Return the distinct content words of a text, each with its terms: the whole word, then its parts."""
    spans: dict[tuple[int, int], list[str]] = {}
    word = (0, 0)
    for term, start, end in analyzer.occurrences(text):
        if start >= word[1]:
            word = (start, end)
        spans.setdefault(word, []).append(term)
    words = {text[start:end]: tuple(terms) for (start, end), terms in spans.items()}
    return {word: terms for word, terms in words.items() if terms[0] not in FUNCTION_TERMS}


def statistics_of(query: Query, generation: Index) -> TermStatistics:
    """Count the terms of a query in a domain.

    ``idf(t) = ln(1 + (N - n(t) + 0.5) / (n(t) + 0.5))``, which is never negative.

    Source: Robertson & Zaragoza 2009; the 1 + as in Lucene.
    """
    count = generation.chunk_count
    frequencies = generation.document_frequencies(query.vocabulary)
    idf = {term: math.log(1 + (count - held + 0.5) / (held + 0.5)) for term, held in frequencies.items()}
    return TermStatistics(frequencies, idf, count)


def check_query(text: str, top_k: int) -> None:
    """Refuse a query that cannot be searched.

    Raises:
        QueryError: the query is blank, too long or not text, or ``top_k`` is out of range.
    """
    if not text.strip():
        raise QueryError("query", f"blank; ask something, 1 to {MAX_QUERY_CHARACTERS:,} characters")
    if len(text) > MAX_QUERY_CHARACTERS:
        raise QueryError("query", f"{len(text):,} characters; allowed are 1 to {MAX_QUERY_CHARACTERS:,}")
    if _NO_TEXT.search(text):
        raise QueryError("query", "holds a NUL or half a surrogate pair; expected Unicode text")
    if not 1 <= top_k <= MAX_TOP_K:
        raise QueryError("top_k", f"{top_k}; allowed are 1 to {MAX_TOP_K}")
