"""Questions to all domains: the bodies of ``POST /query``, ``/why`` and ``/fuse``, and the parameters of look-ups.

``/fuse`` takes any agents' answers. Its other fields are checked strictly, the answers themselves as in
``nornweave/ask/agents/answers.py``. Look-ups are ``GET /find``, ``GET /complete`` and ``GET /conflicts``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from api.requests import Body, Parameters
from nornweave.ask.agents.exchange import MAX_ITEMS, Foreign, ResponseBody
from nornweave.ask.fuse.records import Recalled
from nornweave.ask.search.question import ConflictStrategy, Question
from nornweave.ask.search.records import CoverageGap, FindQuery, Switch
from nornweave.ask.uses import MAX_NAME
from nornweave.ask.views.ledger import LedgerDocument, LedgerEntryDocument
from nornweave.ask.why import SoughtPlace
from nornweave.config.workspace import FusionSettings
from nornweave.core.errors import QueryError
from nornweave.core.text.checked_values import (
    DomainId,
    Line,
    Moment,
    Name,
    PlainJson,
    QuestionText,
    Share,
    UrlCount,
    UrlSwitch,
    textual,
)
from nornweave.core.types import Domain, JsonValue
from nornweave.index.generations.moves import read_as_of
from nornweave.index.searching.finding import MAX_PATTERN_CHARACTERS, LinePattern

MAX_TOP_K = 100
MAX_TIMEOUT_MS = 60_000
MAX_TOKENS = 1_000_000
MAX_DOMAINS = 100

Strategy = Literal["RECENCY", "SOURCE_AUTHORITY", "CONFIDENCE", "FLAG", "RECENCY_THEN_FLAG"]
StrategyField = Annotated[
    Strategy | None,
    Field(description="Which side of a conflict holds; null takes the configured one. `FLAG` decides nothing."),
]
TokensField = Annotated[
    int | None,
    Field(
        ge=1,
        le=MAX_TOKENS,
        description="At most this many tokens of contents, at four characters each; long items are shortened.",
    ),
]
ScoreField = Annotated[Share | None, Field(description="Leave out items below this score.")]
DiversityField = Annotated[
    Share | None, Field(description="How much to prefer domains that are not shown yet: 0 not at all, 1 most.")
]
SynthesizeField = Annotated[
    bool, Field(description="Let a model write an answer with citations. Without one `synthesis_details` says why.")
]

MAX_MATCHES, USUAL_MATCHES = 1_000, 100
MAX_VALUES = 100
MAX_PREFIX, MAX_COMPLETIONS, USUAL_COMPLETIONS = 100, 50, 8


class QueryBody(Body):
    """A question to all domains. Only `query` is required."""

    query: Annotated[QuestionText, Field(description="In your own words, an identifier or an error line; not blank.")]
    domains: Annotated[
        list[Annotated[str, StringConstraints(max_length=64), AfterValidator(textual)]] | None,
        Field(
            min_length=1,
            max_length=MAX_DOMAINS,
            description="Which to ask, each of the served ones; null leaves it to routing. Duplicates count once.",
            examples=[[domain.value for domain in Domain]],
        ),
    ] = None
    top_k: Annotated[int, Field(ge=1, le=MAX_TOP_K, description="Items wanted.")] = 10
    filters: Annotated[
        dict[str, PlainJson],
        Field(
            description="Domain → declared filter → value; `/agents/{domain}/describe` lists them. "
            "All of them must hold; a domain with a filter is always asked."
        ),
    ] = {}
    conflict_strategy: StrategyField = None
    expand: Annotated[Switch, Field(description="Search variants of the query beside it.")] = "auto"
    rerank: Annotated[Switch, Field(description="Use a cross-encoder.")] = "auto"
    synthesize: SynthesizeField = False
    explain: Annotated[bool, Field(description="Say how each agent's score came about.")] = False
    timeout_ms: Annotated[
        int | None,
        Field(
            ge=1,
            le=MAX_TIMEOUT_MS,
            description="From the arrival of the request on; domains that have not answered by then are coverage gaps. "
            "Null takes what the service is configured with: `fusion_timeout_seconds`.",
            json_schema_extra={"default": FusionSettings().timeout_ms},
        ),
    ] = None
    max_tokens: TokensField = None
    min_score: ScoreField = None
    diversity: DiversityField = None
    as_of: Annotated[
        Annotated[str, StringConstraints(max_length=64), AfterValidator(textual)] | None,
        Field(
            description="Answer from what was published at this time (RFC 3339), or from this generation, as far as it "
            "is kept; null answers from what is published now. Who may see what goes by today's statements.",
            examples=["2026-11-24T10:00:00Z", "gen-000012"],
        ),
    ] = None
    format: Annotated[
        Literal["json", "text"],
        Field(description="`text` answers text/plain: sections of one source each, under `[SOURCE — LABEL]`."),
    ] = "json"

    def question(self, served: tuple[Domain, ...], arrived: Question) -> Question:
        """Return ``arrived`` with the fields of this body.

        Raises:
            QueryError: a domain is not served, or ``as_of`` is neither a past time nor a generation.
        """
        return replace(
            arrived,
            text=self.query,
            as_of=None if self.as_of is None else read_as_of(self.as_of, arrived.now),
            domains=self._domains(served),
            top_k=self.top_k,
            filters={served_domain(name, served, f"filters.{name}"): values for name, values in self.filters.items()},
            expand=self.expand,
            rerank=self.rerank,
            explain=self.explain,
            strategy=ConflictStrategy(self.conflict_strategy) if self.conflict_strategy else None,
            max_tokens=self.max_tokens,
            min_score=self.min_score,
            diversity=self.diversity,
            synthesize=self.synthesize,
        )

    def _domains(self, served: Collection[Domain]) -> tuple[Domain, ...] | None:
        if self.domains is None:
            return None
        named = (served_domain(name, served, f"domains.{place}") for place, name in enumerate(self.domains))
        return tuple(dict.fromkeys(named))


class WhyBody(QueryBody):
    """A question, and a place that was expected in its answer."""

    source_path: Annotated[Line, StringConstraints(min_length=1), Field(description="As citations print it.")]
    domain: Annotated[Domain | None, Field(strict=False, description="Of the place; null takes the first.")] = None
    source_id: Annotated[Name | None, Field(description="Of the place; null takes the first that has the path.")] = None
    line: Annotated[int | None, Field(ge=1, le=10**9, description="Of the document; null means all of it.")] = None

    @property
    def place(self) -> SoughtPlace:
        """Return the place that was expected."""
        return SoughtPlace(self.source_path, self.line, self.source_id, self.domain)


def served_domain(name: str, served: Collection[Domain], field: str = "domain") -> Domain:
    """Return the served domain with this name.

    Raises:
        QueryError: no served domain has this name. The error names ``field``.
    """
    names = {domain.value: domain for domain in served}
    if name in names:
        return names[name]
    shown = repr(name) if len(name) <= 64 else f"a name of {len(name)} characters"
    raise QueryError(field[:80], f"{shown} is not served; served: {', '.join(names) or 'none'}")


MAX_RESPONSES = 1_000


class GapBody(Foreign):
    """An agent that gave no answer, and why."""

    domain_id: DomainId
    agent_id: Line = ""
    reason: Line


class FuseBody(Body):
    """Answers of any agents to one question; only `original_text` and `responses` are required."""

    original_text: Annotated[QuestionText, Field(description="the question that they answer")]
    responses: Annotated[
        list[ResponseBody], Field(max_length=MAX_RESPONSES, description=f"together at most {MAX_ITEMS:,} items")
    ]
    coverage_gaps: Annotated[list[GapBody], Field(max_length=MAX_RESPONSES)] = []
    conflict_strategy: StrategyField = None
    domain_signals: Annotated[
        dict[DomainId, Share],
        Field(max_length=100, description="domain → how strongly the question is about it; 0.5 unless it is here"),
    ] = {}
    synthesize: SynthesizeField = False
    now: Annotated[Moment | None, Field(description="what recency is counted from; null is the present")] = None
    top_k: Annotated[int | None, Field(ge=1, le=MAX_ITEMS, description="items wanted; null keeps all")] = None
    max_tokens: TokensField = None
    min_score: ScoreField = None
    diversity: DiversityField = None
    timeout_ms: Annotated[
        int | None, Field(ge=1, le=MAX_TIMEOUT_MS, description="for waiting for a turn, and for the synthesis")
    ] = None

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self._items > MAX_ITEMS:
            raise ValueError(f"{self._items:,} items in all responses; allowed are {MAX_ITEMS:,}")
        return self

    @property
    def _items(self) -> int:
        return sum(len(response.items) for response in self.responses)

    def question(self, arrived: Question) -> Question:
        """Return ``arrived`` with the question that the agents answered, and the options of this body."""
        return replace(
            arrived,
            text=self.original_text,
            now=self.now or arrived.now,
            top_k=max(1, self._items) if self.top_k is None else self.top_k,
            strategy=ConflictStrategy(self.conflict_strategy) if self.conflict_strategy else None,
            max_tokens=self.max_tokens,
            min_score=self.min_score,
            diversity=self.diversity,
            synthesize=self.synthesize,
        )

    def recalled(self) -> Recalled:
        """Return the agents' answers in the form that fusion takes."""
        return Recalled(
            asked={response.domain_id: response.agent_id for response in self.responses},
            responses=tuple(response.response() for response in self.responses),
            coverage_gaps=tuple(CoverageGap(gap.domain_id, gap.agent_id, gap.reason) for gap in self.coverage_gaps),
            domain_signals=MappingProxyType(dict(self.domain_signals)),
        )


