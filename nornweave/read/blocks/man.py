"""The blocks of manual pages, man(7), mdoc(7) and Perl's POD: sections, items with their tags, examples.

Each line of the page is one visible line; macros, commands, fonts and escapes are removed. Nothing is set in columns,
and no macro that a page defines is run. Of POD, text between ``=cut`` and the next command, behind ``=for``, and from
``=begin`` of another format to its ``=end`` is not shown.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, TypeAlias

from nornweave.core.text.inline_markup import one_line
from nornweave.core.types import Span
from nornweave.read.blocks.block import Blocks, Found, Reading, Stretch, even_line_ends, lines, paragraphs, read_lines

_CALLED_MANUAL = re.compile(
    r"(?<!\.so)(\.[1-9](?:p|pm|posix|ssl|x|m|tcl)?|\.man|\.mdoc|\.pod)(?:\.in)?$", re.IGNORECASE
)
"""What manual pages are called, and much else."""
_HEAD = re.compile(r"^[.'][ \t]*(TH|Dd)\b", re.MULTILINE)
_TITLE = re.compile(r"^[.'][ \t]*(?:TH|Dt)[ \t]+(\S+)[ \t]+(\S+)", re.MULTILINE)
_SECTION = re.compile(r"^[.'][ \t]*S[Hh]\b", re.MULTILINE)
_MACRO = re.compile(r"(?:\.[ \t]*|'(?=[a-z]{2}\b|\\\"))(?:([A-Za-z]\w*)[ \t]*|(?=\\[\"#]|$)|[\\\]}].*)")
_ARGUMENT = re.compile(r'"((?:[^"]|"")*)(?:"|$)|((?:\\.|[^ \t\\])+)')
_COMMENT = re.compile(r"(?<!\\)\\[\"#].*")
_CONDITION = re.compile(
    r"[.'][ \t]*(?:(?P<is>i[ef])[ \t]*(?:(?P<not>!?)(?P<on>[nt])(?=[ \t\\.]|$))?|(?P<else>el)\b)"
    r"[ \t]*(?:\\\{\\?[ \t]*)?"
)
"""On terminals ``n`` holds and ``t`` does not; of other conditions nobody knows."""
_DEFINED = re.compile(r"(?:de1?|am1?|ig|dei)$")
_ESCAPE = re.compile(
    r"\\(?:[fFmMgYV](?:\(..|\[[^\]]*\]|.)|s(?:[-+]?\(\d\d|[-+]?\[[^\]]*\]|[-+]?'[^']*'|[1-3]\d|[-+]?\d)"
    r"|[hvwlLbxXDZRSHBoA]'[^']*'|n[-+]?(?:\(..|\[[^\]]*\]|.)|k(?:\(..|\[[^\]]*\]|.)|N'[^']*'"
    r"|\*(?:\((?P<two>..)|\[(?P<long>[^\]]*)\]|(?P<one>.))|\((?P<sign>..)|\[(?P<name>[^\]]*)\]|(?P<plain>.)|$)"
)
_VALUE = r"(?:[^\s,]|,(?=\S))"
_OPTION = re.compile(rf"--?\w[\w-]*(?:[= ]{_VALUE}++)?(?:, --?\w{_VALUE}*+(?: {_VALUE}++)?)*+$")
"""A line that is nothing but an option, as pages without tags write it."""
_BULLET = re.compile(r"[\W_o]|[(]?(?:\d{1,3}|[a-zA-Z])[.)]$")


def _table(text: str) -> dict[str, str]:
    """Return a mapping from pairs of words: ``bu • em —`` → ``{"bu": "•", "em": "—"}``."""
    words = text.split()
    return dict(zip(words[::2], words[1::2], strict=True))


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Signs by their names, strings that macro packages and pod2man define, and what stands behind a backslash alone.
_SIGNS: Mapping[str, str] = _table("""
    bu • em — en – hy - mi - co © rg ® tm ™ aq ' dq " lq “ rq ” oq ‘ cq ’ rs \\ ti ~ ha ^ ga ` pl + -> → <- ←
    >= ≥ <= ≤ != ≠ mu × sc § de ° +- ± Fo « Fc » sq ■ at @ sh # ba | bv | or | lB [ rB ] lC { rC } sl / Do $ Eu € eu €
    12 ½ ss ß ae æ
    :a ä :o ö :u ü 'e é `e è ^e ê 'a á ,c ç ~n ñ oA Å aa ´
