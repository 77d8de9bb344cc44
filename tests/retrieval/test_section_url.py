from __future__ import annotations

import pytest

from nornweave.retrieval.section_url import section_url


@pytest.mark.parametrize(
    ("url", "metadata", "expected"),
    [
        ("https://x.org/a", {"anchor": "install"}, "https://x.org/a#install"),
        ("https://x.org/a", {"anchor": "größe 1"}, "https://x.org/a#gr%C3%B6%C3%9Fe%201"),
        ("https://x.org/a", {"anchor": "append(java.lang.Object[])"}, "https://x.org/a#append(java.lang.Object%5B%5D)"),
        ("https://x.org/a", {}, "https://x.org/a"),
        ("https://x.org/a#b", {"anchor": "c"}, "https://x.org/a#b"),
        (None, {"anchor": "c"}, None),
    ],
)
def test_a_passage_is_opened_at_its_section(url: str | None, metadata: dict[str, str], expected: str | None) -> None:
    assert section_url(url, metadata) == expected
