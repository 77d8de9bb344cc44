"""A server that asks for somebody else says for whom: what it gets is narrowed to what they may see."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import unquote

from starlette.datastructures import Headers

from nornweave.ask.agents.exchange import GROUPS_HEADER
from nornweave.core.access.rules import group_name
from nornweave.core.access.viewer import Viewer


def on_behalf(viewer: Viewer, headers: Headers) -> Viewer:
    """Return a viewer in the groups that a request names; never one who sees more than who sent it."""
    stated = headers.getlist(GROUPS_HEADER)
    if not stated:
        return viewer
    named = frozenset(group_name(unquote(group)) for value in stated for group in value.split(",") if group)
    groups = named if viewer.sees_everything else named & viewer.groups
    return replace(viewer, groups=groups, sees_everything=False, operates=False)
