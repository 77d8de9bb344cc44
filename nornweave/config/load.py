"""Load ``nornweave.yaml`` into settings; every error names the key, the value and what is allowed."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import yaml
from pydantic import BaseModel, HttpUrl, ValidationError

from nornweave.config.access import AccessSettings
from nornweave.config.base import is_web_address
from nornweave.config.domain import DomainFilters, DomainSettings, FilterSettings, KeepSettings, with_usual_and_declared
from nornweave.config.sources import SourceSettings
from nornweave.config.workspace import AnswersSettings, FusionSettings, Settings, WorkspaceSettings, with_environment
from nornweave.core.errors import ConfigError
from nornweave.core.files.yaml_files import line_of
from nornweave.core.types import Domain

DOMAIN_FILES = Path(__file__).parent / "domains"
MAX_CONFIG_BYTES = 1_000_000
GONE: Mapping[str, str] = dict.fromkeys(
    ("workers.runs", "workers.kubernetes"),
    "`nornweave dagster` executes runs, or on other machines what workers.run_launcher names (docs/workers.md)",
)
"""Settings of earlier versions → what takes their place."""

T = TypeVar("T", bound=BaseModel)
SourceKinds: TypeAlias = Mapping[str, type[SourceSettings]]
"""The settings of each kind of source, by its ``type``."""


class _File(WorkspaceSettings):
    """The schema of ``nornweave.yaml``."""

    data_dir: Path = Path("var")
    sources: tuple[Mapping[str, Any], ...] = ()
    domains: Mapping[Domain, dict[str, Any]] = {}
    webhook: HttpUrl | None = None
    fusion: Mapping[str, Any] = {}
    keep: KeepSettings | None = None
    """``storage.keep`` of all domains."""


def read_settings(file: Path, kinds: SourceKinds, environment: Mapping[str, str] | None = None) -> Settings:
    """Return the settings in ``nornweave.yaml`` and in the files that it names.

    Args:
        kinds: the kinds of sources that ``sources:`` may have.
        environment: the environment variables, by default ``os.environ``.

    Raises:
        ConfigError: the file is missing or broken; a key is unknown, missing or of the wrong type; ids repeat.
    """
    environment = os.environ if environment is None else environment
    raw = _read_yaml(file)
    parsed = _validate(_File, raw, file)
    sources = _read_sources(parsed.sources, kinds, file)
    ids = [source.id for source in sources]
    if repeated := sorted({name for name in ids if ids.count(name) > 1}):
        raise ConfigError(f"{file}: sources: id {repeated[0]!r} is used twice; every source needs its own")
    base = file.resolve().parent
    domains = {
        domain: _load_domain(domain, _with_common_keep(parsed.keep, parsed.domains.get(domain, {})), file, environment)
        for domain in Domain
    }
    if parsed.storage:
        _check_storage(parsed, domains, file)
    shared = {name: getattr(parsed, name) for name in WorkspaceSettings.model_fields}
    shared["evaluation"] = AnswersSettings(judgments=tuple(_below(base, each) for each in parsed.evaluation.judgments))
    shared["access"] = _with_absolute_files(parsed.access, base)
    return Settings(
        data_dir=_below(base, parsed.data_dir),
        sources=tuple(_with_absolute_paths(source, base) for source in sources),
        domains=domains,
        webhook=str(parsed.webhook) if parsed.webhook else None,
        file=file.resolve(),
        fusion=_validate(FusionSettings, with_environment(parsed.fusion, environment), file, "fusion"),
        **shared,
    )


def _check_storage(parsed: _File, domains: Mapping[Domain, DomainSettings], file: Path) -> None:
    """Refuse keys that cannot be used with domains in PostgreSQL."""
    if parsed.publish:
        raise ConfigError(
            f"{file}: publish: copies files, and storage: keeps the domains in PostgreSQL; replicas of a database are "
            "PostgreSQL's own matter, so leave one of the two out"
        )
    if any(configured.storage.keep for configured in domains.values()):
        raise ConfigError(f"{file}: keep: is for domains in files; PostgreSQL keeps the newest 'keep_generations'")


def _with_common_keep(keep: KeepSettings | None, domain: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a domain's settings, with the workspace's ``keep`` if the domain has none of its own."""
    return _merge({"storage": {"keep": keep.model_dump()}}, domain) if keep else domain


