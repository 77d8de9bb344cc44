"""Sources are added to nornweave.yaml and removed; everything else in the file stays as a person wrote it."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from nornweave.connect.connectors import load_settings
from nornweave.connect.edit import add_source, remove_source, with_source, without_source
from nornweave.core.errors import ConfigError

NEW = {"id": "new", "domain": "documentation", "type": "files", "path": "./docs", "include": ["**/*.md", "a: b # c"]}
WEB = {"domain": "documentation", "type": "web"}
LAYOUTS = (
    "",
    "# nothing yet\n",
    "data_dir: ./var\n",
    "data_dir: x\nsources: []   # none\nfusion: {}\n",
    "sources:\n  - {id: a, domain: code, path: x}   # a\n  # - {id: later}\n\nfusion: {}\n",
    "sources:\n- id: a\n  include:\n    - '**/*.py'\n  # end of a\n- id: b\n  domain: code\nfusion: {}\n",
    "sources:\n  - id: a\n    domain: code",
    "sources:\n  - id: a\n    note: |\n      long\n\n      text\n\n# the end\n",
)


@pytest.mark.parametrize("text", LAYOUTS)
def test_a_source_comes_and_goes_and_nothing_else_changes(text: str) -> None:
    before = yaml.safe_load(text) or {}
    sources = list(before.get("sources") or [])
    added = with_source(text, NEW, "added by a test")
    assert yaml.safe_load(added) == {**before, "sources": [*sources, NEW]}
    assert all(line in added for line in text.splitlines() if line.lstrip().startswith("#"))
    assert yaml.safe_load(without_source(added, "new")) == {**before, "sources": sources}
    for source in sources:
        left = [each for each in [*sources, NEW] if each is not source]
        assert yaml.safe_load(without_source(added, source["id"])) == {**before, "sources": left}


# Other signs of a line break are refused, never written wrongly.
TEXTS = st.text(st.characters(blacklist_categories=("C", "Z")) | st.just(" "), max_size=8)


@given(st.lists(st.dictionaries(st.sampled_from(("path", "url", "access")), TEXTS), max_size=4))
def test_any_list_of_sources_can_be_edited(keys: list[dict[str, str]]) -> None:
    sources = [{"id": f"s{number}", **each} for number, each in enumerate(keys)]
    text = yaml.safe_dump({"data_dir": "x", "sources": sources, "fusion": {}}, default_flow_style=False)
    assert yaml.safe_load(with_source(text, NEW, "")) == {"data_dir": "x", "sources": [*sources, NEW], "fusion": {}}
    for source in sources:
        left = [each for each in sources if each is not source]
        assert yaml.safe_load(without_source(text, source["id"]))["sources"] == left


def test_sources_in_one_line_are_left_to_a_person() -> None:
    for text in ("sources: [{id: a}, {id: b}]\n", "{sources: []}\n"):
        with pytest.raises(ConfigError, match="edit it by hand"):
            with_source(text, NEW, "")
    with pytest.raises(ConfigError, match="edit it by hand"):
        without_source("sources: [{id: a}]\n", "a")


def test_a_source_that_cannot_be_read_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "nornweave.yaml"
    (tmp_path / "docs").mkdir()
    docs = {"id": "docs", "domain": "documentation", "type": "files", "path": "docs"}
    assert [source.id for source in add_source(file, docs).sources] == ["docs"]
    text = file.read_text(encoding="utf-8")
    for wrong, problem in (
        ({**docs, "id": "other"}, "is there already as 'docs'"),
        ({**docs, "path": "nowhere"}, "used twice"),
        ({**docs, "id": "other", "path": "nowhere"}, "does not exist"),
        ({**docs, "id": "other", "tpye": "files"}, "tpye"),
        ({**docs, "id": "NO"}, "id"),
    ):
        with pytest.raises(ConfigError, match=problem):
            add_source(file, wrong)
    with pytest.raises(ConfigError, match="no source has the id 'x'"):
        remove_source(file, "x")
    assert file.read_text(encoding="utf-8") == text
    assert [path.name for path in tmp_path.iterdir() if path.is_file() and path.suffix != ".lock"] == ["nornweave.yaml"]
    assert remove_source(file, "docs").sources == load_settings(file).sources == ()


def test_what_is_added_at_the_machine_has_the_same_keys_and_can_be_opened(tmp_path: Path) -> None:
    file = tmp_path / "nornweave.yaml"
    (tmp_path / "docs").mkdir()
    docs = {"id": "docs", "domain": "documentation", "type": "files", "path": "docs"}
    for keys, problem in (
        ({**docs, "metadata": "docs/x.yaml"}, "metadata: is not offered"),
        ({**docs, "include": ["[!"]}, "not a glob"),
        ({"id": "g", "domain": "conversations", "type": "github", "repository": "a/b"}, "repository: is not offered"),
        (
            {"id": "w", "domain": "documentation", "type": "web", "url": "https://h/", "prefix": "https://o/"},
            "another host",
        ),
        ({**docs, "path": "~nobody-here/x"}, "no home folder"),
    ):
        with pytest.raises(ConfigError, match=problem):
            add_source(file, keys)
    assert not file.exists()
    add_source(file, {"id": "g", "domain": "code", "type": "git", "url": "git@git.example.org:team/api.git"})
    assert "public_addresses_only" not in file.read_text(encoding="utf-8")
