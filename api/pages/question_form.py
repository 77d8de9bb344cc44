"""The ask page's form: query parameters ⇄ the question, and questions of the workspace's judged sets as examples.

``q`` the question, ``after`` those before it in a thread, repeated, ``domain`` repeated, ``top_k``, ``as_of``,
``write`` for an answer by a model, and filters by their names: ``code.language=python``, lists repeated, ranges as
``research.date_range.start`` and ``.end``, of numbers ``.min`` and ``.max``. Blank fields count as left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from api.pages.addresses import ask_address
from api.requests.chat import in_thread
from api.requests.query import QueryBody
from nornweave.ask.search.filters import RANGE_ENDS, plain_value
from nornweave.ask.seen.texts import SeenTexts
from nornweave.config import Settings
from nornweave.core.access import Viewer
from nornweave.core.errors import QueryError
from nornweave.core.text.analyzer import FUNCTION_TERMS, query_terms
from nornweave.core.text.checked_values import MAX_QUERY_CHARACTERS

if TYPE_CHECKING:
    from evals.judgments import Judgment

MAX_EXAMPLES = 5
MAX_EXAMPLE_CHARACTERS = 90
MAX_PASSAGES = 50_000
"""Of what is served; in more the headings are not looked through."""
MAX_REMEMBERED = 100
_ASKING = ("how", "why", "what", "when", "which", "where")
# "What we test" and "When in doubt" need their document to mean something.
_LEAST_WORDS = 2


@dataclass(frozen=True, slots=True)
class QuestionWithPlaces:
    """A question and the places that answer it, best first, written as ``why`` reads them."""

    text: str
    places: tuple[str, ...]


class JudgedQuestions:
    """The judged sets, read once. A set that cannot be read is empty; ``nornweave eval`` says what is wrong."""

    def __init__(self, settings: Settings) -> None:
        domains = (domain.evaluation.judgments for domain in settings.domains.values())
        self.floors: Mapping[str, Mapping[str, float]] = {
            name.value: {str(measure): floor for measure, floor in domain.evaluation.floors.items()}
            for name, domain in settings.domains.items()
        }
        self._headings: dict[object, Sequence[str]] = {}
        self._folders = tuple(
            dict.fromkeys((*settings.evaluation.judgments, *(each for folders in domains for each in folders)))
        )

    @cached_property
    def sets(self) -> Mapping[str, Mapping[str, QuestionWithPlaces]]:
        """Return the questions by set name, then by id."""
        return {folder.resolve().name: _read(folder) for folder in self._folders}

    @cached_property
    def examples(self) -> Sequence[str]:
        """Return some answered questions of the first set: of several words, and not too long."""
        for questions in self.sets.values():
            texts = [
                question.text
                for question in questions.values()
                if question.places and " " in question.text and len(question.text) <= MAX_EXAMPLE_CHARACTERS
            ]
            if texts:
                step = max(1, len(texts) // MAX_EXAMPLES)
                return texts[::step][:MAX_EXAMPLES]
        return ()

    def asking_headings(self, texts: SeenTexts, viewer: Viewer, generations: tuple[str | None, ...]) -> Sequence[str]:
        """Return headings that read as questions, cached by viewer and generations."""
        key = viewer, generations
        if key not in self._headings:
            if len(self._headings) >= MAX_REMEMBERED:
                self._headings.clear()
            self._headings[key] = _asking_headings(texts)
        return self._headings[key]


def _asking_headings(texts: SeenTexts) -> Sequence[str]:
    """Return headings that the viewer may see and that begin with a word such as *how*. These words take turns."""
    asking = [
        [
            each["text"]
            for each in texts.complete(f"{word} ", 2 * MAX_EXAMPLES)["completions"]
            if each["kind"] == "heading"
            and each["text"].lower().startswith(word)
            and len(set(query_terms(each["text"])) - FUNCTION_TERMS) >= _LEAST_WORDS
            and len(each["text"]) <= MAX_EXAMPLE_CHARACTERS
        ]
        for word in _ASKING
    ]
    return [text for texts_of_rank in zip_longest(*asking) for text in texts_of_rank if text][:MAX_EXAMPLES]


def _read(folder: Path) -> Mapping[str, QuestionWithPlaces]:
    from evals.judged_files import read_judgments  # answering does not load evaluations

    try:
        judged = read_judgments(folder)
    except ValueError:
        return {}
    relevant = judged.relevant
    return {
        query.id: QuestionWithPlaces(
            query.text, tuple(map(_place, sorted(relevant.get(query.id, ()), key=lambda place: -place.grade)))
        )
        for query in judged.queries
    }


def _place(judgment: Judgment) -> str:
    return f"{judgment.path}:{judgment.lines[0]}" if judgment.lines else judgment.path


TOP_K = 10
MAX_AFTER = 5
"""Questions of a thread that an address carries."""
COUNTS = (5, 10, 20, 50)
# Types of filters that may be given several times, each with another value.
SEVERAL = frozenset({"list", "keyword"})

Declared = Mapping[str, Mapping[str, str]]
"""Domain → filter → type."""
FIELDS = ("q", "after", "domain", "top_k", "as_of", "write")
Pair = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionForm:
    """The question, domains and filters of the form.

    Attributes:
        text: the question; empty if nothing is asked yet.
        after: the questions before it, oldest first.
        writes: whether a model writes an answer before the page is sent, for browsers without scripts.
        domains: the domains to ask; all if empty.
        filters: names and values, such as ``("code.language", "python")``, in order.
        top_k: the number of items.
        as_of: a time or a generation to answer from; empty for the current one.
    """

    text: str = ""
    after: tuple[str, ...] = ()
    writes: bool = False
    domains: tuple[str, ...] = ()
    filters: tuple[Pair, ...] = ()
    top_k: int = TOP_K
    as_of: str = ""
    declared: Declared = field(default_factory=dict)

    @property
    def pairs(self) -> list[Pair]:
        """Return the form as query parameters."""
        pairs = [("after", text) for text in self.after]
        pairs += [("q", self.text)] if self.text else []
        pairs += [("domain", domain) for domain in self.domains]
        pairs += self.filters
        pairs += [("as_of", self.as_of)] if self.as_of else []
        pairs += [("write", "on")] if self.writes else []
        return pairs if self.top_k == TOP_K else [*pairs, ("top_k", str(self.top_k))]

    @property
    def address(self) -> str:
        """Return the permalink of the answer to this form."""
        return ask_address(self.pairs)

    def leaves_out(self, pairs: Sequence[Pair]) -> bool:
        """Tell whether any parameter is blank or has its default value, so that the address could be shorter."""
        return any(not value.strip() or pair == ("top_k", str(TOP_K)) for pair in pairs for value in pair[1:])

    def with_more(self, shown: int) -> str:
        """Return the address of the same question with more than ``shown`` passages; empty if there are none."""
        more = next((count for count in COUNTS if count > self.top_k), 0)
        return f"{replace(self, top_k=more).address}#r{shown + 1}" if more and shown >= self.top_k else ""

    @property
    def asked(self) -> str:
        """Return the text to search: the question, after the earlier questions that it refers to."""
        return in_thread(self.text, self.after)

    @property
    def thread(self) -> tuple[Pair, ...]:
        """Return the questions before this one, each with the address of its answer."""
        return tuple(
            (text, replace(self, text=text, after=self.after[:place], writes=False).address)
            for place, text in enumerate(self.after)
        )

    @property
    def following(self) -> list[Pair]:
        """Return the hidden fields of the form for a follow-up question."""
        asked_on = replace(self, text="", after=(*self.after, self.text)[-MAX_AFTER:], top_k=TOP_K)
        return asked_on.pairs

    def values(self, name: str) -> tuple[str, ...]:
        """Return the values of one filter."""
        return tuple(value for key, value in self.filters if key == name)

    def with_domain_toggled(self, domain: str) -> QuestionForm:
        """Return the form with a domain added, or removed together with its filters."""
        if domain in self.domains:
            left = tuple(other for other in self.domains if other != domain)
            kept = tuple(pair for pair in self.filters if not pair[0].startswith(f"{domain}."))
            return replace(self, domains=left, filters=kept)
        return replace(self, domains=(*self.domains, domain))

    def narrowed(self, domain: str, pairs: Sequence[Pair], *, several: bool) -> QuestionForm:
        """Return the form with filters added. If all of them are there already, they are removed.

        Args:
            domain: is added to the domains; empty adds none.
            pairs: names and values.
            several: keep other values of the same names; otherwise they are replaced.
        """
        if all(pair in self.filters for pair in pairs):
            return replace(self, filters=tuple(pair for pair in self.filters if pair not in pairs))
        names = () if several else {name for name, _ in pairs}
        kept = tuple(pair for pair in self.filters if pair[0] not in names)
        domains = tuple(dict.fromkeys((*self.domains, domain))) if domain else self.domains
        return replace(self, domains=domains, filters=(*kept, *pairs))

    def body(self) -> QueryBody:
        """Return the body of ``POST /query`` for the same question.

        Raises:
            QueryError: the question is blank or too long, or ``top_k`` is out of range.
        """
        try:
            return QueryBody(
                query=self.asked,
                domains=list(self.domains) or None,
                top_k=self.top_k,
                filters=_nested(self.filters, self.declared),
                as_of=self.as_of or None,
                explain=True,
            )
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "query"
            raise QueryError(where, first["msg"].removeprefix("Value error, ")) from error


def writing_body(body: QueryBody) -> str:
    """Return the body that asks the same question again with a text by a model."""
    return body.model_copy(update={"synthesize": True, "explain": False}).model_dump_json(exclude_defaults=True)


def read_form(pairs: Iterable[Pair], declared: Declared) -> QuestionForm:
    """Return the form of these query parameters.

    Args:
        pairs: the query parameters.
        declared: the filters that exist.

    Raises:
        QueryError: an unknown name, a second value for a single field, or a wrong number.
    """
    given: dict[str, list[str]] = {name: [] for name in FIELDS}
    filters: list[Pair] = []
    for name, value in pairs:
        if not value.strip():
            continue
        if name in given:
            given[name].append(value.strip())
        elif _type_of(name, declared):
            filters.append((name, value))
        else:
            raise QueryError(name[:80], f"no such field; there are {', '.join(FIELDS)}, filters such as code.language")
    last = {name: values[-1] for name, values in given.items() if values}
    form = QuestionForm(
        text=last.get("q", ""),
        after=tuple(text[:MAX_QUERY_CHARACTERS] for text in given["after"][-MAX_AFTER:]),
        writes="write" in last,
        domains=tuple(dict.fromkeys(given["domain"])),
        filters=tuple(dict.fromkeys(filters)),
        top_k=_count(last["top_k"]) if "top_k" in last else TOP_K,
        as_of=last.get("as_of", ""),
        declared=declared,
    )
    _nested(form.filters, declared)
    return form


def _count(value: str) -> int:
    if value.isascii() and value.isdigit() and 1 <= len(value) <= 3:
        return int(value)
    raise QueryError("top_k", f"expected a number from 1 to 100, found {value[:20]!r}")


def _type_of(name: str, declared: Declared) -> str | None:
    """Return the type of the filter to which a parameter belongs; ``None`` if there is no such filter."""
    domain, _, rest = name.partition(".")
    key, dot, end = rest.partition(".")
    kind = declared.get(domain, {}).get(key)
    if kind is None or (dot and end not in RANGE_ENDS.get(kind, ())):
        return None
    return None if kind == "date_range" and not dot else kind


def _nested(filters: Sequence[Pair], declared: Declared) -> dict[str, Any]:
    """Return filters in the shape of ``POST /query``."""
    nested: dict[str, Any] = {}
    for name, value in filters:
        domain, key, *end = name.split(".")
        values = nested.setdefault(domain, {})
        kind = declared[domain][key]
        if kind in SEVERAL:
            values.setdefault(key, []).append(value)
        elif end and isinstance(values.setdefault(key, {}), dict):
            values[key][end[0]] = plain_value(kind, value, name)
        elif key in values:
            raise QueryError(name, "given twice; it takes one value")
        else:
            values[key] = plain_value(kind, value, name)
    return nested
