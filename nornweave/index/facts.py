"""Encode facts for the store: one JSON array per chunk, and the keys that the ledger joins by."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from nornweave.core.types import Fact, Span


def encode_facts(facts: Sequence[Fact]) -> str | None:
    """Write facts as JSON; ``None`` for none, which is most chunks."""
    if not facts:
        return None
    rows = [
        (
            fact.name, fact.owner, fact.attribute, fact.kind, fact.value, fact.unit, fact.side, fact.form,
            list(fact.qualifiers), fact.negated, fact.span.start, fact.span.end, fact.line, fact.statement,
        )
        for fact in facts
    ]  # fmt: skip
    return json.dumps(rows, ensure_ascii=False, separators=(",", ":"))


def decode_facts(rows: Sequence[Sequence[Any]] | None) -> tuple[Fact, ...]:
    """Return the facts of ``encode_facts``, read as JSON."""
    return tuple(map(decode_fact, rows or ()))


def decode_fact(row: Sequence[Any]) -> Fact:
    """Return one fact of ``encode_facts``."""
    name, owner, attribute, kind, value, unit, side, form, qualifiers, negated, start, end, line, statement = row
    return Fact(
        name=name,
        owner=owner,
        attribute=attribute,
        kind=kind,
        value=value,
        unit=unit,
        side=side,
        form=form,
        qualifiers=tuple(qualifiers),
        negated=negated,
        span=Span(start, end),
        line=line,
        statement=statement,
    )
