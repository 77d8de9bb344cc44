"""Processes that follow a store and answer from it all the time, for campaigns."""

from __future__ import annotations

import random
import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab.campaigns.workspace import WORDS
from nornweave.ask.engine import Engine
from nornweave.ask.search.question import Question
from nornweave.carry.follower import POLL_S, Follower, follow_in_background
from nornweave.carry.parts import ObjectStore
from nornweave.config import PublishSettings
from nornweave.core.access import OPERATOR
from nornweave.core.types import Domain, present

RELEASE = re.compile(r"release q(\d+)q")


def replicate(publish: Mapping[str, Any], folder: Path, stop: Path, pause_s: float) -> None:
    """Follow and answer until there is a file ``stop``, which no kill leaves locked; print what happens.

    ``seen RELEASE`` when an answer is of another release, ``trouble WHAT`` when one is of none or of several,
    ``answers COUNT`` at the end.
    """
    follower = Follower(ObjectStore(PublishSettings.model_validate(publish)), folder)
    while not follower.prepare():
        time.sleep(POLL_S)
    follower.poll()
    end = follow_in_background(follower)
    with Engine(follower.settings) as engine:
        _answer(engine, stop, pause_s)
    end()


def _answer(engine: Engine, stop: Path, pause_s: float) -> None:
    answers, seen = 0, ""
    while not stop.exists():
        time.sleep(pause_s)
        text = f"which release is the {WORDS[answers % len(WORDS)]} in"
        document = engine.as_seen_by(OPERATOR).answers.query(
            Question(text=text, now=present(), viewer=OPERATOR, top_k=5)
        )
        found = {match for item in document["items"] for match in RELEASE.findall(item["content"])}
        if not seen and document["coverage_gaps"]:
            continue  # nothing was brought yet
        answers += 1
        if document["coverage_gaps"] or len(found) != 1:
            _say(f"trouble {sorted(found)} {[gap['reason'] for gap in document['coverage_gaps']]}")
        elif found != {seen}:
            seen = found.pop()
            _say(f"seen {seen}")
    _say(f"answers {answers}")


def _say(line: str) -> None:
    sys.stdout.write(f"\n{line}\n")
    sys.stdout.flush()


def lines_of(output: Path, kind: str) -> list[list[str]]:
    """Return what was said of a kind, in words."""
    said = output.read_text(encoding="utf-8", errors="replace").splitlines() if output.exists() else []
    return [words[1:] for line in said if (words := line.split()) and words[0] == kind and len(words) > 1]


def write_corpus(folder: Path, release: int, pages: int, changed: int, *, others_every: int) -> None:
    """Write pages; ``changed`` of them name a release, and have words of this release alone.

    Args:
        changed: how many of them are written anew with each release.
        others_every: releases after which each of the other pages says something else.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for page in range(pages):
        words = random.Random(f"{page} {release if page < changed else (release + page) // others_every}")
        text = "\n\n".join(
            f"## {words.choice(WORDS)} {part}\n\n"
            f"{f'The {words.choice(WORDS)} is in release q{release}q. ' if page < changed else ''}"
            f"{' '.join(words.choices(WORDS, k=60))}."
            for part in range(2)
        )
        (folder / f"{page}.md").write_text(f"# Page {page}\n\n{text}\n", encoding="utf-8")


DOMAIN = Domain.DOCUMENTATION
