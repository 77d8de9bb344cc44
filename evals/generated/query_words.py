"""The words of a query, and whether they make it worth asking."""

from __future__ import annotations

import re

from nornweave.core.text.analyzer import sequence
from nornweave.core.text.function_words import FUNCTION_WORDS

MIN_CONTENT_WORDS = 3
"""A query of fewer finds too much to be a test."""
MAX_WORDS = 40
"""Nobody asks in longer sentences; what is longer was no summary and no question."""
# Of a docstring's words; the others are names, numbers and code.
_PLAIN_SHARE = 0.6

_WORD = re.compile(r"\w+")
_PLAIN_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*[.,:;!?)]*")
# ``:class:`~a.Name```, ``{@link Name}``, `` `name` ``, *name*, "name": a quotation would make the query a literal one.
_ROLE = re.compile(r":[a-z:]{2,30}:`~?!?([^`<>\n]{1,200})`|\{@\w{1,20}\s+([^{}\n]{1,200})\}")
_NAMED_TAG = re.compile(r"<(?:see|seealso|paramref|typeparamref)\s+\w+=\"(?:\w:)?([^\"<>\n]{1,200})\"\s*/>")
_TAG = re.compile(r"</?[A-Za-z][^<>\n]{0,200}>")
_MARKS = re.compile(r"[`\"“”*|]+|(?<!\w)_|_(?!\w)")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
_NUMBERING = re.compile(r"^(?:(?:\d{1,3}\.)+\d{0,3}|\d{1,3}\)|\d{1,2}(?=\s+[A-Z])|[IVX]{1,6}\.|§+)\s+")
# Where a sentence ends: a stop that no abbreviation has, before blank space and what may begin another.
_STOP = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\betc)(?<!\bvs)(?<!\bcf)(?<!\b[A-Z])[.!?]+[)\"'”’]{0,2}(?=\s|\Z)")
_BOILERPLATE = frozenset(
    """
    about|abstract|acknowledgements|acknowledgments|added|additional resources|answer|appendix|arguments|authors|
    background|changed|changelog|comments|conclusion|conclusions|configuration|contents|contributing|contributors|
    credits|definition|deprecated|description|details|discussion|document history|documentation|errors|example|
    examples|experiments|faq|features|files|fixed|further reading|general|getting started|help|history|how it works|
    important|install|installation|installing|introduction|license|limitations|links|materials and methods|methods|
    more information|motivation|next steps|note|notes|options|output|overview|parameters|prerequisites|purpose|question|
    quick start|quickstart|reference|references|related information|related resources|related topics|related work|
    removed|request|request parameters|request syntax|requirements|resources|response|response elements|response syntax|
    result|results|return value|returns|security|see also|setup|steps|summary|support|syntax|table of contents|testing|
    tests|tips|to do|todo|topics|troubleshooting|unreleased|usage|use cases|what is next|what s next|what s new
    """.replace("\n", "")
    .replace("    ", "")
    .split("|")
)


# What chats are full of; a question of nothing else is not about anything.
_SMALL_TALK_WORDS = """
actually already another anybody anymore anyone anything back bad best better big bit both bring came cool day
days else enough ever every everyone everything exactly excited exciting far fave favorite favourite feel feeling
find first fun get getting give go going gone gonna good got great guess guy guys happen happened happening hard
hear heard help hey hi idea ideas just keep kind know last lately let life like long look looking lot lots love made
make makes making many maybe mean mind more most much need new next nice nobody nothing now often ok okay one ones
only other others part people place plan plans please pretty question quite real really recent recently remember
right said same say see seem share show since so some somebody someone something soon sort still stuff such sure
take taken tell than thank thanks thing things think thought time times today tomorrow tonight too top tried try
trying two use used usually wanna want wants was way week what when which while work worked working works world wow
year years yes yesterday yet
"""
_SMALL_TALK = frozenset(_SMALL_TALK_WORDS.split())
# ", right?": nothing is asked.
_TAG_QUESTION = re.compile(
    r"\b(?:yeah|right|huh|eh|ok|okay|\w+n['’]t (?:i|you|he|she|it|we|they))\s*\?+$", re.IGNORECASE
)


def content_words(text: str) -> set[str]:
    """Return the content words of a text, without function words, numbers and single letters."""
    words = (word.lower() for word in _WORD.findall(text))
    return {word for word in words if len(word) > 1 and not word[0].isdigit() and word not in FUNCTION_WORDS}


def is_askable(text: str) -> bool:
    """Tell whether a text has enough content for a query, and is not too long."""
    return len(content_words(text)) >= MIN_CONTENT_WORDS and len(text.split()) <= MAX_WORDS


def is_about_something(question: str) -> bool:
    """Tell whether a question of a chat names at least two things that are rare in chats."""
    return (
        is_askable(question) and not _TAG_QUESTION.search(question) and len(content_words(question) - _SMALL_TALK) >= 2
    )


def is_boilerplate(heading: str) -> bool:
    """Tell whether a heading is common in all documents and says nothing about its own."""
    return " ".join(_WORD.findall(heading.lower())) in _BOILERPLATE


def is_prose(text: str) -> bool:
    """Tell whether a line is a sentence, not code, a rule of dashes or a table."""
    words = text.split()
    plain = sum(1 for word in words if _PLAIN_WORD.fullmatch(word))
    return bool(words) and text[0].isalpha() and plain >= _PLAIN_SHARE * len(words)


def normalised(text: str) -> str:
    """Return a form that is the same for texts that differ only in case, inflection and punctuation."""
    return " ".join(sequence(text))


def words_of(text: str) -> list[str]:
    """Return the words of a text as written."""
    return _WORD.findall(text)


def without_marks(text: str) -> str:
    """Remove markup, quotation marks and their surrounding blanks from a line."""
    text = _NAMED_TAG.sub(r"\1", _INVISIBLE.sub("", text))
    text = _ROLE.sub(lambda match: (match[1] or match[2]).rsplit(".", 1)[-1], text)
    return " ".join(_MARKS.sub(" ", _TAG.sub(" ", text)).replace(" ,", ",").replace(" .", ".").split())


def without_number(heading: str) -> str:
    """Remove the section number from a heading."""
    return _NUMBERING.sub("", heading)


def first_sentence(text: str) -> str:
    """Return a paragraph up to its first full stop, which is left out. A question keeps its mark."""
    stop = _STOP.search(text)
    if not stop:
        return text.rstrip(" :,;")
    return text[: stop.end()].strip() if "?" in stop[0] else text[: stop.start()].strip()


def sentences(text: str) -> list[str]:
    """Return the sentences of a text with their punctuation."""
    starts = [0, *(match.end() for match in _STOP.finditer(text)), len(text)]
    found = (text[start:end].strip() for start, end in zip(starts, starts[1:], strict=False))
    return [sentence for sentence in found if sentence]
