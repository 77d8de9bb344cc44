from collections.abc import Callable
from textwrap import dedent

import pytest
from growth import assert_subquadratic
from hypothesis import given, settings
from hypothesis import strategies as st

from nornweave.core.types import Fact
from nornweave.disagree.conflicts.comparable import keys_of
from nornweave.disagree.facts.configuration import configuration_facts, is_configuration
from nornweave.disagree.facts.passage import Passage


def facts(text: str, path: str) -> list[Fact]:
    return list(configuration_facts(Passage(text=dedent(text), path=path, domain="code")))


def said(text: str, path: str) -> set[tuple[str, str, str, str]]:
    return {(one.owner, one.name, one.attribute, one.value) for one in facts(text, path)}


YAML = """\
webhooks:
  timeout_seconds: 20   # of one delivery
  events: [opened, "closed"]
  url: ${HOOK_URL}
  note: |
    depth: 3
cache:
  size: 64MiB
  ttl: 5m
"""


def test_nested_keys_of_yaml_go_to_the_owner_and_units_of_names_to_the_value() -> None:
    assert said(YAML, "config/app.yaml") == {
        ("webhooks", "timeout", "setting", "20"),
        ("cache", "size", "setting", str(64 * 1024 * 1024)),
        ("cache", "ttl", "setting", "300"),
    }


def test_a_fact_stands_where_its_key_and_value_stand() -> None:
    (fact,) = facts("server:\n  idle_timeout: 30s  # why\n", "a.yml")
    assert "server:\n  idle_timeout: 30s"[fact.span.start : fact.span.end] == "idle_timeout: 30s"
    assert (fact.line, fact.statement, fact.side, fact.form) == (1, "idle_timeout: 30s", "configuration", "setting")


@pytest.mark.parametrize(("text", "path", "expected"), [
    ("[http]\nread_timeout = 15\n", "app.toml", ("http", "read timeout", "setting", "15")),
    ("[worker]\nconcurrency: 4 ; cores\n", "app.ini", ("worker", "concurrency", "setting", "4")),
    ("spool.flush.interval.ms=250\n", "app.properties", ("spool flush", "interval", "setting", "1/4")),
    ("export MAX_BODY_KB=64\n", ".env", ("", "max body", "setting", "64000")),
    ('{"server": {"keepAlive": true}}', "app.json", ("server", "keep alive", "setting", "true")),
    ("ENV QUEUE_DEPTH=12\n", "Dockerfile", ("", "queue depth", "setting", "12")),
    ("env:\n  - name: QUEUE_DEPTH\n    value: 12\n", "deploy.yaml", ("env", "queue depth", "setting", "12")),
])  # fmt: skip
def test_every_syntax_is_read(text: str, path: str, expected: tuple[str, str, str, str]) -> None:
    assert expected in said(text, path)


