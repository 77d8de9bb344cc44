"""Who is in which principal: chains of grants, the bound, what is not said, names that nobody may take."""

import json
from collections.abc import Mapping
from math import inf
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

from nornweave.core.access import (
    NOBODY,
    RIGHTS,
    account,
    is_principal,
    line_of,
    read_statement,
    read_tokens,
    rule_of,
    storable_groups,
)
from nornweave.core.errors import ConfigError
from nornweave.core.membership import (
    Grant,
    Memberships,
    MembershipTable,
    membership_file,
    read_members,
    read_table,
    write_table,
)

NOW, HOUR = 1_800_000_000.0, 3_600.0
ANN, BEN = account("email", "Ann@Example.org"), account("email", "ben@example.org")


def said(
    folder: Path, grants: Mapping[str, set[str]], *, source: str = "chat", at: float = NOW, origin: str = "x"
) -> None:
    read = [Grant(principal=name, members=frozenset(members)) for name, members in grants.items()]
    write_table(membership_file(folder, source), MembershipTable(origin=origin, tried_at=at).read_again(read, at))


def memberships(folder: Path, *sources: str, now: float = NOW, file: Path | None = None) -> Memberships:
    return Memberships(folder, sources or ("chat",), file=file, max_age_s=24 * HOUR, now=lambda: now)


def test_chains_are_followed_and_circles_end(tmp_path: Path) -> None:
    said(tmp_path, {
        "slack:user:U1": {ANN}, "slack:channel:C1": {"slack:user:U1"}, "slack:channel:C2": {"slack:channel:C1"},
        "slack:channel:C1x": {"slack:channel:C2"}, "slack:channel:C3": {"slack:channel:C3", "slack:user:U2"},
        "slack:channel:OPEN": {"*"}, "slack:channel:STAFF": {"group:staff"},
    })  # fmt: skip
    known = memberships(tmp_path)
    hers = {"slack:user:U1", "slack:channel:C1", "slack:channel:C2", "slack:channel:C1x", "slack:channel:OPEN"}
    assert known.expanded([ANN]) == {ANN, *hers}
    assert known.expanded([BEN]) == {BEN, "slack:channel:OPEN"}
    assert known.expanded(["staff"]) == {"staff", "slack:channel:OPEN", "slack:channel:STAFF"}
    assert known.expanded([], ["slack:user:U2"]) == {"slack:user:U2", "slack:channel:C3", "slack:channel:OPEN"}
    assert known.reached([ANN])["slack:channel:C2"].member == "slack:channel:C1"


@pytest.mark.parametrize("name", [
    "slack:channel:C1", "slack:user:U1", "github:repo:acme/x", "confluence:space:ENG", "atlassian:user:5:x",
    "account:email:ann@example.org",
])  # fmt: skip
def test_nobody_is_in_a_principal_because_a_token_names_it(tmp_path: Path, name: str) -> None:
    said(tmp_path, {"slack:channel:OPEN": {"*"}, "slack:channel:C9": {name}})
    if not name.startswith("account:"):
        assert memberships(tmp_path).expanded([name]) == {"slack:channel:OPEN"}
        assert storable_groups([name, "board", ANN]) == {"board", ANN}
    file = tmp_path / "tokens.yaml"
    file.write_text(line_of("secret", ["staff", name]))
    with pytest.raises(ConfigError, match="only a membership says"):
        read_tokens(file)


@pytest.mark.parametrize(
    "name", ["slack", "slack:channel", "slack:channel:", "a:slack:channel:C1", "team:a:b", "Slack:user:U1"]
)
def test_names_of_groups_stay_groups(name: str) -> None:
    assert not is_principal(name)
    assert storable_groups([name]) == {name}


def test_a_token_proves_the_address_that_the_operator_wrote(tmp_path: Path) -> None:
    file = tmp_path / "tokens.yaml"
    file.write_text(line_of("secret", ["staff"]).replace("}", ', "email": " Ann@example.ORG"}'))
    (entry,) = read_tokens(file).values()
    assert entry.groups == {"staff", ANN}
    for wrong in ('"@"', "3", '"ann"', "[a@b]"):
        file.write_text(line_of("secret", ["staff"]).replace("}", f', "email": {wrong}}}'))
        with pytest.raises(ConfigError, match="'email' of entry 1"):
            read_tokens(file)


@pytest.mark.parametrize(
    ("age_h", "counts"), [(0, True), (23.9, True), (24, False), (9_999, False), (-0.05, True), (-1, False)]
)
def test_what_was_verified_too_long_ago_or_later_than_now_does_not_count(
    tmp_path: Path, age_h: float, counts: bool
) -> None:
    said(tmp_path, {"slack:channel:C1": {ANN}}, at=NOW - age_h * HOUR)
    assert ("slack:channel:C1" in memberships(tmp_path).expanded([ANN])) is counts


