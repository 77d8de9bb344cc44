"""Folders of files: what is listed and left out, what is read, what comes out; on real file systems."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from nornweave.connect.connectors import STACKEXCHANGE, FilesSettings, StackExchangeSettings, open_source
from nornweave.connect.files.source import FilesSource
from nornweave.connect.protocol import Source
from nornweave.core.access import read_rule
from nornweave.core.errors import (
    ConfigError,
    DocumentError,
    DocumentSkipped,
    SourceUnavailableError,
    TransientDocumentError,
)
from nornweave.core.files.paths import OwnFiles, Within
from nornweave.core.text.decode import MAX_BYTES
from nornweave.core.types import Domain, Entry, Listing, SourceId, digest, document_id
from nornweave.read.blocks.reader import shown_text
from nornweave.read.blocks.styles import MAX_OWN_BYTES
from nornweave.read.worth import is_written_again

ID = SourceId("payments")


def write(root: Path, files: dict[str, str | bytes]) -> None:
    for path, content in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content if isinstance(content, bytes) else content.encode())


def code(root: Path, **options: object) -> FilesSource:
    return FilesSource(ID, Domain.CODE, root, **options)  # type: ignore[arg-type]


def docs(root: Path, **options: object) -> FilesSource:
    return FilesSource(ID, Domain.DOCUMENTATION, root, **options)  # type: ignore[arg-type]


def paths(listing: Listing) -> list[str]:
    return [entry.path for entry in listing.entries]


def reasons(listing: Listing) -> dict[str, str]:
    return {skip.path: skip.reason for skip in listing.skipped}


def only(source: Source) -> Entry:
    (entry,) = source.list().entries
    return entry


@contextmanager
def unprivileged() -> Iterator[Path]:
    """Yield a folder that an ordinary user owns, and be that user: permissions do not bind root."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    is_root = os.geteuid() == 0
    if is_root:
        os.chown(folder, 65534, 65534)
        os.seteuid(65534)
    try:
        yield folder
    finally:
        if is_root:
            os.seteuid(0)
        for place, _, _ in os.walk(folder):
            os.chmod(place, 0o755)
        shutil.rmtree(folder)


# Listing -------------------------------------------------------------------------------------------------------------


def test_code_takes_languages_manifests_and_infrastructure_by_path(tmp_path: Path) -> None:
    taken = [
        "Dockerfile",
        "Makefile",
        "app.py",
        "ci/.github/workflows/test.yml",
        "main.tf",
        "pkg/a.go",
        "pyproject.toml",
    ]
    taken += ["requirements-dev.txt", "schema.sql", "theme.xyz", "web/app.tsx"]
    write(tmp_path, dict.fromkeys(taken, "x"))
    write(
        tmp_path,
        {"notes.md": "x", "logo.png": b"\x89PNG", "data.csv": "x", ".env": "SECRET=1", "big.xyz": "x = 1\n" * 20_000},
    )
    listing = code(tmp_path).list()
    assert paths(listing) == sorted(taken)
    assert reasons(listing) == {
        "notes.md": '.md: not a file type of code; add "**/*.md" to include to read it',
        "logo.png": "binary: .png",
        "data.csv": '.csv: not a file type of code; add "**/*.csv" to include to read it',
        "big.xyz": '.xyz: not a file type of code; add "**/*.xyz" to include to read it',
        ".env": "its name is that of a secret; no source reads it",
    }


PROSE = ["a.markdown", "a.md", "a.pdf", "a.rst", "a.txt", "core"]
OFFICE = [f"a.{suffix}" for suffix in ("docx", "eml", "epub", "ipynb", "pptx", "xlsx")]


@pytest.mark.parametrize(("domain", "expected"), [
    (Domain.DOCUMENTATION, ["LICENSE", "a.html", *PROSE, *OFFICE]),
    (Domain.RESEARCH, ["LICENSE", "a.html", "a.json", *PROSE, *OFFICE]),
])  # fmt: skip
def test_prose_domains_take_their_formats(tmp_path: Path, domain: Domain, expected: list[str]) -> None:
    write(tmp_path, dict.fromkeys([*expected, "a.json", "a.py", "a.doc"], "x"))
    write(tmp_path, {".env": "SECRET=1", "Makefile": "all:", ".gitkeep": "", "core": "x"})  # a name without a suffix
    listing = FilesSource(ID, domain, tmp_path).list()
    assert paths(listing) == sorted(expected)
    assert reasons(listing)[".env"] == "its name is that of a secret; no source reads it"
    assert reasons(listing)["a.doc"] == "binary: .doc"


def test_tool_folders_are_one_skip_and_files_of_others_and_of_tools_one_each(tmp_path: Path) -> None:
    write(tmp_path, {f"node_modules/p{i}/index.js": "x" for i in range(5)})
    write(
        tmp_path, dict.fromkeys(["vendor/x/a.go", "vendor/modules.txt", ".git/config", "dist/a.js", ".venv/a.py"], "x")
    )
    write(tmp_path, {"package.json": "{}", "package-lock.json": "{}", "poetry.lock": "x", "a.py": "x"})
    write(tmp_path, {"App.xcworkspace/contents.xcworkspacedata": "<W/>", "tea.egg-info/top_level.txt": "tea"})
    write(tmp_path, {"PKG-INFO": "Name: tea", "tea.egg-info/entry.py": "x"})
    write(tmp_path, {".yarn/sdks/eslint/lib/api.js": "x", "web/.yarn/versions/1a2b.yml": "a: 1", "sdks/a.js": "x"})
    write(tmp_path, {"x/__pycache__/a.pyc": "x", "lib/vendor/supplier.py": "x", "lib/build/plan.go": "x"})
    listing = code(tmp_path).list()
    assert paths(listing) == ["a.py", "lib/build/plan.go", "lib/vendor/supplier.py", "package.json", "sdks/a.js"]
    assert {path: reason.partition(";")[0] for path, reason in reasons(listing).items()} == {
        ".venv/": ".venv: installed or cached by a tool",
        ".yarn/sdks/eslint/lib/api.js": "packaging: below .yarn/sdks, written by a tool",
        "App.xcworkspace/contents.xcworkspacedata": ".xcworkspacedata: written by a tool",
        "PKG-INFO": "PKG-INFO: written by a tool",
        "dist/a.js": "build output: below dist, as package.json shows",
        "node_modules/": "node_modules: installed or cached by a tool",
        "package-lock.json": "package-lock.json: written by a tool",
        "poetry.lock": ".lock: written by a tool",
        "tea.egg-info/entry.py": "packaging: below tea.egg-info, written by a tool",
        "tea.egg-info/top_level.txt": ".txt: not a file type of code",
        "vendor/modules.txt": ".txt: not a file type of code",
        "vendor/x/a.go": "vendored: below vendor, modules.txt came with it",
        "web/.yarn/versions/1a2b.yml": "packaging: below web/.yarn/versions, written by a tool",
        "x/__pycache__/": "__pycache__: installed or cached by a tool",
    }


@pytest.mark.parametrize(("files", "left_out"), [
    (["Cargo.toml", "target/doc/a.rs", "target/b.rs"], ["target/b.rs", "target/doc/a.rs"]),
    (["pyproject.toml", "build/__init__.py", "build/a.py"], []),
    (["Lib/venv/__init__.py", "src/main/java/acme/build/Plan.java", "go.mod", "build/a.go", "out/a.c"], []),
    (["anything/pyvenv.cfg", "anything/lib/a.py"], ["anything/lib/a.py", "anything/pyvenv.cfg"]),
    (["build/index-BxY12a9Z.js", "build/a.js", "server/build/a.js"], ["build/a.js", "build/index-BxY12a9Z.js"]),
    (["package.json", "build/webpack.js"], []),
])  # fmt: skip
def test_a_folder_is_output_for_what_it_holds_and_what_lies_beside_it(
    tmp_path: Path, files: list[str], left_out: list[str]
) -> None:
    write(tmp_path, dict.fromkeys(files, "x"))
    assert [path for path, reason in reasons(code(tmp_path).list()).items() if "build output" in reason] == left_out


def test_pages_that_a_tool_made_of_others_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, dict.fromkeys(["docs/index.md", "docs/guide/install.md", "docs/faq.rst", "app/index.html"], "x"))
    write(tmp_path, dict.fromkeys(["web/index.html", "web/guide/install/index.html", "web/faq.html"], "x"))
    write(tmp_path, dict.fromkeys(["api/objects.inv", "api/a.html", "book.toml", "book/a.html", "book/print.md"], "x"))
    listing = docs(tmp_path).list()
    assert paths(listing) == ["app/index.html", "docs/faq.rst", "docs/guide/install.md", "docs/index.md"]
    assert reasons(listing)["web/faq.html"].startswith("built site: below web, made of docs;")


