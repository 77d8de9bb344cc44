"""Access to the documents of an older generation: viewers must meet both the rules of that time and today's.

The published generation says it of the documents that there are. Of those that are gone, every later statement counts
that is known. ``HISTORY`` names the generations since: one that is neither kept nor remembered hides them.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nornweave.core.access import NOBODY, Rule, all_of, decode_rule, decode_source_rules, encode_rule, rule_of
from nornweave.core.errors import StoreError
from nornweave.core.files.writing import write_whole
from nornweave.index.searching.generation_file import DataFile, read_rows

log = logging.getLogger(__name__)

NAME = "FORMER_ACCESS"
"""Numbers of the generations that were removed while an older one was kept, and their rules by document id, each with
the number of the last that stated it."""
# In place of a document id: the rules of a generation that could not be read.
_ALL = "*"
_CONSEQUENCE = "documents of older generations that are gone are hidden from all groups"


@dataclass(frozen=True, slots=True)
class AccessToday:
    """Today's access rules of documents.

    Attributes:
        present: document id → its rule, for published documents.
        former: document id → the rules that it had last, for documents that are gone now.
    """

    present: Mapping[str, Rule]
    former: Mapping[str, Rule]

    def rule(self, document: str, then: Rule) -> Rule:
        """Return the rule that requires today's rule of a document and ``then``, its rule in the older generation."""
        if document in self.present:
            return all_of(then, self.present[document])
        return all_of(then, self.former.get(document, ()), self.former.get(_ALL, ()))


def access_today(
    folder: Path, published: Sequence[DataFile], later: Sequence[DataFile], removed: Collection[int]
) -> AccessToday:
    """Return today's access rules for the documents of an older generation.

    Args:
        folder: the folder of the generations.
        published: the files of the published generation.
        later: the files of the kept generations between the older and the published generation.
        removed: the numbers of later generations that are not kept. Their rules should be stored in ``folder``.

    Raises:
        StoreError: a file cannot be read.
    """
    present = {document: rule for file in published for document, rule in _rules(file)}
    remembered, rules = _read(folder)
    former = {document: decode_rule(rule) for document, (_, rule) in rules.items()}
    if forgotten := set(removed) - remembered:
        log.warning("%s does not say what generation %d stated; %s", folder / NAME, min(forgotten), _CONSEQUENCE)
        former[_ALL] = (NOBODY,)
    for file in later:
        for document, rule in _rules(file, restricted=True):
            former[document] = all_of(former.get(document, ()), rule)
    return AccessToday(present, former)


def remember_access(folder: Path, oldest: int, removed: Mapping[int, Sequence[DataFile]]) -> None:
    """Store the rules of generations that will be removed, because older generations that stay need them.

    Args:
        oldest: the number of the oldest generation that stays.
        removed: number of a generation to remove → its files.
    """
    before, rules = _read(folder)
    known = {document: (number, rule) for document, (number, rule) in rules.items() if number > oldest}
    for number, files in removed.items():
        for document, rule in _rules_of_removed(files):
            stated = decode_rule(known[document][1]) if document in known else ()
            known[document] = (number, encode_rule(all_of(stated, rule)))
    numbers = {number for number in before | removed.keys() if number > oldest}
    if (numbers, known) != (before, rules):
        remembered = {"generations": sorted(numbers), "documents": known}
        write_whole(folder / NAME, json.dumps(remembered, ensure_ascii=False))


def _rules_of_removed(files: Sequence[DataFile]) -> Iterator[tuple[str, Rule]]:
    try:
        for file in files:
            yield from _rules(file, restricted=True)
    except StoreError as error:
        log.warning("%s; %s", error, _CONSEQUENCE)
        yield _ALL, (NOBODY,)


def _rules(file: DataFile, *, restricted: bool = False) -> Iterator[tuple[str, Rule]]:
    """Yield each document of a file with its full rule, which is its own and its source's.

    With ``restricted``, yield only documents that are not open to everybody.
    """
    ((sources,),) = read_rows(file, "select value from meta where key = 'access'")
    stated = decode_source_rules(sources)
    rows = read_rows(
        file,
        """
        select document_id, source_id, access
        from documents
        where not $restricted or access is not null or source_id in (select unnest($sources::varchar[]))
        """,
        {"restricted": restricted, "sources": list(stated)},
    )
    rules: dict[tuple[str, str | None], Rule] = {}
    for document, source, access in rows:
        rule = rules.get((source, access))
        if rule is None:
            rule = rules[source, access] = rule_of(source, decode_rule(access), stated)
        yield document, rule


def _read(folder: Path) -> tuple[set[int], dict[str, tuple[int, str | None]]]:
    """Return the numbers of the removed generations whose rules are stored, and the rules."""
    try:
        stored = json.loads((folder / NAME).read_text(encoding="utf-8"))
        rules = {document: (int(number), rule) for document, (number, rule) in stored["documents"].items()}
        return set(map(int, stored["generations"])), rules
    except FileNotFoundError:
        return set(), {}
    except (OSError, ValueError, AttributeError, KeyError, TypeError) as error:
        log.warning("%s: cannot be read: %s", folder / NAME, error)
        return set(), {_ALL: (10**12, encode_rule((NOBODY,)))}