@pytest.mark.parametrize(("text", "path", "expected"), [
    ("Port 22\n#LoginGraceTime 2m\n# It listens on 3\nSubsystem sftp /usr/lib/sftp\n", "gate.conf",
     {("", "port", "22"), ("", "login grace time", "120"), ("", "subsystem", "sftp /usr/lib/sftp")}),
    ("events {\n  worker_connections 768;  # each\n}\nhttp {\n  server {\n    listen 80 default;\n  }\n  gzip on;\n}\n",
     "web.conf", {("events", "worker connections", "768"), ("http server", "listen", "80 default"),
                  ("http", "gzip", "true")}),
    ("global\n    maxconn 4096\n    # timeout 30s\ndefaults\n    retries 3\n    requirepass hush\n"
     "    header Authorization Basic aB9=\n    header X-Api-Key k1\n", "proxy.cfg",
     {("", "maxconn", "4096"), ("", "timeout", "30"), ("", "retries", "3")}),
    ("some words here\nand more of them.\nx = 1\ny = 2\n", "notes.cfg", {("", "x", "1"), ("", "y", "2")}),
    ("# minutes between two writes\n;FlushEvery 7\n\n# graph\n;5MinuteRows 48\n;Mode quiet\n", "all-off.conf",
     {("", "flush every", "7"), ("", "5 minute rows", "48"), ("", "mode", "quiet")}),
    ("# Leave blank for none.\n#RELAY\n\n# Use 9 at most.\n#PORT 25\n#DEFER\n", "mail.conf", {("", "port", "25")}),
    ("# seconds\n#CloseDelay = 17\n# degrees\n;OpenDegrees = 19\n", "valve.conf",
     {("", "close delay", "17"), ("", "open degrees", "19")}),
    ("# Version 4 of this file\n# Use 7 of them\n", "prose.conf", set()),
    ("#this is prose of people\n#who leave no blank\n# Really 7\n#and say 7 things more.\n", "glued.conf", set()),
])  # fmt: skip
def test_settings_without_a_sign_are_read_where_most_lines_are_such(
    text: str, path: str, expected: set[tuple[str, str, str]]
) -> None:
    assert {(one.owner, one.name, one.value) for one in facts(text, path)} == expected


def test_a_variable_with_a_fallback_gives_its_default() -> None:
    assert said("queue:\n  depth: ${QUEUE_DEPTH:12}\n", "application.yml") == {
        ("", "queue depth", "default", "12"),
        ("queue", "depth", "default", "12"),
    }


def test_what_a_schema_declares_is_a_default_of_the_code() -> None:
    schema = '{"properties": {"depth": {"type": "integer", "default": 12, "maximum": 99}}}'
    assert said(schema, "queue.schema.json") == {("", "depth", "default", "12")}
    assert {fact.side for fact in facts(schema, "queue.schema.json")} == {"code"}


@pytest.mark.parametrize(("line", "value"), [
    ("port = integer(min=1, max=65535, default=6379)", "6379"), ("port = option('a', 'b', default='b')", "b"),
    ("port = my_check(default=None)", "none"),
])  # fmt: skip
def test_a_specification_says_defaults(line: str, value: str) -> None:
    text = f"Name: tool\n[server]\n# Where it listens.\n{line}\nother = string(min=1)\n"
    assert said(text, "lib/tool.spec") == said(text, "configspec.spec") == {("server", "port", "default", value)}
    assert said("Name: tool\nVersion: 1.2\n%build\nmake (all)\n", "tool.spec") == set()


def test_settings_of_a_file_of_defaults_are_defaults() -> None:
    assert said("depth: 12\n", "roles/queue/defaults/main.yml") == {("", "depth", "default", "12")}
    assert said("depth: 12\n", "roles/queue/vars/main.yml") == {("", "depth", "setting", "12")}


def test_what_an_example_sets_is_found_and_compared_with_nothing() -> None:
    (fact,) = facts("timeout = 30\n", "spool.example.ini")
    assert (fact.name, fact.value, fact.form, keys_of(fact)) == ("timeout", "30", "example", frozenset())


@pytest.mark.parametrize(("line", "value"), [
    ("# timeout = 30", "30"), ("#timeout: 30   # in seconds", "30"), (";timeout=30", "30"),
    ("  # timeout: 'a b'", "a b"), ("# Timeout: see below", ""), ("# timeout: how long it waits", ""),
    ("# timeout", ""), ("## timeout = a b", ""), ("# db_password = hunter2", ""),
])  # fmt: skip
def test_a_setting_that_is_commented_out_is_found_and_compared_with_nothing(line: str, value: str) -> None:
    told = facts(f"{line}\nretries = 2\n", "spool.ini")
    assert [fact.value for fact in told if fact.name != "retries"] == ([value] if value else [])
    assert {keys_of(fact) for fact in told if fact.name != "retries"} <= {frozenset()}