def test_what_tests_read_is_no_documentation(tmp_path: Path) -> None:
    kept = ["docs/fixtures.md", "latest/a.txt", "tests/README.md", "tests/how/to.md"]
    write(tmp_path, dict.fromkeys([*kept, "test/ref/a.txt", "tests/page.html", "x/fixtures/a.md"], "x"))
    listing = docs(tmp_path).list()
    assert paths(listing) == kept
    assert reasons(listing)["test/ref/a.txt"] == "test data: below test; name it in include to read it"
    assert paths(docs(tmp_path, include=("test/**",)).list()) == sorted([*kept, "test/ref/a.txt"])


def test_code_is_read_in_one_language(tmp_path: Path) -> None:
    kept = [
        "app/values/strings.xml", "compose.de.yml", "compose.yml", "i18n/de/only.json", "locales/en.json",
        "Res/en.lproj/a.strings", "res/messages.properties", "search/de.py", "search/en.py", "ui/en-US/a.json",
        "web/lang/en.ts", "src/i18n/words/gb.json", "app/lang/ca.json", "app/lang/us.json",
    ]  # fmt: skip
    gone = {
        **{f"src/i18n/words/{land}.json": "src/i18n/words/gb.json" for land in ("br", "cn", "es", "ir")},
        "app/values-de/strings.xml": "", "locales/de.json": "locales/en.json", "locales/en-GB.json": "locales/en.json",
        "locales/zh_Hant_TW.json": "locales/en.json", "res/messages_pt_BR.properties": "res/messages.properties",
        **{f"locales/{tag}.json": "locales/en.json" for tag in ("zh-cn", "pt_br", "sr-latn", "en-gb")},
        "res/messages_zh_tw.properties": "res/messages.properties",
        "ui/ar/a.json": "ui/en-US/a.json", "web/lang/de.ts": "web/lang/en.ts",
        "Res/zh-Hans.lproj/a.strings": "Res/en.lproj/a.strings",
    }  # fmt: skip
    kept.sort()
    more = [f"res/messages_{tag}.properties" for tag in ("ar", "de", "fr", "ja")]
    values = [f"app/values-{tag}/strings.xml" for tag in ("ar", "pt-rBR", "fr", "ja")]
    write(tmp_path, dict.fromkeys([*kept, *gone, *more, *values], "x"))
    listing = code(tmp_path).list()
    assert paths(listing) == kept
    assert {path: reasons(listing)[path] for path in gone} == {
        path: f"translation: of {original or 'app/values/strings.xml'}; name it in include to read it"
        for path, original in gone.items()
    }
    assert "locales/de.json" in paths(code(tmp_path, include=("locales/de.json",)).list())


def test_the_base_of_an_application_for_apple_is_the_original(tmp_path: Path) -> None:
    gone = {"Base.lproj/T.strings": ["ca.lproj/T.strings", "en.lproj/T.strings", "zh-Hans.lproj/T.strings"]}
    gone |= {"Alone/Base.lproj/Panel.xib": ["Alone/de.lproj/Panel.strings"]}
    kept = ["Base.lproj/T.strings", "Help/en.lproj/Panel.strings", "de.lproj/Only.strings"]
    write(tmp_path, dict.fromkeys([*kept, *(path for each in gone.values() for path in each)], "x"))
    write(tmp_path, dict.fromkeys(["Alone/Base.lproj/Panel.xib", "Help/Base.lproj/Panel.xib"], "x"))
    listing = code(tmp_path).list()
    assert paths(listing) == kept
    for original, translated in gone.items():
        for path in translated:
            assert reasons(listing)[path].startswith(f"translation: of {original};")


def test_among_many_languages_a_variety_of_one_is_a_translation(tmp_path: Path) -> None:
    tags = ("ca", "de", "en", "fr", "sr", "ca-valencia", "sr_Latin", "be@tarask", "pt-BR-abl1943")
    write(tmp_path, {f"locales/{tag}.json": "{}" for tag in tags})
    write(tmp_path, {f"conf/{name}.json": "{}" for name in ("en", "de", "to_string", "in-memory")})
    assert paths(code(tmp_path).list()) == [
        "conf/en.json",
        "conf/in-memory.json",
        "conf/to_string.json",
        "locales/en.json",
    ]


def test_what_is_built_for_macos_is_no_code(tmp_path: Path) -> None:
    kept = ["App/Info.plist", "Tests/Info.plist", "My.bundle/Info.plist"]
    signed = ["Tests/Data/A.bundle/Contents/Info.plist", "lib/B.framework/Headers/b.h"]
    write(tmp_path, dict.fromkeys([*kept, *signed, "AppTests/C.app/Contents/Info.plist"], "x"))
    for path in ("Tests/Data/A.bundle/Contents/_CodeSignature/CodeDirectory", "lib/B.framework/_CodeSignature/x"):
        write(tmp_path, {path: b"\0x"})
    listing = code(tmp_path).list()
    assert paths(listing) == sorted(kept)
    assert {path: reasons(listing)[path].partition(":")[0] for path in signed} == dict.fromkeys(signed, "signed bundle")
    assert reasons(listing)["AppTests/C.app/Contents/Info.plist"].startswith("test data:")


@pytest.mark.parametrize("folder", ["Vendor", "VENDOR", "ThirdParty", "src/3rdParty"])
def test_a_folder_of_foreign_code_is_known_in_any_case(tmp_path: Path, folder: str) -> None:
    write(tmp_path, {f"{folder}/maths/license.txt": "x", f"{folder}/maths/m.c": "x", "Vendors/acme.c": "x"})
    listing = code(tmp_path).list()
    assert paths(listing) == ["Vendors/acme.c"]
    assert reasons(listing)[f"{folder}/maths/m.c"].startswith(f"vendored: below {folder}, license.txt")


STUBS = (
    "void ui_init(void)\n{\n}\n\nint\nui_rows(\n    int a)\n{\n    return 0;\n}\nchar* ui_name(void) { return NULL; }\n"
    "Win* ui_top(void)\n{\n    return (Win*)mock();\n}\n"
    "void ui_show(char* a)\n{\n    (void)a;\n    check_expected(a);\n}\n"
)
SCHEMA, COUNTRIES = '{\n  "compilerOptions": {}\n}\n', '[{"model": "a.country", "pk": 1, "fields": {}}]'


@pytest.mark.parametrize(("path", "text", "is_data"), [
    ("test/resources/release.json", '{"tag": "v1"}', True), ("a/__tests__/out/x.json", "[]", True),
    ("src/test/resources/exp.xml", "<a/>", True), ("AppTests/Data/a.json", "{}", True),
    ("testdata/rec.yaml", "a: 1", True), ("__fixtures__/app.tsx", "export const A = 1;", True),
    ("spec/fixtures/a.rb", "class A; end", True), ("spec/vcr/a.yml", "---\nhttp_interactions:\n- request:", True),
    ("bench/fixtures/kitchen.json", "{}", True), ("app/fixtures/test_users.json", COUNTRIES, True),
    ("app/fixtures/countries.json", COUNTRIES, False),
    ("tests/fixtures/db.py", "@pytest.fixture\ndef db(): ...", False),
    ("src/fixtures/desk.py", "class Desk: ...", False), ("src/snapshots/take.go", "package snapshots", False),
    ("test/tsconfig.e2e.json", "{}", False), ("test/base.json", SCHEMA, False), ("test/jest-e2e.json", "{}", False),
    ("test/phpunit.xml", "<a/>", False), ("test/kind/cluster.yaml", "kind: Cluster", False),
    ("e2e/app/kit.json", '{ "tags-dir": "../src/tags" }', False), ("e2e/a.json", '{ "tag": "v1..2" }', True),
    ("tests/ui/stub_ui.c", STUBS, True), ("src/ui/headless.c", STUBS, False),
    ("tests/a.c", STUBS + "int twice(int a) { return a + a; }\nint no(int a) { return !a; }\n", False),
    ("latest/a.json", "{}", False),
    ("tests/test_a.py", "def test_a(): ...", False), ("contest/a.json", "{}", False),
])  # fmt: skip
def test_what_tests_are_given_is_no_code(tmp_path: Path, path: str, text: str, *, is_data: bool) -> None:
    entry = Entry(path=path, gate="")
    if is_data:
        with pytest.raises(DocumentSkipped, match=r"^test data"):
            code(tmp_path).parse(entry, text.encode())
        text = f"{text}\n"
    read = code(tmp_path, include=(path,) if is_data else ()).parse(entry, text.encode())
    assert read.text == text


