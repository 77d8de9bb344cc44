from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from nornweave.claims.config import config_claims, config_syntax
from nornweave.claims.passage import Passage
from nornweave.types import Claim

PAYMENTS = """\
# Production settings.
service:
  name: payments
  api_version: v2.1
  port: 8080

features:
  three_d_secure_enabled: false   # off until the pilot ends
  refunds_enabled: yes

idempotency: {ttl_hours: 48, backend: redis}

webhooks:
  timeout_seconds: 10
  retention:
    days: 30
  description: |
    timeout: 99
  endpoints:
    - name: a
      retries: 3

services:
  ledger:
    owner: finance-engineering
"""


def claims(text: str, syntax: str, path: str = "config/app.yaml") -> list[Claim]:
    return config_claims(Passage(text=text, domain="code", path=path), syntax)


def told(text: str, syntax: str) -> set[tuple[str, str, str, str | None]]:
    return {(claim.entity, claim.attribute, claim.value, claim.unit) for claim in claims(text, syntax)}


def test_yaml_takes_its_entities_from_the_keys_above() -> None:
    assert told(PAYMENTS, "yaml") == {
        ("api", "version", "2.1", None),
        ("service", "port", "8080", None),
        ("secure", "enabled", "off", None),
        ("refunds", "enabled", "on", None),
        ("idempotency", "lifetime", "172800", "s"),
        ("webhooks", "timeout", "10", "s"),
        ("webhooks", "lifetime", "2592000", "s"),
        ("endpoints", "retries", "3", None),
        ("ledger", "owner", "finance engineering", None),
    }


def test_kinds() -> None:
    kinds = {claim.attribute: claim.kind for claim in claims(PAYMENTS, "yaml")}
    assert kinds["owner"] == "owner" and kinds["enabled"] == "switch"
    assert kinds["version"] == "version" and kinds["timeout"] == "number"


@given(st.integers(0, len(PAYMENTS)), st.integers(0, len(PAYMENTS)))
def test_a_chunk_may_be_cut_anywhere(one: int, other: int) -> None:
    start, end = sorted((one, other))
    text = PAYMENTS[start:end]
    for claim in config_claims(Passage(text=text, start=start, domain="code", path="app.yaml"), "yaml"):
        assert start <= claim.span.start < claim.span.end <= end
        assert claim.statement and claim.statement in " ".join(text.split())


def test_the_scanner_reads_what_a_yaml_parser_reads() -> None:
    """The oracle: PyYAML's own marks."""
    places = set()

    def walk(node: yaml.Node) -> None:
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if isinstance(value, yaml.ScalarNode) and value.style not in {"|", ">"}:
                    places.add((key.start_mark.index, value.end_mark.index))
                walk(value)
        elif isinstance(node, yaml.SequenceNode):
            for value in node.value:
                walk(value)

    root = yaml.compose(PAYMENTS, Loader=yaml.SafeLoader)
    assert root is not None
    walk(root)
    spans = {(claim.span.start, claim.span.end) for claim in claims(PAYMENTS, "yaml")}
    assert spans and spans <= places


@pytest.mark.parametrize(
    ("syntax", "text", "expected"),
    [
        ("toml", "[server.http]\nread_timeout_ms = 1_500  # each\n", ("read", "timeout", "1.5", "s")),
        (
            "toml",
            'pool = {max_connections = 20}\n[project]\nversion = "1.2.3"\n',
            ("project", "version", "1.2.3", None),
        ),
        ("ini", "[cache]\nttl = 15m\n", ("cache", "lifetime", "900", "s")),
        ("ini", "export HTTP_MAX_RETRIES=4\n", ("http", "retries", "4", None)),
        ("ini", "spring.servlet.multipart.max-file-size=10MB\n", ("file", "size_limit", "10000000", "byte")),
        ("ini", "FEATURE_OAUTH_ENABLED=false\n", ("feature oauth", "enabled", "off", None)),
        ("json", '{"webhook": {"timeoutMs": 2000}}', ("webhook", "timeout", "2", "s")),
        ("json", '"retries": 3}, "x": [1, 2]', ("app", "retries", "3", None)),
        (
            "dockerfile",
            "FROM registry.example/library/python:3.12-slim AS build\n",
            ("python", "version", "3.12", None),
        ),
        ("dockerfile", "EXPOSE 8080/tcp\n", ("app", "port", "8080", None)),
        ("dockerfile", "HEALTHCHECK --interval=10s CMD x\n", ("healthcheck", "interval", "10", "s")),
        ("dockerfile", "ENV WORKERS=4 \\\n", ("app", "concurrency", "4", None)),
    ],
)
def test_other_syntaxes(syntax: str, text: str, expected: tuple[str, str, str, str | None]) -> None:
    assert expected in told(text, syntax)


@pytest.mark.parametrize(
    "text",
    [
        "# timeout: 30\n",
        "timeout:\n",
        "timeout: *anchor\n",
        "message: wait for 30 seconds\n",
        "id: 12\n",
        "a: [1, 2]\n",
    ],
)
def test_what_is_no_setting(text: str) -> None:
    assert claims(text, "yaml") == []


@pytest.mark.parametrize(
    ("format_", "path", "syntax"),
    [
        ("", "config/app.yml", "yaml"),
        ("yaml", "app", "yaml"),
        ("", "pyproject.toml", "toml"),
        ("", ".env.production", "ini"),
        ("", "Dockerfile.dev", "dockerfile"),
        ("", "package.json", "json"),
        ("", "package-lock.json", None),
        ("", "docs/readme.md", None),
        ("", "", None),
    ],
)
def test_configuration_is_told_by_format_and_name(format_: str, path: str, syntax: str | None) -> None:
    assert config_syntax(format_, path) == syntax


def test_an_owner_of_a_number_is_nobody() -> None:
    assert claims("owner: 1000\n", "yaml") == []
