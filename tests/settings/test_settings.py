"""A wrong configuration is told by key, value and what is allowed."""

import json
from pathlib import Path

import pytest

from nornweave.config.domain import KeepSettings
from nornweave.connect.connectors import load_settings
from nornweave.core.errors import ConfigError
from nornweave.core.types import Domain

GOOD = """
data_dir: ./data
sources:
  - {id: payments, domain: code, type: files, path: ../payments, include: ["**/*.py"]}
  - {id: chat, domain: conversations, type: slack, path: export}
domains:
  code: {chunking: {max_chunk_tokens: 256}}
"""


def write(folder: Path, text: str) -> Path:
    file = folder / "nornweave.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    settings = load_settings(write(tmp_path, GOOD), {})
    assert settings.data_dir == tmp_path / "data"
    assert settings.sources[0].path == tmp_path.parent / "payments"
    assert settings.served_domains == (Domain.CODE, Domain.CONVERSATIONS)


def test_a_domain_with_an_inbox_is_served(tmp_path: Path) -> None:
    settings = load_settings(write(tmp_path, GOOD), {})
    settings.inbox(Domain.RESEARCH).mkdir(parents=True)
    assert settings.served_domains == (Domain.CODE, Domain.CONVERSATIONS, Domain.RESEARCH)


def test_a_domain_override_keeps_the_rest_of_the_domain_file(tmp_path: Path) -> None:
    code = load_settings(write(tmp_path, GOOD), {}).domains[Domain.CODE]
    assert (code.chunking.max_chunk_tokens, code.chunking.strategy) == (256, "SYNTAX_AWARE")
    assert (code.embedding.dimensions, code.agent_id) == (384, "code-memory")


def test_another_model_does_not_inherit_the_dimensions(tmp_path: Path) -> None:
    text = "domains: {code: {embedding: {model: BAAI/bge-base-en-v1.5}}}"
    assert load_settings(write(tmp_path, text), {}).domains[Domain.CODE].embedding.dimensions is None


