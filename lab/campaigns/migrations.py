"""Dagster's migrations, read once in a process: it reads ninety for each of the three databases of each instance."""

from __future__ import annotations

from typing import Any

from alembic.script import ScriptDirectory


def read_once() -> None:
    """Let this process, and those that are forked from it, read each folder of migrations once."""
    read, known = ScriptDirectory.from_config, dict[Any, ScriptDirectory]()

    def once(config: Any) -> ScriptDirectory:
        place = config.get_main_option("script_location")
        if place not in known:
            known[place] = read(config)
        return known[place]

    ScriptDirectory.from_config = once  # type: ignore[method-assign]
