"""Judged documents that moved: the same content under a new path. Their judgments move with them.

A sync notes it before it publishes, in ``data_dir/evaluations/moved.json``: judged path → where its document lies now.
Nobody's ``qrels.tsv`` is written to.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from evals.judgments import JudgedSet
from nornweave.ask.search.agent import Agent
from nornweave.config import Settings
from nornweave.core.access import OPERATOR
from nornweave.core.files.lock import hold_lock
from nornweave.core.files.writing import write_whole
from nornweave.index.index import Index

PAGE = 1_000


def with_moves(settings: Settings, judged: JudgedSet) -> JudgedSet:
    """Return the set with judgments that also count at the new paths of moved documents."""
    moves = _read(_file(settings))
    judgments = (replace(judgment, moved_to=moves.get(judgment.path)) for judgment in judged.judgments)
    return replace(judged, judgments=tuple(judgments)) if moves else judged


def note_moves(settings: Settings, published: Agent, candidate: Agent, sets: Sequence[JudgedSet]) -> None:
    """Store which judged documents have another path in a candidate than in the published generation.

    A document has moved if its path is gone and exactly one new path has its content.

    Raises:
        StoreError: a generation cannot be read.
    """
    if published.generation.name is None:
        return
    file = _file(settings)
    paths = {judgment.path for judgment in chain.from_iterable(each.judgments for each in sets)}
    moves = _read(file)
    with published.generation.use(OPERATOR) as before, candidate.generation.use(OPERATOR) as after:
        now = after.paths()
        places = {path: moves.get(path, path) for path in paths if path not in now}
        gone = {path: place for path, place in places.items() if place not in now and place in before.paths()}
        if not gone:
            return
        was, came = _hashes(before), defaultdict[str, list[str]](list)
        for path, content in _hashes(after).items():
            if path not in was:
                came[content].append(path)
    found = {path: came[was[place]][0] for path, place in gone.items() if len(came[was[place]]) == 1}
    if found:
        with hold_lock(file.with_suffix(".lock")):  # other domains note theirs
            write_whole(file, json.dumps({**_read(file), **found}, ensure_ascii=False, indent=1))


def _hashes(index: Index) -> dict[str, str]:
    """Return the digests of documents' contents by path."""
    found: dict[str, str] = {}
    after = ("", "")
    while page := index.served_documents(after, PAGE):
        found |= {document.path: document.content_hash for document in page}
        after = (page[-1].source_id, page[-1].path)
    return found


def _file(settings: Settings) -> Path:
    return settings.data_dir / "evaluations" / "moved.json"


def _read(file: Path) -> Mapping[str, str]:
    try:
        loaded = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return loaded if isinstance(loaded, dict) else {}