def test_what_is_not_said_again_stays_until_the_bound_and_what_is_left_out_is_gone(tmp_path: Path) -> None:
    first = MembershipTable(origin="x", tried_at=0).read_again(
        [Grant(principal=f"slack:channel:{each}", members=frozenset({ANN})) for each in "ABC"], NOW
    )
    again = first.read_again(
        [
            Grant(principal="slack:channel:A", members=frozenset({BEN})),
            Grant(principal="slack:channel:B", unread="not_in_channel"),
            Grant(principal="slack:channel:D", unread="not_in_channel"),
        ],
        NOW + HOUR,
    )
    assert again.problems == ("slack:channel:B: not_in_channel", "slack:channel:D: not_in_channel")
    assert {name: (grant.members, grant.verified_at) for name, grant in again.grants.items()} == {
        "slack:channel:A": ((BEN,), NOW + HOUR), "slack:channel:B": ((ANN,), NOW),
    }  # fmt: skip
    failed = again.not_read("it is down", NOW + 2 * HOUR)
    assert (failed.grants, failed.problems) == (again.grants, ("it is down",))
    write_table(membership_file(tmp_path, "chat"), failed)
    assert read_table(membership_file(tmp_path, "chat")) == failed
    assert memberships(tmp_path, now=NOW + 23.5 * HOUR).expanded([ANN]) == {ANN, "slack:channel:B"}
    assert memberships(tmp_path, now=NOW + 24.5 * HOUR).expanded([ANN]) == {ANN}
    assert memberships(tmp_path, now=NOW + 24.5 * HOUR).expanded([BEN]) == {BEN, "slack:channel:A"}


def test_two_services_of_one_name_let_nobody_in_and_two_sources_of_one_service_say_it_newest(tmp_path: Path) -> None:
    eng = "confluence:space:ENG"
    said(tmp_path, {eng: {ANN}}, source="a", at=NOW - HOUR)
    said(tmp_path, {eng: {BEN}}, source="b")
    known = memberships(tmp_path, "a", "b")
    assert (eng in known.expanded([ANN]), eng in known.expanded([BEN])) == (False, True)
    said(tmp_path, {eng: {BEN}, "atlassian:user:1": {BEN}}, source="b", origin="another site")
    said(tmp_path, {eng: {ANN}, "atlassian:user:1": {BEN}}, source="a")
    known = memberships(tmp_path, "a", "b")
    assert known.expanded([ANN]) == {ANN}
    assert known.expanded([BEN]) == {BEN, "atlassian:user:1"}
    assert memberships(tmp_path, "a").expanded([ANN]) == {ANN, eng}, "only sources that are configured count"


def test_a_file_that_is_damaged_lets_nobody_in_and_is_read_again_when_it_changes(tmp_path: Path) -> None:
    said(tmp_path, {"slack:channel:C1": {ANN}})
    members = tmp_path / "members.yaml"
    members.write_text("members: {ann@example.org: github:repo:acme/x}")
    known = memberships(tmp_path, file=members)
    everything = {ANN, "slack:channel:C1", "github:repo:acme/x"}
    assert known.expanded([ANN]) == everything
    for wrong, line in (
        ("members: {ann@example.org: [board]}", ":1: 'ann"), ("members:\n  ann@example.org: [", ":2: is not YAML"),
        ("- a", ": expected the keys"), ("\nmembers:\n\n  ann: slack:channel:C1", ":4: 'ann'"), ("member: {}", ": exp"),
        ("members: {}\nverified_at: soon", ":2: verified_at"), ("members: {3: slack:channel:C1}", ":1: 3: expected"),
        ("members:\n  ben@example.org: []\n  ann@example.org:\n  - board", ":3: 'ann@example.org'"),
    ):  # fmt: skip
        members.write_text(wrong)
        with pytest.raises(ConfigError) as refused:
            read_members(members)
        assert str(refused.value).startswith(f"{members}{line}")
        assert known.expanded([ANN]) == {ANN, "slack:channel:C1"}
    members.unlink()
    membership_file(tmp_path, "chat").write_text("{}")
    assert known.expanded([ANN]) == {ANN}
    said(tmp_path, {"slack:channel:C1": {ANN}})
    members.write_text("members: {ANN@example.org: [github:repo:acme/x]}")
    assert known.expanded([ANN]) == everything


