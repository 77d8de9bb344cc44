"""Turn Confluence's storage format into plain HTML. The HTML outline then cuts it at headings.

Storage format is XHTML with elements of its own: macros (``ac:structured-macro``), links and images whose target is an
element (``ri:page``), task lists, layouts. What a reader sees stays; parameters, ids and colours go. Each element is
written when what is inside it is; of markup that is broken or nested beyond what people write, only the text stays.

Source: confluence.atlassian.com/doc/confluence-storage-format-790796544.html; ``ac:adf-extension`` as Cloud writes it.
"""

from __future__ import annotations

import html
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from bs4 import BeautifulSoup, Tag
from bs4.element import NavigableString, PageElement
from bs4.exceptions import ParserRejectedMarkup

from nornweave.core.text.inline_markup import unescaped, without_long_references
from nornweave.read.blocks.html import VOID_TAGS, is_sound

# Tags that are written as they are, without their attributes.
_PLAIN = frozenset(
    {
        *("p", "br", "hr", "ul", "ol", "li", "dl", "dt", "dd", "blockquote", "pre", "code", "div", "section"),
        *("table", "thead", "tbody", "tfoot", "tr", "th", "td", "caption", "strong", "em", "b", "i", "u", "s", "del"),
        *("sub", "sup", "small", "kbd", "samp", "var", "q", "cite", "details", "summary", "figure", "figcaption"),
    }
)
_RENAMED = {
    "ac:task-list": "ul",
    "ac:task": "li",
    "ac:layout": "div",
    "ac:layout-section": "div",
    "ac:layout-cell": "div",
    "ac:rich-text-body": "div",
    "ac:adf-content": "div",
    "ac:caption": "div",
}
# Elements whose content no reader sees.
_SILENT = frozenset(
    {
        *("script", "style", "template", "ac:placeholder", "ac:task-id", "ac:task-uuid", "ac:adf-attribute"),
        *("ac:adf-parameter", "ac:default-parameter"),
    }
)
_MACROS = frozenset({"ac:structured-macro", "ac:macro"})
# Macros whose body is markup or code of the page's own workings.
_UNSEEN_MACROS = frozenset({"html", "html-bobswift", "style", "css", "javascript", "html-include"})
# Macros without a body of which a reader sees one parameter.
_SHOWN_PARAMETER = {"status": "title", "jira": "key", "jiraissues": "key", "roadmap": "title", "view-file": "name"}
_TARGETS = {
    "ri:page": "ri:content-title",
    "ri:blog-post": "ri:content-title",
    "ri:attachment": "ri:filename",
    "ri:space": "ri:space-key",
    "ri:url": "ri:value",
}
_EMOTICONS = {"tick": "✓", "cross": "✗", "yes": "✓", "no": "✗"}
_LANGUAGE = re.compile(r"[a-z][\w+#.-]{0,30}")
_LINK = re.compile(r"(?:https?|mailto):[^\s\"'<>]{1,2000}", re.I)
_TAG = re.compile(r"<[^<>]*>")
_ACCOUNT = re.compile(r'ri:account-id="([\w:.-]{1,200})"')
_HEADINGS = {f"h{level}": f"h{min(level + 1, 6)}" for level in range(1, 7)}
_ANCHOR_CHARACTERS = 200
# Every level copies its content once more.
_MAX_DEPTH = 300
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def mentioned_accounts(storage: str) -> Sequence[str]:
    """Return the ids of the accounts that a body mentions, without repetition."""
    return tuple(dict.fromkeys(_ACCOUNT.findall(storage)))


def html_of_storage(storage: str, title: str, names: Mapping[str, str]) -> str:
    """Return a page as HTML: its title as the first heading, its own headings one level lower.

    Args:
        storage: the body as the API gives it.
        names: account id → name, for mentions.

    Returns:
        HTML with Confluence's ids of headings; empty if the body has no text.
    """
    source = without_long_references(_without_cdata(_CONTROL.sub(" ", storage.replace("\r\n", "\n"))))
    try:
        body = _StorageWriter(names).write(source) if is_sound(source) else _text_alone(source)
    except (ParserRejectedMarkup, _TooDeepError):
        body = _text_alone(source)
    if not _says(body):
        return ""
    return f"<h1>{html.escape(' '.join(_CONTROL.sub(' ', title).split()), quote=False)}</h1>\n{body}"


