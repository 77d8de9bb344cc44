"""Spellings of ``access`` in the heads that documents have, from a grammar of the formats and not of our reader.

The productions follow YAML 1.2.2, TOML 1.0, RFC 8259, docutils' bibliographic fields and ``meta`` directive, HTML's
``<meta>``, and what the documentation of static-site generators and note-taking programs calls front matter: Jekyll,
Hugo, Hexo, Eleventy (gray-matter), Pelican, Nikola, MkDocs, MultiMarkdown, Pandoc, Org, AsciiDoc, Logseq, Docusaurus.
*Mistakes* are what people make of them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_RULE = re.compile(r"<<(\w+)>>")

GRAMMAR: Mapping[str, tuple[str, ...]] = {
    "document": ("<<yaml>>",) * 6
    + (
        "<<toml>>",
        "<<toml>>",
        "<<json>>",
        "<<json>>",
        "<<rst>>",
        "<<rst>>",
        "<<html>>",
        "<<html>>",
        "<<site>>",
        "<<site>>",
        "<<mistake>>",
        "<<mistake>>",
        "<<mistake>>",
    ),
    "suffix_any": (".md", ".rst", ".html", ".txt", ".markdown"),
    # YAML ------------------------------------------------------------------------------------------------------------
    "yaml": (
        "<<above>><<open>>\n<<before>><<entry>>\n<<after>><<close>>\n",
        "<<above>>---\n{<<flow_before>><<flow_key>>: <<flow_value>><<flow_after>>}\n---\n",
        "<<above>>--- {<<flow_before>><<flow_key>>: <<flow_value>>}\n---\n",
        "<<above>>---\n<<entry>>\n---\n",
    ),
    "above": (
        "",
        "",
        "",
        "\ufeff",
        "\n",
        "\n\n \n",
        "\u200b",
        "<!-- markdownlint-disable -->\n",
        "<!--\nSPDX-License-Identifier: MIT\n-->\n\n",
        "#!/usr/bin/env page\n",
        "// a comment\n",
        "/* a licence\n * of two lines */\n",
        "%YAML 1.2\n",
        "%TAG ! tag:example.org,2026:\n",
        "\t\n",
        "\u00a0\n",
    ),
    "open": (
        "---",
        "---",
        "---",
        "--- ",
        "---\t",
        "--- # comment",
        "--- !!map",
        "--- &head",
        "---yaml",
        "---yml",
        "---\n# comment",
        "---\n<<comments>>",
        "---\n\n",
        "---\n--- # second",
    ),
    "comments": (
        "\n".join(f"# licence, line {number}" for number in range(60)),
        "\n".join("# " + "x" * 110 for _ in range(100)),
    ),
    "before": (
        "",
        "",
        "title: Plan\n",
        "$schema: https://example.org/page.json\n",
        "\U0001f512: x\n",
        "layout/type: page\n",
        "foo(bar): x\n",
        "a+b: x\n",
        "&a title: x\n",
        f"{'k' * 90}: x\n",
        "<% x %>: y\n",
        "'quoted key': x\n",
        "? complex\n: x\n",
        "'@context': x\n",
        "/path: x\n",
        "0: x\n",
        "~: x\n",
        "!!str t: x\n",
        "\u00e9t\u00e9: x\n",
        ".hidden: x\n",
        "_: x\n",
        "date: 2026-13-40\n",
        "tags: [a, b]\n",
        "tags:\n  - a\n  - b\n",
        "text: |\n  ```\n  code\n  ```\n",
        "text: >-\n  folded\n  text\n",
        "a:\n  b:\n    c: d\n",
        "title: 'it''s'\n",
        "# comment\n",
        "\n",
        f"x: {'y' * 70_000}\n",
        "\u540d\u524d: x\n",
        "a: !custom x\n",
        "a: !!binary aGVsbG8=\n",
        "list: [1, 2,\n  3]\n",
        "m: {a: 1, b: 2}\n",
    ),
    "entry": (
        "<<key>>: <<value>>",
        "<<key>> : <<value>>",
        "<<key>>:\t<<value>>",
        "? <<key>>\n: <<value>>",
        "? |-\n  access\n: board",
        "<<key>>:\n  <<value>>",
        "<<key>>: # who\n  <<value>>",
        "<<key>>:\n\n  board",
        "<<key>>:\n- board",
        "<<key>>:\n  - board\n  - cto",
        "<<key>>:\n  -  'board'\n",
        "<<key>>: >-\n  board",
        "<<key>>: |\n  board",
        "<<key>>: <<value>>\n<<key>>: public",
        "<<key>>: public\n<<key>>: <<value>>",
    ),
    "key": (
        "access",
        "access",
        "Access",
        "ACCESS",
        "aCCess",
        "'access'",
        '"access"',
        '"acc\\x65ss"',
        '"\\u0061ccess"',
        '"\\U00000061ccess"',
        "!!str access",
        "&k access",
        "&k !!str access",
        '!<tag:yaml.org,2002:str> "access"',
        '"access "',
        "'Access'",
    ),
    "value": (
        "board",
        "[board]",
        "['board', cto]",
        '"board"',
        "'board'",
        "!!str board",
        "&v board",
        "&v [board]",
        "!!seq [board]",
        "!!null board",
        "board # who",
        "[ board , ]",
        "[board,\n  cto]",
        "",
        "~",
        "null",
        "[]",
        "3",
        "{group: board}",
        "true",
        "[[board]]",
        "!group board",
        "\u201cboard\u201d",
    ),
    "after": ("", "", "title: x\n", "# comment\n", "\n", "'---': x\n", "Access: public\n", "tags: []\n"),
    "close": ("---", "---", "---", "...", "--- ", "---\t"),
    "flow_before": ("", "", "title: x, ", '"title": "x", ', "tags: [a, b], ", "$schema: x, ", "\n  title: x,\n  "),
    "flow_key": ("access", '"access"', "'access'", "Access", '"acc\\u0065ss"', "? access "),
    "flow_value": ("board", "[board]", '"board"', '["board", "cto"]'),
    "flow_after": ("", ", title: x", ", tags: [a]", ",\n  title: x\n"),
    # TOML ------------------------------------------------------------------------------------------------------------
    "toml": (
        "<<above>>+++\n<<toml_before>><<toml_entry>>\n<<toml_after>>+++\n",
        "---toml\n<<toml_before>><<toml_entry>>\n---\n",
        "+++ \n<<toml_entry>>\n+++\n",
    ),
    "toml_before": (
        "",
        'title = "x"\n',
        "# a comment\n",
        '"$schema" = "x"\n',
        "date = 2026-01-02\n",
        "tags = ['a']\n",
        "site.name = 'x'\n",
        'text = """\n```\n"""\n',
        "\n",
        "n = 1_000\n",
        'title = "a: b"\n',
    ),
    "toml_entry": (
        'access = "board"',
        "access = 'board'",
        'access="board"',
        "access = ['board']",
        'access = [\n  "board",\n  "cto",\n]',
        '"access" = "board"',
        "'access' = 'board'",
        '"acc\\u0065ss" = "board"',
        'Access = "board"',
        "access = '''board'''",
        'access\t=\t"board"',
        "access.groups = ['board']",
        "[access]\ngroups = ['board']",
        "[[access]]\ngroup = 'board'",
        "[extra]\naccess = 'board'",
        "extra = {access = 'board'}",
        "[page.access]\ng = 'board'",
        "access = {group = 'board'}",
        "access = []",
        'access = ""',
    ),
    "toml_after": ("", "[menu]\nmain = 'x'\n", "weight = 3\n", "# end\n", "draft = false\n"),
    # JSON ------------------------------------------------------------------------------------------------------------
    "json": (
        "<<above>>{<<json_before>><<json_key>>:<<json_space>><<json_value>><<json_after>>}\n",
        "---json\n{<<json_before>><<json_key>>: <<json_value>>}\n---\n",
        "---\n{<<json_before>><<json_key>>: <<json_value>><<json_after>>}\n---\n",
        ";;;\n{<<json_before>><<json_key>>: <<json_value>>}\n;;;\n",
        ';;;\n<<json_key>>: <<json_value>>,\n"title": "x"\n;;;\n',
    ),
    "json_before": (
        "",
        '"title": "x", ',
        '\n  "title": "x",\n  ',
        '\n\t"title": "x",\n\t',
        '\n\n  "title": "x",\n\n  ',
        '"a": {"b": [1, 2]}, ',
        '"access": "public", ',
        '"text": "}", ',
        '"$schema": "x", ',
    ),
    "json_key": ('"access"', '"Access"', '"acc\\u0065ss"', '"ACCESS"', '"access "'),
    "json_space": ("", " ", "\n    ", "\t"),
    "json_value": ('"board"', '["board"]', '["board", "cto"]', "null", "[]", "3", '{"group": "board"}', '""'),
    "json_after": ("", "\n", ', "title": "x"', ',\n\n  "tags": []\n'),
    # reStructuredText ------------------------------------------------------------------------------------------------
    "rst": (
        "<<rst_above>><<rst_indent>>:<<rst_key>>: board\n",
        "<<rst_above>>:<<rst_key>>:\n   board\n",
        "<<rst_above>>:<<rst_key>>:\n\n   board\n",
        "<<rst_above>>:<<rst_key>>:\n\n   - board\n   - cto\n",
        "<<rst_above>>:<<rst_key>>: - board\n         - cto\n",
        "<<rst_above>>:<<rst_key>>:\n\n\n     board\n",
        "<<rst_above>>:<<rst_key>>:\n\tboard\n",
        "<<rst_above>>:<<rst_key>>:\n",
        "<<rst_above>>.. meta::\n<<rst_indent>>   :<<rst_key>>: board\n",
        "<<rst_above>>.. meta::\n\t:<<rst_key>>: board\n",
        "<<rst_above>>.. meta::\n   :description: x\n   :<<rst_key>> lang=en: board\n",
        "<<rst_above>>.. meta::\n   :name=access: board\n",
        "<<rst_above>>.. meta::\n   :property=access: board\n",
        "<<rst_above>>.. access: board\n",
        "<<rst_above>>.. title: x\n.. Access: board\n",
    ),
    "rst_above": (
        "",
        "",
        "\n",
        "Plan\n====\n\n",
        ":author: ann\n",
        "====\nPlan\n====\n\n:date: 2026-01-02\n",
        ".. SPDX-License-Identifier: MIT\n\n",
        "x\n" * 300,
        "Plan\n~~~~\n\n",
        "Text.\n\n----\n\n",
        ".. comment\n   of two lines\n\n",
        "\ufeff",
        "Code::\n\n   x = 1\n\n",
    ),
    "rst_indent": ("", " ", "   ", "    ", "        "),
    "rst_key": ("access", "Access", "ACCESS", "*access*", "**access**", "access "),
    # HTML ------------------------------------------------------------------------------------------------------------
    "html": (
        "<!doctype html><html><head><<html_before>><<meta>><<html_after>></head><body><p>Text.",
        "<html><head><title>x</title></head><body><<html_before>><<meta>></body></html>",
        "<?xml version='1.0'?>\n<html xmlns='http://www.w3.org/1999/xhtml'><head><<meta>></head></html>",
    ),
    "html_before": (
        "",
        "<title>x</title>",
        "<!-- a comment -->",
        "<!--",
        "<script>var a = '</head><body>';</script>",
        "<style>a{b:c}</style>",
        '<meta charset="utf-8">',
        f"<script>{'x' * 20_000}</script>",
        "<meta name=description content='a > b'>",
        "<base href=/>",
        "<noscript>",
        "\n\n",
        "<template>",
        "</head>",
        "<svg><metadata></metadata></svg>",
    ),
    "html_after": ("", "<title>x</title>", '<meta name="access" content="public">', "-->", "\n"),
    "meta": (
        '<meta name="access" content="board">',
        "<META NAME=access CONTENT=board>",
        "<meta content='board' name='Access'/>",
        '<meta\n  name = "access"\n  content = "board"\n>',
        '<meta name="&#97;ccess" content="board">',
        '<meta name="&#x61;ccess" content="board">',
        '<meta name="access">',
        '<meta name="access" content>',
        '<meta property="access" content="board" />',
        '<html:meta name="access" content="board"/>',
        '<h:meta name="access" content="board"/>',
        f'<meta data-x="{"y" * 20_000}" name="access" content="board">',
        '<meta itemprop="access" content="board">',
        '<meta http-equiv="access" content="board">',
        '<meta/name="access"/content="board">',
        '<meta name="access" content="">',
        '<meta name=" access " content="board">',
        '<meta name="access" content="board',
        '<meta name=access content="board>',
        "<meta lang=en name=access content='board'>",
        '<meta id="a>b" name="access" content="board">',
        '<meta name="ACCESS" content="board" content="public">',
    ),
    # Static-site generators and notes --------------------------------------------------------------------------------
    "site": (
        "Title: Plan\n<<plain_key>>: board\n\n# Plan\n",
        "<<plain_key>>: board\nTitle: Plan\n\n",
        "Title: Plan\nDate: 2026-01-02\n<<plain_key>>:board\n\n",
        "Title:   Plan\n<<plain_key>>:   board\n         cto\n\n",
        "<!--\n.. title: Plan\n.. <<plain_key>>: board\n-->\n\nText.\n",
        "<!-- <<plain_key>>: board -->\n",
        "<!--\n<<plain_key>>: board\n-->\n",
        "#+TITLE: Plan\n#+<<plain_key>>: board\n",
        "* Plan\n:PROPERTIES:\n:<<plain_key>>: board\n:END:\n",
        "= Plan\nAnn <ann@example.org>\n:<<plain_key>>: board\n",
        ":page-title: x\n:<<plain_key>>: board\n",
        "title:: Plan\n<<plain_key>>:: board\n",
        "- <<plain_key>>:: board\n",
        "# Plan\n\n<<plain_key>>:: board\n",
        "---js\n{\n  title: 'x',\n  access: 'board',\n}\n---\n",
        "---js\n{ title: 'x', access: 'board' }\n---\n",
        "---coffee\ntitle: 'x'\naccess: 'board'\n---\n",
        "# Plan\n\nText.\n\n---\n<<plain_key>>: board\n...\n",
        "# Plan\n\nText.\n\n---\ntitle: x\n<<plain_key>>: board\n---\n",
        "% Plan\n% Ann\n\n---\n<<plain_key>>: board\n---\n",
        "export const metadata = {\n  title: 'x',\n  access: 'board',\n};\n",
        "export const metadata = {title: 'x', access: 'board'};\n",
        "-*- <<plain_key>>: board -*-\n",
        "```{meta}\n:<<plain_key>>: board\n```\n",
        "```{eval-rst}\n.. meta::\n   :<<plain_key>>: board\n```\n",
        "; <<plain_key>> = board\n",
        "[//]: # (a comment)\n<<plain_key>>: board\n",
        "@<<plain_key>>: board\n",
    ),
    "plain_key": ("access", "Access", "ACCESS"),
    # Mistakes --------------------------------------------------------------------------------------------------------
    "mistake": (
        "---\ntitle: x\naccess board\n---\n",
        "---\ntitle: x\naccess\n  - board\n---\n",
        "---\naccess board\n---\n",
        "---\naccess\n- board\n---\n",
        "---\ntitle: x\n<<wrong_key>>\n",
        "---\n<<wrong_key>>\n\n# Plan\n",
        "---\ntitle: a: b: c\n<<wrong_key>>\n---\n",
        "---\ntitle: [broken\n<<wrong_key>>\n---\n",
        "---\nx: 'open\n<<wrong_key>>\n---\n",
        "---\n\tx: tab\n<<wrong_key>>\n---\n",
        "---\na: &x board\naccess: *x\n---\n",
        "----\n<<wrong_key>>\n----\n",
        "-----\ntitle: x\n<<wrong_key>>\n-----\n",
        "--\n<<wrong_key>>\n--\n",
        "- - -\n<<wrong_key>>\n- - -\n",
        "---\ntitle: a\n---\n---\n<<wrong_key>>\n---\n",
        "---\n---\n<<wrong_key>>\n---\n",
        "---\ntitle: a\n---\n\n---\n<<wrong_key>>\n---\n",
        "---\ntitle: x\n  <<wrong_key>>\n---\n",
        "---\npage:\n  <<wrong_key>>\n---\n",
        "---\n- <<wrong_key>>\n---\n",
        "\u2014\u2014\u2014\n<<wrong_key>>\n\u2014\u2014\u2014\n",
        "\u2013\u2013\u2013\n<<wrong_key>>\n---\n",
        "***\n<<wrong_key>>\n***\n",
        "___\n<<wrong_key>>\n___\n",
        "+++\ntitle = x\naccess = 'board'\n+++\n",
        "+++\ntitle = 'x'\n<<wrong_key>>\n+++\n",
        "+++\nbroken\n[access]\ngroups = ['board']\n+++\n",
        "+++\nbroken\naccess.groups = ['board']\n+++\n",
        "+++\ntitle = 'x'\naccess 'board'\n+++\n",
        '{"title": "x",\n "access": "board"\n',
        '{"title": "x" "access": "board"}\n',
        "{title: x, access: board\n\n# Plan\n",
        "# Plan\n\n<<wrong_key>>\n",
        "# Plan\n<<wrong_key>>\n",
        "> <<wrong_key>>\n",
        "| <<wrong_key>>\n",
        "* <<wrong_key>>\n",
        "## <<wrong_key>>\n",
        "**<<wrong_key>>**\n",
        "\\---\n<<wrong_key>>\n\\---\n",
        "~~~\n<<wrong_key>>\n",
        "```\n<<wrong_key>>\n",
        "---\n```\n<<wrong_key>>\n```\n---\n",
        "<pre>\n\n<<wrong_key>>\n",
        "1. <<wrong_key>>\n",
        "b) <<wrong_key>>\n",
        "- [x] <<wrong_key>>\n",
        "<p><<wrong_key>></p>\n",
        "Author: ann<br>\n<<wrong_key>>\n",
        "- run\n  ```\n  x\n\n<<wrong_key>>\n\n```\ny\n```\n",
        "> ```\n> x\n\n<<wrong_key>>\n\n```\ny\n```\n",
        "    ```\n<<wrong_key>>\n    ```\n",
        "<pre-release>\n\n<<wrong_key>>\n\n</pre-release>\n",
    ),
    "wrong_key": (
        "access: board",
        "Access: board",
        "access:board",
        "access = board",
        "access=board",
        "access : board",
        "access\uff1a board",
        "access:\u00a0board",
        "\u00a0access: board",
        "acc\u200bess: board",
        "\u2060access: board",
        "acc\u00adess: board",
        "\uff41\uff43\uff43\uff45\uff53\uff53: board",
        "\u201caccess\u201d: board",
        "'access: board",
        '"access" = "board"',
        "<access>: board",
        "access:: board",
        "access:= board",
        "access => board",
        "[access: board]",
        "{access: board}",
        "-access: board",
        "$access: board",
        "@access: board",
        "access*: board",
        "\taccess: board",
        "access:",
        "Access:\n  - board",
    ),
}