def test_the_root_may_be_called_anything_and_may_be_a_link(tmp_path: Path) -> None:
    write(tmp_path / "venv/site-packages", {"flask/app.py": "x"})
    (tmp_path / "link").symlink_to(tmp_path / "venv/site-packages")
    assert paths(code(tmp_path / "venv/site-packages").list()) == ["flask/app.py"]
    linked = code(tmp_path / "link")
    assert paths(linked.list()) == ["flask/app.py"]
    assert linked.fetch(only(linked)) == b"x"


def test_include_adds_to_the_default_types_and_only_replaces_them(tmp_path: Path) -> None:
    files = ["a.py", "a.md", "src_utils/a.md", "src/a.md", "node_modules/x.md", "x.lock"]
    write(tmp_path, dict.fromkeys(files, "x"))
    assert paths(code(tmp_path, include=("**/*.md",)).list()) == ["a.md", "a.py", "src/a.md", "src_utils/a.md"]
    assert paths(code(tmp_path, include=("src/**",)).list()) == ["a.py", "src/a.md"]
    assert paths(code(tmp_path, include=("node_modules/**", "*.lock")).list()) == [
        "a.py",
        "node_modules/x.md",
        "x.lock",
    ]
    assert paths(code(tmp_path, only=("src/**",)).list()) == ["src/a.md"]
    listing = code(tmp_path, only=("**/*.md",), include=("*.lock",), exclude=("src/",)).list()
    assert paths(listing) == ["a.md", "src_utils/a.md", "x.lock"]
    assert reasons(listing)["src/"] == "excluded: exclude names it"
    assert reasons(listing)["a.py"] == "not named: only names others"


@pytest.mark.parametrize("name", ["var", "own [state]*!", "deep/er/#var "])
def test_what_nornweave_writes_below_the_folder_is_no_document(tmp_path: Path, name: str) -> None:
    write(tmp_path, {"a.md": "# A", f"{name}/dagster/logs.md": "# own", f"{name}x/b.md": "# B"})
    settings = FilesSettings(id="docs", domain=Domain.DOCUMENTATION, path=tmp_path)

    listing = open_source(settings, OwnFiles(tmp_path / name)).list()
    assert paths(listing) == sorted(["a.md", f"{name}x/b.md"])
    assert reasons(listing) == {f"{name}/": "NornWeave's own; no source reads it"}
    with pytest.raises(ConfigError, match="no source reads it"):
        open_source(settings.model_copy(update={"path": tmp_path / name}), OwnFiles(tmp_path / name))


def test_what_the_user_excludes_is_said_as_such(tmp_path: Path) -> None:
    write(tmp_path, dict.fromkeys(["a.py", "legacy/b.py", "legacy/c.bin", "legacy2/d.py"], "x"))
    listing = code(tmp_path, exclude=("legacy/**",)).list()
    assert paths(listing) == ["a.py", "legacy2/d.py"]
    assert reasons(listing) == {"legacy/": "excluded: exclude names it"}


def test_a_big_json_file_is_data_unless_it_is_asked_for(tmp_path: Path) -> None:
    write(tmp_path, {"small.json": "{}", "big.json": "1" * (256 * 1024 + 1), "exact.json": "1" * (256 * 1024)})
    listing = code(tmp_path).list()
    assert paths(listing) == ["exact.json", "small.json"]
    assert "262,145 bytes" in reasons(listing)["big.json"]
    assert "big.json" in paths(code(tmp_path, include=("**/*.json",)).list())


@pytest.mark.parametrize(("kind", "rows", "is_read"), [
    ("CustomResourceDefinition", 400, False), ("CustomResourceDefinition", 40, True), ("ConfigMap", 400, True),
])  # fmt: skip
def test_a_long_schema_of_kubernetes_is_written_by_a_tool(
    tmp_path: Path, kind: str, rows: int, *, is_read: bool
) -> None:
    schema = "".join(f"            key{n}: {{type: string}}\n" for n in range(rows))
    text = f"kind: {kind}\nspec:\n  versions:\n  - schema:\n      openAPIV3Schema:\n        properties:\n{schema}"
    entry = Entry(path="crd.yaml", gate="")
    if is_read:
        assert code(tmp_path).parse(entry, text.encode()).text == text
    else:
        with pytest.raises(DocumentSkipped, match="written by a tool"):
            code(tmp_path).parse(entry, text.encode())


THEME = "# A prompt.\nPROMPT='%n '\nif [ -n \"$SSH\" ]; then\n  PROMPT='%m '\nfi\n"
SHADER = "uniform vec4 tint;\n\nvoid main() {\n  // no light\n  color = tint;\n}\n"
TARGET = "module pki 1.0;\n\nrequire {\n  type java_t;\n}\nallow java_t self:process execmem;\n"


@pytest.mark.parametrize(("path", "content", "is_read"), [
    ("kettle.zsh-theme", THEME, True),
    ("glow.fsh2", SHADER, True),
    ("pki.te", TARGET, True),
    ("test/fixtures/pki.te", TARGET, False),
    ("words.lst", "kettle\ncup\nlid\n", False),
    ("letter.xyz", "We met on Monday and spoke about the kettle.\nIt leaks at the lid, as all of us know.\n", False),
    ("map.jhm2", "<map>\n  <id>a</id>\n</map>\n", False),
    ("answer.rec", '{"a": 1,\n"b": 2,\n"c": 3}\n', False),
    ("own.p13", "a = 1\nb = 2\nc = 3\n-----BEGIN PRIVATE KEY-----\n", False),
    ("clip.xyz", b"a = 1;\nb = 2;\nc = 3;\n\0\0", False),
])  # fmt: skip
def test_what_a_file_holds_tells_where_its_suffix_is_unknown(
    tmp_path: Path, path: str, content: str | bytes, *, is_read: bool
) -> None:
    write(tmp_path, {path: content})
    source = code(tmp_path)
    entry = only(source)
    if is_read:
        assert source.parse(entry, source.fetch(entry)).format == "text"
    else:
        with pytest.raises(DocumentSkipped):
            source.parse(entry, source.fetch(entry))
    if isinstance(content, str):
        named = code(tmp_path, include=(path,))
        assert named.parse(entry, named.fetch(entry)).text == content


def test_gitignore_is_honoured_at_every_level_for_code_and_documentation(tmp_path: Path) -> None:
    write(tmp_path, {".gitignore": "*.gen.py\n/out/\n", "sub/.gitignore": "!keep.gen.py\nlocal/\n"})
    write(tmp_path, dict.fromkeys(["a.gen.py", "out/a.py", "sub/out/a.py", "sub/keep.gen.py", "sub/local/a.py"], "x"))
    write(tmp_path, {"out/readme.md": "x", "sub/a.md": "x"})
    listing = code(tmp_path, only=("**/*.py", "sub/out/**")).list()
    assert paths(listing) == ["sub/keep.gen.py", "sub/out/a.py"]
    ignored = {"a.gen.py": "ignored: by .gitignore", "out/": "ignored: by .gitignore"}
    assert reasons(listing).items() >= {**ignored, "sub/local/": "ignored: by sub/.gitignore"}.items()
    assert paths(docs(tmp_path).list()) == ["sub/a.md"]
    assert paths(FilesSource(ID, Domain.RESEARCH, tmp_path).list()) == ["out/readme.md", "sub/a.md"]


def test_git_says_what_it_ignores_by_all_of_its_rules_and_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = {".gitignore": "local.py\n/app/gen/\nbuild/\n", "app/sub/.gitignore": "!local.py\n"}
    names = ("a.py", "local.py", "gen/b.py", "build/own.py", "build/out.py", "info.py", "mine.py", "sub/local.py")
    write(tmp_path / "top", everything | dict.fromkeys((f"app/{name}" for name in names), "x"))
    write(tmp_path / "top", {"ignored/c.py": "x", "app/build/pyvenv.cfg": "x"})
    run = lambda *arguments: subprocess.run(["git", "-C", tmp_path / "top", *arguments], check=True)  # noqa: E731
    run("init", "--quiet")
    run("add", "--force", "app/build/own.py")
    write(tmp_path, {"top/.git/info/exclude": "info.py\nignored/\n", "excludes": "mine.py\n"})
    app, expected = code(tmp_path / "top/app"), ["a.py", "build/own.py", "sub/local.py"]
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    write(tmp_path, {"config": f"[core]\nexcludesFile = {tmp_path}/excludes\n"})
    assert paths(app.list()) == expected
    assert reasons(app.list())["build/out.py"] == "ignored: git ignores it"
    below = [path for path in paths(code(tmp_path).list()) if path.startswith("top/")]
    assert below == [f"top/app/{name}" for name in expected], "a repository below the source"
    assert app.list_within(Within(frozenset({"gen", "sub"}))).entries == app.list().entries[-1:]
    assert paths(code(tmp_path / "top/ignored").list()) == ["c.py"], "who names a folder wants it"
    monkeypatch.setenv("PATH", str(tmp_path))  # no git: its files are read, all but those of the user
    assert paths(app.list()) == ["a.py", "mine.py", "sub/local.py"]


