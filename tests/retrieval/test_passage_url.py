"""Addresses of files become addresses of passages."""

from __future__ import annotations

import pytest

from nornweave.retrieval.passage_url import passage_url

COMMIT = "0123456789" * 4


@pytest.mark.parametrize(
    ("url", "lines", "expected"),
    [
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
    ],
)
def test_lines_are_named_as_the_host_names_them(url: str, lines: tuple[int, int], expected: str) -> None:
    address = url.format(COMMIT)
    assert passage_url(address, lines) == address + expected


@pytest.mark.parametrize(
    "url",
    [
        None,
        "https://docs.example.org/guide/",
        "https://example.slack.com/archives/C1/p1",
        "https://github.com/o/r/issues/1",
        "https://github.com/o/r/blob/main/a.py",
        f"https://github.com/o/r/blob/{COMMIT}/a.py?x=1",
        f"https://github.com/o/r/blob/{COMMIT}/a.py#L1",
        f"javascript:alert(1)//o/r/blob/{COMMIT}/a.py",
    ],
)
def test_other_addresses_stay(url: str | None) -> None:
    assert passage_url(url, (1, 2)) == url


def test_passages_without_lines_open_the_file() -> None:
    url = f"https://github.com/o/r/blob/{COMMIT}/a.pdf"
    assert passage_url(url, None) == url
