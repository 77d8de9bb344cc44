"""Proxies of the environment: one that cannot be used, or does not answer, is named, and never its password."""

import socket

import pytest

from nornweave.connect.mirror.api_client import AnswerError, ApiClient, Limits
from nornweave.core.network import through_proxy, unusable_proxy

VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
URL = "http://docs.example.org/api"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return monkeypatch


@pytest.mark.parametrize(("variables", "wrong", "through"), [
    ({}, "", ""),
    ({"HTTP_PROXY": "http://me:secret@proxy:3128"}, "", "; through the proxy proxy:3128 that HTTP_PROXY names"),
    ({"http_proxy": "proxy:3128"}, "", "; through the proxy proxy:3128 that HTTP_PROXY names"),
    ({"HTTPS_PROXY": "http://proxy:3128"}, "", ""),
    ({"ALL_PROXY": "socks5h://me:secret@proxy:1080"}, "ALL_PROXY names a proxy of the kind socks5h (proxy:1080)",
     "; through the proxy proxy:1080 that ALL_PROXY names"),
    ({"ALL_PROXY": "socks5://proxy:1080", "NO_PROXY": "example.org"}, "", ""),
])  # fmt: skip
def test_which_proxy_an_address_is_asked_through(
    environment: pytest.MonkeyPatch, variables: dict[str, str], wrong: str, through: str
) -> None:
    for name, value in variables.items():
        environment.setenv(name, value)
    assert unusable_proxy(URL).partition(";")[0] == wrong
    assert through_proxy(URL) == through


def test_errors_of_sources_name_the_proxy(environment: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        dead = f"127.0.0.1:{bound.getsockname()[1]}"
    environment.setenv("HTTP_PROXY", f"http://me:secret@{dead}")
    with pytest.raises(AnswerError, match=f"through the proxy {dead} that HTTP_PROXY names") as caught:
        ApiClient(URL, limits=Limits(attempts=1)).get("x")
    assert "secret" not in str(caught.value)
    environment.setenv("ALL_PROXY", "socks5h://proxy:1080")
    with pytest.raises(AnswerError, match="of the kind socks5h"):
        ApiClient(URL, limits=Limits(attempts=1)).get("x")
    environment.setenv("NO_PROXY", "127.0.0.1")
    with pytest.raises(AnswerError, match=r"no answer \(ConnectError\)"):
        ApiClient(f"http://{dead}", limits=Limits(attempts=1)).get("x")
