"""The command ``nornweave init``: write a configuration by looking around."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from rich.text import Text

from nornweave.cli.options import JsonOption, output
from nornweave.connect.connectors import load_settings
from nornweave.connect.edit import add_source
from nornweave.connect.files.discovery import Proposal, look_around, numbered
from nornweave.core.errors import ConfigError
from nornweave.core.files.writing import write_whole
from nornweave.core.text.legible import counted
from nornweave.core.text.terminal import print_json

_HEAD = """\
# What NornWeave reads, written by `nornweave init`. docs/configuration.md says what may stand here.
data_dir: ./var   # everything that NornWeave writes; relative to this file
sources:
"""
_ELSEWHERE = """\
  # Sources that live elsewhere; the token is read from the environment variable that is named. With `access:` at the
  # top, `rights: source` shows documents of Slack, GitHub, GitLab, … to their readers (docs/rights.md):
  # - {id: api, domain: code, type: git, url: "https://git.example.org/team/api.git", credentials_env: GIT_TOKEN}
  # - {id: manual, domain: documentation, type: web, url: "https://docs.example.org/guide/"}
  # - {id: wiki, domain: documentation, type: confluence, url: "https://team.atlassian.net", spaces: [ENG],
  #    user: me@example.org, token_env: ATLASSIAN_TOKEN}
  # - {id: chat, domain: conversations, type: slack, token_env: SLACK_TOKEN, channels: [engineering]}
  # - {id: issues, domain: conversations, type: github, repository: owner/name}   # set GITHUB_TOKEN
  # - {id: merges, domain: conversations, type: gitlab, project: group/name}       # set GITLAB_TOKEN
  # - {id: tickets, domain: conversations, type: jira, url: "https://team.atlassian.net", projects: [PAY],
  #    user: me@example.org, token_env: ATLASSIAN_TOKEN}
  # - {id: questions, domain: research, type: stackexchange, site: stackoverflow, tags: [duckdb]}
"""


def init(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(help="Where to look, three folders deep.")] = Path(),
    force: Annotated[bool, typer.Option(help="Replace a configuration that is there.")] = False,
    add: Annotated[
        list[str] | None,
        typer.Option(metavar="PLACE", help="Add a folder, a git or a web address to a configuration that is there."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Look around for repositories, documents, exports and papers, and write a commented nornweave.yaml.

    The configuration is written to the file of --config. Paths in it are relative to the folder of this file.
    """
    file: Path = context.obj
    if add:
        _add(file, add, as_json=as_json)
    else:
        _look_around(file, folder, force=force, as_json=as_json)


def _look_around(file: Path, folder: Path, *, force: bool, as_json: bool) -> None:
    if file.exists() and not force:
        raise ConfigError(f"{file} is there already; `nornweave init --force` replaces it")
    if not folder.is_dir():
        raise ConfigError(f"{folder} is not a folder")
    proposals = look_around(folder)
    write_whole(file, "".join(_lines(proposals, file.resolve().parent, folder.resolve())))
    load_settings(file)  # check that all other commands can read the new file
    if as_json:
        print_json({"file": str(file), "sources": [_keys(each, each.path) for each in proposals]})
        return
    for each in proposals:
        output.print(Text(f"{each.domain.value:<14} {each.path}: {each.why}"), soft_wrap=True)
    found = counted(len(proposals), "source") if proposals else "no sources yet: fill in those that live elsewhere"
    output.print(Text(f"{file} is written, {found}. Next: `nornweave doctor`, then `nornweave sync`"), soft_wrap=True)


def _add(file: Path, places: Sequence[str], *, as_json: bool) -> None:
    """Add the sources that can be read at each place to a configuration, and print them."""
    taken = {source.id for source in load_settings(file).sources} if file.exists() else set()
    added = []
    for place in places:
        for keys in _sources_at(file, place):
            keys["id"] = next(name for name in numbered(keys["id"]) if name not in taken)
            add_source(file, keys)
            taken.add(keys["id"])
            added.append(keys)
    if as_json:
        print_json({"file": str(file), "sources": added})
        return
    for keys in added:
        output.print(Text(f"{keys['domain']:<14} {keys['id']}: added to {file}"), soft_wrap=True)
    output.print(Text("Next: `nornweave sync --dry-run`, then `nornweave sync`"), soft_wrap=True)


def _sources_at(file: Path, place: str) -> list[dict[str, Any]]:
    """Return the settings of the sources that can be read at a place.

    Raises:
        ConfigError: the place is neither an address nor a folder with anything that can be read.
    """
    name = (
        re.sub(r"[^a-z0-9]+", "-", re.sub(r"^\w+://|\.git$", "", place.rstrip("/")).lower()).strip("-")[-40:].strip("-")
    )
    if re.match(r"(?:ssh|git|https?)://.*\.git/?$|[\w.-]+@[\w.-]+:", place):
        return [{"id": name, "domain": "code", "type": "git", "url": place}]
    if place.startswith(("https://", "http://")):
        return [{"id": name, "domain": "documentation", "type": "web", "url": place}]
    folder = Path(place)
    proposals = look_around(folder) if folder.is_dir() else ()
    if not proposals:
        raise ConfigError(f"{place}: is no address, and no folder with code, documents, exports or papers")
    base = file.resolve().parent
    return [_keys(each, _relative(base, folder.resolve() / each.path)) for each in proposals]


def _lines(proposals: Sequence[Proposal], base: Path, folder: Path) -> Iterator[str]:
    yield _HEAD if proposals else _HEAD.replace("sources:", "sources: []")
    for each in proposals:
        path = _relative(base, folder / each.path)
        yield f"  - {_flow(_keys(each, path))}   # {each.why}\n"
    yield _ELSEWHERE if proposals else _ELSEWHERE.replace("  # ", "# ")


def _keys(proposal: Proposal, path: str) -> dict[str, Any]:
    keys = {"id": proposal.id, "domain": proposal.domain.value, "type": proposal.type, "path": path}
    globs = {"only": list(proposal.only), "exclude": list(proposal.exclude)}
    return {**keys, **{key: value for key, value in globs.items() if value}}


def _flow(keys: dict[str, Any]) -> str:
    return yaml.safe_dump(keys, default_flow_style=True, sort_keys=False, width=10_000, allow_unicode=True).strip()


def _relative(base: Path, path: Path) -> str:
    resolved = path.resolve()
    return str(resolved.relative_to(base)) if resolved.is_relative_to(base) else str(resolved)
