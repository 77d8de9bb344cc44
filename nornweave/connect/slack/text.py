"""Convert a Slack message to plain text: names for ids, links, attachments, blocks, file titles."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from nornweave.connect.conversation import as_is, clean, clean_name, mappings

_REFERENCE = re.compile(r"<([^<>|\n]*)(?:\|([^<>\n]*))?>")
_ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))
# Blocks nest (lists in quotes in sections); an export that nests deeper than this is broken.
_MAX_DEPTH = 20


@dataclass(frozen=True, slots=True)
class Directory:
    """The names of people and channels by Slack id."""

    people: Mapping[str, str] = field(default_factory=dict)
    channels: Mapping[str, str] = field(default_factory=dict)


def user_name(user: Mapping[str, Any]) -> str:
    """Return the display name of a user; empty if there is none."""
    profile = as_is(user.get("profile"), dict) or {}
    candidates = (
        profile.get("display_name"),
        user.get("display_name"),
        profile.get("real_name"),
        user.get("real_name"),
        user.get("name"),
    )
    return next((clean_name(name) for name in candidates if isinstance(name, str) and name.strip()), "")


def speaker_of(message: Mapping[str, Any], directory: Directory) -> str:
    """Return the name of the speaker. If it is unknown return the speaker's id, and without an id ``unknown``."""
    user = as_is(message.get("user"), str) or ""
    if user in directory.people:
        return directory.people[user]
    bot = as_is(message.get("bot_profile"), dict) or {}
    profile = as_is(message.get("user_profile"), dict) or {}
    username = as_is(message.get("username"), str) or ""
    bot_id = as_is(message.get("bot_id"), str) or ""
    known = directory.people.get(bot_id, "")
    names = (user_name(profile), clean_name(username), user_name(bot), known, user, bot_id)
    return next((name for name in names if name), "unknown")


def plain(text: str, directory: Directory) -> str:
    """Resolve Slack's markup: ``<@U1>`` → ``@alice``, ``<#C1|ops>`` → ``#ops``, ``<url|label>`` → ``label (url)``."""
    text = _REFERENCE.sub(lambda match: _reference(match[1], match[2] or "", directory), text)
    for entity, character in _ENTITIES:
        text = text.replace(entity, character)
    return text


def _reference(target: str, label: str, directory: Directory) -> str:
    kind, name = target[:1], target[1:]
    if kind == "@":
        return f"@{directory.people.get(name) or label or name}"
    if kind == "#":
        return f"#{label or directory.channels.get(name, name)}"
    if kind == "!":
        # <!here>, <!subteam^S1|@payments>, <!date^1392734382^{date}|Feb 18>
        return label or f"@{name.split('^')[0]}"
    address = target.removeprefix("mailto:")
    if not label or label in address:
        return address
    return f"{label} ({address})"


def body_of(message: Mapping[str, Any], directory: Directory) -> str:
    """Return a message's whole text: its text or else its blocks, then attachments and the titles of files.

    Previews of links (unfurls) repeat the text of other pages. They are used only if the message has no other text.
    """
    text = as_is(message.get("text"), str) or ""
    text = text or "\n".join(_blocks(message.get("blocks")))
    parts = [text]
    for attachment in mappings(message.get("attachments")):
        is_preview = any(key in attachment for key in ("from_url", "original_url", "is_msg_unfurl"))
        if not (text and is_preview):
            parts += [part for part in _attachment(attachment) if part not in text]
    parts += [f"[file] {title}" for title in map(_file_title, mappings(message.get("files"))) if title]
    return clean(plain("\n".join(part for part in parts if part.strip()), directory))


def _attachment(attachment: Mapping[str, Any]) -> Iterator[str]:
    said = [part for key in ("pretext", "title", "text") if (part := as_is(attachment.get(key), str))]
    said += [
        ": ".join(part for key in ("title", "value") if (part := as_is(each.get(key), str)))
        for each in mappings(attachment.get("fields"))
    ]
    said += _blocks(attachment.get("blocks"))
    yield from said or [as_is(attachment.get("fallback"), str) or ""]


def _file_title(file: Mapping[str, Any]) -> str:
    return as_is(file.get("title"), str) or as_is(file.get("name"), str) or ""


def _blocks(value: object) -> list[str]:
    return [line for block in mappings(value) if (line := _block(block, 0))]


def _block(node: Mapping[str, Any], depth: int) -> str:
    """Return the text of one block: one line per section, with the inline elements next to each other."""
    if depth > _MAX_DEPTH:
        return ""
    leaf = _leaf(node)
    if leaf:
        return leaf
    own = as_is(node.get("text"), dict)
    parts = [_block(own, depth + 1)] if own else []
    for key in ("elements", "fields"):
        children = [_block(child, depth + 1) for child in mappings(node.get(key))]
        is_inline = node.get("type") in ("rich_text_section", "rich_text_preformatted", "rich_text_quote")
        parts.append(("" if is_inline else "\n").join(child for child in children if child))
    return "\n".join(part for part in parts if part)


def _leaf(node: Mapping[str, Any]) -> str:
    kind, text = node.get("type"), as_is(node.get("text"), str) or ""
    if kind == "link":
        url = as_is(node.get("url"), str) or ""
        return f"<{url}|{text}>" if text else f"<{url}>"
    if kind == "user":
        return f"<@{node.get('user_id')}>"
    if kind == "channel":
        return f"<#{node.get('channel_id')}>"
    if kind == "emoji":
        return f":{node.get('name')}:"
    return text