@pytest.mark.parametrize(("told", "within"), [
    ({"a.py"}, {"a.py"}),
    ({"pkg"}, {"pkg"}),
    ({"pkg/deep/c.py", "gone.py", "gone/below.py"}, {"pkg/deep/c.py", "gone.py", "gone/below.py"}),
    ({"pkg/.gitignore"}, {"pkg"}),
    ({"build/__init__.py"}, {"build"}),
    ({"pkg/ignored.py", "pkg/big.json"}, {"pkg/ignored.py", "pkg/big.json"}),
    ({"node_modules/x/y.js", "var/domains/code/working.duckdb", ".git/index.lock", "pkg/cache/z.py"}, set()),
    ({".gitignore"}, None),
    ({"a.py", "meta.yaml"}, None),
    ({""}, None),
])  # fmt: skip
def test_a_listing_of_some_paths_is_that_part_of_the_whole_one(
    tmp_path: Path, told: set[str], within: set[str] | None
) -> None:
    write(tmp_path, {
        "a.py": "x", "pkg/b.py": "x", "pkg/deep/c.py": "x", "pkg2/d.py": "x", "pkg/big.json": " " * 300_000,
        "pkg/ignored.py": "x", "pkg/.gitignore": "ignored.py\ncache/\n", "pkg/cache/z.py": "x", "build/o.py": "x",
        "node_modules/x/y.js": "x", "var/domains/code/working.duckdb": "x", ".git/index.lock": "", "meta.yaml": "{}",
    })  # fmt: skip
    source = code(tmp_path, exclude=("/var/",), metadata=tmp_path / "meta.yaml")
    assert source.watched_folder() == os.path.realpath(tmp_path)

    whole, listing = source.list(), source.list_within(Within(frozenset(told)))

    assert listing.within == (None if within is None else Within(frozenset(within)))
    expected = [entry for entry in whole.entries if listing.within is None or listing.within.holds(entry.path)]
    assert list(listing.entries) == expected
    assert set(listing.skipped) <= set(whole.skipped)


def test_what_cannot_be_watched_alone_is_said(tmp_path: Path) -> None:
    write(tmp_path, {"docs/v2/a.md": "x", "dates.yaml": "{}"})
    assert docs(tmp_path / "docs", metadata=tmp_path / "dates.yaml").watched_folder() is None, "it lies outside"
    assert docs(tmp_path / "docs/v2/a.md").watched_folder() is None, "a file"
    assert docs(tmp_path / "missing").watched_folder() is None


def test_a_single_file_is_a_source_of_one_document_whatever_its_type(tmp_path: Path) -> None:
    write(tmp_path, {"notes.unknown": "# Notes"})
    source = docs(tmp_path / "notes.unknown")
    entry = only(source)
    assert entry.path == "notes.unknown"
    assert source.parse(entry, source.fetch(entry)).text == "# Notes"