@pytest.mark.parametrize("line", [
    "db_password: hunter2", "password: 12345", "api_key: abc", "token: 99", "privateKey: x", "client-secret: y",
    "url: postgres://user:hunter2@host/db", "aws_credentials: z", "auth: {password: hunter2, ttl: 5m}",
    "- password: hunter2",
])  # fmt: skip
def test_secrets_are_never_read(line: str) -> None:
    for fact in facts(f"store:\n  {line}\n", "app.yaml"):
        assert "hunter2" not in fact.statement


def test_a_count_of_tokens_is_no_secret() -> None:
    assert said("max_tokens: 4096\n", "app.yaml") == {("", "max tokens", "setting", "4096")}


def test_data_is_not_configuration() -> None:
    assert facts('[{"a": 1}, {"a": 2}]', "rows.json") == []
    assert not is_configuration("json", "package-lock.json")
    assert not is_configuration("json", "web/locales/de.json")
    assert not is_configuration("python", "app/settings.py")
    assert is_configuration("", "setup.py")


@pytest.mark.parametrize(("path", "text", "name", "value"), [
    ("pyproject.toml", '[project]\nrequires-python = ">=3.9"\n', "python", ">=3.9"),
    ("pyproject.toml", '[tool.poetry.dependencies]\npython = "^3.9"\n', "python", ">=3.9"),
    ("setup.py", "setup(\n    python_requires='>=3.9',\n)", "python", ">=3.9"),
    ("package.json", '{"engines": {"node": ">=18.2"}}', "node", ">=18.2"),
    ("package.json", '{"engines": {"node": "18 || 20 || >=22"}}', "node", ">=18"),
    ("go.mod", "module example.com/spool\n\ngo 1.21\n", "go", ">=1.21"),
    ("Cargo.toml", '[package]\nrust-version = "1.70"\n', "rust", ">=1.70"),
    ("Gemfile", 'ruby "~> 3.1"\n', "ruby", ">=3.1"),
    ("spool.gemspec", 's.required_ruby_version = ">= 2.7"\n', "ruby", ">=2.7"),
    ("composer.json", '{"require": {"php": ">=8.1"}}', "php", ">=8.1"),
    ("pom.xml", "<java.version>17</java.version>", "java", ">=17"),
    ("build.gradle", "sourceCompatibility = JavaVersion.VERSION_17\n", "java", ">=17"),
    ("CMakeLists.txt", "cmake_minimum_required (VERSION 3.13...3.22)\n", "cmake", ">=3.13"),
    ("CMakeLists.txt", "CMAKE_MINIMUM_REQUIRED(VERSION 3.18 FATAL_ERROR)\n", "cmake", ">=3.18"),
    ("Spool/Spool.csproj", "<TargetFrameworks>net472;net8.0;net9.0</TargetFrameworks>", "dotnet", ">=8.0"),
    ("Spool.fsproj", "<TargetFramework>net6.0</TargetFramework>", "dotnet", ">=6.0"),
    ("app/build.gradle", "defaultConfig {\n    minSdkVersion 21\n}\n", "api level", ">=21"),
    ("build.gradle.kts", '    set("minSdkVersion", 21)\n', "api level", ">=21"),
    ("Package.swift", "// swift-tools-version:5.5\n", "swift", ">=5.5"),
    ("mix.exs", '  [app: :spool,\n   elixir: "~> 1.12"]\n', "elixir", ">=1.12"),
    ("pubspec.yaml", "environment:\n  sdk: '>=3.0.0 <4.0.0'\n", "dart", ">=3.0.0"),
])  # fmt: skip
def test_manifests_say_what_is_required(path: str, text: str, name: str, value: str) -> None:
    found = {
        (one.name, one.value, one.kind, one.side, one.form) for one in facts(text, path) if one.attribute == "requires"
    }
    assert (name, value, "version", "code", "manifest") in found


def test_of_a_matrix_no_version_is_required() -> None:
    assert facts("with:\n  python-version: ['3.11', '3.12']\n", ".github/workflows/ci.yml") == []


