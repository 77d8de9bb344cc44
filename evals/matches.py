"""Which judgments a ranking hits, and where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from evals.judgments import Judgment
from evals.measures import DEEPEST
from nornweave.ask.search.records import Citation
from nornweave.core.types import Domain


class JudgedHits:
    """One query's relevant judgments, looked up by domain and path.

    Args:
        judgments: the relevant ones.
        own: the judged set's domain.
        held: path → domain that holds it. An item of another domain that happens to have the same path is no hit.
    """

    def __init__(self, judgments: Sequence[Judgment], own: Domain, held: Mapping[str, Domain]) -> None:
        self.whole_documents = bool(judgments) and all(judgment.whole_document for judgment in judgments)
        self._judgments: dict[tuple[str, str], list[Judgment]] = {}
        for judgment in sorted(judgments, key=lambda one: (-one.grade, one.key)):
            for domain in {own, held.get(judgment.path, own)}:
                self._judgments.setdefault((domain, judgment.path), []).append(judgment)

    def places(self, ranking: Iterable[Citation], *, by_document: bool) -> tuple[tuple[str, ...], ...]:
        """Turn a ranking into places: per item the judgments that it is the first to hit, best grade first.

        A judgment is hit once, at the best rank. An item that hits nothing new keeps its place and gains nothing: the
        reader has to pass it.

        Args:
            ranking: best first.
            by_document: drop the later chunks of a document already listed before ranks are counted, as document
                retrieval is measured everywhere; meant for queries of which only whole documents are judged.

        Returns:
            The first ten places; an empty one hits nothing new.
        """
        found: list[tuple[str, ...]] = []
        documents: set[tuple[str, str, str]] = set()
        hit: set[str] = set()
        for item in ranking:
            document = (item.domain_id, item.source_id, item.source_path)
            if by_document and document in documents:
                continue
            documents.add(document)
            new = [judgment.key for judgment in self._at(item) if judgment.key not in hit and judgment.hit_by(item)]
            hit.update(new)
            found.append(tuple(new))
            if len(found) == DEEPEST:
                break
        return tuple(found)

    def _at(self, item: Citation) -> Sequence[Judgment]:
        return self._judgments.get((item.domain_id, item.source_path), ())