def test_the_gate_tells_every_change_and_its_first_part_outlives_a_move(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    write(tmp_path, {"a.py": "one"})
    os.utime(file, ns=(1, 1_700_000_000_000_000_001))
    first = only(code(tmp_path))
    assert first.gate == f"3-1700000000000000001-{file.stat().st_ino}@{file.stat().st_ctime_ns}"
    while only(code(tmp_path)).gate == first.gate:  # the clock of the file system is coarse
        write(tmp_path, {"a.py": "two"})
        os.utime(file, ns=(1, 1_700_000_000_000_000_001))
    file.rename(tmp_path / "b.py")
    assert only(code(tmp_path)).gate.partition("@")[0] == first.gate.partition("@")[0]
    assert first.size == 3
    assert first.updated_at is not None
    assert first.updated_at.replace(microsecond=0) == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    moved = only(code(tmp_path))
    assert only(code(tmp_path)) == moved
    os.utime(tmp_path / "b.py", ns=(1, 1_700_000_000_000_000_002))
    assert only(code(tmp_path)).gate.partition("@")[0] != moved.gate.partition("@")[0]


def test_names_that_are_no_text_are_skipped_with_the_bytes_shown(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.py")).write_text("x")
    (tmp_path / "café.py").write_text("x")
    listing = code(tmp_path).list()
    assert paths(listing) == ["café.py"]
    assert reasons(listing) == {"caf\\udce9.py": "name: the file name is not valid UTF-8; rename it"}


def test_pipes_are_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    listing = code(tmp_path).list()
    assert (paths(listing), reasons(listing)) == ([], {"pipe.py": "special: not a regular file"})
    with pytest.raises(DocumentError, match="not a regular file"):
        code(tmp_path).fetch(Entry(path="pipe.py", gate=""))
    with pytest.raises(SourceUnavailableError, match="not a regular file"):
        code(tmp_path, metadata=tmp_path / "pipe.py").list()


# Links ---------------------------------------------------------------------------------------------------------------


def test_links_are_left_out_wherever_they_lead(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write(root, {"a.py": "a", "pkg/b.py": "b"})
    targets = {
        "file.py": "a.py",
        "dir": "pkg",
        "up": "..",
        "self": ".",
        "passwd.py": "/etc/passwd",
        "gone.py": "nowhere",
    }
    for name, target in {**targets, "l1": "l2", "l2": "l1"}.items():
        (root / name).symlink_to(target)
    listing = code(root, include=("**",)).list()
    assert paths(listing) == ["a.py", "pkg/b.py"]
    assert reasons(listing) == {
        name: f"link: to {target}" for name, target in {**targets, "l1": "l2", "l2": "l1"}.items()
    }


def test_a_path_that_changed_into_a_way_out_after_listing_is_not_read(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write(root, {"a/x.py": "inside"})
    write(tmp_path, {"secret/x.py": "secret"})
    entry = only(code(root))
    shutil.rmtree(root / "a")
    (root / "a").symlink_to(tmp_path / "secret")
    with pytest.raises(DocumentError, match="leads outside"):
        code(root).fetch(entry)


@pytest.mark.parametrize("path", ["../secret.py", "/etc/passwd", "a/../../secret.py", "..", "a\0b"])
def test_no_path_leads_out(tmp_path: Path, path: str) -> None:
    root = tmp_path / "root"
    write(tmp_path, {"secret.py": "secret", "root/a/x.py": "x"})
    with pytest.raises(DocumentError):
        code(root).fetch(Entry(path=path, gate=""))


# What cannot be read -------------------------------------------------------------------------------------------------


def test_a_missing_root_is_unavailable_not_empty(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailableError, match=r"'payments'.*nowhere.*No such file.*mount or create it"):
        code(tmp_path / "nowhere").list()


def test_a_folder_that_may_not_be_read_makes_the_source_unavailable() -> None:
    with unprivileged() as root:
        write(root, {"a.py": "x", "shut/b.py": "x"})
        (root / "shut").chmod(0)
        with pytest.raises(SourceUnavailableError, match=r"shut' cannot be read: Permission denied"):
            code(root).list()
        assert paths(code(root, exclude=("shut",)).list()) == ["a.py"]


def test_a_gitignore_that_may_not_be_read_makes_the_source_unavailable() -> None:
    with unprivileged() as root:
        write(root, {"a.py": "x", ".gitignore": "*.py"})
        (root / ".gitignore").chmod(0)
        with pytest.raises(SourceUnavailableError, match=r"\.gitignore' cannot be read"):
            code(root).list()


def test_a_file_that_may_not_be_read_fails_alone_and_may_pass() -> None:
    with unprivileged() as root:
        write(root, {"a.py": "x", "b.py": "y"})
        (root / "a.py").chmod(0)
        source = code(root)
        first, second = source.list().entries
        with pytest.raises(TransientDocumentError, match="Permission denied; give read permission"):
            source.fetch(first)
        assert source.fetch(second) == b"y"


def test_folders_too_deep_for_the_system_are_unavailable_not_empty(tmp_path: Path) -> None:
    here = os.open(tmp_path, os.O_RDONLY)
    name = "d" * 200
    try:
        for _ in range(25):  # 25 * 201 characters are more than the 4,096 that a path may have
            os.mkdir(name, dir_fd=here)
            below = os.open(name, os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = below
    finally:
        os.close(here)
    with pytest.raises(SourceUnavailableError, match="cannot be read: File name too long"):
        code(tmp_path).list()


def test_what_vanishes_or_becomes_a_folder_after_listing_may_pass(tmp_path: Path) -> None:
    write(tmp_path, {"a.py": "x", "b.py": "x"})
    source = code(tmp_path)
    first, second = source.list().entries
    (tmp_path / "a.py").unlink()
    (tmp_path / "b.py").unlink()
    (tmp_path / "b.py").mkdir()
    with pytest.raises(TransientDocumentError, match="vanished"):
        source.fetch(first)
    with pytest.raises(TransientDocumentError, match="folder by now"):
        source.fetch(second)


def test_a_file_is_read_up_to_the_limit_and_refused_above_it(tmp_path: Path) -> None:
    write(tmp_path, {"a.txt": b"x" * MAX_BYTES, "b.txt": b"x" * (MAX_BYTES + 1)})
    source = docs(tmp_path)
    first, second = source.list().entries
    assert len(source.fetch(first)) == MAX_BYTES
    with pytest.raises(DocumentError) as raised:
        source.fetch(second)
    assert not isinstance(raised.value, TransientDocumentError)


def test_a_broken_glob_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not a glob"):
        code(tmp_path, include=("",))


# Parsing -------------------------------------------------------------------------------------------------------------


def test_code_becomes_a_document_of_its_language(tmp_path: Path) -> None:
    text = "def é():\r\n\treturn 1\r\n"
    write(tmp_path, {"src/a.py": text})
    source = code(tmp_path)
    entry = only(source)
    document = source.parse(entry, source.fetch(entry))
    assert (document.id, document.source_id, document.path) == (document_id(ID, "src/a.py"), ID, "src/a.py")
    assert (document.text, document.format) == (text, "python")
    assert document.content_hash == digest(text.encode())
    assert document.updated_at == entry.updated_at
    assert code(tmp_path).parse(replace(entry, path="x.toml"), b"a = 1").format == "text"


@pytest.mark.parametrize("raw", [b"", b" \n\t\n", b"\xef\xbb\xbf\n"])
def test_empty_code_is_left_out_and_an_empty_page_is_a_failure(tmp_path: Path, raw: bytes) -> None:
    with pytest.raises(DocumentSkipped, match="empty"):
        code(tmp_path).parse(Entry(path="__init__.py", gate=""), raw)
    with pytest.raises(DocumentError) as raised:
        docs(tmp_path).parse(Entry(path="a.md", gate=""), raw)
    assert not isinstance(raised.value, DocumentSkipped)


@pytest.mark.parametrize(("path", "text"), [
    ("a.md", "---\ntitle: Lids\ndraft: true\n---\n\nLids close.\n"),
    ("a.mdx", "---\nunlisted: yes\n---\n\nLids close.\n"),
    ("a.md", "+++\ntitle = 'Lids'\ndraft = true\n+++\n\nLids close.\n"),
    ("a.md", "---\npublished: false\n---\n\nLids close.\n"),
    ("a.md", '{\n  "draft": true\n}\n\nLids close.\n'),
    ("a.md", "Title: Lids\nStatus: draft\n\nLids close.\n"),
    ("a.rst", "Lids\n####\n\n:status: Draft\n\nLids close.\n"),
])  # fmt: skip
def test_a_page_that_says_it_is_a_draft_is_left_out_unless_it_is_named(tmp_path: Path, path: str, text: str) -> None:
    entry = Entry(path=path, gate="")
    with pytest.raises(DocumentSkipped, match=r"^draft: its head says"):
        docs(tmp_path).parse(entry, text.encode())
    assert "Lids close" in docs(tmp_path, include=(path,)).parse(entry, text.encode()).text
    for shown in (text.replace("true", "false"), text.replace("rue", "rue story")):
        if shown != text:
            assert "Lids close" in docs(tmp_path).parse(entry, shown.encode()).text
    published = "---\ndraft: false\npublished: 2024-01-02\nstatus: draft two\n---\n\nLids close.\n"
    assert docs(tmp_path).parse(Entry(path="a.md", gate=""), published.encode()).text == published


def test_pages_below_drafts_are_left_out_unless_they_are_named(tmp_path: Path) -> None:
    write(tmp_path, {"_drafts/a.md": "# A", "blog/_drafts/b.md": "# B", "_posts/c.md": "# C", "drafts/d.md": "# D"})
    found = docs(tmp_path).list()
    assert [entry.path for entry in found.entries] == ["_posts/c.md", "drafts/d.md"]
    assert {(skip.path, skip.reason.partition(":")[0]) for skip in found.skipped} == {
        ("_drafts/a.md", "draft"), ("blog/_drafts/b.md", "draft"),
    }  # fmt: skip
    assert len(docs(tmp_path, include=("_drafts/**",)).list().entries) == 4


GENERATED = [
    "// Code generated by protoc-gen-go. DO NOT EDIT.", "#!/bin/sh\n# @generated by tool",
    "/*\n * This file was automatically generated. Do not edit!\n */", "# AUTO-GENERATED FILE, do not modify",
    "// DO NOT EDIT.\n//\n// Generated by the Swift generator plugin.", "// GENERATED CODE - DO NOT MODIFY BY HAND",
    "// <auto-generated>", "/* A Bison parser, made by GNU Bison 3.8.2.  */", "<?php\n/* This file was generated. */",
    "// Generated from a.g4 by ANTLR 4.11.1", '"""@generated by mypy-protobuf.  Do not edit manually!"""',
    "/**\n * Autogenerated by Thrift Compiler (0.13.0)\n *\n * DO NOT EDIT UNLESS YOU ARE SURE\n */",
    "// Generated by the gRPC C++ plugin.\n// If you make any local change, they will be lost.\n// source: a.proto",
    "# Generated with protoc-gen-openapi\n# https://example.org/gen\n", "// Code generated by openapi-generator",
    "# This file was written by tablegen. Changes will be lost.", '\n#line 2 "lex.yy.c"\n\n#define A 1',
    "// This file was automatically created by json2ts. Don't modify by hand.",
    "# Form implementation generated from reading ui file 'a.ui'\n#\n# WARNING! All changes made here will be lost!",
]  # fmt: skip


@pytest.mark.parametrize(("path", "text"), [
    ("lint.xml", '<?xml version="1.0"?>\n<issues format="6" by="lint 9.2" type="baseline" name="x">\n</issues>\n'),
    ("detekt.xml", "<?xml version='1.0'?>\n<SmellBaseline>\n  <CurrentIssues/>\n</SmellBaseline>\n"),
    ("psalm.xml", '<files psalm-version="5.1@e1">\n  <file src="a.php"/>\n</files>\n'),
    ("4.json", '{"formatVersion": 1, "database": {"version": 4, "identityHash": "' + "e4" * 16 + '", "entities": []}}'),
    ("gradlew", "#!/bin/sh\n\n#\n####\n#   gradlew start up script for POSIX generated by Gradle.\n"),
    ("gradlew.bat", '@rem\n@if "%DEBUG%"=="" @echo off\n@rem ####\n@rem  Gradle startup script for Windows\nset A=1\n'),
])  # fmt: skip
def test_what_tools_recorded_or_put_into_a_project_is_left_out(tmp_path: Path, path: str, text: str) -> None:
    with pytest.raises(DocumentSkipped, match=r"generated|written by a tool"):
        code(tmp_path).parse(Entry(path=path, gate=""), text.encode())


@pytest.mark.parametrize(("path", "text"), [
    ("a.xml", '<settings type="baseline-x" version="1">\n</settings>\n'), ("b.xml", "<project><baseline/></project>\n"),
    ("run.sh", "#!/bin/sh\n# The start up script of the kettle, which Ann generated by hand.\nboil\n"),
    ("db.json", '{"database": {"version": 4, "name": "kettle"}}'),
])  # fmt: skip
def test_what_only_looks_like_a_record_is_kept(tmp_path: Path, path: str, text: str) -> None:
    assert code(tmp_path).parse(Entry(path=path, gate=""), text.encode()).text == text


def test_a_document_that_a_tool_writes_again_is_left_out() -> None:
    said = "This README.md is auto-generated and will be re-generated every time the kettle boils.\n"
    assert is_written_again(f"# Lanes\n\n{'Boils water. ' * 300}\n\n{said}")
    assert is_written_again("CHANGES\n=======\n\n2.1.0\n-----\n\n* Boil water\n* Fix lid\n")
    assert is_written_again(f"commit {'0a' * 20}\nAuthor: Ann <ann@example.org>\n\n    Boil water\n")
    assert not is_written_again("CHANGES\n=======\n\n2.1.0\n-----\n\nThe kettle boils, and its lid is tight.\n")
    assert not is_written_again(f"# Kettle\n\nSay it: {said}") and not is_written_again(
        "# The page is auto-generated.\n"
    )


def test_a_template_says_what_it_writes_is_generated(tmp_path: Path) -> None:
    text = "# This file is generated by Ansible, do not edit.\nport: {{ port }}\n"
    assert code(tmp_path).parse(Entry(path="conf.yml.j2", gate=""), text.encode()).text == text


@pytest.mark.parametrize("head", GENERATED)
def test_code_that_says_it_is_generated_is_left_out(tmp_path: Path, head: str) -> None:
    with pytest.raises(DocumentSkipped, match="generated"):
        code(tmp_path).parse(Entry(path="a.go", gate=""), f"{head}\npackage a\n".encode())


@pytest.mark.parametrize("text", [
    'MARK = "@generated"\n', "x = 1\n# @generated\n", "# Ids are generated by the server.\n",
    "# do not edit by hand what is not generated\n", "# Generated by Django 4.2.1 on 2023-05-05\n",
    "# Settings of the generated clients; do not edit the clients, edit this file.\n",
    "# Generates foo.h. Do not edit foo.h by hand.\n", "# Generated by the nightly job, reports are sent.\n",
    "# Generated by jest init\n", "# Generated with the agency's help\n",
    "# Created by Ann on 1/1/2020. Do not modify by hand.\n", "# Unsaved changes are lost on restart.\n",
    "# Writes `Code generated by x. DO NOT EDIT.` at the head.\n", "# Files with @generated in them are left out.\n",
    '"""Clients. The files of api/ are generated from the schema; do not edit them."""\n',
    "# Configuration, created by sphinx-quickstart.\n#\n# Note that not all possible values are present in this\n"
    "# autogenerated file.\n",
])  # fmt: skip
def test_code_that_only_speaks_of_it_is_kept(tmp_path: Path, text: str) -> None:
    assert code(tmp_path).parse(Entry(path="a.py", gate=""), text.encode()).text == text


@pytest.mark.parametrize(("path", "text", "format_"), [
    ("bin/a", "#!/usr/bin/env -S python3 -u\nx = 1\n", "python"), ("bin/a", "#! /usr/local/bin/ruby2.7 -w\n", "ruby"),
    ("bin/a.v1", "#!/usr/bin/env NODE_ENV=x node\n", "javascript"), ("a.h", "@interface A\n@end\n", "objc"),
    ("a.h", "namespace a {}\n", "cpp"), ("a.h", "int a(void);\n", "c"), ("a.ts", "<?xml version='1.0'?>\n", "text"),
    ("bin/stop", "#/usr/bin/env bash\ntrue\n", "shell"), ("bin/a", "# /bin/sh starts it\n", None),
    ("a.entitlements", "<plist/>\n", "text"), ("src/index.marko", "import a\n<p>b</p>\n", "marko"),
    ("inventory", "# x\n---\na: 1\n", "text"), ("bin/a", "hello\n", None), ("data.glyph", "hello\n", None),
])  # fmt: skip
def test_code_is_what_its_content_says(tmp_path: Path, path: str, text: str, format_: str | None) -> None:
    if format_ is None:
        with pytest.raises(DocumentSkipped, match="a language of code"):
            code(tmp_path).parse(Entry(path=path, gate=""), text.encode())
        assert code(tmp_path, only=("**",)).parse(Entry(path="x.glyph", gate=""), text.encode()).format == "text"
    else:
        assert code(tmp_path).parse(Entry(path=path, gate=""), text.encode()).format == format_


DIGEST = "0fde8533282973f1f5d33b2c4f82d962a2c78860d39b42ac20a9ce399f06f62c"


@pytest.mark.parametrize(("path", "text", "reason"), [
    (".terraform.lock.hcl", '# This file is maintained automatically by "terraform init".\nprovider "a" {}\n',
     "generated"),
    ("a.lock.hcl", 'provider "a" {\n  hashes = [\n' + f'    "zh:{DIGEST}",\n' * 12 + "  ]\n}\n", "written by a tool"),
    ("pylock.toml", f'[[packages]]\nname = "a"\nwheels = [{{hashes = {{sha256 = "{DIGEST}"}}}}]\n' * 12,
     "written by a tool"),
    ("pins.yml", "- a: " + "QTOtDMehUfiD3wDbbDuXYuTqGgLDkKK9Agkd5NCUEic=\n- a: " * 12 + "b\n", "written by a tool"),
    ("a.imageset/Contents.json", '{"images": [], "info" : {"author" : "xcode", "version" : 1}}\n', "written by a tool"),
    ("ci.yml", "".join(f"- uses: a/b{n}@0fde8533282973f1f5d33b2c4f82d962a2c78860\n" for n in range(20)), None),
    ("images.yml", f"a: x@sha256:{DIGEST}\n" * 5, None), ("Contents.json", '{"info": {"author": "Ann"}}\n', None),
    ("sums.py", f'A = "{DIGEST}"\n' * 20, None),
    ("bench/results.json", '{\n"ms": 5.099999904632568,\n"runs": 5\n},\n' * 60, "data: numbers"),
    ("palette.json", '{\n"alpha": 0.25,\n"runs": 5\n},\n' * 60, None),
])  # fmt: skip
def test_what_a_tool_wrote_down_is_told_by_what_it_holds(
    tmp_path: Path, path: str, text: str, reason: str | None
) -> None:
    entry = Entry(path=path, gate="")
    if reason is None:
        assert code(tmp_path).parse(entry, text.encode()).text == text
    else:
        with pytest.raises(DocumentSkipped, match=f"^{reason}"):
            code(tmp_path).parse(entry, text.encode())


EXAMPLE = (
    '<!doctype html>\n<title>An example with a title</title>\n<div id="app">Loading…</div>\n'
    '<script type="importmap">\n{"imports": {"kettle": "https://example.org/kettle@5.2.4"}}\n</script>\n'
    '<script type="module">\n'
    'import {Kettle} from "kettle";\nexport function boil(litres) {\n  return new Kettle(litres).start();\n}\n'
    "</script>\n"
)


@pytest.mark.parametrize(("path", "format_"), [
    ("page.ts", "typescript"), ("kube/mod.just", "text"), (".justfile", "text"), ("tool-1.2", "shell"),
])  # fmt: skip
def test_code_is_listed_and_has_its_language(tmp_path: Path, path: str, format_: str) -> None:
    texts = {"page.ts": "export const page = `\n<!DOCTYPE html>\n<p>Kettle</p>`;\n", "tool-1.2": "#!/bin/sh\nboil\n"}
    write(tmp_path, {path: texts.get(path, "boil lid='on':\n    kettle {{ lid }}\n")})
    source = code(tmp_path)
    assert source.parse(only(source), source.fetch(only(source))).format == format_


@pytest.mark.parametrize(("page", "is_template"), [
    ("{% extends 'base.html' %}\n<p>The kettle boils.</p>\n", True), ("<p><?php echo $kettle ?></p>\n", True),
    ('{{ define "main" }}\n<p>The kettle boils.</p>\n{{ end }}\n', True),
    ("<p><% if hot %>The kettle<% end %></p>", True),
    ("---\ntitle: Kettle\n---\n{% include a %}\n<p>The kettle boils.</p>\n", False),
    ("<p>Write it:</p>\n<pre>{% block a %}</pre>\n<p>or <code>&lt;% a %></code></p>\n", False),
    ("<p>The kettle boils.</p>\n{% comment %}soon{% endcomment %}\n<p>{{ site.name }}</p>\n", False),
])  # fmt: skip
def test_a_page_that_a_program_fills_in_is_code(tmp_path: Path, page: str, *, is_template: bool) -> None:
    entry = Entry(path="templates/kettle.html", gate="")
    read, refuses = (code, docs) if is_template else (docs, code)
    assert read(tmp_path).parse(entry, page.encode()).format == ("webpage" if is_template else "html")
    with pytest.raises(DocumentSkipped, match="^template: " if is_template else "a page to read, not code"):
        refuses(tmp_path).parse(entry, page.encode())


def test_a_recorded_answer_in_a_program_is_data(tmp_path: Path) -> None:
    row = '  {\n    "id": "1568403847743442944",\n    "likes": 18,\n    "who": [\n      "Ann"\n    ]\n  },\n'
    recorded, table = f"export const tweets = [\n{row * 80}];\n", f"export const few = [\n{row * 20}];\n"
    with pytest.raises(DocumentSkipped, match="a literal in a program"):
        code(tmp_path).parse(Entry(path="src/tweets.ts", gate=""), recorded.encode())
    for text in (table, recorded.replace('"likes": 18', '"likes": count(18)')):
        assert code(tmp_path).parse(Entry(path="src/tweets.ts", gate=""), text.encode()).text == text


@pytest.mark.parametrize(("page", "is_code"), [
    (EXAMPLE, True), (EXAMPLE.replace("Loading…", "") + "<style>\np {\n  color: red;\n}\n</style>", True),
    (EXAMPLE.replace("module", "text/babel"), True), (EXAMPLE + "<p>" + "The kettle boils water. " * 3, False),
    ("<p>Loading</p><script src=a.js></script>", False), ("<p>The kettle boils.</p>\n<!-- <script>\n\n\n -->", False),
])  # fmt: skip
def test_a_page_of_script_and_style_is_code(tmp_path: Path, page: str, *, is_code: bool) -> None:
    entry = Entry(path="demo/kettle.html", gate="")
    if is_code:
        with pytest.raises(DocumentSkipped, match=f"^example: {len(page.splitlines())} lines"):
            docs(tmp_path).parse(entry, page.encode())
        assert code(tmp_path).parse(entry, page.encode()).format == "webpage"
    else:
        assert docs(tmp_path).parse(entry, page.encode()).format == "html"
        with pytest.raises(DocumentSkipped, match="html: a page to read"):
            code(tmp_path).parse(entry, page.encode())


PROSE_LINES = "The ledger keeps balances for seven years.\nIt asks the vault before it pays anybody.\n"


@pytest.mark.parametrize(("path", "text", "format_"), [
    ("a.txt", "Title\n=====\n\nText.\n\n.. note:: Mind.\n", "rst"), ("a.txt", "= Title\n\nText.\n", "asciidoc"),
    ("a.txt", "# Title\n\n```\nx\n```\n", "markdown"), ("README", "Title\n=====\n\nSee [x](y).\n", "markdown"),
    ("userguide", f"Guide\n=====\n\n== First\n\n*Syntax*:\n---------\n# a\nset\n---------\n\n== Second\n{PROSE_LINES}",
     "asciidoc"),
    ("NOTES", f"Guide\n=====\n\n## First\n\n```\n== x\n```\n\n{PROSE_LINES}", "markdown"),
    ("a.txt", PROSE_LINES, "text"), ("DESIGN", PROSE_LINES, "text"), ("a.txt", "add `--option` here\n", "text"),
    ("robots.txt", "User-agent: *\nDisallow: /x\n", "data"), ("a.txt", "a: [G] f=r c=u\n  0: 16 {} {}\n", "data"),
    ("bin/a", "#!/bin/sh\n# " + PROSE_LINES, "code"), ("Guardfile", "# a b c d e f\n# g h i j\nguard 'x'\n", "data"),
    ("index.html", "<html><body><div id=app></div><script>a b c d e f</script></body></html>", "no text"),
    ("index.html", "<html><head><title>A shop</title></head><body><app-root></app-root></body></html>", "no text"),
    ("COPYING",
     "GNU GENERAL PUBLIC LICENSE\nVersion 2, June 1991\n\nEveryone is permitted to copy and distribute copies of"
     " this license document.\n\n  NO WARRANTY\n\n" + PROSE_LINES + "In no event is it liable.\n", "licence"),
    ("NOTICE", "Pools\nCopyright 2020 Ann\n", "licence"), ("LICENSE.md", "Licensed under MIT or Apache-2.0.\n",
     "licence"),
    ("docs/license-keys.md", "# License keys\n\nTo activate a license, paste the license key into Settings.\n",
     "markdown"),
    ("docs/license.rst", "License\n=======\n\nA license expression names SPDX licenses, with exceptions.\n", "rst"),
    ("copyright-policy.md", "# Copyright\n\nWho contributes keeps the copyright and grants us the rights that the"
     " software needs; no agreement is signed.\n", "markdown"),
    ("license-server.md", "# License server\n\nIt hands out one license a user, and takes the license back.\n",
     "markdown"),
    ("note.txt", "Document 3.", "text"),
    ("kettle.man", f"kettle(1)\n=========\n\n== NAME\n\nkettle - boil water\n\n{PROSE_LINES}", "asciidoc"),
    ("kettle.8", f"// Ann\n= kettle(8)\n\n== NAME\n\n{PROSE_LINES}", "asciidoc"),
    ("kettle.1.in", f"kettle(1) -- boil water\n=====\n\n## SYNOPSIS\n\n{PROSE_LINES}", "markdown"),
    ("run.2", f"= Results\n\n== First\n\n{PROSE_LINES}", ".2"), ("kettle.man", "kettle(1)\n1 2 3\n", ".man"),
    ("RELEASE-NOTES-4.23", PROSE_LINES, "text"), ("RELEASE-NOTES-1.2", PROSE_LINES, "text"),
    ("NEWS.2.10", f"# News\n\n{PROSE_LINES}", "markdown"), ("notes/v2.0-rc1", PROSE_LINES, "text"),
    ("changes/3-lids", "deprecate lids in favour of caps\n", "text"), ("lists/lids", "old lids\n", "data"),
    ("docs/head.md", "<!-- Copyright Example -->\n---\ntitle: A\n---\n\n# First\n\nText one.\n", "markdown"),
    ("docs/licences.md", "# Licences\n\nWe use the MIT licence.\n\n" + PROSE_LINES * 5, "markdown"),
])  # fmt: skip
def test_documentation_is_what_its_content_says(tmp_path: Path, path: str, text: str, format_: str) -> None:
    parse = lambda source: source.parse(Entry(path=path, gate=""), text.encode())  # noqa: E731
    if format_ in {"data", "code", "no text", "licence", ".2", ".man"}:
        with pytest.raises(DocumentSkipped, match=f"^{format_}"):
            parse(docs(tmp_path))
        assert parse(docs(tmp_path, include=("**",))).text == text
    else:
        assert parse(docs(tmp_path)).format == format_


def test_minified_code_is_told_by_its_lines(tmp_path: Path) -> None:
    bundle = "/*! a */\n" + "function f(e){return e+1};" * 200 + "\n"
    with pytest.raises(DocumentSkipped, match="minified: lines of 5,200 characters"):
        code(tmp_path).parse(Entry(path="a.js", gate=""), bundle.encode())
    program = "function f(e) {\n  return e + 1;\n}\n" * 30 + f'const PICTURE = "{"A" * 5_000}";\n'
    query = "const QUERY = `select " + ", ".join(f"a.column_{each} as c{each}" for each in range(80)) + " from a`;\n"
    words = f"# {'It keeps the lid closed at night. ' * 60}\nLID = 1\n"
    for kept in (program, "function f(e) {\n  return e + 1;\n}\n" * 100, query, words):
        assert code(tmp_path).parse(Entry(path="a.min.js", gate=""), kept.encode()).text == kept


@pytest.mark.parametrize("raw", [b"\x00\x01\x02binary\x00", b"\x89PNG\r\n\x1a\n" + bytes(64)])
def test_binary_content_under_a_text_name_is_a_failure(tmp_path: Path, raw: bytes) -> None:
    for source, path in ((code(tmp_path), "a.py"), (docs(tmp_path), "a.md")):
        with pytest.raises(DocumentError):
            source.parse(Entry(path=path, gate=""), raw)


def test_a_git_lfs_pointer_is_not_the_file(tmp_path: Path) -> None:
    raw = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
    with pytest.raises(DocumentSkipped, match="git lfs pull"):
        docs(tmp_path).parse(Entry(path="a.md", gate=""), raw)


def test_dates_come_from_the_sidecar_then_the_document_then_the_file(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "---\ndate: 2021-03-04\n---\n# A\n\ntext\n", "b.md": "# B\n\ntext\n"})
    for name in ("a.md", "b.md"):
        os.utime(tmp_path / name, (1_700_000_000, 1_700_000_000))
    sidecar = tmp_path / "dates.yaml"
    source = docs(tmp_path, metadata=sidecar)
    modified = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)

    def dates() -> list[datetime | None]:
        return [source.parse(entry, source.fetch(entry)).updated_at for entry in source.list().entries]

    sidecar.write_text("")
    assert dates() == [datetime(2021, 3, 4, tzinfo=UTC), modified]
    sidecar.write_text("a.md: {updated_at: 2025-01-02T03:04:05+01:00}\nb.md: {updated_at: 2025-02-03}\n")
    assert dates() == [datetime(2025, 1, 2, 2, 4, 5, tzinfo=UTC), datetime(2025, 2, 3, tzinfo=UTC)]


def test_a_single_stack_exchange_file_is_parsed_as_such_and_nothing_else_is_listed(tmp_path: Path) -> None:
    write(tmp_path, {"posts.json": '{"items": []}', "readme.md": "# Read me"})
    settings = StackExchangeSettings(id="so", domain=Domain.RESEARCH, path=tmp_path)
    source = STACKEXCHANGE.open(settings, OwnFiles(tmp_path / "var"))
    assert paths(source.list()) == ["posts.json"]
    with pytest.raises(DocumentError):
        source.parse(only(source), b'{"items": [')


# Sidecars ------------------------------------------------------------------------------------------------------------

SIDECAR = """\
"**/*.md": {tags: [handbook, internal], author: Team}
a.md:
  title: The Title
  url: https://example.org/a
  revision: 12
  author: Ada
  authors: [Ada, Grace]
  published: 2020-01-02
"""


def test_a_sidecar_says_what_the_file_does_not(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "# A\n\ntext\n", "docs/b.md": "# B\n\ntext\n", "c.txt": "c", "meta.yaml": SIDECAR})
    source = docs(tmp_path, metadata=tmp_path / "meta.yaml")
    a, c, b = source.list().entries
    document = source.parse(a, source.fetch(a))
    assert (document.title, document.url, document.revision) == ("The Title", "https://example.org/a", "12")
    assert document.metadata["author"] == "Ada"
    assert document.metadata["authors"] == ("Ada", "Grace")
    assert document.metadata["tags"] == ("handbook", "internal")
    assert document.metadata["published"] == "2020-01-02"
    assert "title" not in document.metadata
    other = source.parse(b, source.fetch(b))
    assert (other.title, other.metadata["author"]) == ("B", "Team")
    assert dict(c.metadata) == {}


def test_a_changed_record_opens_the_gate_of_its_file_only(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "a", "b.md": "b", "meta.json": '{"a.md": {"title": "One"}}'})
    source = docs(tmp_path, metadata=tmp_path / "meta.json")
    before = source.list().entries
    assert source.list().entries == before
    write(tmp_path, {"meta.json": '{"a.md": {"title": "Two"}}'})
    after = source.list().entries
    assert before[0].gate != after[0].gate
    assert before[1] == after[1]


def test_the_sidecar_is_no_document(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "a", "meta.json": "{}"})
    listing = FilesSource(ID, Domain.RESEARCH, tmp_path, metadata=tmp_path / "meta.json").list()
    assert paths(listing) == ["a.md"]
    assert reasons(listing) == {"meta.json": "metadata: of this source"}


