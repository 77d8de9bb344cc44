"""What a file is, by what it holds."""

import re

import pytest

from nornweave.core.errors import DocumentSkipped
from nornweave.core.types import Domain, Entry, SourceId, Span
from nornweave.read.blocks.reader import read_blocks
from nornweave.read.chunking.code import parts_of
from nornweave.read.chunking.languages import is_template_page
from nornweave.read.file import read_document
from nornweave.read.kinds import format_of, reads
from nornweave.read.worth import PROSE_SHARE, is_empty_page, is_encoded, is_json, prose_share

ENTRY = """<!doctype html>
<html><head><title>Tea shop</title></head><body>
<noscript>This shop needs JavaScript.</noscript>
<div id="app"></div>
<script type="module" src="/src/main.js"></script>
</body></html>
"""
NOTES = """{{- $url := .Values.url -}}
1. Get the password by running:
{{- if eq .Values.service.type "NodePort" }}
  export PORT=$(kubectl get --namespace {{ template "tea.namespace" . }} -o jsonpath="{.spec.ports[0]}" services)
{{- else if .Values.ingress.enabled -}}{{- include "tea.something.long" (dict "root" $ "name" .Values.name) }}
{{- end }}
2. Log in as admin with the password from step 1.
"""


def test_a_page_that_a_program_fills_is_code_and_one_piece() -> None:
    assert is_empty_page(ENTRY) and is_empty_page(re.sub("<script.*</script>", "", ENTRY))
    assert format_of("index.html", ENTRY, Domain.CODE) == "webpage"
    assert [part.language for part in parts_of(ENTRY, "webpage")] == ["html"]
    said = ENTRY.replace('<div id="app">', '<div id="app">Tea is sold here.')
    assert format_of("index.html", said, Domain.CODE) is None


@pytest.mark.parametrize(("page", "is_template"), [
    ("---\nlayout: default\n---\n<article>{{ content }}</article>", True),
    ("<footer>By Ann, {{ site.title }}</footer>", False),
    ("---\ntitle: Teas\n---\n<ul>{% for tea in site.teas %}<li>{{ tea }}{% endfor %}</ul>", False),
    ("<p>Write <code>{{ site.title }}</code>.</p>", False), ("<p>Write {{ name }}.</p>", False),
])  # fmt: skip
def test_layouts_and_parts_of_pages_are_templates(page: str, *, is_template: bool) -> None:
    assert is_template_page(page) is is_template
    assert is_template_page(page, "docs/_includes/foot.html") and not is_template_page(
        "<p>Tea.", "docs/includes/a.html"
    )


@pytest.mark.parametrize("name", ["RELEASE_NOTES", "NEWS.txt"])
@pytest.mark.parametrize(("line", "form"), [("=" * 20, "rst"), ("#" * 40, "rst"), ("ab", "text")])
def test_headings_between_two_lines_are_headings(name: str, line: str, form: str) -> None:
    text = "".join(f"{line}\nNotes for v1.{n}\n{line}\n\nThe kettle whistles now.\n\n" for n in range(3))
    assert format_of(name, text, Domain.DOCUMENTATION) == form
    titles = [block.info for block in read_blocks(text, form).blocks if block.kind == "heading"]
    assert titles == ([f"Notes for v1.{n}" for n in range(3)] if form == "rst" else [])


@pytest.mark.parametrize("line", ["#compdef tea", "#autoload", "#!/bin/zsh"])
def test_a_completion_of_zsh_says_so_in_its_first_line(line: str) -> None:
    assert format_of("_tea", f"{line}\n_arguments '-a'\n", Domain.CODE) == "shell"
    assert format_of("_tea", f"{line}\n_arguments '-a'\n", Domain.DOCUMENTATION) is None
    assert format_of("tea", "# compdef is a command\n", Domain.CODE) is None


@pytest.mark.parametrize(("line", "form"), [
    ("# Completes tea.  -*- shell-script -*-", "shell"), ("# -*- sh-mode -*-", "shell"), ("// tea -*- C++ -*-", "cpp"),
    ("# -*- coding: utf-8; mode: Python -*-", "python"), ("# -*- python-ts -*-", None), ("# a -*- b -*-", None),
])  # fmt: skip
def test_a_line_for_editors_says_the_language(line: str, form: str | None) -> None:
    assert format_of("tea", f"{line}\n\nword word\n", Domain.CODE) == form


def reason(path: str, text: str) -> str:
    try:
        return read_document(SourceId("s"), Entry(path=path, gate=""), text.encode(), domain=Domain.CODE).format
    except DocumentSkipped as error:
        return str(error).partition(":")[0]


@pytest.mark.parametrize(("path", "told"), [
    ("tests/pour.test", "shell"), ("src/tests/unit/pour.check", "shell"), ("tests/fixtures/pour.test", "test data"),
])  # fmt: skip
def test_a_program_below_tests_is_a_test_whatever_its_suffix(path: str, told: str) -> None:
    assert reason(path, "#!/bin/sh\nout=$(./kettle --pour)\ncase $out in\n  tea) exit 0;;\nesac\nexit 1\n") == told
    assert reason(path, "a=1\nb=2\nexport c\n") == "test data"


