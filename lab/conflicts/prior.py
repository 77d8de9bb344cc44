"""What templates of pages and of code mean in many repositories: ``nornweave/disagree/drift/induced/prior.json``."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

from nornweave.disagree.drift.files import Texts, WorkingTree, read_or_reason
from nornweave.disagree.drift.induced.believing import Prior, believe
from nornweave.disagree.drift.induced.learning import CodeNames, CodeNotation
from nornweave.disagree.drift.reading import read_facts
from nornweave.disagree.drift.scan import DriftOptions, located_facts

PRIOR = Path(__file__).parents[2] / "nornweave" / "disagree" / "drift" / "induced" / "prior.json"
MOST = 5.0
"""Names of one repository that count: one that has hundreds teaches its own notation."""
REPOSITORIES = 3
"""A template that fewer repositories have is theirs."""
LEAST = 3.0

Counts = Mapping[str, tuple[float, float]]


def counted(repository: Path) -> tuple[Counts, Counts]:
    """Return how many names agree and differ in a repository, by templates of pages and of code."""
    tree, options = WorkingTree(repository), DriftOptions()
    files = options.listed(tree)
    found, _ = read_facts(files, partial(read_or_reason, tree))
    texts = Texts(lambda path: (repository / path).read_bytes())
    facts = located_facts(found)
    notation = CodeNotation(lambda file: texts(file.path), {one.file: one.comments for one in found})
    pages, codes = believe(notation.pairs(files, facts), CodeNames(facts).telling, Prior({}, {}))
    return pages.counts, codes.counts


def prior_of(repositories: Iterable[Counts]) -> dict[str, float]:
    """Return the share of agreements of each template that enough repositories have."""
    agreeing: dict[str, float] = defaultdict(float)
    differing: dict[str, float] = defaultdict(float)
    having: dict[str, int] = defaultdict(int)
    for counts in repositories:
        for template, (agree, differ) in counts.items():
            weight = min(1.0, MOST / (agree + differ)) if agree + differ else 0.0
            agreeing[template] += weight * agree
            differing[template] += weight * differ
            having[template] += agree + differ > 0
    return {
        template: round(agree / (agree + differing[template]), 2)
        for template, agree in sorted(agreeing.items())
        if having[template] >= REPOSITORIES and agree + differing[template] >= LEAST
    }


def write_prior(folder: Path, out: Path, keep: Path) -> None:
    """Count the repositories of a folder, and write what they have in common.

    Args:
        keep: where the counts of each are kept, so that a second run reads only those that are new.
    """
    keep.mkdir(parents=True, exist_ok=True)
    kept = []
    for repository in sorted(each for each in folder.iterdir() if each.is_dir()):
        file = keep / f"{repository.name}.json"
        if not file.exists():
            pages, codes = counted(repository)
            file.write_text(json.dumps({"page": pages, "code": codes}), encoding="utf-8")
        kept.append(json.loads(file.read_text(encoding="utf-8")))
    prior = {side: prior_of(each[side] for each in kept) for side in ("page", "code")}
    out.write_text(json.dumps(prior, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
