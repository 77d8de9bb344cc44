"""The functions that are taken out one at a time: name → (module, attribute).

Helpers that yield no value, name or fact of their own (surfaces, blocks, sentences, scopes) are left alone.
"""

from __future__ import annotations

from typing import TypeAlias

Target: TypeAlias = tuple[str, str]
"""A module, and a function in it; ``Class.method`` for a method."""

_FACTS = {
    "extract": "_program", "configuration": "configuration_facts", "documentation": "documentation_facts",
    "code.calls": "read_call read_fallback read_choice", "code.comments": "read_comments",
    "code.constants": "Constants.resolve", "code.definitions": "read_declared read_assignment",
    "code.fragments": "read_fragments", "code.keys": "name_groups read_key",
    "code.members": "read_pair", "code.options": "call_of",
    "code.statuses": "read_statuses",
    "configuration.blocks": "block_entries dockerfile_entries", "configuration.entries": "items_of",
    "configuration.json_tokens": "json_entries", "configuration.manifests": "entry_requirements line_requirements",
    "configuration.sections": "section_entries", "configuration.settings": "setting_facts",
    "configuration.yaml_lines": "yaml_entries",
    "documentation.defaults": "default",
    "documentation.entries": "read_entry annotation mapping", "documentation.fields": "read_field",
    "documentation.fragments": "fragments_of", "documentation.headings": "subject_of_thread",
    "documentation.layout": "aligned_rows html_tables",
    "documentation.literals": "choices_at number_at value_before value_of_code",
    "documentation.naming": "mentions noun_before",
    "documentation.properties": "limit requires status", "documentation.prose": "prose_facts",
    "documentation.reader": "Reader._directive Reader._plain_parameters Reader._set_heading_subject",
    "documentation.qualifiers": "qualifiers_of", "documentation.tables": "table_facts",
    "documentation.topics": "topic_facts",
}  # fmt: skip
_DUPLICATES = {
    "equivalence": "_same_text _contained _same_meaning _exchanged _matters _misspelt _weighty _other_bonds "
                   "_other_code _other_labels _in_each_others_places _same_template _split",
    "merge": "_same_signs _Pairs._other_figures",
}  # fmt: skip


def _targets(package: str, table: dict[str, str]) -> dict[str, Target]:
    named = ((module, attribute) for module, attributes in table.items() for attribute in attributes.split())
    return {f"{module}.{attribute}": (f"{package}.{module}", attribute) for module, attribute in named}


EXTRACTORS = _targets("nornweave.disagree.facts", _FACTS)
DUPLICATE_RULES = _targets("nornweave.ask.fuse.deduplication", _DUPLICATES)
"""The first three are reasons of a merge; most others prevent one."""