def _of_one_line(text: str) -> str:
    if "\n" in text or "\r" in text:
        raise ValueError("holds a line feed; lines are matched one by one")
    return textual(text)


Expression = Annotated[
    str, StringConstraints(min_length=1, max_length=MAX_PATTERN_CHARACTERS), AfterValidator(_of_one_line)
]
Names = Annotated[list[Name], Field(max_length=MAX_VALUES)]


class FindParameters(Parameters):
    """Which lines to find."""

    text: Annotated[Expression | None, Field(description="What a line holds, letter by letter.")] = None
    regex: Annotated[Expression | None, Field(description="Instead of `text`: a regular expression of RE2.")] = None
    domain: Annotated[Names, Field(description="Only these domains; may be repeated.")] = []
    source: Annotated[Names, Field(description="Only these sources, by id; may be repeated.")] = []
    path_glob: Annotated[Name | None, Field(description="Only documents at such paths, as the filter.")] = None
    document: Annotated[Name | None, Field(description="Only the document at this path.")] = None
    case: Annotated[UrlSwitch, Field(strict=True, description="Tell upper from lower case.")] = True
    limit: Annotated[UrlCount, Field(ge=1, le=MAX_MATCHES, strict=True, description="At most this many lines.")] = (
        USUAL_MATCHES
    )

    def query(self, served: Sequence[Domain]) -> FindQuery:
        """Return these parameters as the engine's query.

        Raises:
            QueryError: a domain is not served, or both or neither of ``text`` and ``regex`` are given.
        """
        if (self.text is None) == (self.regex is None):
            raise QueryError("regex" if self.regex else "text", "exactly one of 'text' and 'regex' is needed")
        domains = tuple(served_domain(name, served) for name in dict.fromkeys(self.domain))
        filters: dict[str, JsonValue] = {"source": list(self.source)} if self.source else {}
        if self.path_glob:
            filters["path_glob"] = self.path_glob
        return FindQuery(
            pattern=LinePattern(self.regex or self.text or "", self.regex is not None, ignores_case=not self.case),
            limit=self.limit,
            domains=domains or tuple(served),
            filters=filters,
            document=self.document,
        )