def _below(base: Path, path: Path) -> Path:
    if "\0" in str(path):
        raise ConfigError(f"{str(path)!r} is not a path")
    try:
        return Path(os.path.normpath(base / path.expanduser()))
    except RuntimeError as error:
        raise ConfigError(f"{path}: no home folder is known for it") from error


def _with_absolute_files(access: AccessSettings | None, base: Path) -> AccessSettings | None:
    if access is None:
        return None
    oidc = access.oidc
    if oidc and oidc.jwks and not is_web_address(oidc.jwks):
        oidc = oidc.model_copy(update={"jwks": str(_below(base, Path(oidc.jwks)))})
    tokens = _below(base, access.tokens) if access.tokens else None
    members = _below(base, access.membership.file) if access.membership.file else None
    membership = access.membership.model_copy(update={"file": members})
    return access.model_copy(update={"tokens": tokens, "oidc": oidc, "membership": membership})


def _with_absolute_paths(source: SourceSettings, base: Path) -> SourceSettings:
    return source.model_copy(update={key: _below(base, value) for key, value in source if isinstance(value, Path)})


def _read_sources(entries: tuple[Mapping[str, Any], ...], kinds: SourceKinds, file: Path) -> list[SourceSettings]:
    sources, problems = [], []
    for number, entry in enumerate(entries):
        try:
            sources.append(_read_source(entry, kinds, file, f"sources.{number}"))
        except ConfigError as error:
            problems.append(str(error))
    if problems:
        raise ConfigError("\n".join(problems))
    return sources


def _read_source(entry: Mapping[str, Any], kinds: SourceKinds, file: Path, prefix: str) -> SourceSettings:
    """Return the settings of a source, of its class in ``kinds``. ``prefix`` is its place, such as ``sources.0``."""
    if "type" not in entry:
        raise ConfigError(f"{file}{line_of(file, prefix.split('.'))}: key '{prefix}.type' is missing")
    name = entry["type"]
    if not isinstance(name, str) or name not in kinds:
        *others, last = (repr(each) for each in kinds)
        where = f"{file}{line_of(file, [*prefix.split('.'), 'type'])}: {prefix}.type"
        meant = did_you_mean(name, kinds)
        raise ConfigError(f"{where}: Input should be {', '.join(others)} or {last}, found {name!r}{meant}")
    kind = kinds[name]
    for key in sorted(map(str, entry.keys() - kind.model_fields.keys())):
        if owners := sorted(each for each, settings in kinds.items() if key in settings.model_fields):
            raise ConfigError(f"{file}: {prefix}: key {key!r} belongs to type {', '.join(owners)}, not {name}")
    source = _validate(kind, entry, file, prefix)
    if source.domain not in kind.domains:
        allowed = ", ".join(sorted(each for each, settings in kinds.items() if source.domain in settings.domains))
        message = f"type {name!r} does not fit domain {source.domain.value!r}; allowed: {allowed}"
        raise ConfigError(f"{file}: {prefix}: {message}")
    return source


def _load_domain(
    domain: Domain, overrides: Mapping[str, Any], file: Path, environment: Mapping[str, str]
) -> DomainSettings:
    defaults = _defaults_of(domain)
    prefix = f"domains.{domain.value}"
    if overrides.get("domain_id", domain.value) != domain.value:
        raise ConfigError(f"{file}: {prefix}.domain_id: {overrides['domain_id']!r} may not be overridden")
    merged = _merge(defaults, {key: value for key, value in overrides.items() if key != "filters"})
    if factor := environment.get("OVERFETCH_FACTOR"):
        merged = _merge(merged, {"reranking": {"overfetch_factor": factor}})
    if device := environment.get("EMBEDDING_DEVICE"):
        merged = _merge(merged, {"embedding": {"device": device}})
    domain_settings = _validate(DomainSettings, merged, file, prefix)
    evaluation = domain_settings.evaluation
    folders = tuple(_below(file.resolve().parent, folder) for folder in evaluation.judgments)
    update = {
        "evaluation": evaluation.model_copy(update={"judgments": folders}),
        "filters": _all_filters(domain_settings.filters, defaults, overrides.get("filters"), file, prefix),
    }
    return domain_settings.model_copy(update=update)