def _text_alone(source: str) -> str:
    return f"<p>{html.escape(unescaped(_TAG.sub(' ', source)), quote=False)}</p>"


def _without_cdata(source: str) -> str:
    """Write CDATA sections as escaped text, which means the same."""
    first, *rest = source.split("<![CDATA[")
    pieces = [first]
    for piece in rest:
        text, _, after = piece.partition("]]>")
        pieces += (html.escape(text, quote=False), after)
    return "".join(pieces)


def _text_of(written: str) -> str:
    return unescaped(_TAG.sub("", written))


def _says(written: str) -> bool:
    return bool(_text_of(written).strip())


class _TooDeepError(Exception):
    """Elements are nested beyond ``_MAX_DEPTH``."""


class _StorageWriter:
    """Writes the elements of one body as HTML, from the inside out."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self._anchors: Counter[str] = Counter()
        # What was written of an element whose place is decided by the one around it.
        self._kept: dict[int, str] = {}

    def write(self, source: str) -> str:
        """Return the HTML of a body.

        Raises:
            ParserRejectedMarkup: html.parser cannot read the body.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it looks like XML, or like an address
            soup = BeautifulSoup(source, "html.parser")
        open_tags: list[tuple[Tag, Iterator[PageElement], list[str]]] = [(soup, iter(soup.contents), [])]
        while True:
            tag, contents, written = open_tags[-1]
            child = next(contents, None)
            if isinstance(child, Tag):
                if len(open_tags) > _MAX_DEPTH:
                    raise _TooDeepError
                open_tags.append((child, iter(child.contents), []))
            elif child is not None:
                written.append(html.escape(child, quote=False) if type(child) is NavigableString else "")
            elif len(open_tags) == 1:
                return "".join(written)
            else:
                open_tags.pop()
                open_tags[-1][2].append(self._element(tag, "".join(written)))

    def _element(self, tag: Tag, inner: str) -> str:
        name = tag.name
        if name in _SILENT:
            return ""
        if write := _WRITERS.get(name):
            return write(self, tag, inner)
        if name.startswith("ri:"):
            return self._target(tag)
        if name in _HEADINGS:
            return self._heading(name, inner)
        if name in VOID_TAGS:
            return f"<{name}>" if name in _PLAIN else ""
        written_as = _RENAMED.get(name) or (name if name in _PLAIN else "")
        return f"<{written_as}>{inner}</{written_as}>" if written_as else inner

    def _keep(self, tag: Tag, inner: str) -> str:
        self._kept[id(tag)] = inner
        return ""

    def _parameter(self, macro: Tag | None, name: str) -> str:
        """Return a parameter of a macro as text."""
        given = macro.find("ac:parameter", {"ac:name": name}, recursive=False) if macro and name else None
        return _text_of(self._kept.get(id(given), "")).strip()

    def _macro(self, tag: Tag, inner: str) -> str:
        """Return the content of a macro. If the content is empty, return the one parameter that Confluence displays."""
        shown = _SHOWN_PARAMETER.get(str(tag.get("ac:name", "")), "")
        return inner if _says(inner) else inner + html.escape(self._parameter(tag, shown), quote=False)

    def _titled(self, tag: Tag, body: str) -> str:
        title = self._parameter(tag.find_parent(list(_MACROS)), "title")
        return f"<p><strong>{html.escape(title, quote=False)}</strong></p>{body}" if title else body

    def _code(self, tag: Tag, inner: str) -> str:
        """Write the body of a code macro.

        In a table, a body of one line becomes inline code, so that it stays in its cell.
        """
        macro = tag.find_parent(list(_MACROS))
        if macro is None:
            return inner
        text = inner.strip("\n")
        if macro.get("ac:name") in _UNSEEN_MACROS or not text.strip():
            return ""
        if tag.find_parent("table") and "\n" not in text:
            return self._titled(tag, f"<code>{text}</code>")
        language = self._parameter(macro, "language").lower()
        named = f' class="language-{language}"' if _LANGUAGE.fullmatch(language) else ""
        return self._titled(tag, f"<pre><code{named}>{text}</code></pre>")

    def _target(self, tag: Tag) -> str:
        """Return the name of the page, person or file to which ``tag`` points; empty outside of a parameter.

        Inside a link or an image the name is not returned but stored as the label of that link or image.
        """
        name = self._names.get(str(tag.get("ri:account-id", "")))
        label = (f"@{name}" if name else "") if tag.name == "ri:user" else str(tag.get(_TARGETS.get(tag.name, ""), ""))
        around = tag.find_parent(["ac:parameter", "ac:link", "ac:image"])
        if around is None or around.name == "ac:parameter":
            return html.escape(label, quote=False) if around else ""
        self._kept.setdefault(id(around), label)
        return ""

    def _labelled(self, tag: Tag, inner: str) -> str:
        if _says(inner):
            return inner
        label = tag.get("ac:alt") or tag.get("ac:title") or self._kept.get(id(tag)) or tag.get("ac:anchor") or ""
        return inner + html.escape(str(label), quote=False)

    def _heading(self, name: str, inner: str) -> str:
        """Return a heading with the id that Confluence gives it.

        The id has hyphens in place of blanks. If several headings have the same text, all but the first get a number.
        """
        anchor = "-".join(_text_of(inner).split())[:_ANCHOR_CHARACTERS]
        count = self._anchors[anchor]
        self._anchors[anchor] += 1
        numbered = f' id="{html.escape(f"{anchor}.{count}" if count else anchor)}"' if anchor else ""
        return f"<{_HEADINGS[name]}{numbered}>{inner}</{_HEADINGS[name]}>"

    def _fallback(self, tag: Tag, inner: str) -> str:
        extension = tag.find_parent("ac:adf-extension")
        return self._keep(extension, inner) if extension else inner

    def _extension(self, tag: Tag, inner: str) -> str:
        """Write an extension's content, or its fallback if the content is empty."""
        return inner if _says(inner) else inner + self._kept.get(id(tag), "")