""")
_STRINGS: Mapping[str, str] = _table("""
    lq “ rq ” L" “ R" ” C` " C' " R ® Tm ™ -- -- Aq ' Lq “ Rq ” Le ≤ Ge ≥
""")
_PLAIN: Mapping[str, str] = {
    **dict.fromkeys("&%:/|^,)!?{}cudprz", ""), **dict.fromkeys(" ~0", " "), "e": "\\", "t": " ", '"': ""
}  # fmt: skip

_HEADINGS = {"SH": 2, "SS": 3, "Sh": 2, "Ss": 3}
_ALTERNATING = _words("BR RB BI IB IR RI")
_BREAKS = _words("PP LP P HP Pp SY YS TP TQ IP")
_ENDS_ITEM = _words("PP LP P HP")
_CODE = _table("nf fi EX EE Vb Ve TS TE EQ EN Bd Ed PS PE")
_DEEPER, _HIGHER = _words("RS Bl"), _words("RE El")
_LITERAL = _words("-literal -unfilled")
_TAGGED = _words("-tag -hang -ohang -inset -diag")
_UNSHOWN = _words("""
    TH Dt Dd Os IX XX UC AT DT PD Bl El Bd Ed RS RE Bk Ek Sm UE ME Rs Re Tg Vb Ve TS TE EQ EN EX EE PS PE
""")
"""Macros whose arguments nobody sees; the requests of roff itself, in small letters, show nothing either."""

# mdoc: macros that may stand among the arguments of another one; what they write before and behind what they mark.
_AROUND = _table("""
    Op [] Oo [] Bq [] Bo [] Pq () Po () Aq <> Ao <> Brq {} Bro {} Dq "" Do "" Qq "" Qo "" Sq '' So '' Ql ''
""")
_OPENING = _words("Oo Bo Po Ao Bro Do Qo So Xo")
_CLOSING = {**_table('Oc ] Bc ] Pc ) Ac > Brc } Dc " Qc " Sc \''), "Xc": ""}
_SIGNS_BEHIND = frozenset(".,;:)]?!")
_SYSTEMS = _table("Fx FreeBSD Nx NetBSD Ox OpenBSD Bx BSD Dx DragonFly Ux UNIX At UNIX")
_MARKING = _words("""
    Ad An Ar Cd Cm Dv Em Er Ev Fa Fl Fn Ft Ic In Li Lk Ms Mt Nd Nm No Ns Ap Pa Pf St Sx Sy Ta Tn Va Vt Xr Dl D1 Fo Fc
""")
_CALLED = frozenset({*_MARKING, *_OPENING, *_CLOSING, *_AROUND, *_SYSTEMS})

Role: TypeAlias = Literal["text", "break", "heading", "tag", "item", "code"]


def title_of(text: str) -> str:
    """Return the title of a manual page in the form ``git-add(1)``; empty if the head of the page has no title."""
    said = _TITLE.search(text)
    if said is None:
        return ""
    name, section = (_unescaped(word.strip('"')) for word in said.groups())
    spelled = re.compile(re.escape(name).replace(r"\-", r"\\?-"), re.IGNORECASE)
    written = spelled.search(text, said.end())
    return f"{_unescaped(written[0]) if written else name}({section})"


def is_called_manual(name: str) -> bool:
    """Tell whether the name of a file may be that of a manual page, such as ``tool.1`` or ``tool.conf.5.in``."""
    return _CALLED_MANUAL.search(name) is not None


def is_man(text: str) -> bool:
    """Tell whether a text is a manual page, because it begins like a manual page and has a section."""
    head = _HEAD.search(text)
    return head is not None and _SECTION.search(text, head.end()) is not None


@dataclass(slots=True)
class Line:
    """The visible text of a line of the page, and the role of the line.

    Attributes:
        depth: the number of lists and indented parts that contain the line.
        ends_item: whether the line begins a paragraph after the items of a list.
    """

    shown: str = ""
    role: Role = "text"
    depth: int = 0
    level: int = 0
    ends_item: bool = False


def read_man(text: str) -> Blocks:
    """Read a manual page. Markup is removed, and each line is filled with blanks to its old length.

    A text that is only a part of a manual page is read as paragraphs.
    """
    if not is_man(text):
        return paragraphs(text)
    even = even_line_ends(text)
    spans = list(lines(even, Span(0, len(even))))
    rows = [even[span.start : span.end].rstrip("\n") for span in spans]
    return blocks_of_page(even, spans, rows, _read_page(even, rows))


def _read_page(text: str, rows: Sequence[str]) -> list[Line]:
    """Return the visible lines of a manual page."""
    head = _HEAD.search(text)
    return _Page(is_mdoc=head is not None and head[1] == "Dd").read(rows)


def as_definitions(text: str) -> str:
    """Return a manual page or POD as a list of definitions in plain text; any other text stays as it is.

    Each line of the page is one line of the result. A tag stands at the margin, in marks of code:
    ``\\fB\\-\\-rows\\fR=\\fIN\\fR`` → ```` `--rows=N` ````. The text below a tag is indented by four blanks.
    """
    even, is_of_perl = even_line_ends(text), is_pod(text) and not is_man(text)
    if not is_of_perl and not is_man(text):
        return text
    shown, is_item = list[str](), False
    for line in _page(even.split("\n")) if is_of_perl else _read_page(even, even.split("\n")):
        is_option = line.role == "text" and line.depth == 0 and _OPTION.match(line.shown) is not None
        if line.role == "tag" or is_option:
            is_item = True
            names, bracket, said = line.shown.partition(" (")
            shown.append(", ".join(f"`{part}`" for part in names.split(", ")) + bracket + said)
            continue
        ends_item = line.ends_item or (is_of_perl and line.role == "break")
        is_item &= line.role != "heading" and not (ends_item and line.depth == 0)
        shown.append(f"    {line.shown}" if line.shown and (is_item or line.depth) else line.shown)
    return "\n".join(shown)


def blocks_of_page(text: str, spans: Sequence[Span], rows: Sequence[str], page: Sequence[Line]) -> Blocks:
    """Return the blocks of a page. Each visible line is filled with blanks to the length of its source line.

    Args:
        rows: the source lines without blank space at their ends.
        page: the visible text of each source line.
    """
    shown, hidden, said = [], [], []
    for span, row, line in zip(spans, rows, page, strict=True):
        end = span.start + len(row)
        shown.append(line.shown[: len(row)].ljust(len(row)) + text[end : span.end])
        if len(line.shown) > len(row):
            said.append((Span(span.start, end), line.shown))
        elif row != line.shown:
            hidden.append(Span(span.start + len(line.shown), end))
    read = read_lines("".join(shown), 0, partial(block_at, page))
    return Blocks(read.text, read.blocks, hidden, said)


@dataclass(slots=True)
class _Page:
    """Reads a manual page line by line."""

    is_mdoc: bool
    name: str = ""
    depth: int = 0
    code: str = ""
    is_pending: Role | None = None
    level: int = 0
    lists: list[bool] = field(default_factory=list)
    met: list[bool | None] = field(default_factory=list)
    """Whether each ``.ie`` holds whose ``.el`` is still to come."""
    indenting: dict[str, str] = field(default_factory=dict)
    """Macro that the page defines → ``RS`` or ``RE``, if that is what it stands for."""

    def read(self, rows: Iterable[str]) -> list[Line]:
        """Return the visible text of each line."""
        read: list[Line] = []
        begun, until, defined, unmet = False, "", "", 0
        for written in rows:
            row, is_met = (written, True) if until or unmet else self._conditional(written)
            if unmet or not is_met:
                unmet = max(0, unmet + row.count(r"\{") - row.count(r"\}"))
                read.append(Line())
                continue
            macro = _MACRO.match(row)
            name = (macro[1] or "") if macro else ""
            if until:
                if name in {"RS", "RE"}:
                    self.indenting.setdefault(defined, name)
                until = "" if row.replace(" ", "").startswith(until) else until
                read.append(Line())
            elif macro and _DEFINED.match(name):
                words = _COMMENT.sub("", row[macro.end() :]).split()
                defined, ends = "".join(words[:1]), words[name != "ig" :]
                until = f".{ends[0]}" if ends else ".."
                read.append(Line())
            elif not begun:
                begun = name in {"TH", "Dd"}
                read.append(Line())
            elif macro:
                found = _ARGUMENT.findall(_COMMENT.sub("", row[macro.end() :]))
                read.append(self._macro(name, [(b or a.replace('""', '"'), bool(a)) for a, b in found]))
            else:
                read.append(self._written(_unescaped(_COMMENT.sub("", row))))
        return read

    def _conditional(self, row: str) -> tuple[str, bool]:
        """Return what a line says behind its conditions, and whether they hold. A line with another one stays."""
        while condition := _CONDITION.match(row):
            holds = None if not condition["on"] else (condition["on"] == "n") is not bool(condition["not"])
            if condition["else"] and self.met:
                above = self.met.pop()
                holds = None if above is None else not above
            self.met += [holds] if condition["is"] == "ie" else []
            if not holds:
                return row, holds is None
            row = row[condition.end() :]
        return row, True

    def _written(self, shown: str, role: Role = "text") -> Line:
        """Return a visible line. If a macro before this text announced a heading or a tag, the line has this role."""
        if self.is_pending and shown.strip():
            role, self.is_pending = self.is_pending, None
        if self.code and role == "text":
            return Line(shown, "code", self.depth)
        role = "item" if role == "tag" and _BULLET.fullmatch(shown.strip()) else role
        return Line(shown.strip(), role, self.depth, self.level)

    def _macro(self, name: str, arguments: Sequence[tuple[str, bool]]) -> Line:
        name = self.indenting.get(name, name)
        words = [_unescaped(word) for word, _ in arguments]
        if name in _HEADINGS:
            self.level, self.is_pending, self.depth, self.code = _HEADINGS[name], "heading", 0, ""
            return self._written(" ".join(words))
        if name in _DEEPER:
            self.depth += 1
            self.lists.append(name == "RS" or bool(_TAGGED.intersection(words[:1])))
        if name in _HIGHER and self.depth:
            self.depth -= 1
            self.lists.pop()
        is_code = name in _CODE and (name != "Bd" or bool(_LITERAL.intersection(words[:1])))
        if is_code or name == self.code:
            self.code = _CODE[name] if is_code else ""
            return Line(role="break", depth=self.depth)
        if name in {"TP", "TQ", "HP"}:
            self.is_pending = "tag"
        if name == "IP" and words and words[0].strip():
            return self._written(words[0], "tag")
        if name == "It":
            self.is_pending = "tag" if self.lists and self.lists[-1] else "item"
            return self._written(self._mdoc(arguments))
        if name in _BREAKS:
            return Line(words[0] if words and name == "SY" else "", "break", self.depth, 0, name in _ENDS_ITEM)
        if name in _UNSHOWN or name.islower() or not name:
            return Line(role="code" if self.code else "text", depth=self.depth)
        if self.is_mdoc:
            if name == "Nm" and words and not self.name:
                self.name = words[0]
            return self._written(self._mdoc([(name, False), *arguments]))
        return self._written(("" if name in _ALTERNATING else " ").join(words))

    def _mdoc(self, arguments: Sequence[tuple[str, bool]]) -> str:
        """Return the visible text of a line of mdoc. In mdoc a macro formats the words after it."""
        text, closing, glued = "", list[str](), True
        lead, is_open, reference = "", False, 0
        words = [*arguments]
        if words[:1] == [("Nm", False)] and not any(w not in _CALLED and w not in _SIGNS_BEHIND for w, _ in words[1:2]):
            words[:1] = [("Nm", False), (self.name, True)]
        for word, is_quoted in words:
            shown = _unescaped(word)
            blank = "" if glued else " "
            if is_quoted or word not in _CALLED:
                reference -= 1
                if shown in _SIGNS_BEHIND and not is_quoted:
                    text += (blank + lead if is_open else "") + "".join(reversed(closing)) + shown
                    closing, lead, glued = [], "", False
                elif reference == 0:
                    text += f"({shown})"
                else:
                    text, glued = text + blank + lead + shown, shown in {"(", "["} and not is_quoted
                is_open = False
            elif word == "Fl":
                lead, is_open = "--" if is_open else "-", True
            else:
                text, glued = (text + blank + lead, False) if is_open else (text, glued)
                lead, is_open, reference = "", False, 2 if word == "Xr" else 0
                blank = "" if glued else " "
                if word in _SYSTEMS:
                    text, glued = text + blank + _SYSTEMS[word], False
                elif word in {"Ns", "Ap"}:
                    text, glued = text + ("'" if word == "Ap" else ""), True
                elif word in _CLOSING:
                    text += closing.pop() if closing else _CLOSING[word]
                elif word in _AROUND:
                    text, glued = text + blank + _AROUND[word][0], True
                    is_closed_here = word not in _OPENING or f"{word[:-1]}c" in dict(words)
                    closing += [_AROUND[word][1]] if is_closed_here else []
        return text + (("" if glued else " ") + lead if is_open else "") + "".join(reversed(closing))


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(_sign, text) if "\\" in text else text


def _sign(escape: re.Match[str]) -> str:
    if string := escape["two"] or escape["long"] or escape["one"]:
        return _STRINGS.get(string, "")
    if name := escape["sign"] or escape["name"]:
        point = re.fullmatch(r"u([0-9A-F]{4,5})", name)
        return chr(int(point[1], 16)) if point else _SIGNS.get(name, "")
    return _PLAIN.get(escape["plain"], escape["plain"]) if escape["plain"] else ""


def block_at(page: Sequence[Line], _reading: Reading, stretch: Stretch, at: int, _above: str) -> Found:
    """Return the block that begins at the line ``at`` of a stretch of a manual page."""
    first, last = stretch.first, len(stretch.rows)
    line, end = page[first + at], at + 1
    if line.role == "heading":
        return Found("heading", end, line.level, one_line(line.shown))
    if line.role == "tag":
        while end < last and page[first + end].depth == line.depth and _goes_with(page[first + end]):
            end += 1
        names = [one_line(each.shown) for each in page[first + at : first + end] if each.role == "tag"]
        body = end
        while end < last and not _is_behind(page[first + end], line):
            end += 1
        return Found("term", end, info=", ".join(names), body=body if end > body else -1)
    goes_on = {"text", "break"} if line.role == "item" else {"code" if line.role == "code" else "text"}
    while end < last and page[first + end].role in goes_on and not _is_behind(page[first + end], line):
        end += 1
    return Found("code" if line.role == "code" else "list" if line.role == "item" else "paragraph", end)


def _goes_with(line: Line) -> bool:
    """Tell whether a line below a tag belongs to the tag, because it is another tag or has no visible text."""
    return line.role == "tag" or not (line.shown or line.ends_item)


def _is_behind(line: Line, tag: Line) -> bool:
    """Tell whether a line below ``tag`` is no longer a part of the item that ``tag`` begins."""
    if line.role == "heading" or line.depth < tag.depth:
        return True
    return line.depth == tag.depth and (line.role in {"tag", "item"} or line.ends_item)


_POD = re.compile(r"^=(?:head[1-6]|pod|over|item)\b", re.MULTILINE)
_NAME = re.compile(
    r"^=head1[ \t]+NAME[ \t]*\s+(\S[^\n]*?)(?:,[^\n]*?)?[ \t]+(?:-+|\u2013|\u2014|E<mdash>)[ \t]", re.MULTILINE
)
_COMMAND = re.compile(r"=([a-zA-Z]+)(\d?)(?:[ \t]+(.*))?$")
_POD_OPENING = r"(?P<letter>[A-Z])(?P<angles><{2,}(?=\s)[ \t]*|<(?!<))"
_ENTITIES: Mapping[str, str] = {"verbar": "|", "sol": "/"}
_SEEN = frozenset({"text", "man"})
"""Formats of ``=begin`` that are shown; one with a colon before its name holds POD."""
_POD_BULLET = re.compile(r"[*+-]|\(?\d{1,3}[.)]?|[a-zA-Z][.)]")


def is_pod(text: str) -> bool:
    """Tell whether a text is POD, the documentation format of Perl."""
    return _POD.search(text) is not None


def pod_title_of(text: str) -> str:
    """Return the subject of a page, which is the text of its section NAME; empty if there is no such section."""
    said = _NAME.search(text)
    return _shown(said[1], [])[0].strip() if said else ""


def read_pod(text: str) -> Blocks:
    """Read POD. Markup is removed, and each line is filled with blanks to its old length."""
    even = even_line_ends(text)
    spans = list(lines(even, Span(0, len(even))))
    rows = [even[span.start : span.end].rstrip("\n") for span in spans]
    return blocks_of_page(even, spans, rows, _page(rows))


def _page(rows: Sequence[str]) -> list[Line]:
    """Return the visible text of each line. Lines above the first POD command are included."""
    page: list[Line] = []
    depth, until, hidden, is_code, above = 0, "", "", False, ""
    marks: Sequence[tuple[str, str]] = ()
    for row in rows:
        begins, above = not above.strip(), row
        found = _COMMAND.match(row.rstrip()) if begins or row.startswith(("=cut", "=head")) else None
        command, number, said = (found[1], found[2], found[3] or "") if found else ("", "", "")
        if begins:
            is_code, marks, hidden = row[:1] in {" ", "\t"}, (), hidden if hidden == "cut" else ""
        if until:
            until = "" if command == "end" and said.strip() == until else until
            page.append(Line())
        elif command in {"head", "item"}:
            hidden, depth = "", depth if command == "item" else 0
            shown, marks = _shown(said, ())
            is_bullet = _POD_BULLET.fullmatch(shown.split(maxsplit=1)[0]) if shown.split() else True
            role: Role = "heading" if command == "head" else "item" if is_bullet else "tag"
            page.append(Line(shown.strip(), role, depth, int(number or 1) + 1))
        elif command:
            hidden = command if command in {"cut", "for", "encoding"} else ""
            depth = max(0, depth + (command == "over") - (command == "back"))
            name = said.strip()
            until = name if command == "begin" and not name.startswith(":") and name not in _SEEN else ""
            page.append(Line(role="break", depth=depth))
        elif hidden or is_code:
            page.append(Line() if hidden else Line(row, "code", depth))
        else:
            shown, marks = _shown(row, marks)
            page.append(Line(shown.strip(), "text", depth))
    return page


def _shown(row: str, opened: Sequence[tuple[str, str]]) -> tuple[str, Sequence[tuple[str, str]]]:
    """Return a line without its markup, and the marks that are still open at its end.

    Args:
        opened: the marks that are open at the start of the line. A mark has its letter and a pattern of its closing.
    """
    marks, parts, at = list(opened), [""], 0
    while found := re.compile(f"{_POD_OPENING}|{marks[-1][1]}" if marks else _POD_OPENING).search(row, at):
        parts[-1] += row[at : found.start()]
        at = found.end()
        if found["letter"]:
            width = len(found["angles"].strip())
            marks.append((found["letter"], rf"(?:^|\s+)>{{{width}}}" if width > 1 else ">"))
            parts.append("")
        else:
            letter, _ = marks.pop()
            if len(parts) > 1:  # it was opened on this line
                inner = parts.pop()
                parts[-1] += _said(letter, inner)
    return "".join(parts) + row[at:], marks


def _said(letter: str, inner: str) -> str:
    if letter in {"X", "Z"}:
        return ""
    if letter == "E":
        number = inner.replace("0x", "x") if inner.startswith("0x") else inner
        return _ENTITIES.get(inner) or html.unescape(f"&#{number};" if number[-1:].isdigit() else f"&{inner};")
    if letter == "L":
        shown, bar, _ = inner.partition("|")
        page, _, section = shown.partition("/")
        return shown if bar else " in ".join(filter(None, (section.strip('"'), page)))
    return inner