def test_the_operators_file_names_people_groups_and_accounts(tmp_path: Path) -> None:
    file = tmp_path / "members.yaml"
    named = {
        "ann@example.org": ["github:user:ann"], " Ann@Example.org": "slack:user:U1",
        "group: staff": ["jira:project:PAY"], "github:user:ann": ["github:repo:acme/x"],
    }  # fmt: skip
    file.write_text(json.dumps({"members": named}))
    read, verified_at = read_members(file)
    assert read == {
        ANN: {"github:user:ann", "slack:user:U1"}, "group:staff": {"jira:project:PAY"},
        "github:user:ann": {"github:repo:acme/x"},
    }  # fmt: skip
    assert verified_at == inf
    known = memberships(tmp_path, file=file)
    assert known.expanded([ANN]) == {ANN, "github:user:ann", "slack:user:U1", "github:repo:acme/x"}
    file.write_text(f"verified_at: 2027-01-15T08:00:00Z\nmembers: {json.dumps(named)}\n")
    assert "github:user:ann" in memberships(tmp_path, file=file, now=NOW + 23 * HOUR).expanded([ANN])
    assert memberships(tmp_path, file=file, now=NOW + 25 * HOUR).expanded([ANN]) == {ANN}


def test_principals_that_no_source_has_are_named(tmp_path: Path) -> None:
    file = tmp_path / "members.yaml"
    file.write_text(json.dumps({"members": {
        "ann@example.org": ["slack:channel:c1", "github:user:ann", "jira:project:PAY"],
        "group:staff": ["slack:channel:C1", "confluence:space:ENG"],
        "github:user:ann": ["github:repo:acme/x"], "slack:user:U7": ["slack:channel:C1"],
    }}))  # fmt: skip
    configured = ["staff", "slack:channel:C1", "slack:channel:C9", "jira:project:PAY", "account:email:x@example.org"]
    known = memberships(tmp_path, "chat", "code", file=file)
    said(tmp_path, {"slack:channel:C1": {"slack:user:U1"}})
    assert not known.unknown(configured), "not all were asked yet"
    said(tmp_path, {"github:repo:acme/x": {"*"}}, source="code")
    expected = ["confluence:space:ENG", "slack:channel:C9", "slack:channel:c1", "slack:user:U7"]
    assert known.unknown(configured) == expected, "a public repository names no accounts"
    said(tmp_path, {"github:repo:acme/x": {"github:user:ben"}}, source="code")
    assert known.unknown(configured) == expected, "the file itself says what an account is for"
    file.write_text("members: {ann@example.org: github:user:ann, ben@example.org: github:user:Ben}")
    assert known.unknown(["github:repo:Acme/X"]) == ["github:repo:Acme/X", "github:user:ann"]
    assert Memberships(tmp_path, ()).unknown(configured) == ["jira:project:PAY", "slack:channel:C1", "slack:channel:C9"]


def test_without_what_the_source_says_nobody_sees_a_document() -> None:
    only, both = {"s": frozenset({RIGHTS})}, {"s": frozenset({RIGHTS, "board"})}
    channel = frozenset({"slack:channel:C1"})
    assert rule_of("s", (), only) == rule_of("s", (), {}, only) == (NOBODY,)
    assert rule_of("s", (channel,), only) == (channel,)
    assert rule_of("s", (channel,), both) == rule_of("s", (channel,), only, {"s": frozenset({"board"})}) == (
        channel, frozenset({"board"}),
    )  # fmt: skip
    assert rule_of("s", (frozenset({"staff"}),), only) == (frozenset({"staff"}), NOBODY)
    assert rule_of("s", (frozenset({"slack:channel:C1", "staff"}),), only)[-1] == NOBODY, "no statement of the source"
    assert rule_of("t", (), only) == ()
    assert read_statement(("slack:channel:C1",)) == channel


NAMES = [*(f"slack:channel:C{number}" for number in range(5)), *(f"slack:user:U{number}" for number in range(4))]
GRANTS = st.dictionaries(
    st.sampled_from(NAMES), st.sets(st.sampled_from([*NAMES, ANN, BEN, "group:staff", "*"]), max_size=3), max_size=9
)


@given(grants=GRANTS, names=st.sets(st.sampled_from([ANN, BEN, "staff", *NAMES])))
def test_somebody_is_in_what_a_search_over_all_grants_finds(
    tmp_path_factory: pytest.TempPathFactory, grants: dict[str, set[str]], names: set[str]
) -> None:
    folder = tmp_path_factory.mktemp("grants")
    said(folder, grants)
    reached = {"*"} | {f"group:{name}" if name == "staff" else name for name in names if name not in NAMES}
    for _ in NAMES:
        reached |= {name for name, members in grants.items() if members & reached}
    own = {name for name in names if name not in NAMES}
    assert memberships(folder).expanded(names) == own | (reached & set(NAMES))