def test_the_environment_wins(tmp_path: Path) -> None:
    text = "domains: {code: {embedding: {device: cpu}}}"
    embedding = load_settings(write(tmp_path, text), {"EMBEDDING_DEVICE": "cuda"}).domains[Domain.CODE].embedding
    assert (embedding.device, embedding.dimensions) == ("cuda", 384)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "sourcs: []",
            [
                "'sourcs'",
                "[]",
                "data_dir, domains, evaluation, feedback, fusion, keep, publish, replica_of, slack, sources",
            ],
        ),
        ("sources: [{id: Pay, domain: code, type: files, path: x}]", ["sources.0.id", "'Pay'", "[a-z0-9-]+"]),
        ("sources: [{id: a, domain: cod, type: files, path: x}]", ["sources.0.domain", "'cod'", "'conversations'"]),
        ("sources: [{id: a, domain: code, type: file, path: x}]", ["sources.0.type", "'file'", "'stackexchange'"]),
        ("sources: [{id: a, domain: code, type: slack, path: x}]", ["'slack'", "'code'", "files, git, inbox"]),
        ("sources: [{id: a, domain: code, type: files}]", ["sources.0", "'path' is missing"]),
        ("sources: [{id: a, domain: code, path: x}]", ["'sources.0.type' is missing"]),
        ("sources: [{id: a, domain: code, type: files, path: x, incldue: []}]", ["incldue", "include"]),
        ("sources: [{id: a, domain: code, type: files, path: x, include: '*.py'}]", ["sources.0.include", "'*.py'"]),
        ("sources: {a: b}", ["sources", "tuple"]),
        ("sources: [a]", ["sources.0", "dictionary", "'a'"]),
        ("sources: [{id: a, domain: code, type: [files], path: x}]", ["sources.0.type", "['files']", "'jira'"]),
        (
            "sources: [{id: a, domain: code, type: files, path: x, ref: main, tags: [a]}]",
            ["sources.0: key 'ref' belongs to type git, not files"],
        ),
        (
            "sources: [{id: a, domain: code, type: git, path: x, relist_hours: 1}]",
            ["key 'relist_hours' belongs to type ", "confluence, ", ", not git"],
        ),
        ("sources: [{id: a, domain: code, type: git}]", ["key 'path' or 'url' is missing"]),
        ("sources: [{id: a, domain: documentation, type: web, path: x}]", ["key 'url' is missing"]),
        (
            "sources: [{id: a, domain: code, type: git, path: x, url: 'https://h/a'}]",
            ["keys 'path' and 'url' exclude each other"],
        ),
        ("sources: [{id: a, domain: code, type: git, url: 'https://u:secret@h/a'}]", ["'url' holds a password"]),
        ("sources: [{id: a, domain: code, type: git, url: 'ext::sh -c x'}]", ["url: expected https://HOST/PATH"]),
        ("sources: [{id: a, domain: code, type: git, url: 'h:--upload-pack=x'}]", ["could be read as an option"]),
        (
            "sources: [{id: A, domain: code, type: git, path: x}, {id: b, domain: code, type: web, url: x}]",
            ["sources.0.id", "sources.1: type 'web' does not fit domain 'code'"],
        ),
        ("domains: {cod: {}}", ["domains.cod", "'code'"]),
        ("domains: {code: {chunking: {max_chunk_tokens: lots}}}", ["max_chunk_tokens", "'lots'", "integer"]),
        ("domains: {code: {embedding: {modl: x}}}", ["modl", "batch_size, device, dimensions, model"]),
        ("domains: {code: {domain_id: research}}", ["domain_id", "may not be overridden"]),
        (
            "domains: {documentation: {filters: [{key: Env, type: keyword, from: metadata.x}]}}",
            ["filters.0.key", "'Env'"],
        ),
        (
            "domains: {documentation: {filters: [{key: env, type: text, from: metadata.x}]}}",
            ["filters.0.type", "'text'", "'keyword', 'integer', 'number', 'boolean' or 'date'"],
        ),
        ("domains: {documentation: {filters: [{key: env, type: keyword}]}}", ["filters.0.from", "missing"]),
        (
            "domains: {documentation: {filters: [{key: env, type: keyword, from: []}]}}",
            ["filters.0.from", "at least 1"],
        ),
        (
            "domains: {documentation: {filters: [{key: env, type: keyword, from: header.x}]}}",
            ["'header.x'", "front_matter.KEY, metadata.KEY, path:GLOB"],
        ),
        (
            "domains: {documentation: {filters: [{key: env, type: keyword, from: metadata.}]}}",
            ["'metadata.'", "front_matter.KEY"],
        ),
        (
            "domains: {documentation: {filters: [{key: env, type: keyword, from: 'path:docs/{other}/**'}]}}",
            ["'path:docs/{other}/**'", "write {env} once"],
        ),
        (
            "domains: {documentation: {filters: [{key: env, type: keyword, from: 'path:/docs/{env}'}]}}",
            ["inside a source"],
        ),
        (
            "domains: {documentation: {filters: [{key: env, type: keyword, from: 'path:{env}-{b}/x'}]}}",
            ["two names between two slashes"],
        ),
        (
            "domains: {documentation: {filters: [{key: env, type: keyword, from: 'path:{env}/{b'}]}}",
            ["a brace that belongs to no {name}"],
        ),
        (
            "domains: {documentation: {filters: [{key: env, type: integer, from: source.id}]}}",
            ["'source.id'", "'integer'", "keyword can"],
        ),
        (
            "domains: {documentation: {filters: [{key: env, type: keyword, from: metadata.x, column: y}]}}",
            ["filters.0.column", "from, key, type"],
        ),
        (
            "domains: {documentation: {filters: [{key: format, type: keyword, from: metadata.x}]}}",
            ["'format' (type keyword, from metadata.x)", "built-in filter 'format' (type string"],
        ),
        (
            "domains: {code: {filters: [{key: a, type: date, from: metadata.x}, "
            "{key: a, type: date, from: metadata.y}]}}",
            ["'a' is declared twice"],
        ),
        ("domains: {documentation: {filters: {a: b}}}", ["documentation.filters", "tuple"]),
        (
            "slack: {channels: {general: []}}",
            [":1: slack.channels.general: 'general'; expected an id such as C0123456789"],
        ),
        ("- a", ["mapping", "list"]),
        ("a: [", ["not valid YAML"]),
        ("a: &a [*a, *a]", ["'a'"]),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, said: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(write(tmp_path, text), {})
    for part in said:
        assert part in str(caught.value)


def test_declared_filters_join_the_built_in_and_the_usual_ones(tmp_path: Path) -> None:
    text = """domains: {documentation: {filters: [
      {key: format, type: string, column: format},
      {key: environment, type: keyword, from: front_matter.environment},
      {key: team, type: keyword, from: [metadata.team, "path:docs/{team}/**"]}]}}"""
    settings = load_settings(write(tmp_path, text), {})
    filters = {each.key: each for each in settings.domains[Domain.DOCUMENTATION].filters}
    assert [*filters] == [
        *(
            "source",
            "path_glob",
            "format",
            "heading_path",
            "category",
            "confidence",
            "error_category",
            "environment",
            "team",
        )
    ]
    assert filters["environment"].origins == ("front_matter.environment",)
    assert filters["team"].origins == ("metadata.team", "path:docs/{team}/**")
    assert filters["confidence"].origins[0] == "metadata.confidence"
    assert [each.key for each in settings.domains[Domain.CODE].filters if each.is_declared] == [
        *("category", "environment", "confidence", "error_category")
    ]


