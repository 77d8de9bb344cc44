"""Turn Confluence's storage format into plain HTML, which the outline of HTML then cuts at its headings.

Storage format is XHTML with elements of its own: macros (``ac:structured-macro``), links and images whose target is an
element (``ri:page``), task lists, layouts. What a reader sees stays; parameters, ids and colours go. It is read in one
pass of html.parser, without recursion, however deep and however broken the markup is.

Source: confluence.atlassian.com/doc/confluence-storage-format-790796544.html; ``ac:adf-extension`` as Cloud writes it.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser

from nornweave.core.text.inline_markup import unescaped, without_long_references
from nornweave.read.chunking.outlines.html import VOID_TAGS, is_sound

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
# Elements whose text is not written where it stands.
_CAPTURED = frozenset({"ac:parameter", "ac:task-status", "ac:plain-text-body"})
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
# Pieces of a heading that its anchor is made of.
_HEADING_PIECES = 200
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def mentioned_accounts(storage: str) -> Sequence[str]:
    """Return the ids of the accounts that a body mentions, each once."""
    return tuple(dict.fromkeys(_ACCOUNT.findall(storage)))


def html_of_storage(storage: str, title: str, names: Mapping[str, str]) -> str:
    """Write a page as HTML: its title as the first heading, its own headings one level below.

    Args:
        storage: the body as the API gives it.
        title: of the page.
        names: account id → name, for mentions.

    Returns:
        HTML whose headings have the ids by which Confluence links to them; empty when the body says nothing.
    """
    source = without_long_references(_without_cdata(_CONTROL.sub(" ", storage.replace("\r\n", "\n"))))
    try:
        body = _read(source, names) if is_sound(source) else _text_alone(source)
    except AssertionError:  # what html.parser raises at ``<![word`` with a word that it does not know
        body = _text_alone(source)
    if not unescaped(_TAG.sub("", body)).strip():
        return ""
    return f"<h1>{html.escape(' '.join(_CONTROL.sub(' ', title).split()), quote=False)}</h1>\n{body}"


def _read(source: str, names: Mapping[str, str]) -> str:
    reader = _StorageReader(names)
    reader.feed(source)
    reader.close()
    return reader.written()


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


@dataclass(slots=True)
class _Element:
    """An open element.

    Attributes:
        closing: what is written at its end.
        name: of a macro or a parameter.
        silences: nothing inside it is written.
        place: in the output, where it begins.
        said: texts that were written before it.
        label: what stands for a link or an image that has no text of its own; else ``anchor`` does.
        parameters: of a macro.
    """

    tag: str
    name: str
    place: int
    said: int
    closing: str = ""
    silences: bool = False
    label: str = ""
    anchor: str = ""
    parameters: dict[str, str] = field(default_factory=dict)


class _StorageReader(HTMLParser):
    """Writes HTML while html.parser goes through the storage format once."""

    def __init__(self, names: Mapping[str, str]) -> None:
        super().__init__(convert_charrefs=True)
        self._names = names
        self._out: list[str] = []
        self._said = 0
        self._open: list[_Element] = []
        self._count: dict[str, int] = {}
        self._macros: list[_Element] = []
        self._labelled: list[_Element] = []
        self._extensions: list[_Element] = []
        self._captured: list[list[str]] = []
        self._silent = 0
        self._anchors: dict[str, int] = {}

    def written(self) -> str:
        """Close what is open and return the HTML."""
        while self._open:
            self._leave()
        return "".join(self._out)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Read an element without content."""
        self.handle_starttag(tag, attrs)
        if tag not in VOID_TAGS:
            self.handle_endtag(tag)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open an element."""
        values = {name: value or "" for name, value in attrs}
        if tag in VOID_TAGS:
            self._void(tag, values)
            return
        element = _Element(tag, values.get("ac:name", ""), len(self._out), self._said)
        self._open.append(element)
        self._count[tag] = self._count.get(tag, 0) + 1
        # What Confluence shows where it does not know an extension repeats what the extension says.
        repeats = tag == "ac:adf-fallback" and bool(self._extensions) and self._extensions[-1].said < self._said
        element.silences = tag in _SILENT or repeats
        self._silent += element.silences
        if not self._silent:
            self._enter(element, values)

    def handle_endtag(self, tag: str) -> None:
        """Close an element and what is still open inside it; one that is not open is ignored."""
        while self._count.get(tag):
            if self._leave() == tag:
                return

    def handle_data(self, data: str) -> None:
        """Take a run of text; references are resolved already."""
        if not self._silent:
            self._say(data)

    def _enter(self, element: _Element, values: Mapping[str, str]) -> None:
        tag = element.tag
        if tag in _MACROS:
            self._macros.append(element)
        elif tag in _CAPTURED:
            self._captured.append([])
        elif tag == "ac:rich-text-body":
            self._title_of_macro()
        elif tag == "ac:adf-extension":
            self._extensions.append(element)
        elif tag in {"ac:link", "ac:image"}:
            element.label = values.get("ac:alt") or values.get("ac:title", "")
            element.anchor = values.get("ac:anchor", "")
            self._labelled.append(element)
        elif tag.startswith("ri:"):
            self._target(tag, values)
        elif tag == "ac:emoticon":
            self._say(_emoticon(values))
        elif tag == "time":
            self._say(values.get("datetime", ""))
        name, opening = _written_as(tag, values)
        if name:
            element.place = len(self._out)
            element.closing = f"</{name}>"
            self._mark(opening)

    def _leave(self) -> str:
        """Close the innermost element; return its tag."""
        element = self._open.pop()
        self._count[element.tag] -= 1
        if not self._silent:
            self._end(element)
        self._silent -= element.silences
        return element.tag

    def _end(self, element: _Element) -> None:
        tag = element.tag
        if tag in _MACROS:
            self._macros.pop()
            self._shown_parameter(element)
        elif tag in _CAPTURED:
            self._end_captured(element, "".join(self._captured.pop()))
        elif tag == "ac:adf-extension":
            self._extensions.pop()
        elif tag in {"ac:link", "ac:image"}:
            self._labelled.pop()
            if element.said == self._said:
                self._say(element.label or element.anchor)
        elif tag in _HEADINGS:
            self._anchor(element)
        if element.closing:
            self._mark(element.closing)

    def _end_captured(self, element: _Element, text: str) -> None:
        if element.tag == "ac:task-status":
            self._say("[x] " if text.strip() == "complete" else "[ ] ")
        elif element.tag == "ac:parameter":
            if self._macros:
                self._macros[-1].parameters[element.name] = text.strip()
        elif self._macros:
            self._code(self._macros[-1], text)
        else:
            self._say(text)

    def _code(self, macro: _Element, text: str) -> None:
        """Write the body of a code macro; one line of it in a table stays in its cell."""
        text = text.strip("\n")
        if macro.name in _UNSEEN_MACROS or not text.strip():
            return
        self._title_of_macro()
        if self._count.get("table") and "\n" not in text:
            opening, closing = "<code>", "</code>"
        else:
            language = macro.parameters.get("language", "").lower()
            named = f' class="language-{language}"' if _LANGUAGE.fullmatch(language) else ""
            opening, closing = f"<pre><code{named}>", "</code></pre>"
        self._mark(opening)
        self._say(text)
        self._mark(closing)

    def _title_of_macro(self) -> None:
        title = self._macros[-1].parameters.get("title", "") if self._macros else ""
        if title:
            self._mark("<p><strong>")
            self._say(title)
            self._mark("</strong></p>")

    def _shown_parameter(self, macro: _Element) -> None:
        if macro.said == self._said:
            self._say(macro.parameters.get(_SHOWN_PARAMETER.get(macro.name, ""), ""))

    def _target(self, tag: str, values: Mapping[str, str]) -> None:
        """Take what a link or an image leads to as its label, unless it has one; elsewhere as text."""
        if tag == "ri:user":
            name = self._names.get(values.get("ri:account-id", ""))
            label = f"@{name}" if name else ""
        else:
            label = values.get(_TARGETS.get(tag, ""), "")
        if self._captured:
            self._say(label)
        elif self._labelled:
            self._labelled[-1].label = self._labelled[-1].label or label

    def _void(self, tag: str, values: Mapping[str, str]) -> None:
        if self._silent:
            return
        if tag == "img":
            self._say(values.get("alt", ""))
        elif tag in _PLAIN:
            self._mark(f"<{tag}>")

    def _anchor(self, heading: _Element) -> None:
        """Give a heading the id that Confluence gives it: hyphens for blanks, a number from the second on."""
        if heading.place >= len(self._out) or self._captured:
            return
        pieces = self._out[heading.place + 1 : heading.place + _HEADING_PIECES]
        anchor = "-".join(unescaped(_TAG.sub("", "".join(pieces))).split())[:_HEADING_PIECES]
        if not anchor:
            return
        count = self._anchors.get(anchor, 0)
        self._anchors[anchor] = count + 1
        numbered = f"{anchor}.{count}" if count else anchor
        self._out[heading.place] = f'<{_HEADINGS[heading.tag]} id="{html.escape(numbered)}">'

    def _say(self, text: str) -> None:
        if self._captured:
            self._captured[-1].append(text)
        elif text:
            self._said += bool(text.strip())
            self._out.append(html.escape(text, quote=False))

    def _mark(self, tag: str) -> None:
        if not self._captured:
            self._out.append(tag)


def _written_as(tag: str, values: Mapping[str, str]) -> tuple[str, str]:
    """Return the HTML element that an element becomes, and its start tag; empty for one that only its content is."""
    if tag == "a" and _LINK.fullmatch(values.get("href", "")):
        return "a", f'<a href="{html.escape(values["href"])}">'
    name = _RENAMED.get(tag) or _HEADINGS.get(tag) or (tag if tag in _PLAIN else "")
    return name, f"<{name}>"


def _emoticon(values: Mapping[str, str]) -> str:
    sign = values.get("ac:emoji-fallback", "")
    return _EMOTICONS.get(values.get("ac:name", "")) or ("" if re.fullmatch(r":[\w+-]*:", sign) else sign)
