"""The arguments of the tools, checked as strictly as bodies of the API. ``null`` means that an argument is left out."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from api.requests import Body
from api.requests.query import MAX_DOMAINS, MAX_MATCHES, MAX_TOP_K, USUAL_MATCHES, Expression, FindParameters, QueryBody
from nornweave.ask.answer.pages import USUAL_TOKENS
from nornweave.ask.search.question import Question
from nornweave.ask.uses import MAX_NAME
from nornweave.core.text.checked_values import Name, PlainJson, QuestionText, textual
from nornweave.core.types import Domain

# Of a whole result, as `bound_tokens` counts: what it takes for 7,000 has fewer than 10,000 by every tokenizer tried.
MAX_RESULT_TOKENS = 7000
LEAST_RESULT_TOKENS, USUAL_RESULT_TOKENS = 500, 4000
USUAL_TOP_K = 10
# An answer is read in pages out of one ranking: each call asks the same question and shows another part.
ANSWER_ITEMS = 30
MAX_ID_CHARACTERS = 16_384

QueryField = Annotated[
    QuestionText, Field(description="A question in your own words, an identifier, or a line of an error message.")
]
DomainsField = Annotated[
    list[Annotated[str, StringConstraints(max_length=64)]] | None,
    Field(min_length=1, max_length=MAX_DOMAINS, description="Search only these; null lets the question decide."),
]
FiltersField = Annotated[
    dict[str, PlainJson] | None,
    Field(
        description='Domain → filter → value, such as {"code": {"path_glob": "src/**"}}. All must hold. '
        "`status` lists the filters of each domain."
    ),
]
AfterField = Annotated[
    Annotated[str, StringConstraints(max_length=64)] | None,
    Field(description="`next` of the result before, to get what comes after it; everything else must be the same."),
]


AsOfField = Annotated[
    Annotated[str, StringConstraints(max_length=64)] | None,
    Field(description="Answer from what was published at this RFC 3339 time; null: now."),
]


class Arguments(Body):
    """The arguments of a tool. Each tool has a subclass."""


class SearchArguments(Arguments):
    """Arguments of ``search``."""

    query: QueryField
    domains: DomainsField = None
    filters: FiltersField = None
    top_k: Annotated[int | None, Field(ge=1, le=MAX_TOP_K, description="Passages wanted.")] = USUAL_TOP_K
    as_of: AsOfField = None

    def question(self, served: tuple[Domain, ...], arrived: Question) -> Question:
        """Return ``arrived`` with these arguments, which are checked like a body of ``POST /query``."""
        body = QueryBody(
            query=self.query,
            domains=self.domains,
            filters=self.filters or {},
            top_k=self.top_k or USUAL_TOP_K,
            as_of=self.as_of,
        )
        return body.question(served, arrived)


class AnswerArguments(Arguments):
    """Arguments of ``answer``."""

    query: QueryField
    domains: DomainsField = None
    filters: FiltersField = None
    max_tokens: Annotated[
        int | None,
        Field(
            ge=LEAST_RESULT_TOKENS,
            le=MAX_RESULT_TOKENS,
            description="Size of the result, by an estimate near what tokenizers count.",
        ),
    ] = USUAL_TOKENS
    after: AfterField = None
    as_of: AsOfField = None

    @property
    def asked(self) -> SearchArguments:
        """Return the search behind the answer, the same for each of its pages."""
        return SearchArguments(
            query=self.query, domains=self.domains, filters=self.filters, top_k=ANSWER_ITEMS, as_of=self.as_of
        )


class FetchArguments(Arguments):
    """Arguments of ``fetch``."""

    id: Annotated[
        str,
        StringConstraints(min_length=1, max_length=MAX_ID_CHARACTERS),
        AfterValidator(textual),
        Field(description="An `id` of a result, or `document` or `next` of the metadata of a fetched one."),
    ]


class FindArguments(Arguments):
    """Arguments of ``find``."""

    text: Annotated[Expression | None, Field(description="What a line holds, letter by letter.")] = None
    regex: Annotated[Expression | None, Field(description="Instead of `text`: a regular expression of RE2.")] = None
    domain: Annotated[
        Annotated[str, StringConstraints(max_length=64)] | None, Field(description="Only this domain.")
    ] = None
    source: Annotated[Name | None, Field(description="Only this source, as `fetch` names it.")] = None
    path_glob: Annotated[Name | None, Field(description="Only such paths, e.g. `src/**`, or exactly one.")] = None
    case: Annotated[bool | None, Field(description="Tell upper from lower case.")] = True
    limit: Annotated[int | None, Field(ge=1, le=MAX_MATCHES, description="Lines wanted.")] = USUAL_MATCHES

    @property
    def asked(self) -> FindParameters:
        """Return the parameters of ``GET /find``."""
        return FindParameters(
            text=self.text,
            regex=self.regex,
            domain=[self.domain] if self.domain else [],
            source=[self.source] if self.source else [],
            path_glob=self.path_glob,
            case=self.case is not False,
            limit=self.limit or USUAL_MATCHES,
        )


class UsesArguments(Arguments):
    """Arguments of ``uses``."""

    name: Annotated[Name, Field(max_length=MAX_NAME, description="Of code: `add`, or `Ledger.add` for one of several.")]
    source: Annotated[Name | None, Field(description="Only this source, as `fetch` names it.")] = None


class ConflictsArguments(Arguments):
    """Arguments of ``conflicts``."""

    entity: Annotated[
        Name | None, Field(description="Only those about something with this in its name, such as `timeout`.")
    ] = None
    domain: Annotated[
        Annotated[str, StringConstraints(max_length=64)] | None,
        Field(description="Only those in which this domain takes part."),
    ] = None
    settled: Annotated[bool | None, Field(description="What was settled, instead of what stands.")] = False
    after: AfterField = None


class StatusArguments(Arguments):
    """Arguments of ``status``: none."""