@pytest.mark.parametrize(("name", "content", "found"), [
    ("m.yaml", "a.md: {title: x}\nb.md: {title: [}\n", "line 2"),
    ("m.json", '{"a.md": {"title": "x"},\n "b.md": }', "line 2"),
    ("m.yaml", "a.md: {title: x}\n\nb.md: text\n", r"'b\.md': found str"),
    ("m.yaml", "\na.md: {updated_at: yesterday}\n", r"'a\.md': updated_at is 'yesterday'"),
    ("m.yaml", "a.md: {updated_at: 2024-13-01}\n", "month must be in|expected a date such as"),
    ("m.yaml", "../a.md: {title: x}\n", r"'\.\./a\.md'"),
    ("m.yaml", "a.md: {tags: {x: 1}}\n", "tags holds a mapping"),
    ("m.yaml", "a.md: {title: [x]}\n", "expected text"),
    ("m.yaml", "- a.md\n", "it holds a list"),
    ("m.yaml", "x: &x [*x]\n", "."),
    ("m.yaml", "a.md: !!python/object/apply:os.system [ls]\n", "found list"),
    ("m.yaml", "[" * 5000, "."),
    ("m.json", "[" * 200_000, "."),
    ("m.json", '{"a.md": {"score": NaN}}', "finite"),
    ("m.yaml", b"a.md: {title: \xff}\n", "utf-8"),
])  # fmt: skip
def test_a_broken_sidecar_names_the_file_and_what_is_wrong(
    tmp_path: Path, name: str, content: str | bytes, found: str
) -> None:
    write(tmp_path, {"a.md": "a", name: content})
    with pytest.raises(SourceUnavailableError, match=found) as raised:
        docs(tmp_path, metadata=tmp_path / name).list()
    assert str(tmp_path / name) in str(raised.value)


