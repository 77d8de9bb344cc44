"""The file of tokens: what ``nornweave token`` writes is what is read; nothing of a secret is repeated."""

import json
from datetime import UTC, date, datetime
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nornweave.connect.connectors import load_settings
from nornweave.core.access import (
    NOBODY,
    decode_rule,
    encode_rule,
    hash_of,
    is_met,
    line_of,
    new_token,
    read_rule,
    read_statement,
    read_tokens,
)
from nornweave.core.errors import ConfigError

GROUP_LISTS = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=3)
VALUES = st.one_of(st.none(), st.sampled_from(["a", "", " b "]), GROUP_LISTS, st.integers(), st.just([3]))


def test_a_line_is_read_back(tmp_path: Path) -> None:
    token = new_token()
    assert token != new_token() and len(token) > 40
    line = line_of(token, ["staff", "größe: #1"], name='al "ice"', expires=date(2027, 1, 31))
    assert token not in line
    (tmp_path / "tokens.yaml").write_text(f"# ours\n{line}\n{line_of('x', [])}\n", encoding="utf-8")
    read = read_tokens(tmp_path / "tokens.yaml")
    entry = read[hash_of(token)]
    assert (entry.groups, entry.name) == ({"staff", "größe: #1"}, 'al "ice"')
    assert entry.is_valid(datetime(2027, 1, 31, 23, tzinfo=UTC))
    assert not entry.is_valid(datetime(2027, 2, 1, tzinfo=UTC))
    assert read[hash_of("x")].groups == frozenset()


def test_a_list_of_groups_is_enough(tmp_path: Path) -> None:
    file = tmp_path / "tokens.yaml"
    file.write_text(f"{hash_of('one')}: [staff]\n{hash_of('two').upper().replace('SHA', 'sha')}: []\n")
    assert {entry.groups for entry in read_tokens(file).values()} == {frozenset({"staff"}), frozenset()}
    file.write_text(f'"{sha256(b"three").hexdigest()}": [board]')
    assert read_tokens(file)[hash_of("three")].groups == {"board"}
    file.write_text("")
    assert read_tokens(file) == {}


@pytest.mark.parametrize("text", [
    "nw_secret: [staff]", "- nw_secret", "nw_secret", f"{hash_of('x')}: staff", f"{hash_of('x')}: [3]",
    f"{hash_of('x')}: {{group: [staff]}}", f"{hash_of('x')}: {{groups: [''], name: x}}", "{nw_secret",
    f"{hash_of('x')}: {{groups: [a], expires: soon}}", "\x00nw_secret", "!!python/object:os.system nw_secret",
])  # fmt: skip
def test_a_broken_file_is_refused_and_its_secrets_are_not_repeated(tmp_path: Path, text: str) -> None:
    file = tmp_path / "tokens.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match="nornweave token") as raised:
        read_tokens(file)
    assert "nw_secret" not in str(raised.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_tokens(tmp_path / "tokens.yaml")


@given(values=st.lists(VALUES, max_size=3), groups=st.frozensets(st.sampled_from(["a", "b", "c", "d"])))
def test_a_rule_is_met_by_who_meets_every_statement(values: list[object], groups: frozenset[str]) -> None:
    rule = read_rule(*values)  # type: ignore[arg-type]
    each = [read_statement(value) for value in values]  # type: ignore[arg-type]
    assert is_met(rule, groups) == all(one is None or bool(one & groups) for one in each)
    assert set(decode_rule(encode_rule(rule))) == set(rule)
    assert not is_met((*rule, NOBODY), groups)


@pytest.mark.parametrize("stored", ["3", "{}", '["a"]', '"a"'])
def test_a_rule_that_nobody_wrote_is_an_error(stored: str) -> None:
    with pytest.raises(ValueError, match="no rule"):
        decode_rule(stored)


def test_paths_of_the_configuration_are_relative_to_it(tmp_path: Path) -> None:
    oidc = {"issuer": "https://login.example.org", "audience": "nornweave", "jwks": "keys.json"}
    file = tmp_path / "nornweave.yaml"
    file.write_text(json.dumps({"access": {"tokens": "./tokens.yaml", "oidc": oidc}}))
    access = load_settings(file, {}).access
    assert access is not None and access.oidc is not None
    assert (access.tokens, access.oidc.jwks) == (tmp_path / "tokens.yaml", str(tmp_path / "keys.json"))
    assert access.oidc.audience == ("nornweave",)
    for broken in ({}, {"operators": ["x"]}, {"tokens": "t", "unknown": 1}, {"oidc": {"issuer": "https://x"}}):
        file.write_text(json.dumps({"access": broken}))
        with pytest.raises(ConfigError, match="access"):
            load_settings(file, {})