class UsesParameters(Parameters):
    """The name whose uses are wanted."""

    name: Annotated[Name, Field(max_length=MAX_NAME, description="Of code: `add`, or `Ledger.add` for one of several.")]
    source: Annotated[Name | None, Field(description="Only this source, by its id.")] = None


class CompleteParameters(Parameters):
    """The typed text to complete."""

    prefix: Annotated[
        str,
        StringConstraints(min_length=1, max_length=MAX_PREFIX, strip_whitespace=True),
        AfterValidator(textual),
        Field(description="What a text, or a word in it, begins with, in either case."),
    ]
    limit: Annotated[UrlCount, Field(ge=1, le=MAX_COMPLETIONS, strict=True)] = USUAL_COMPLETIONS


MAX_ENTRIES = 10_000


class LedgerQuery(Parameters):
    """The entries of the ledger that are wanted."""

    entity: Annotated[Name | None, Field(description="Entries whose entity has this in it, whatever the case.")] = None
    domain: Annotated[Domain | None, Field(description="Entries in which this domain takes part.")] = None
    limit: Annotated[
        UrlCount | None, Field(ge=1, le=MAX_ENTRIES, strict=True, description="At most this many of each list.")
    ] = None
    settled: Annotated[
        UrlSwitch | None,
        Field(strict=True, description="Only what is settled (`true`) or only what is open (`false`)."),
    ] = None

    dismissed: Annotated[
        UrlSwitch,
        Field(strict=True, description="Also what somebody said is no conflict."),
    ] = False

    def chosen(self, ledger: LedgerDocument) -> LedgerDocument:
        """Return the ledger with only the wanted entries, in the same order."""
        return {
            **ledger,
            "open": [] if self.settled is True else self._matching(ledger["open"]),
            "settled": [] if self.settled is False else self._matching(ledger["settled"]),
            "dismissed": self._matching(ledger["dismissed"]) if self.dismissed else [],
        }

    def _matching(self, entries: Sequence[LedgerEntryDocument]) -> list[LedgerEntryDocument]:
        return [entry for entry in entries if self._matches(entry)][: self.limit]

    def _matches(self, entry: LedgerEntryDocument) -> bool:
        named = self.entity is None or self.entity.casefold() in entry["entity"].casefold()
        sides = {side["domain_id"] for side in entry["sides"]}
        return named and (self.domain is None or self.domain.value in sides)