_WRITERS: Mapping[str, Callable[[_StorageWriter, Tag, str], str]] = {
    **dict.fromkeys(_MACROS, _StorageWriter._macro),
    "ac:parameter": _StorageWriter._keep,
    "ac:adf-fallback": _StorageWriter._fallback,
    **dict.fromkeys(("ac:link", "ac:image"), _StorageWriter._labelled),
    "ac:rich-text-body": lambda writer, tag, inner: writer._titled(tag, f"<div>{inner}</div>"),
    "ac:plain-text-body": _StorageWriter._code,
    "ac:adf-extension": _StorageWriter._extension,
    "ac:task-status": lambda _, __, inner: "[x] " if inner.strip() == "complete" else "[ ] ",
    "ac:emoticon": lambda _, tag, inner: html.escape(_emoticon(tag.attrs), quote=False) + inner,
    "time": lambda _, tag, inner: html.escape(str(tag.get("datetime", "")), quote=False) + inner,
    "img": lambda _, tag, __: html.escape(str(tag.get("alt", "")), quote=False),
    "a": lambda _, tag, inner: _link(str(tag.get("href", "")), inner),
}


def _link(target: str, inner: str) -> str:
    return f'<a href="{html.escape(target)}">{inner}</a>' if _LINK.fullmatch(target) else inner


def _emoticon(values: Mapping[str, Any]) -> str:
    sign = str(values.get("ac:emoji-fallback", ""))
    return _EMOTICONS.get(str(values.get("ac:name", ""))) or ("" if re.fullmatch(r":[\w+-]*:", sign) else sign)