def test_a_long_literal_makes_no_program_minified() -> None:
    picture = 'const leaf = "data:image/png;base64,' + "iVBORw0KGgo" * 900 + '";\n'
    program = "".join(f"test('cup {at}', () => {{\n  expect(pour({at})).toBe(leaf);\n}});\n" for at in range(5))
    assert reason("cup.spec.ts", f"{picture}{program}") == "typescript"
    assert reason("leaf.ts", f"// A leaf.\n{picture}") == "minified"
    assert reason("leaf.js", f"{picture}{program}" + "f(a,b);" * 2_000) == "minified"
    names = ", ".join(f"'cup-of-tea-{at}'" for at in range(200))
    assert reason("names.js", f"const names = [{names}]\nexport default names\n") == "javascript"
    assert reason("names.js", f"const names = [{names.replace(', ', ',')}]\n") == "minified"


@pytest.mark.parametrize(("path", "head", "end", "told"), [
    ("a.js", "", "//# sourceMappingURL=/assets/a.js.map\n", "compiled"),
    ("a.css", "", "/*# sourceMappingURL=a.css.map */", "compiled"),
    ("a.js", "(() => {\n  var __create = Object.create;\n", "", "compiled"),
    ("a.mjs", "// Kettle\n/* of tin */\n\nvar fa = Object.defineProperty, da = a;\n", "", "compiled"),
    ("a.js", "const map = '//# sourceMappingURL=';\n", "", "javascript"),
    ("a.js", "const empty = Object.create(null);\n", "", "javascript"),
    ("a.js", "const create = Object.create;\n", "", "javascript"),
])  # fmt: skip
def test_what_a_bundler_wrote_is_left_out(path: str, head: str, end: str, told: str) -> None:
    body = "function pour(cup) {\n  return cup.fill();\n}\n" * 60 if path != "a.css" else ".cup { color: red }\n" * 60
    assert reason(path, f"{head}{body}{end}") == told


def test_what_a_template_writes_into_a_text_is_no_part_of_it() -> None:
    assert prose_share(NOTES) >= PROSE_SHARE
    assert prose_share("{% trans %}{% if a.b.c.d.e.f %}Your page was approved by the editors.{% endif %}") == 1
    assert prose_share("a=1\nb=2\n{{ x }}\n") == 0


ENCODED = "\n".join("riGp/58WAm+dX3a5IDnOdcdbWB2dC4/DSDC6Lc1mxLpQ2yMK/Ye9FZ1wUVl4nuYV" for _ in range(5))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (ENCODED, True),
        ("".join(f"#    {line}\n" for line in ENCODED.splitlines()), True),
        ("".join(f'  "{line}" +\n' for line in ENCODED.splitlines()), True),
        (f"content: |\n{ENCODED[:132]}\n", False),
        ("M12 3.5c-1.2 0-3.4 2.1" + " 4.5-1.2a3.2 1.1 0 0 1-2.2" * 20, True),
        ("0x1, 0x2, 0x3,\n" * 40, False),
        ("the kettle boils water and whistles in 30 seconds or 40 " * 10, False),
        ("\n".join(["a_name_of_a_function_that_is_rather_long_indeed"] * 5), False),
        ("\n".join(["3f786850e387550fdab836ed7e6dc881de23001b3f786850"] * 5), False),
    ],
)
def test_encoded_bytes_and_drawings_are_told(text: str, *, told: bool) -> None:
    assert is_encoded(text) is told


def test_json_under_the_name_of_a_program_is_data() -> None:
    assert is_json('{"status": "enabled", "queries": 4242}\n') and is_json("[]")
    assert not any(map(is_json, ["{ block }", "42", '"text"', "<?php\n{}", "[" * 100_000]))


def test_a_list_of_contributors_that_a_tool_keeps_is_not_shown() -> None:
    table = "<table>\n<!-- prettier-ignore -->\n<tr><td>Ann</td></tr>\n</table>\n"
    start, end = "<!-- ALL-CONTRIBUTORS-LIST:START - Do not remove -->", "<!-- ALL-CONTRIBUTORS-LIST:END -->"
    text = f"# Tea\n\n{start}\n{table}{end}\n\nBoils.\n"
    read = read_blocks(text, "markdown")
    assert read.shown(Span(0, len(text))).split() == ["#", "Tea", "Boils."]
    assert read_blocks(text.replace("LIST:END", "LIST"), "markdown").shown(Span(0, len(text))).count("Ann") == 1


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("## Begin\n# If the path is not the front page\nRewriteRule .* front\n## End\n", "text"),
        ("# remark\nagent: x\n# another\n# and more\nallow: y\n", "text"),
        ("# Kettles\n\nThey boil.\n\n## Hot ones\nBoil more.\n", "markdown"),
    ],
)
def test_remarks_of_a_text_are_no_headings(text: str, form: str) -> None:
    assert format_of("a.txt", text, Domain.DOCUMENTATION) == form