@lru_cache
def _defaults_of(domain: Domain) -> Mapping[str, Any]:
    """Return the content of a domain file. It is cached, because reading domain files takes most of the time."""
    return _read_yaml(DOMAIN_FILES / f"{domain.value}.yaml")


def _all_filters(
    built_in: tuple[FilterSettings, ...], defaults: Mapping[str, Any], stated: Any, file: Path, prefix: str
) -> tuple[FilterSettings, ...]:
    """Return the built-in filters and the declared filters of a domain.

    ``stated`` is the value of the key ``filters``. Entries that ``defaults``, the domain file, has as well are ignored.
    """
    own = [each for each in stated if each not in defaults["filters"]] if isinstance(stated, list) else stated
    declared = _validate(DomainFilters, {} if own is None else {"filters": own}, file, prefix)
    try:
        return with_usual_and_declared(built_in, declared.filters)
    except ValueError as error:
        raise ConfigError(f"{file}: {prefix}.filters: {error}") from error


def _merge(defaults: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(defaults)
    for key, value in overrides.items():
        if isinstance(value, Mapping) and isinstance(merged.get(key), Mapping):
            base = dict(merged[key])
            if key == "embedding" and value.get("model", base.get("model")) != base.get("model"):
                base.pop("dimensions", None)  # they belong to another model
            merged[key] = _merge(base, value)
        else:
            merged[key] = value
    return merged


def _read_yaml(file: Path) -> dict[str, Any]:
    try:
        if file.stat().st_size > MAX_CONFIG_BYTES:
            raise ConfigError(f"{file}: larger than {MAX_CONFIG_BYTES} bytes; this is not a configuration file")
        loaded = yaml.safe_load(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(
            f"{file}: no such file; `nornweave init` writes one for this folder, --config names another"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: cannot be read: {error}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise ConfigError(f"{file}: not valid YAML: {error}") from error
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise ConfigError(f"{file}: expected a mapping of keys at the top, found {type(loaded).__name__}")
    return loaded


def _validate(model: type[T], values: Mapping[str, Any], file: Path, prefix: str = "") -> T:
    try:
        return model.model_validate(values)
    except ValidationError as error:
        lines = [_explain(dict(problem), model, file, prefix) for problem in error.errors()]
        raise ConfigError("\n".join(lines)) from error


def _explain(problem: Mapping[str, Any], model: type[BaseModel], file: Path, prefix: str) -> str:
    """Return one pydantic error in words: line, key and value, then the allowed values or the one probably meant."""
    location = [part for part in problem["loc"] if part != "[key]"]
    path = [*(prefix.split(".") if prefix else []), *(str(part) for part in location)]
    key, where = ".".join(path) or "(top level)", f"{file}{line_of(file, path)}"
    found, kind = problem["input"], problem["type"]
    if kind == "extra_forbidden" and key in GONE:
        return f"{where}: {key!r} is no setting any more: {GONE[key]}"
    if kind == "extra_forbidden":
        allowed = sorted(_fields_at(model, location[:-1]))
        meant = did_you_mean(path[-1], allowed)
        return f"{where}: unknown key {key!r} (value {found!r}){meant}; allowed here: {', '.join(allowed)}"
    if kind == "missing":
        return f"{where}: key {key!r} is missing"
    if kind == "value_error":
        return f"{where}: {key}: {problem['msg'].removeprefix('Value error, ')}"
    choices = re.findall(r"'([^']+)'", str(problem.get("ctx", {}).get("expected", "")))
    return f"{where}: {key}: {problem['msg']}, found {found!r}{did_you_mean(found, choices)}"


def did_you_mean(found: object, allowed: Collection[str]) -> str:
    """Return ``; did you mean 'path'?`` if an allowed name is similar, else an empty text."""
    close = difflib.get_close_matches(str(found), allowed, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _fields_at(model: type[BaseModel], location: list[Any]) -> set[str]:
    """Return the allowed keys at ``location`` inside ``model``."""
    current: type[BaseModel] = model
    for part in location:
        field = current.model_fields.get(str(part)) if isinstance(part, str) else None
        annotation = field.annotation if field else None
        for candidate in (annotation, *getattr(annotation, "__args__", ())):
            if isinstance(candidate, type) and issubclass(candidate, BaseModel):
                current = candidate
                break
    return {field.alias or name for name, field in current.model_fields.items()}
