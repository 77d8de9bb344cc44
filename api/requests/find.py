"""The parameters of look-ups: ``GET /find``, ``GET /complete`` and ``GET /conflicts``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints

from api.requests import Parameters
from api.requests.query import served_domain
from nornweave.ask.search.records import FindQuery
from nornweave.ask.uses import MAX_NAME
from nornweave.ask.views.ledger import LedgerDocument, LedgerEntryDocument
from nornweave.core.errors import QueryError
from nornweave.core.text.checked_values import Name, UrlCount, UrlSwitch, textual
from nornweave.core.types import Domain, JsonValue
from nornweave.index.searching.finding import MAX_PATTERN_CHARACTERS, LinePattern

MAX_MATCHES, USUAL_MATCHES = 1_000, 100
MAX_VALUES = 100
MAX_PREFIX, MAX_COMPLETIONS, USUAL_COMPLETIONS = 100, 50, 8


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
