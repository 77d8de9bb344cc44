from pathlib import Path

import pytest
from git_repository import Repository

from nornweave.disagree.drift.files import Commit, WorkingTree, kind_of


@pytest.mark.parametrize(
    "path", ["src/app.py", "pkg/server.go", "web/app.tsx", "config/app.yaml", "pyproject.toml", "Dockerfile"]
)
def test_programs_and_configuration_are_code(path: str) -> None:
    assert kind_of(path) == "code"


@pytest.mark.parametrize(
    "path",
    [
        "README.md",
        "docs/guide.rst",
        "docs/en/setup.md",
        "docs/page.html",
        "guide.adoc",
        "notes.txt",
        "docs/lamp.conf.txt.in",
        "README.md.in",
        "docs/setup.adoc.tmpl",
        "doc/lamprc.example",
        "docs/lamp.conf.sample",
        "manual/lamp.ini.dist",
        "man/lamp.1",
        "debian/lampd.8",
        "release/lamp.man",
        "man/Lamp.3pm",
        "man/lamp.8.in",
    ],
)
def test_pages_are_documentation(path: str) -> None:
    assert kind_of(path) == "documentation"


@pytest.mark.parametrize("path", [
    "CHANGELOG.md", "docs/release-notes/2.md", "docs/upgrading.md", "docs/migration/v2.md", "HISTORY.rst",
    "LICENSE.txt", "docs/v4-to-v5.md",
    "docs/de/setup.md", "docs/zh-CN/setup.md", "README.ja.md", "README-pt-BR.md", "docs/1.4/setup.md",
    "docs/versioned_docs/version-1.2/a.md", "docs/adr/0001.md", "blog/2020.md",
])  # fmt: skip
def test_pages_about_other_versions_and_translations_are_left_out(path: str) -> None:
    assert kind_of(path) is None


@pytest.mark.parametrize("path", [
    "tests/test_app.py", "src/app_test.go", "web/app.spec.ts", "src/FooTest.java", "examples/a.py", "Gruntfile.js",
    "web/vite.config.ts", "src/testsuite/lamp.conf", "lib/tests-e2e/a.py", "src/unit_tests/a.c", "src/lamp-test1.conf",
    "node_modules/a/b.js",
    "vendor/x.go", "package-lock.json", "poetry.lock", "logo.png", "app/migrations/0001.py",
    "templates/page.html", "docs/de/setup.md.in", "CHANGELOG.md.in",
    "src/lamp.pc.in", "src/lamprc.example", "lamp.dist", "locales/de.json", "example.js", "index.test-d.ts",
])  # fmt: skip
def test_tests_examples_vendored_and_generated_files_are_left_out(path: str) -> None:
    assert kind_of(path) is None


def test_what_only_ends_like_a_manual_page_is_not_read() -> None:
    assert kind_of("lib/liblamp.so.1") is None


def test_the_first_line_of_a_program_without_a_suffix_tells_its_language(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    files = {"bin/lamp": "#!/usr/bin/env -S ruby -w\nputs 1\n", "tools/dim": "#!/usr/bin/python3\nROWS = 1\n",
             "setup": "#!/bin/sh\ntrue\n", "tests/glow": "#!/usr/bin/env ruby\n", "NOTICE": "of ruby\n"}  # fmt: skip
    commit = repository.commit(files, "2024-02-01T12:00:00Z")
    for tree in (WorkingTree(tmp_path), Commit(tmp_path, commit)):
        assert [(one.path, one.suffix) for one in tree.list()] == [("bin/lamp", ".rb"), ("tools/dim", ".py")]
        assert tree.unread() == {"setup": "shell"}
