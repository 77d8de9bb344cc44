"""Addresses of files become addresses of passages."""

import pytest

from nornweave.ask.search.items import passage_url

COMMIT = "0123456789" * 4


@pytest.mark.parametrize(("url", "lines", "expected"), [
    ("https://github.com/o/r/blob/{}/a.py", (12, 40), "#L12-L40"),
    ("https://github.com/o/r/blob/{}/a.py", (12, 12), "#L12"),
    ("https://github.com/o/r/blob/{}/docs/a.md", (1, 2), "?plain=1#L1-L2"),
    ("https://github.com/o/r/blob/{}/docs/README", (1, 2), "#L1-L2"),
    ("https://gitlab.com/g/s/r/-/blob/{}/a.py", (12, 40), "#L12-40"),
    ("https://gitlab.com/g/s/r/-/blob/{}/a.md", (12, 40), "?plain=1#L12-40"),
    ("https://codeberg.org/o/r/src/commit/{}/a.py", (1, 2), "#L1-L2"),
    ("https://codeberg.org/o/r/src/commit/{}/a.md", (1, 2), "?display=source#L1-L2"),
    ("https://bitbucket.org/o/r/src/{}/a.py", (1, 2), "#lines-1:2"),
    ("https://git.example.org:8443/x/r/blob/{}/a.py", (1, 2), "#L1-L2"),
])  # fmt: skip
def test_lines_are_named_as_the_host_names_them(url: str, lines: tuple[int, int], expected: str) -> None:
    address = url.format(COMMIT)
    assert passage_url(address, {}, line_range=lines) == address + expected


@pytest.mark.parametrize("url", [
    None, "https://docs.example.org/guide/", "https://example.slack.com/archives/C1/p1",
    "https://github.com/o/r/issues/1", "https://github.com/o/r/blob/main/a.py",
    f"https://github.com/o/r/blob/{COMMIT}/a.py?x=1", f"https://github.com/o/r/blob/{COMMIT}/a.py#L1",
    f"javascript:alert(1)//o/r/blob/{COMMIT}/a.py",
])  # fmt: skip
def test_other_addresses_stay(url: str | None) -> None:
    assert passage_url(url, {}, line_range=(1, 2)) == url


def test_passages_without_lines_open_the_file() -> None:
    url = f"https://github.com/o/r/blob/{COMMIT}/a.pdf"
    assert passage_url(url, {}) == url


@pytest.mark.parametrize(("url", "metadata", "expected"), [
    ("https://x.org/a", {"anchor": "install"}, "https://x.org/a#install"),
    ("https://x.org/a", {"anchor": "größe 1"}, "https://x.org/a#gr%C3%B6%C3%9Fe%201"),
    ("https://x.org/a", {"anchor": "append(java.lang.Object[])"}, "https://x.org/a#append(java.lang.Object%5B%5D)"),
    ("https://x.org/a", {}, "https://x.org/a"),
    ("https://x.org/a#b", {"anchor": "c"}, "https://x.org/a#b"),
    (None, {"anchor": "c"}, None),
])  # fmt: skip
def test_a_passage_is_opened_at_its_section(url: str | None, metadata: dict[str, str], expected: str | None) -> None:
    assert passage_url(url, metadata) == expected


SLACK = {
    "permalink": "https://team.slack.com/archives/C1/p{digits}",
    "thread_permalink": "https://team.slack.com/archives/C1/p{digits}?thread_ts={thread_id}&cid=C1",
}


@pytest.mark.parametrize(("metadata", "identifier", "expected"), [
    (SLACK, "1705412345.000100", "https://team.slack.com/archives/C1/p1705412345000100"),
    (
        {**SLACK, "thread_id": "1705412345.000100"},
        "1705412399.000200",
        "https://team.slack.com/archives/C1/p1705412399000200?thread_ts=1705412345.000100&cid=C1",
    ),
    (
        {**SLACK, "thread_id": "1705412345.000100"},
        "1705412345.000100",
        "https://team.slack.com/archives/C1/p1705412345000100",
    ),
    (
        {"permalink": "https://x.org/browse/A-1?focusedCommentId={id}"},
        "77",
        "https://x.org/browse/A-1?focusedCommentId=77",
    ),
    ({"permalink": "https://x.org/?id={id}"}, "7&x=1#", "https://x.org/?id=7%26x%3D1%23"),
    ({"permalink": "javascript:alert({id})"}, "7", "https://x.org/page"),
    ({}, "7", "https://x.org/page"),
])  # fmt: skip
def test_messages_are_opened_where_they_were_said(metadata: dict[str, str], identifier: str, expected: str) -> None:
    assert passage_url("https://x.org/page", metadata, line_range=(1, 2), message_ids=[identifier]) == expected
