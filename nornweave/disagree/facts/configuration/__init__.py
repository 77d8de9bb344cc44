"""Extract facts from configuration and manifests: YAML, JSON, TOML, INI, ``.env``, Dockerfiles."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import islice
from pathlib import PurePosixPath

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Fact
from nornweave.disagree.facts.configuration.entries import (
    Entry,
    bracket_entries,
    directive_entries,
    line_entries,
    specified_entries,
)
from nornweave.disagree.facts.configuration.manifests import (
    line_requirements,
    patterns_of,
    says_only_versions,
)
from nornweave.disagree.facts.configuration.settings import setting_facts, without_descriptions
from nornweave.disagree.facts.passage import Passage
from nornweave.read.chunking.languages import language_of

MAX_FACTS = 2_000
"""Of one passage: more is data."""

_LINES = (
    "yaml yml toml ini cfg conf properties env dotenv editorconfig service dockerfile containerfile docker".split()  # noqa: SIM905
)
_SYNTAX = {
    **dict.fromkeys(_LINES, line_entries),
    **dict.fromkeys(("conf", "cfg"), directive_entries),
    **dict.fromkeys(("json", "jsonc", "webmanifest"), bracket_entries),
    **dict.fromkeys(("spec", "configspec"), specified_entries),
}
# Lists of other people's versions, and data that nobody sets.
_NO_CONFIGURATION = lazy_pattern(
    r"(?:^|/)(?:package-lock|npm-shrinkwrap|composer\.lock|poetry\.lock|cargo\.lock|pnpm-lock|yarn\.lock|uv\.lock)|"
    r"\.lock$|\.jsonl$|\.map$|(?:^|/)(?:locales?|i18n|lang|translations?|messages|fixtures?|testdata|snapshots?)/",
    re.IGNORECASE,
)


def is_configuration(format: str, path: str) -> bool:  # noqa: A002 - the word of the contract
    """Tell whether a file is configuration or a manifest, by its format (``yaml``, ``dockerfile``) or its name.

    Manifests that are programs (``setup.py``, ``Gemfile``) count too: requirements are read here, the rest as code.
    """
    return _is_read(path) and (_reader(format, path) is not None or bool(patterns_of(path)))


@lru_cache(maxsize=1024)
def _reader(format_: str, path: str) -> Callable[[str], Iterator[Entry]] | None:
    name = PurePosixPath(path).name.lower()
    if language_of(path) is not None:
        return None
    if name.startswith(("dockerfile", "containerfile", ".env.")) or name == ".env":
        return line_entries
    bare = re.sub(r"\.(?:example|sample|template|dist|default|defaults|tmpl|tpl)$", "", name)
    return _SYNTAX.get(PurePosixPath(bare).suffix.lstrip(".")) or _SYNTAX.get(format_.lower())


@lru_cache(maxsize=1024)
def _is_read(path: str) -> bool:
    return _NO_CONFIGURATION.search(path) is None


def configuration_facts(passage: Passage) -> Iterator[Fact]:
    """Yield the settings of a passage of configuration and the requirements of a manifest, each in order.

    The side of a fact is ``configuration``; but it is ``code`` for requirements (form ``manifest``) and defaults in a
    schema. Values of passwords, tokens and keys are never read.
    """
    if not _is_read(passage.path):
        return
    yield from line_requirements(passage)
    read = _reader(passage.format, passage.path)
    if read is not None and not says_only_versions(passage.path):
        entries = islice(without_descriptions(read(passage.text)), MAX_FACTS)
        yield from islice((fact for entry in entries for fact in setting_facts(passage, entry)), MAX_FACTS)