def test_names_and_suffixes_that_are_code() -> None:
    for path in ("a/.htaccess", "Kettle.psm1", "Kettle.psd1", "robots.txt", "Bootstrap.mak", "phpstan.neon"):
        assert reads(Domain.CODE, path)


@pytest.mark.parametrize(("name", "text", "form"), [
    ("user-data", "#cloud-config\n\ntimezone: UTC\nusers:\n  - name: ann\n", "yaml"),
    ("network-config", "# The network\n\nversion: 2\nethernets:\n  eth0:\n    dhcp4: false\n", "yaml"),
    ("settings", "# -*- mode: yaml -*-\n- a\n- b\n", "yaml"), ("tasks", "---\n# vim: set ft=yaml :\n- a: 1\n", "yaml"),
    ("boil", "# vi: set ft=ruby :\nboil 3\n", "ruby"),
    (".yamllint", "extends: default\nrules:\n  a: disable\n", "yaml"),
    ("NOTES", "Kettle: it boils\nand whistles: loud\n", None), ("note", "Only: one line\n", None),
    ("TODO", "Buy tea: soon\nSell tea: later\n", None), ("broken", "a: [1\nb: 2\n", None),
])  # fmt: skip
def test_yaml_without_a_suffix_is_code_by_what_it_holds(name: str, text: str, form: str | None) -> None:
    assert reads(Domain.CODE, name) and format_of(name, text, Domain.CODE) == form


APACHE_HEAD = """Licensed to the Tea Foundation under one or more contributor license agreements. See the NOTICE file
distributed with this work for additional information regarding copyright ownership. The foundation licenses this file
to you under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software distributed under the License is distributed
on an "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for
the specific language governing permissions and limitations under the License."""
MIT_HEAD = """The MIT License (MIT). Copyright (c) 2024 Ann

Permission is hereby granted, free of charge, to any person obtaining a copy of this software, to deal in the Software
without restriction, subject to the following conditions: the above copyright notice shall be included in all copies.
THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED."""
MPL_HEAD = """This Source Code Form is subject to the terms of the Mozilla Public License, v. 2.0. If a copy was
not distributed with this file, You can obtain one at https://mozilla.org/MPL/2.0/."""
SPDX_HEAD = "SPDX-FileCopyrightText: 2024 Ann\nSPDX-License-Identifier: Apache-2.0"
PAGE = "The kettle boils in four minutes and is emptied twice a day by whoever drinks the last cup. "


def left_out(path: str, text: str) -> str | None:
    try:
        read_document(SourceId("s"), Entry(path=path, gate=""), text.encode(), domain=Domain.DOCUMENTATION)
    except DocumentSkipped as skipped:
        return str(skipped)
    return None


@pytest.mark.parametrize("head", [APACHE_HEAD, MIT_HEAD, MPL_HEAD, SPDX_HEAD])
@pytest.mark.parametrize("sentences", [2, 12, 60])
def test_a_page_below_a_notice_in_a_comment_is_no_licence(head: str, sentences: int) -> None:
    said, lines = PAGE * sentences, head.splitlines()
    for path, text in (
        ("README.md", f"<!--\n{head}\n-->\n\n# Kettles\n\n{said}\n"),
        ("guide.md", "<!---\n" + "".join(f"    {line}\n" for line in lines) + f"--->\n# Kettles\n\n{said}\n"),
        ("index.rst", "..\n" + "".join(f"   {line}\n" for line in lines) + f"\nKettles\n=======\n\n{said}\n"),
        ("index.adoc", "".join(f"// {line}\n" for line in lines) + f"\n= Kettles\n\n{said}\n"),
        ("page.html", f"<!--\n{head}\n--><html><body><h1>Kettles</h1><p>{said}</p></body></html>"),
    ):
        assert left_out(path, text) is None, path


@pytest.mark.parametrize("head", [APACHE_HEAD, MIT_HEAD])
def test_a_page_below_a_visible_notice_is_read_if_it_goes_on_with_something_else(head: str) -> None:
    assert left_out("kettles.md", f"{head}\n\n# Kettles\n\n{PAGE * 9}\n") is None
    assert "licence" in (left_out("kettles.md", f"{head}\n\n# Kettles\n") or "")


@pytest.mark.parametrize(
    "name", ["LICENSE", "LICENSE.md", "LICENCE.txt", "COPYING", "COPYING.LESSER", "MIT-LICENSE.txt"]
)
@pytest.mark.parametrize("text", [APACHE_HEAD, MIT_HEAD])
def test_licences_are_left_out_whatever_they_are_called(name: str, text: str) -> None:
    assert "licence" in (left_out(name, f"{text}\n") or ""), name
    assert "licence" in (left_out(name, f"Tea\n===\n\n{text}\n\n{text}\n") or ""), name
