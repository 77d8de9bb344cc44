"""Assemble the documentation as a site for mkdocs: the pages of ``docs/``, and a reference made from the code itself.

``python -m lab.site FOLDER`` writes ``FOLDER/pages`` and ``FOLDER/mkdocs.yml``; ``make docs`` builds them.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer
import yaml
from pydantic import BaseModel, HttpUrl
from pydantic.fields import FieldInfo

from api.app import create_app
from nornweave.cli.main import app
from nornweave.cli.options import COMMAND_GROUPS
from nornweave.config import load
from nornweave.config.domain import DomainSettings
from nornweave.config.workspace import FusionSettings
from nornweave.connect.connectors import CONNECTORS, load_settings

ROOT = Path(__file__).parent.parent
# Pages of the repository that stand outside of docs/ → where the site has them.
OUTSIDE = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "deploy/README.md": "deploy.md",
           "NOTICE": "notice.md", "LICENSE": "licence.md"}  # fmt: skip
NAV: Mapping[str, tuple[str, ...]] = {
    "Start": ("index.md", "tutorial.md", "installation.md", "limits.md", "upgrading.md"),
    "Use": ("pages.md", "sources.md", "history.md", "uses.md", "evaluation.md", "drift.md", "agents.md", "slack.md",
            "moments.md", "api.md"),
    "Operate": ("configuration.md", "deploy.md", "serving.md", "security.md", "rights.md", "replicas.md",
                "postgresql.md", "workers.md", "agents-remote.md", "reliability.md"),
    "How it works": (
        "architecture.md",
        "recall.md",
        "fusion.md",
        "figures.md",
        "figures-archive.md",
        "glossary.md",
        "extend.md",
        "write-a-connector.md",
    ),
    "Reference": ("reference/cli.md", "reference/settings.md", "reference/http.md"),
    "About": ("changelog.md", "licences.md", "notice.md", "licence.md"),
}  # fmt: skip
TITLES = {"index.md": "NornWeave", "notice.md": "Notice", "licence.md": "Licence", "deploy.md": "Deploy"}
BOUNDS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
WORDS = {str: "text", int: "integer", float: "number", bool: "true or false", Path: "path", HttpUrl: "address"}
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def main(folder: Path) -> None:
    """Write the pages and the configuration of mkdocs below ``folder``."""
    pages = folder / "pages"
    shutil.rmtree(pages, ignore_errors=True)
    shutil.copytree(ROOT / "docs", pages)
    for name, page in OUTSIDE.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        (pages / page).write_text(text if name.endswith(".md") else f"```text\n{text}\n```\n", encoding="utf-8")
    origins = {page: ROOT / name for name, page in OUTSIDE.items()}
    for file in pages.rglob("*.md"):
        page = file.relative_to(pages).as_posix()
        origin = origins.get(page, ROOT / "docs" / page)
        file.write_text(with_links_of_the_site(file.read_text(encoding="utf-8"), page, origin), encoding="utf-8")
    (pages / "reference").mkdir()
    for name, text in {"cli": commands(), "settings": settings(), "http": calls()}.items():
        (pages / "reference" / f"{name}.md").write_text(text, encoding="utf-8")
    (folder / "mkdocs.yml").write_text(yaml.safe_dump(configuration(pages), sort_keys=False), encoding="utf-8")


def configuration(pages: Path) -> dict[str, Any]:
    """Return the configuration of mkdocs: every page has a place in the navigation, and nothing is loaded from afar."""
    decisions = sorted(f"decisions/{file.name}" for file in (pages / "decisions").glob("*.md"))
    nav: list[dict[str, Any]] = [
        {title: [{TITLES[page]: page} if page in TITLES else page for page in group]} for title, group in NAV.items()
    ]
    return {
        "site_name": "NornWeave",
        "docs_dir": str(pages.resolve()),
        "site_dir": str((pages.parent / "site").resolve()),
        "use_directory_urls": False,
        "nav": [*nav, {"Decisions": decisions}],
        "theme": {"name": "material", "font": False, "features": ["navigation.indexes", "navigation.top"],
                  "palette": [{"media": f"(prefers-color-scheme: {mode})", "scheme": scheme, "primary": "teal"}
                              for mode, scheme in (("light", "default"), ("dark", "slate"))]},
        "plugins": ["search"],
        "markdown_extensions": ["admonition", "tables", "pymdownx.highlight", "pymdownx.superfences",
                                {"toc": {"permalink": True}}],
        "validation": {"omitted_files": "warn", "absolute_links": "warn", "unrecognized_links": "warn",
                       "anchors": "warn"},
    }  # fmt: skip


def with_links_of_the_site(text: str, page: str, origin: Path) -> str:
    """Point links at the site's pages; one to a file that the site has not becomes the file's name."""

    def replaced(match: re.Match[str]) -> str:
        mark, label, target = match.groups()
        path, hash_, anchor = target.partition("#")
        if not path or "://" in target or target.startswith("mailto:"):
            return match[0]
        named = Path(os.path.normpath(origin.parent / path)).relative_to(ROOT).as_posix()
        if named == "docs/decisions":
            named = "docs/decisions/0001-generations.md"
        site = OUTSIDE.get(named) or (named.removeprefix("docs/") if named.startswith("docs/") else None)
        if site is None:
            return label if mark else f"{label} (`{named}`)"
        return f"{mark}[{label}]({os.path.relpath(site, Path(page).parent)}{hash_}{anchor})"

    return _LINK.sub(replaced, text)


def commands() -> str:
    """Return the help of every command, as the command line prints it."""
    group = typer.main.get_command(app)
    lines = [
        "# Commands",
        "",
        "What `nornweave COMMAND --help` prints. `--config` stands before the command.",
    ]
    parent = group.context_class(group, info_name="nornweave", terminal_width=110, max_content_width=110)
    for title, rows in COMMAND_GROUPS.items():
        lines += ["", f"## {title}"]
        for name in rows:
            command = group.get_command(parent, name)  # type: ignore[attr-defined]
            context = command.context_class(command, info_name=name, parent=parent)
            lines += ["", f"### nornweave {name}", "", "```text", command.get_help(context).strip(), "```"]
    return "\n".join(lines) + "\n"


def settings() -> str:
    """Return every key of ``nornweave.yaml`` with its type, its default, its bounds and what it is for."""
    lines = ["# Settings", "", "Every key of `nornweave.yaml`. [Configuration](../configuration.md) explains them."]
    top: dict[str, type[BaseModel]] = {"domains": DomainSettings, "fusion": FusionSettings}
    lines += _table("At the top", load._File, "")
    for key, model in top.items():
        lines += _table(f"`{key}.DOMAIN`" if key == "domains" else f"`{key}`", model, "")
    lines += ["", "## Sources"]
    for kind, connector in CONNECTORS.items():
        lines += _table(f"type: {kind}", connector.settings, "", level=3)
    return "\n".join(lines) + "\n"


def _table(title: str, model: type[BaseModel], prefix: str, level: int = 2) -> list[str]:
    rows = [f"| `{key}` | {kind} | {default} | {text} |" for key, kind, default, text in _keys(model, prefix)]
    return ["", f"{'#' * level} {title}", "", "| key | type | default | |", "|---|---|---|---|", *rows]


def _keys(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, str, str, str]]:
    texts = _attribute_docstrings(model)
    for name, field in model.model_fields.items():
        key = f"{prefix}{field.alias or name}"
        nested = next((each for each in _types_in(field.annotation) if issubclass(each, BaseModel)), None)
        if nested is not None and get_origin(field.annotation) is not tuple:
            yield key, "mapping", "", texts.get(name, _first_line(nested))
            yield from _keys(nested, f"{key}.")
        else:
            yield key, _type_name(field), _default(field), texts.get(name, field.description or "")


def _types_in(annotation: Any) -> Iterator[type]:
    for each in (annotation, *get_args(annotation)):
        if isinstance(each, type) and get_origin(each) is None:
            yield each


def _type_name(field: FieldInfo) -> str:
    bounds = [
        f"{sign} {getattr(each, word)}"
        for each in field.metadata
        for word, sign in BOUNDS.items()
        if hasattr(each, word)
    ]
    return ", ".join((_words(field.annotation), *bounds))


def _words(annotation: Any) -> str:
    """Say in words what a type accepts."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _words(arguments[0])
    if origin in (Union, UnionType):
        return " or ".join(_words(each) for each in arguments if each is not NoneType)
    if origin is Literal:
        return ", ".join(f"`{each}`" for each in arguments)
    if origin is tuple:
        return f"list of {_words(arguments[0])}"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return ", ".join(f"`{each.value}`" for each in annotation)
    return WORDS.get(origin or annotation, "mapping")


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    return "" if value is None or value in ((), {}) else f"`{getattr(value, 'value', value)}`"


