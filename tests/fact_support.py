"""Facts for tests, without a text to read them from."""

from datetime import UTC, datetime
from typing import Any

from nornweave.core.types import Fact, Span
from nornweave.disagree.conflicts import LocatedFact
from nornweave.disagree.facts.expressions import read_value
from nornweave.disagree.facts.names import read_name

DAY = datetime(2026, 1, 20, tzinfo=UTC)
_DOMAINS = {"code": "code", "configuration": "code", "documentation": "documentation", "conversation": "conversations",
            "research": "research"}  # fmt: skip


def fact(named: str, written: str, **changes: Any) -> Fact:
    """A stated default of a named thing; ``changes`` are fields of ``Fact``."""
    read, value = read_name(named), read_value(written)
    assert read is not None
    assert value is not None
    known: dict[str, Any] = {
        "name": read.name, "owner": read.owner, "attribute": "default", "kind": value.kind, "value": value.text,
        "unit": value.unit, "side": "code", "form": "definition", "span": Span(0, 4),
        "statement": f"{named} = {written}",
    }  # fmt: skip
    return Fact(**{**known, **changes})


def located(name: str, written: str, path: str, *, day: datetime | None = DAY, **changes: Any) -> LocatedFact:
    """Such a fact in a document; the side follows from the file's name unless it is given."""
    prose = path.endswith((".md", ".rst"))
    changes = {"side": "documentation" if prose else "code", "form": "table" if prose else "definition", **changes}
    section = changes.pop("section", None)
    one = fact(name, written, **changes)
    return LocatedFact(
        fact=one,
        domain=_DOMAINS[one.side],
        source_id="s",
        path=path,
        section=section,
        updated_at=day,
        chunk_id=path,
        line_range=(one.line + 1, one.line + 1),
    )