@pytest.mark.parametrize(("name", "content", "groups"), [
    ("m.yaml", "a.md: {access: board}", [{"board"}]),
    ("m.yaml", "a.md: {Access: board}", [{"board"}]),
    ("m.yaml", "a.md: {'ACCESS ': [board]}", [{"board"}]),
    ("m.yaml", "a.md: {access: board}\na.md: {title: x}", [{"board"}]),
    ("m.yaml", "a.md: {access: board, access: guests}", [{"board"}, {"guests"}]),
    ("m.json", '{"a.md": {"access": "board", "access": "guests"}}', [{"board"}, {"guests"}]),
    ("m.json", '{"a.md": {"access": "board"}, "a.md": {}}', [{"board"}]),
    ("m.yaml", "'**': {access: board}\na.md: {access: guests}", [{"board"}, {"guests"}]),
    ("m.yaml", "a.md: {access: guests}\n'*.md': {Access: board}\n'a*': {title: x}", [{"board"}, {"guests"}]),
    ("m.yaml", "a.md: {access: }", [set()]),
    ("m.yaml", "a.md: {access: {group: board}}", [set()]),
    ("m.yaml", "a.md: {access: [board, 3]}", [set()]),
    ("m.yaml", "a.md: {title: x}", []),
])  # fmt: skip
def test_every_entry_of_a_sidecar_that_states_groups_counts(
    tmp_path: Path, name: str, content: str, groups: list[set[str]]
) -> None:
    write(tmp_path, {"a.md": "a", name: content})
    (entry,) = [each for each in docs(tmp_path, metadata=tmp_path / name).list().entries if each.path == "a.md"]
    assert list(map(set, read_rule(entry.metadata.get("access")))) == groups


