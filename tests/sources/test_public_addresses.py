"""What came over HTTP asks hosts that everybody reaches, and no others; a token goes to the host that it is for."""

import http.server
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from nornweave.connect.connectors import ConfluenceSettings, GithubSettings
from nornweave.connect.git.address import parse_address
from nornweave.connect.git.network import Network
from nornweave.connect.mirror.api_client import ApiClient, Limits
from nornweave.core.errors import SourceUnavailableError
from nornweave.core.network import is_public, public_addresses
from nornweave.core.types import Domain

PRIVATE = (
    *("127.0.0.1", "127.9.9.9", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1"),
    *("100.100.100.200", "168.63.129.16", "224.0.0.1", "240.0.0.1", "255.255.255.255", "192.0.2.1", "::1", "::"),
    *("fe80::1", "fe80::1%eth0", "fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1", "::ffff:a9fe:a9fe", "::127.0.0.1"),
    *("64:ff9b::7f00:1", "64:ff9b:1::1", "::ffff:0:10.0.0.1", "2002:7f00:1::", "2001::1", "2001:db8::1"),
)
PUBLIC = ("8.8.8.8", "185.199.108.153", "2606:4700::1111", "64:ff9b::808:808", "::ffff:8.8.8.8")


def test_which_addresses_everybody_reaches() -> None:
    assert [address for address in PRIVATE if is_public(address)] == []
    assert [address for address in PUBLIC if not is_public(address)] == []


@pytest.fixture
def server() -> Iterator[tuple[int, list[str]]]:
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        yield served.server_port, asked
        served.shutdown()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0x7f.1", "2130706433", "[::ffff:127.0.0.1]"])
def test_a_host_of_this_machine_is_not_even_connected_to(
    server: tuple[int, list[str]], host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, asked = server
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{port}")
    client = ApiClient(f"http://{host}:{port}/", public_only=True, limits=Limits(attempts=1))
    with pytest.raises(SourceUnavailableError, match="only addresses that everybody reaches"):
        client.get("x")
    monkeypatch.delenv("HTTP_PROXY")
    assert ApiClient(f"http://127.0.0.1:{port}/").get("x").json() == {}
    assert asked == ["/x"]


def test_a_name_that_leads_elsewhere_a_moment_later_is_sent_nothing(
    server: tuple[int, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    port, asked = server
    answers = iter(["8.8.8.8", "127.0.0.1", "127.0.0.1"])

    def resolve(_host: str, port: int | None, *_: object, **__: object) -> list[object]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(answers), port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    client = ApiClient(f"http://rebinds.example.org:{port}/", public_only=True, limits=Limits(attempts=1))
    with pytest.raises(SourceUnavailableError, match="only addresses that everybody reaches"):
        client.get("x")
    assert asked == []


def test_git_asks_the_addresses_that_were_looked_at_and_logs_in_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nornweave.connect.git.network.public_addresses", lambda _: ("8.8.8.8", "2606:4700::1111"))
    monkeypatch.setattr("nornweave.connect.git.network.user_settings", lambda: (("credential.helper", "store"),))
    monkeypatch.setenv("GIT_SSL_KEY", "/home/key.pem")
    told = Network(parse_address("https://git.example.org/x.git"), public_only=True)._environment((), is_local=False)
    settings = {
        told[f"GIT_CONFIG_KEY_{n}"]: told[f"GIT_CONFIG_VALUE_{n}"] for n in range(int(told["GIT_CONFIG_COUNT"]))
    }
    assert settings["http.curloptResolve"] == "git.example.org:443:8.8.8.8,[2606:4700::1111]"
    assert (told["HOME"], told["NO_PROXY"]) == (os.devnull, "*")
    assert not {"credential.helper", "GIT_SSL_KEY"} & {*settings, *told}
    for url in ("https://127.0.0.1/x.git", "https://localhost/x.git", "https://[::1]/x.git"):
        monkeypatch.setattr("nornweave.connect.git.network.public_addresses", public_addresses)
        with pytest.raises(SourceUnavailableError, match="only addresses that everybody reaches"):
            Network(parse_address(url), public_only=True).list_refs("HEAD")


def test_a_token_of_the_environment_goes_to_the_host_that_it_is_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_x")
    monkeypatch.setenv("ATLASSIAN_TOKEN", "atl_x")
    monkeypatch.setenv("OTHER", "oth_x")
    github = {"id": "g", "domain": Domain.CONVERSATIONS, "repository": "a/b"}
    site = {"id": "c", "domain": Domain.DOCUMENTATION}
    for settings, token in (
        (GithubSettings(**github), "ghp_x"),
        (GithubSettings(**github, api_url="https://api.github.com/"), "ghp_x"),
        (GithubSettings(**github, api_url="https://API.GITHUB.com:443"), "ghp_x"),
        (GithubSettings(**github, api_url="https://api.github.com.evil.example/"), None),
        (GithubSettings(**github, api_url="https://api.github.com@evil.example/"), None),
        (GithubSettings(**github, api_url="http://127.0.0.1:1/"), None),
        (GithubSettings(**github, api_url="https://[bad/"), None),
        (GithubSettings(**github, api_url="https://ghe.example.org/api/v3", token_env="OTHER"), "oth_x"),
        (ConfluenceSettings(**site, url="https://team.atlassian.net/wiki"), "atl_x"),
        (ConfluenceSettings(**site, url="https://api.atlassian.com/ex/confluence/1"), "atl_x"),
        (ConfluenceSettings(**site, url="https://evil-atlassian.net/"), None),
        (ConfluenceSettings(**site, url="https://atlassian.net.evil.example/"), None),
        (ConfluenceSettings(**site, url="https://evil.example/", token_env="ATLASSIAN_TOKEN"), "atl_x"),
    ):
        assert settings.token == token, settings


def test_a_proxy_of_the_environment_is_no_way_around(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(socket.AF_INET, 1, 6, "", ("10.0.0.1", 443))])
    client = ApiClient("https://inner.example.org/", public_only=True, limits=Limits(attempts=1))
    with pytest.raises(SourceUnavailableError, match=r"inner\.example\.org: only addresses"):
        client.get("x")