_SUFFIX: Mapping[str, tuple[str, ...]] = {"rst": (".rst",), "html": (".html", ".htm", ".xhtml")}
_LINE_ENDS = ("\n", "\n", "\n", "\r\n", "\r")


@dataclass(frozen=True, slots=True)
class Spelling:
    """A document whose writer meant to restrict it.

    Attributes:
        kind: the production that it is of.
        parts: the alternatives that it was made of, as ``rule: number``.
        suffix: of its file.
    """

    kind: str
    parts: frozenset[str]
    suffix: str
    text: str


def spellings(count: int, seed: int = 1) -> Iterator[Spelling]:
    """Yield different spellings; those alternatives come first that came least, so that a few hundred have all."""
    rng = random.Random(seed)  # noqa: S311 - repeatable, nothing secret
    used: dict[str, list[int]] = {}
    known: set[tuple[str, str]] = set()
    while len(known) < count:
        parts: set[str] = set()
        kind = GRAMMAR["document"][_next("document", used, parts, rng)].strip("<>")
        head = _expanded(f"<<{kind}>>", used, parts, rng)
        suffix = rng.choice(_SUFFIX.get(kind, GRAMMAR["suffix_any"]))
        text = f"{head}\n# Plan\n\nThe deal is in May.\n".replace("\n", rng.choice(_LINE_ENDS))
        if (suffix, text) not in known:
            known.add((suffix, text))
            yield Spelling(kind, frozenset(parts), suffix, text)


def alternatives() -> frozenset[str]:
    """Return all parts that spellings are made of."""
    own = GRAMMAR.keys() - {"suffix_any"}
    return frozenset(f"{rule}: {number}" for rule in own for number in range(len(GRAMMAR[rule])))


def _expanded(text: str, used: dict[str, list[int]], parts: set[str], rng: random.Random) -> str:
    def chosen(match: re.Match[str]) -> str:
        return _expanded(GRAMMAR[match[1]][_next(match[1], used, parts, rng)], used, parts, rng)

    return _RULE.sub(chosen, text)


def _next(rule: str, used: dict[str, list[int]], parts: set[str], rng: random.Random) -> int:
    """Return the number of an alternative: each once, in random order, before any comes again."""
    if not used.get(rule):
        used[rule] = rng.sample(range(len(GRAMMAR[rule])), len(GRAMMAR[rule]))
    number = used[rule].pop()
    parts.add(f"{rule}: {number}")
    return number