def test_entries_of_a_sidecar_that_match_nothing_are_listed(tmp_path: Path) -> None:
    entries = ["A.md", "board", "*.{md,rst}", "b.md", "docs/**", "cafe\u0301.md"]
    content = json.dumps({entry: {"access": "board"} for entry in [*entries, "a.md", "*.md"]})
    write(tmp_path, {"a.md": "a", "caf\u00e9.md": "x", "meta.json": content})
    listing = docs(tmp_path, metadata=tmp_path / "meta.json").list()
    assert set(listing.unmatched) == set(entries)
    assert listing.notices == (
        "6 of the paths and globs in the metadata file match no document, such as '*.{md,rst}'; "
        "`nornweave status --access` lists them",
    )


def test_a_missing_sidecar_is_said(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailableError, match="No such file"):
        docs(tmp_path, metadata=tmp_path / "nope.yaml").list()


def test_versions_name_the_parsers(tmp_path: Path) -> None:
    assert "pymupdf-" in docs(tmp_path).version
    assert docs(tmp_path).version == docs(tmp_path / "elsewhere").version


def test_a_page_is_read_with_the_style_sheets_and_programs_beside_it(tmp_path: Path) -> None:
    page = (
        '<html><head>\n<link rel="stylesheet" href="../look/s.css?v=2">\n'
        "<link rel=stylesheet media=print href=/p.css>\n"
        "<link rel=stylesheet href=https://example.org/x.css><script src='/a.js'></script></head>\n"
        "<p class=a>no1</p><p class='b x'>yes1</p><p id=c>yes2</p><p class=d>yes3</p>\n</html>\n"
    )
    sheet = ".a, .z {display: none; margin: 0}\n.b{display:none}\n@media print {.d{display:none}}\n"
    write(
        tmp_path / "pages", {"docs/i.html": page, "look/s.css": sheet, "p.css": "#c{display:none}", "a.js": "on('b')"}
    )
    write(tmp_path, {"out.css": ".d{display:none}"})
    source = docs(tmp_path / "pages")
    read = source.fetch(only(source)).decode()
    assert read.count("\n") == page.count("\n") and "margin" not in read and ".z" not in read
    assert re.findall(r"\b(?:yes|no)\d", shown_text(read, "html")) == ["yes1", "yes2", "yes3"]
    above = page.replace("../look/s.css?v=2", "../../out.css")
    write(tmp_path / "pages", {"docs/i.html": above, "big.js": "x" * (MAX_OWN_BYTES + 1)})
    assert source.fetch(only(source)).decode() == above.replace("<script src='/a.js'>", "<script>b"), (
        "above the root is nothing"
    )
    write(tmp_path / "pages", {"docs/i.html": page.replace("/a.js", "/big.js")})
    assert "yes1" in shown_text(source.fetch(only(source)).decode(), "html"), "a program that is not known may show all"
