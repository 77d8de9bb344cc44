"""Which variant of a document a path tells, which versions and language a question has."""

import pytest

from nornweave.core.text.index_fields import (
    CURRENT,
    DEVELOPED,
    KEPT,
    NUMBERED,
    asked_versions,
    language_of,
    lists_releases,
    only_releases,
    release_of,
    variant_of,
)


@pytest.mark.parametrize(("path", "told"), [
    ("docs/guide.md", ("guide.md", "", (), CURRENT)),
    ("docs/de/guide.md", ("guide.md", "de", (), CURRENT)),
    ("i18n/pt-BR/guide.md", ("guide.md", "pt", (), CURRENT)),
    ("README.zh.md", ("readme.md", "zh", (), CURRENT)),
    ("README_zh-CN.md", ("readme.md", "zh", (), CURRENT)),
    ("README_CN.md", ("readme.md", "zh", (), CURRENT)),
    ("user-id.md", ("user-id.md", "", (), CURRENT)),  # Indonesian is not meant
    ("docs/js/guide.md", ("js/guide.md", "", (), CURRENT)),
    ("docs/v2/a/guide.md", ("a/guide.md", "", (2,), NUMBERED)),
    ("docs/1.2.x/guide.md", ("guide.md", "", (1, 2), NUMBERED)),
    ("versioned_docs/version-2.0/guide.md", ("guide.md", "", (2, 0), NUMBERED)),
    ("guide-v3.md", ("guide.md", "", (3,), NUMBERED)),
    ("docs/latest/guide.md", ("guide.md", "", (), CURRENT)),
    ("docs/next/guide.md", ("guide.md", "", (), DEVELOPED)),
    ("docs/archive/guide.md", ("guide.md", "", (), KEPT)),
    ("blog/2024/03/guide.md", ("blog/2024/03/guide.md", "", (), CURRENT)),  # a day is no version
])  # fmt: skip
def test_the_path_tells_the_variant(path: str, told: tuple[object, ...]) -> None:
    assert tuple(variant_of(path)) == told


@pytest.mark.parametrize(("text", "versions"), [
    ("limit in v2", {(2,)}), ("in version 2", {(2,)}), ("upload limit 2.x", {(2,)}), ("v1 or v2", {(1,), (2,)}),
    ("release 1.9", {(1, 9)}), ("since 2.0.1?", {(2, 0, 1)}), ("2 files", set()), ("10.0.0.1.5", set()),
])  # fmt: skip
def test_versions_that_a_question_names(text: str, versions: set[tuple[int, ...]]) -> None:
    assert asked_versions(text) == versions


@pytest.mark.parametrize(("text", "language"), [
    ("how do I set the limit", "en"), ("upload limit", "en"), ("wie stelle ich das Limit ein", "de"),
    ("comment régler la limite", "fr"), ("como configurar o tempo limite", "pt"), ("cómo se cambia el límite", "es"),
    ("制限を変更する", "ja"), ("如何设置限制", "zh"), ("как задать предел", "ru"), ("як задати межу, її", "uk"),
])  # fmt: skip
def test_the_language_of_a_question(text: str, language: str) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize(("path", "section", "release"), [
    ("CHANGELOG.md", "Changelog > 1.10.0 - 2025-11-03", (1, 10, 0)),
    ("docs/release-notes.md", "v2.0 > Fixed", (2, 0)),
    ("HISTORY.rst", "2025-11-03", (2025, 11, 3)),
    ("docs/guide.md", "2.1 Limits", ()),
    ("RELNOTES.md", "Kiln release notes > 3.17.0 (2026-01-07) > Bugfixes", (3, 17, 0)),
    ("docs/whatsnew/3.4.md", "What's new in Kiln 3.4 > Removed", (3, 4)),
    ("docs/releases/v5.md", "Highlights", (5,)),
    ("releases/how-to.md", "2 Sign it", ()),
    ("UPGRADING.md", "2.0", ()),
    ("slack/general.json", "2025-11-03", ()),
])  # fmt: skip
def test_sections_of_changelogs_are_about_a_release(path: str, section: str, release: tuple[int, ...]) -> None:
    assert release_of(path, None, section) == release
    assert release_of(path, None, section, {"kind": "release"}) == ()


@pytest.mark.parametrize(("subject", "is_only"), [
    ("Released kiln version 0.11.1", True), ("Merge tag 'v0.16.0' into develop", True), ("Cut 3.5.0 release", True),
    ("Clean up for tag", True), ("Release the lid", False), ("Bump slip to 4.17", False), ("Release lock 3", False),
])  # fmt: skip
def test_a_commit_that_only_releases_is_known_by_its_first_line(subject: str, *, is_only: bool) -> None:
    assert only_releases(subject) == is_only


@pytest.mark.parametrize(("path", "headings", "is_changelog"), [
    ("docs/log.md", ["Log", "2.1.0 (2020-01-01)", "Fixed", "2.0.3 - 17th of March 2019", "2.0.0", "1.9"], True),
    ("JOURNAL.rst", ["Kiln 2", "v1.0.0 / 2019-01-02", "v1.1.0 / 2019-05-02", "v1.2.0 / 2019-08-02"], True),
    ("docs/spec.md", ["1.1 Overview", "1.2 Limits", "2.1 Errors"], False),
    ("docs/spec.md", ["1.1", "1.2", "2.1"], False),
    ("docs/upgrading.md", ["3.0", "2.0", "1.0"], False),
    ("docs/api.md", ["v3", "v2", "v1"], False),
])  # fmt: skip
def test_a_page_whose_headings_are_versions_in_order_is_a_changelog(
    path: str, headings: list[str], is_changelog: bool
) -> None:
    assert lists_releases(path, headings) == is_changelog