def test_a_fragment_that_begins_and_ends_anywhere_is_read() -> None:
    assert said('true}, "queue": {"depth": 12, "na', "app.json") == {("queue", "depth", "setting", "12")}
    assert ("", "depth", "setting", "12") in said("    - x\n  depth: 12\n  wid", "app.yaml")


@pytest.mark.parametrize(("sized", "size", "path"), [
    (lambda n: "{" * n, 200_000, "a.json"), (lambda n: '"' + '\\"' * n, 200_000, "a.json"),
    (lambda n: '{"a":' * n, 100_000, "a.json"), (lambda n: "a:\n" * n, 100_000, "a.yaml"),
    (lambda n: " " * n + "a:\n", 990, "a.yaml"), (lambda n: (" " * n + "x\n") * 300, 990, "a.conf"),
    (lambda n: ("# " + " " * n + "a\n") * 400, 900, "default.ini"),
    (lambda n: "a: [\n" * n, 100_000, "a.yaml"), (lambda n: "a: [b, 'c\n" * n, 50_000, "a.yaml"),
    (lambda n: ("[" + " " * n + "\n") * 400, 900, "a.ini"),
    (lambda n: "github.com/" * n, 50_000, "go.mod"),
    (lambda n: "a {\n" * n + "b 3\n" * n, 20_000, "a.conf"), (lambda n: ("a" + " b" * n + "\n") * 300, 490, "a.conf"),
])  # fmt: skip
def test_hostile_files_are_read_in_linear_time(sized: Callable[[int], str], size: int, path: str) -> None:
    def read(text: str) -> None:
        tuple(configuration_facts(Passage(text=text, path=path, domain="code")))

    assert_subquadratic(read, sized, size)


PATHS = """
    a.yaml a.json a.toml a.ini a.conf Dockerfile package.json pyproject.toml setup.py go.mod Gemfile setup.cfg
    default.env
""".split()  # noqa: SIM905
PIECES = st.sampled_from(
    [*"{}[]:,=#;\"' \n\t-|>&*\\", "key", "30s", "  ", "${A:-1}", "default", "password", "- a", "go 1.2\n"]
)


@settings(max_examples=200, deadline=None)
@given(st.lists(PIECES | st.text(max_size=5), max_size=60).map("".join), st.sampled_from(PATHS), st.integers(0, 9))
def test_any_text_is_read_without_an_error_and_spans_lie_inside(text: str, path: str, start: int) -> None:
    for fact in configuration_facts(Passage(text=text, path=path, start=start)):
        assert start <= fact.span.start < fact.span.end <= start + len(text)
        assert 0 <= fact.line <= text.count("\n")
        assert fact.name


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (".nvmrc", "v20\n"),
        ("Dockerfile", "FROM python:3.11-slim\n"),
        ("package.json", '{"dependencies": {"@acme/spool": "^2.1.0"}}'),
        ("docs/package.json", '{"engines": {"node": ">=18"}}'),
        ("setup.cfg", "[options]\ninstall_requires =\n    spoolkit==2.1\n"),
        (".github/workflows/ci.yml", "with:\n  python-version: '3.12'\n"),
    ],
)
def test_what_somebody_chose_is_not_what_the_project_needs(path: str, text: str) -> None:
    assert not [fact for fact in facts(text, path) if fact.attribute == "requires"]


def test_of_a_setting_with_its_type_and_default_only_the_default_is_read() -> None:
    text = """\
    pump.idle_timeout:
      type:
        name: Int
        minval: 0
      default: 3000
      desc: How long it waits.
    pump.height:
      default: 50%
      type: {name: Perc, maxperc: 100}
    """
    assert said(text, "settings.yml") == {
        ("pump", "idle timeout", "default", "3000"), ("pump", "height", "default", "50"),
    }  # fmt: skip
    assert ("pump", "size", "setting", "10") in said("pump:\n  default: fast\n  size: 10\n", "app.yml")
