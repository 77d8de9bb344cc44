"""What is alike shares one place, over a real generation: versions, translations, kept copies, tests of one file."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from questions import question_of
from support import MemorySource, memory_parts, sync

from nornweave.ask.search.combine import Ranking
from nornweave.ask.search.folding import fold
from nornweave.ask.search.recall import below_opposite, leaving_out
from nornweave.core.text.index_fields import ASIDE, RELEASE, VARIANT
from nornweave.index.index import Index

KEPT = "Uploads\n\nThe largest file that is accepted is {} MB, and larger ones are refused with the status 413 at once."
FILES = {
    "docs/v1/uploads.md": KEPT.format(8),
    "docs/v2/uploads.md": KEPT.format(25),
    "docs/v10/uploads.md": KEPT.format(100),
    "docs/archive/uploads.md": KEPT.format(2),
    "docs/v2/hooks.md": "Hooks\n\nA signature is sent along with each of the events since this version came out.",
    "docs/keys.md": "Keys\n\nThe key is made on the page of the settings, and it is shown to you once.",
    "docs/de/keys.md": "Schlüssel\n\nDer Schlüssel wird auf der Seite der Einstellungen gemacht und einmal gezeigt.",
    "docs/fr/keys.md": "Clés\n\nLa clé est faite sur la page des réglages, et elle est montrée une seule fois.",
    "hand/hr/first.md": "First day\n\nThe contract and the calendar are sent to you by the department before that.",
    "hand/it/first.md": "First day\n\nThe laptop and the key card are given to you at the desk of this team then.",
    "tests/many.md": "\n\n".join(
        f"Test {n} of the limit says that the limit of uploads is {n} and no more." for n in range(5)
    ),
    "CHANGELOG.md": "\n\n".join(
        f"In this release number {n} the limit of uploads became {n}, as asked." for n in range(5)
    ),
    "docs/open.md": "Public\n\nHealth and version answer everybody, without a token, and nobody counts that.",
    "docs/auth.md": "Private\n\nOrders, refunds and users require a token, and answer with 401 to all else.",
    "docs/flags.md": "Flags\n\nRun go test -race to look for races, which takes twice as long as it takes otherwise.",
}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    source = MemorySource()
    for path, text in FILES.items():
        source.write(path, text)
    parts = memory_parts(tmp_path_factory.mktemp("docs"), source, limit=32)
    report = sync(replace(parts))
    assert report.generation is not None
    with parts.store.files.open(report.generation) as generation:
        yield generation


def ranking_of(index: Index, *paths: str) -> Ranking:
    keys = [f"path:{path.lower()}" for path in paths]
    numbers = [number for key in keys for number in np.sort(index.named([key])[key]).tolist()]
    scores = np.linspace(0.9, 0.5, len(numbers))
    return Ranking(np.array(numbers, np.int32), scores, {"sparse": scores}, scores)


def folded(index: Index, text: str, *paths: str) -> dict[str, list[str]]:
    """Return the paths in their order, each with those behind it."""
    ranking, behind = fold(ranking_of(index, *paths), text, index.named([ASIDE, VARIANT]), index)
    assert list(ranking.scores) == sorted(ranking.scores, reverse=True)
    assert np.allclose(ranking.scores, sum(ranking.contributions.values()))
    chunks = index.chunks(np.arange(index.size, dtype=np.int32))
    return {
        chunks[n].path: [chunks[other].path for other in behind.get(n, np.empty(0, np.int32)).tolist()]
        for n in ranking.numbers.tolist()
    }


V1, V2, V10, OLD = (f"docs/{each}/uploads.md" for each in ("v1", "v2", "v10", "archive"))


@pytest.mark.parametrize(
    ("text", "leading"), [("largest file", V10), ("largest file in v2", V2), ("file size 1.x", V1)]
)
def test_the_newest_version_leads_or_the_one_that_is_named(index: Index, text: str, leading: str) -> None:
    told = folded(index, text, OLD, V1, V2, V10, "docs/keys.md")
    assert next(iter(told.items())) == (leading, [each for each in (OLD, V1, V2, V10) if each != leading])


def test_versions_that_are_compared_and_what_one_alone_has_keep_their_places(index: Index) -> None:
    assert folded(index, "limit of v1 against v2", V1, V2) == {V1: [], V2: []}
    assert folded(index, "events", "docs/v2/hooks.md", V10) == {"docs/v2/hooks.md": [], V10: []}


@pytest.mark.parametrize(("text", "leading"), [
    ("where is the key made", "docs/keys.md"), ("wo wird der Schlüssel gemacht", "docs/de/keys.md"),
    ("où est faite la clé", "docs/fr/keys.md"), ("где создаётся ключ", "docs/keys.md"),
])  # fmt: skip
def test_translations_are_one_document_in_the_askers_language(index: Index, text: str, leading: str) -> None:
    told = folded(index, text, "docs/fr/keys.md", "docs/de/keys.md", "docs/keys.md")
    assert list(told) == [leading]
    assert len(told[leading]) == 2


def test_a_folder_that_is_called_like_a_language_is_no_translation(index: Index) -> None:
    assert folded(index, "first day", "hand/it/first.md", "hand/hr/first.md") == {
        "hand/it/first.md": [], "hand/hr/first.md": [],
    }  # fmt: skip


def test_tests_of_one_file_fold_once_they_crowd(index: Index) -> None:
    assert folded(index, "limit", "tests/many.md", "docs/keys.md") == {
        "tests/many.md": ["tests/many.md"] * 4, "docs/keys.md": [],
    }  # fmt: skip


def test_sections_of_a_changelog_fold_once_they_crowd_unless_changes_are_asked_for(index: Index) -> None:
    changes = np.sort(index.named(["path:changelog.md"])["path:changelog.md"])
    ranking = ranking_of(index, "CHANGELOG.md", "docs/keys.md")
    for text, places, count in (
        ("what is the limit", {RELEASE: changes}, 2),
        ("what is it in 1.9", {RELEASE: changes}, 0),
        ("became 2, as asked", {RELEASE: changes}, 0),
    ):
        _, behind = fold(ranking, text, places, index)
        assert sum(map(len, behind.values())) == count


def test_the_opposite_of_what_is_asked_stands_below(index: Index) -> None:
    text = "which endpoints do not require a token"
    ranking = below_opposite(ranking_of(index, "docs/auth.md", "docs/open.md"), text, index)
    chunks = index.chunks(ranking.numbers)
    assert [chunks[n].path for n in ranking.numbers.tolist()] == ["docs/open.md", "docs/auth.md"]


def test_a_word_is_left_out_unless_passages_write_it_as_a_flag(index: Index) -> None:
    question, within, counts = leaving_out(question_of("answer -token -race").focused(), index)
    assert question.text == "answer -race"
    assert counts == {"token": 2}
    assert within is not None
    assert int((~within).sum()) == 2
