"""Calls of tools: their arguments, checked as strictly as bodies of the API, and their results.

Tokens are estimated without a tokenizer: models have different ones, and none of them is loaded here.
"""

from __future__ import annotations

import json
import logging
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, Field, StringConstraints, ValidationError

from api.errors import MAX_FIELDS, RETRY_STORE_S, ProblemError, field_problem
from api.requests import Body
from api.requests.query import MAX_DOMAINS, MAX_MATCHES, MAX_TOP_K, USUAL_MATCHES, Expression, FindParameters, QueryBody
from api.state import Serving
from nornweave.ask.answer.pages import USUAL_TOKENS
from nornweave.ask.search.question import Question
from nornweave.ask.seen import SeenEngine
from nornweave.ask.uses import MAX_NAME
from nornweave.ask.views.tools import Link
from nornweave.core.errors import (
    ConfigError,
    EncoderError,
    GenerationNotKeptError,
    NoGenerationError,
    NornWeaveError,
    NotPermittedError,
    QueryError,
    StoreError,
)
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


# Twice that, at four characters a token, is below 10,000: some clients pass on both the structure and the text.
MAX_RESULT_CHARACTERS = 19_000


def to_compact_json(document: Mapping[str, Any]) -> str:
    """Return a result as the JSON that a model reads."""
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def is_within(document: Mapping[str, Any], max_tokens: int = MAX_RESULT_TOKENS) -> bool:
    """Tell whether a result is small enough for every client, and has about ``max_tokens`` at most."""
    text = to_compact_json(document)
    is_short = len(text) <= MAX_RESULT_CHARACTERS and bound_tokens(text) <= MAX_RESULT_TOKENS
    return is_short and estimate_tokens(text) <= max_tokens


T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call of a tool.

    Attributes:
        arrived: a question without text, which holds the viewer and the deadline of the call.
    """

    serving: Serving
    arrived: Question
    link: Link

    async def look_up(self, work: Callable[[SeenEngine], T]) -> T:
        """Return the result of ``work``, which only reads, when its turn has come. Raises as ``Serving.ask``."""
        return await self.serving.lookups.run(lambda: work(self.serving.engine), self.arrived.left_s)


logger = logging.getLogger(__name__)


def failure(error: Exception, allowed: Sequence[str]) -> str:
    """Return the message of an error, written for a model. ``allowed`` are the names of the tool's arguments."""
    match error:
        case ValidationError():
            return _wrong_arguments(error, allowed)
        case QueryError():
            return (
                f"Wrong arguments: {error.field}: {error.problem}. Nothing was searched; correct this and call again."
            )
        case ProblemError():
            retry = (error.headers or {}).get("Retry-After")
            return f"{error.detail}. Call again in {retry} s." if retry else f"{error.detail}."
        case NotPermittedError() | GenerationNotKeptError():
            return f"{error}."
        case NoGenerationError():
            return f"{error}. Nothing can be found before that; `status` shows which domains are published."
        case StoreError() | EncoderError():
            logger.error("a tool failed: %s", error)
            return f"{error}. Call again in {RETRY_STORE_S} s; if it stays like this, `status` tells more."
        case ConfigError() | NornWeaveError():
            logger.error("a tool failed: %s", error)
            return f"{error}. Whoever runs NornWeave has to mend this."
        case _:
            occurrence = uuid.uuid4()
            logger.error("error %s in a tool", occurrence, exc_info=error)
            return f"An unexpected error; the log of the server tells more under {occurrence}. Another query may work."


def _wrong_arguments(error: ValidationError, allowed: Sequence[str]) -> str:
    failures = error.errors(include_url=False, include_context=False)
    problems = [field_problem({**failure, "loc": ("arguments", *failure["loc"])}) for failure in failures[:MAX_FIELDS]]
    said = "; ".join(f"{problem['field']}: {problem['detail']}" for problem in problems)
    more = f"; and {len(failures) - MAX_FIELDS} more" if len(failures) > MAX_FIELDS else ""
    return f"Wrong arguments: {said}{more}. Allowed are: {', '.join(allowed) or 'none'}. Correct this and call again."


# Longer runs of letters are seldom words: keys, encoded data.
LONGEST_WORD = 10
# From here on a character costs its bytes: tokenizers know few of them as a whole.
RARE = "\u1000"

# Fewer signs are one token in most places: ``":"``, ``](``.
MOST_SIGNS = 4
# Signs are often one token with the word before or after them.
USUAL_TOKEN = 0.9

_PIECE = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^\sA-Za-z0-9]+| +|\s")


def bound_tokens(text: str) -> int:
    """Return an estimate of a text's tokens that is usually too high.

    Measured over prose, code, JSON, encoded data, digits, signs, blanks and rare scripts with the tokenizers of Claude
    2, cl100k and o200k: 1.2 to 1.5 times the tokens of prose and code, at least 0.75 times those of random characters
    (``tests/text/test_token_bound.py``).
    """
    return sum(_cost(match[0]) for match in _PIECE.finditer(text))


def estimate_tokens(text: str) -> int:
    """Return an estimate of a text's tokens that is 0.95 to 1.2 times those of prose, code and JSON.

    Usual words and a few signs are ``USUAL_TOKEN`` each; anything else counts as in ``bound_tokens``.
    """
    return round(sum(USUAL_TOKEN if _is_usual(match[0]) else _cost(match[0]) for match in _PIECE.finditer(text)))


def _is_usual(piece: str) -> bool:
    is_word = piece.isalpha()
    is_run = is_word or not (piece[0].isspace() or piece[0].isdigit())
    return piece.isascii() and is_run and len(piece) <= (LONGEST_WORD if is_word else MOST_SIGNS)


def _cost(piece: str) -> int:
    first, length = piece[0], len(piece)
    if not piece.isascii():
        return sum(1 if character < RARE else len(character.encode("utf-8", "replace")) for character in piece)
    if first.isalpha():
        return -(-length // 6) if length <= LONGEST_WORD else -(-length // 2)
    if first.isdigit():
        return -(-length // 2)
    if first == " ":
        return 0 if length == 1 else -(-length // 4)
    return 1 if first.isspace() else -(-2 * length // 3)