def test_ids_are_unique(tmp_path: Path) -> None:
    twice = "sources: [{id: a, domain: code, type: files, path: x}, {id: a, domain: code, type: files, path: y}]"
    with pytest.raises(ConfigError, match="'a' is used twice"):
        load_settings(write(tmp_path, twice), {})


def test_a_missing_file_says_how_to_name_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--config"):
        load_settings(tmp_path / "none.yaml", {})


def test_fusion_is_configured_by_the_file_and_the_environment_wins(tmp_path: Path) -> None:
    file = write(tmp_path, "fusion: {dedup_similarity_threshold: 0.9, rank_weight_score: 0.7}")
    fusion = load_settings(file, {"DEDUP_SIMILARITY_THRESHOLD": "0.95", "RECENCY_TIE_WINDOW_HOURS": "48"}).fusion
    assert (fusion.dedup_similarity_threshold, fusion.recency_tie_window_hours) == (0.95, 48)
    assert fusion.rank_weights("minmax").score == fusion.rank_weights("calibrated").score == 0.7
    assert fusion.conflict_demotion_penalty == 0.3
    assert (fusion.synthesis_model, fusion.synthesis_fallback) == ("", "")


@pytest.mark.parametrize(("text", "environment", "said"), [
    ("fusion: {dedup: 1}", {}, ["'fusion.dedup'", "dedup_similarity_threshold"]),
    ("fusion: {conflict_strategy: NEWEST}", {}, ["fusion.conflict_strategy", "'NEWEST'", "'RECENCY'"]),
    ("", {"RANK_WEIGHT_RECENCY": "much"}, ["fusion.rank_weight_recency", "'much'", "number"]),
    ("", {"RANK_WEIGHT_RECENCY": "nan"}, ["fusion.rank_weight_recency", "'nan'", "finite"]),
    ("", {"RANK_WEIGHT_RECENCY": "1.5"}, ["fusion.rank_weight_recency", "1.5"]),
    ("", {"CONFLICT_LOSER_POLICY": "forget"}, ["conflict_loser_policy", "'forget'", "'demote'"]),
    ("", {"FUSION_MAX_SOURCES": "5"}, ["fusion_max_sources", "5"]),
    ("", {"SYNTHESIS_TIMEOUT_MS": "0.5"}, ["synthesis_timeout_ms", "0.5"]),
])  # fmt: skip
def test_wrong_fusion_settings_are_named(
    tmp_path: Path, text: str, environment: dict[str, str], said: list[str]
) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(write(tmp_path, text), environment)
    for part in said:
        assert part in str(caught.value)


@pytest.mark.parametrize(("before", "after", "told"), [
    ("data_dir:", "data_dri:", ":2: unknown key 'data_dri'.*did you mean 'data_dir'?"),
    ("path: export}", "pth: export}", ":5: unknown key 'sources.1.pth'.*did you mean 'path'?"),
    ("type: slack", "type: slak", ":5: sources.1.type: .* found 'slak'; did you mean 'slack'?"),
    ("domain: code,", "domain: cod,", ":4: sources.0.domain: .* found 'cod'; did you mean 'code'?"),
    ("max_chunk_tokens: 256", "max_chunk_token: 256", ":7: unknown key 'domains.code.chunking.max_chunk_token'"),
    ("type: slack", "type: 17", ":5: sources.1.type: .* found 17$"),
])  # fmt: skip
def test_an_error_names_the_line_and_what_was_meant(tmp_path: Path, before: str, after: str, told: str) -> None:
    file = write(tmp_path, GOOD.replace(before, after))
    with pytest.raises(ConfigError, match=told.replace("?", r"\?")):
        load_settings(file, {})


def test_what_stays_of_older_generations_is_said_once_or_by_domain(tmp_path: Path) -> None:
    keep = {"days": 30, "weeks": 12}
    document = {"sources": [], "keep": keep, "domains": {"code": {"storage": {"keep": {"days": 7}}}}}
    (tmp_path / "nornweave.yaml").write_text(json.dumps(document), encoding="utf-8")
    settings = load_settings(tmp_path / "nornweave.yaml", {})
    kept = {domain.value: configured.storage.keep for domain, configured in settings.domains.items()}
    assert kept["documentation"] == KeepSettings(days=30, weeks=12)
    assert kept["code"] == KeepSettings(days=7, weeks=12)
    document["storage"] = {"url": "postgresql://localhost/x"}
    (tmp_path / "nornweave.yaml").write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(ConfigError, match="keep: is for domains in files"):
        load_settings(tmp_path / "nornweave.yaml", {})