def _attribute_docstrings(model: type[BaseModel]) -> dict[str, str]:
    """Return the docstrings below the fields of a model and of what it inherits from."""
    texts: dict[str, str] = {}
    for each in reversed(model.__mro__):
        if not (issubclass(each, BaseModel) and each.__module__.startswith("nornweave")):
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(each))).body[0].body  # type: ignore[attr-defined]
        for field, after in zip(body, body[1:], strict=False):
            match field, after:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    texts[name] = " ".join(text.split())
    return {name: text.replace("``", "`").replace("|", r"\|") for name, text in texts.items()}


def _first_line(model: type[BaseModel]) -> str:
    return (model.__doc__ or "").strip().partition("\n")[0].replace("``", "`")


def calls() -> str:
    """Return every HTTP call of the OpenAPI document with its summary and its parameters."""
    served = create_app(load_settings(ROOT / "nornweave.yaml", {}), environment={})
    rows = []
    for path, methods in served.openapi()["paths"].items():
        for method, call in methods.items():
            names = ", ".join(f"`{each['name']}`" for each in call.get("parameters", []))
            purpose = call.get("description", "").strip().partition("\n")[0].replace("|", r"\|")
            rows.append(f"| `{method.upper()} {path}` | {purpose} | {names} |")
    head = [
        "# HTTP calls",
        "",
        "From the OpenAPI document: `/openapi.json` of a server, shown at `/docs`.",
        "",
    ]
    return "\n".join([*head, "| call | for | parameters |", "|---|---|---|", *rows]) + "\n"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
