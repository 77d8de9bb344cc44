"""The SYNTAX_AWARE chunker: golden files for every language, and what must hold for any text."""

import itertools
import json
import os
import re
import tracemalloc
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from words import TOKEN, Words

from nornweave.core.text.spans import TokenIndex
from nornweave.core.types import Chunk, ContentHash, Document, Domain, SourceId, document_id
from nornweave.read.chunking import parsing
from nornweave.read.chunking.code import chunk_code
from nornweave.read.chunking.languages import GRAMMARS, PROGRAMS, code_format_of, language_of
from nornweave.read.kinds import format_of, reads
from nornweave.read.worth import licence_span

GOLDEN = Path(__file__).parent.parent / "golden" / "code"
SOURCES = sorted(path for path in GOLDEN.iterdir() if path.suffix != ".json")
SYMBOL_KEYS = (
    "node_type",
    "function_name",
    "class_name",
    "parameter_count",
    "return_type",
    "imports_used",
    "line_range",
)


def document(text: str, path: str, language: str | None = None, revision: str | None = None) -> Document:
    return Document(
        id=document_id("code", path),
        domain=Domain.CODE,
        source_id=SourceId("code"),
        path=path,
        text=text,
        format=language or code_format_of(path, text) or "text",
        content_hash=ContentHash("0"),
        revision=revision,
    )


def chunks_of(text: str, path: str = "src/payments/a.py", **limits: int) -> list[Chunk]:
    return list(chunk_code(document(text, path), TokenIndex(text, Words()), **limits))


SCOPE_END = re.compile(r"^(?:\}[ \t]*//[^\n]*namespace[^\n]*|\w*END\w*(?:\([^()\n]*\))?|#endif[^\n]*)$", re.MULTILINE)


def closes_scope(line: str, before: str) -> bool:
    """Tell whether a line closes what the text before it opens and does not close."""
    if SCOPE_END.fullmatch(line) is None:
        return False
    if line.startswith("}"):
        return before.count("{") > before.count("}")
    if line.startswith("#"):
        return len(re.findall(r"^#[ \t]*if", before, re.MULTILINE)) > len(re.findall(r"^#endif", before, re.MULTILINE))
    name = line.partition("(")[0]
    begun = sum(before.count(name.replace("END", word, 1)) for word in ("BEGIN", "START"))
    return begun > before.count(name)


def assert_left_out(text: str, start: int, end: int) -> None:
    """Assert that between two passages stand only blank lines and lines that close a namespace."""
    for line in text[start:end].splitlines(keepends=True):
        assert not line.strip() or closes_scope(line.strip(), text[:start]), line
        start += len(line)


def assert_tiles(text: str, chunks: Sequence[Chunk], limit: int = 512) -> None:
    end, licence = 0, licence_span(text)
    text_left = text[: licence.start] + " " * len(licence) + text[licence.end :]  # a licence at the head is left out
    text_left = re.sub(r"(?i)</script\s*>", lambda tag: " " * len(tag[0]), text_left)  # as are tags that close a script
    for chunk in chunks:
        assert chunk.span.start >= end
        assert_left_out(text_left, end, chunk.span.start)
        assert chunk.content == text[chunk.span.start : chunk.span.end]
        assert chunk.content.strip()
        assert chunk.token_count <= limit
        assert chunk.token_count == len(TOKEN.findall(chunk.content))
        first, last = chunk.metadata["line_range"]  # type: ignore[misc, index]
        ends = [match.end() for match in re.finditer("\r\n?|\n", text)]
        assert first == bisect_right(ends, chunk.span.start) + 1
        assert last == bisect_right(ends, chunk.span.end - 1) + 1
        end = chunk.span.end
    assert_left_out(text_left, end, len(text_left))


def test_only_lines_that_close_a_scope_may_stand_between_passages() -> None:
    for text in ("#if A\n#endif // A", "namespace a {\n}  // namespace a", "TEA_BEGIN_SPACE\nTEA_END_SPACE"):
        begun, ends = text.split("\n")
        assert_left_out(text, len(begun), len(text))
        for wrong in (ends, f"{text}\n{ends}", f"{begun}\nint {ends};"):
            with pytest.raises(AssertionError):
                assert_left_out(wrong, wrong.rfind("\n") + 1, len(wrong))


@pytest.mark.parametrize(("head", "kept"), [
    ("/**\n * @brief keeps the lid\n * @license MIT\n */\n", "keeps the lid"),
    ("/** @brief keeps the lid\n @license MIT */\n", "keeps the lid"),
    ("# Copies lanterns every night.\n# Licensed under the MIT license, see LICENSE.\n\n",
     "Copies lanterns every night."),
    ("// reads the meter. Copyright 2020 Ann\n",
     "reads the meter."), ("// Copyright 2020 Ann\n// and contributors.\n", ""),
    ("# kettle - boils water\n# See LICENSE file for copyright and license details.\n", "kettle - boils water"),
    ("/* SPDX-License-Identifier: MIT */\n/**\n * @file\n * @ingroup a\n * @brief Draws\n * @license MIT\n */\n",
     "Draws"),
    ("/* SPDX-License-Identifier: MIT */\n/**\n * @file\n * @brief Draws\n */\n", "/**\n * @file"),
    ("// SPDX-License-Identifier: MIT\n\n/*\n * Draws.\n */\n", "/*\n * Draws."),
    ("/**\n * @copyright 2020 Ann\n * @brief Sends software\n */\n", "Sends software"),
    ("// This file is part of Kettle.\n// Copyright 2020 Ann.\n// Licensed under MIT.\n", ""),
    ("/* SPDX-License-Identifier: MIT */\n/**\n * @file\n * @copyright 2020 Ann\n * @license MIT\n */\n", ""),
    ("//\n//  Kettle.swift\n//  Tea Kit\n//\n//  Created by Ann on 1/1/2020.\n//  Using Swift 5.0.\n//\n"
     "//  Copyright © 2020 Ann.\n//\n", ""),
    ("//\n//  kettle.m\n//  tea\n//\n//  Created by Ann on 2020-01-01.\n//  Copyright © 2020 Ann.\n//\n", ""),
    ("//\n//  A.swift\n//  Tea\n//\n//  Created by Ann on 1/1/2020.\n//\n\n// Boils water.\n", "// Boils water."),
    ("// A.swift\n//\n// Created by Ann on 1/1/2020.\n// Boils water.\n", "Ann on 1/1/2020.\n// Boils water."),
    ("// kettle.c boils water\n//\n// Copyright 2020 Ann\n", "kettle.c boils water"),
    ("# Part of Kettle, under its license.\n#\n# By:\n# Copyright 2020 Ann\n#\n# Free software, as is.\n", ""),
])  # fmt: skip
def test_what_a_head_says_beside_its_licence_stays(head: str, kept: str) -> None:
    span = licence_span(f"{head}int a;\n")
    rest = head[: span.start] + head[span.end :]
    assert kept in rest
    assert kept or not rest.strip()


# --- golden files ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_golden(source: Path) -> None:
    text = source.read_text(encoding="utf-8")
    chunks = chunks_of(text, source.name)
    assert_tiles(text, chunks)
    rows = [{"title": chunk.title, **{key: chunk.metadata.get(key) for key in SYMBOL_KEYS}} for chunk in chunks]
    known = source.with_name(source.name + ".json")
    if os.environ.get("NORNWEAVE_UPDATE_GOLDEN") == "1":
        lines = ",\n".join(
            json.dumps({k: v for k, v in row.items() if v is not None}, ensure_ascii=False) for row in rows
        )
        known.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    expected = json.loads(known.read_text(encoding="utf-8"))
    assert json.loads(json.dumps([{k: v for k, v in row.items() if v is not None} for row in rows])) == expected


def test_every_language_has_a_golden_file() -> None:
    assert {language_of(source.name) for source in SOURCES} == set(PROGRAMS)
    assert len(PROGRAMS) == 13


# --- the rules ------------------------------------------------------------------------------------------------------

STATEMENTS = "\n".join(f"    total = total + fee_{number} * rate(total)" for number in range(12))


def test_metadata_has_exactly_the_documented_keys() -> None:
    text = "from money import D\n\n\nclass Pay:\n    '''Pays.'''\n\n" + "".join(
        f"    def pay_{n}(self, a: int, b=2) -> D:\n        return D(a) + b - {n}\n\n" for n in range(4)
    )
    index = TokenIndex(text, Words())
    method = list(chunk_code(document(text, "src/pay.py", revision="abc1234"), index))[2]
    assert dict(method.metadata) == {
        "language": "python",
        "node_type": "function_definition",
        "function_name": "pay_0",
        "class_name": "Pay",
        "defines": ("Pay.pay_0",),
        "parameter_count": 2,
        "return_type": "D",
        "imports_used": ("D",),
        "file_path": "src/pay.py",
        "line_range": (7, 8),
        "commit_sha": "abc1234",
    }
    assert method.title == "Pay.pay_0"
    assert method.context == "class Pay:"


def test_imports_are_one_chunk_until_they_exceed_their_limit() -> None:
    few = "".join(f"import module_{n}\n" for n in range(10))
    assert [chunk.metadata["node_type"] for chunk in chunks_of(few)] == ["import_block"]
    many = "".join(f"import module_{n}\n" for n in range(100))  # 200 tokens
    chunks = chunks_of(many)
    assert [chunk.token_count for chunk in chunks] == [200]
    chunks = chunks_of(many, limit=128)
    assert [chunk.token_count for chunk in chunks] == [128, 72]
    assert_tiles(many, chunks, 128)


def test_one_import_statement_that_is_too_long_is_split_at_lines() -> None:
    text = "from payments import (\n" + "".join(f"    name_{n},\n" for n in range(100)) + ")\n"
    chunks = chunks_of(text, limit=128)
    assert {chunk.metadata["node_type"] for chunk in chunks} == {"import_block"}
    assert all(chunk.content.startswith(("from", "    name_")) for chunk in chunks)
    assert_tiles(text, chunks, 128)


def test_constants_are_grouped_up_to_the_preamble_limit() -> None:
    text = "".join(f"LIMIT_{n} = {n}\n" for n in range(100))  # 3 tokens each
    assert [chunk.token_count for chunk in chunks_of(text)] == [300]  # no blank line parts them
    chunks = chunks_of(text.replace("\n", "\n\n"))
    assert [chunk.token_count for chunk in chunks] == [255, 45]
    assert {chunk.title.split(",")[0] for chunk in chunks if chunk.title} == {"LIMIT_0", "LIMIT_85"}


@pytest.mark.parametrize("rows", range(15, 60, 3))
def test_a_branch_of_swift_begins_with_its_condition(rows: int) -> None:
    first = "".join(f"            set(fan: {n}, to: {n * 100})\n" for n in range(rows))
    second = "".join(f"            write(key: {n}, value: {n * 10})\n" for n in range(30))
    branches = f"        #if os(iOS)\n{first}        #else\n{second}        #endif\n"
    text = f"class A {{\n    func a(_ id: Int) {{\n{branches}    }}\n}}\n"
    chunks = chunks_of(text, "a.swift", limit=200)
    assert_tiles(text, chunks, 200)
    assert not any(chunk.content.endswith("#else") for chunk in chunks)
    assert not any(chunk.content.lstrip().startswith("#endif") for chunk in chunks)


def test_a_long_function_is_cut_around_its_scopes() -> None:
    loops = "".join(f"    for x{n} in xs:\n" + f"        total = total + f(x{n}, total)\n" * 3 for n in range(6))
    text = f"def sum_up(xs):\n    total = 0\n{loops}    return total\n"
    chunks = chunks_of(text, limit=80)
    assert_tiles(text, chunks, 80)
    assert len(chunks) == 3
    assert all(chunk.content.lstrip().startswith(("def ", "for ")) for chunk in chunks)
    assert {chunk.title for chunk in chunks} == {"sum_up"}
    assert chunks[0].context == ""
    assert chunks[1].context == "def sum_up(xs):"


def test_a_nested_function_names_the_pieces_that_it_fills() -> None:
    text = (
        f"def outer(total):\n    first = total\n    def inner(total, rate):\n{STATEMENTS.replace('    ', '        ')}\n"
    )
    chunks = chunks_of(text, limit=60)
    assert_tiles(text, chunks, 60)
    assert chunks[-1].title == "outer.inner"
    assert chunks[-1].metadata["parameter_count"] == 2
    assert all("fee_0" in chunk.content for chunk in chunks if "def inner" in chunk.content)
    assert chunks[-1].context == "def inner(total, rate):"


def test_a_statement_longer_than_a_chunk_is_cut_at_its_lines() -> None:
    text = "TABLE = [\n" + "".join(f"    ({n}, 'name {n}'),\n" for n in range(200)) + "]\n"
    chunks = chunks_of(text)
    assert_tiles(text, chunks)
    assert len(chunks) > 2 and all(chunk.content.endswith((",", "]")) for chunk in chunks)


def test_a_small_class_stays_whole_and_a_larger_one_does_not() -> None:
    small = "class Fee:\n    def of(self, amount):\n        return amount / 100\n"
    assert [chunk.title for chunk in chunks_of(small)] == ["Fee"]
    large = (
        f"class Fee:\n    def of(self, total, rate):\n{STATEMENTS.replace('    ', '        ')}\n        return total\n"
    )
    assert [chunk.title for chunk in chunks_of(large)] == ["Fee.of"]


def test_what_stands_directly_above_belongs_to_a_function_and_what_does_not_does_not() -> None:
    far = "# A word about everything that follows, long enough to stand on its own in a chunk: " + "fees " * 20
    text = f"x = 1\n\n{far}\n\n# Near.\n@cached\ndef f():\n    return 1  # trailing\n"
    chunks = chunks_of(text)
    assert [chunk.content[:6] for chunk in chunks] == ["x = 1\n", "# Near"]
    assert chunks[1].content.endswith("# trailing")


def test_closing_braces_belong_to_what_they_close() -> None:
    text = "namespace a {\nnamespace b {\nvoid f() { g(); }\n}\n}  // namespace a\n"
    assert [chunk.content for chunk in chunks_of(text, "a.cpp")] == [text.rstrip()]


def test_offsets_are_characters_whatever_the_text_is_written_in() -> None:
    body = "    'ä😀'\n    return os.sep + straße\n"
    text = f"\ufeff# Größe 😀\nimport os\n\n\ndef größe(straße, 数):\n{body}\n\ndef b(x): return 1\n"
    chunks = chunks_of(text)
    assert_tiles(text, chunks)
    assert [chunk.metadata.get("function_name") for chunk in chunks] == [None, "größe", "b"]
    assert chunks[1].metadata["parameter_count"] == 2
    assert chunks[1].metadata["imports_used"] == ("os",)


def test_names_in_comments_and_strings_are_not_uses() -> None:
    text = "import os\nimport sys\n\n\ndef f():\n    # os\n    return 'os', sys.argv\n"
    assert chunks_of(text)[1].metadata["imports_used"] == ("sys",)


def test_minified_code_is_cut_between_statements() -> None:
    functions = "".join(f"function f{n}(a,b){{if(a){{return b+{n}}}return a}}" for n in range(60))
    text = f"(function(root){{{functions}}})(window);"
    chunks = chunks_of(text, "a.min.js", limit=256)
    assert_tiles(text, chunks, 256)
    assert all(chunk.content.startswith(("(function", "function f")) for chunk in chunks)


def test_a_header_with_cpp_in_it_is_parsed_as_cpp() -> None:
    members = "".join(f"  int get_{n}(int a) const {{ return a * {n} + offset_; }}\n" for n in range(6))
    chunks = chunks_of(f"namespace pay {{\nclass Fee {{\n public:\n{members}}};\n}}\n", "fee.h")
    assert [chunk.title for chunk in chunks][:2] == ["Fee.get_0", "Fee.get_1"]
    assert chunks[0].metadata["language"] == "cpp"


def test_export_macros_do_not_hide_a_cpp_class() -> None:
    members = "".join(f"  int get_{n}(int a) const {{ return a * {n} + offset_; }}\n" for n in range(6))
    chunks = chunks_of(f"class PAY_API Fee : public Base {{\n{members}}};\n", "fee.hpp")
    assert chunks[0].content.startswith("class PAY_API Fee : public Base {\n  int get_0")
    assert chunks[0].metadata["defines"] == ("Fee", "Fee.get_0")


@pytest.mark.parametrize(("text", "path", "titles"), [
    ("#!perl\nuse Kettle on => <<EOT;\nlid = 1\nEOT\n\nuse Test::More;\nuse Cup;\n", "a.t", [None, None]),
    ('my $a = <<"A" . <<\'B\';\none\nA\ntwo\nB\n\nsub boil { return <<~C; }\n  three\n  C\n', "a.pl", ["$a", "boil"]),
    ("USAGE = <<~EOT\n" + "  boil water\n" * 70 + "EOT\n\nclass Kettle; end\n", "a.rb", ["USAGE", "Kettle"]),
    ("use strict;\nour $USAGE = <<EOT;\n" + "boil water\n" * 70 + "EOT\nrun();\n", "a.pl", [None, "$USAGE"]),
])  # fmt: skip
def test_a_here_document_stands_with_what_opens_it(text: str, path: str, titles: list[str | None]) -> None:
    chunks = chunks_of(text, path)
    assert_tiles(text, chunks)
    assert [chunk.title for chunk in chunks] == titles
    assert not any(re.search(r"<<.*\Z", chunk.content) for chunk in chunks)


@pytest.mark.parametrize(("path", "sign"), [("a.rb", "#"), ("a.py", "#"), ("a.ts", "//")])
def test_a_banner_and_a_paragraph_begin_a_part(path: str, sign: str) -> None:
    rule = f"{sign} ----------\n"
    act = "".join(f"boil({n}, 'a kettle of water');\n" for n in range(4))
    text = f"{act}\n" * 8
    banner = (
        f"{rule}{sign} Functions that pour what was boiled before into the cups of the whole team, in turns.\n{rule}"
    )
    chunks = chunks_of(f"{text}{banner}\n{act}\n{text}", path)
    assert len(chunks) > 2 and all(chunk.content.startswith((banner, "boil(0")) for chunk in chunks)
    assert sum(chunk.content.startswith(banner) for chunk in chunks) <= 1 and not any(
        chunk.content.endswith(banner.rstrip()) for chunk in chunks
    )


MEMBERS = {
    "union.ts": (
        "export type Kettle = {\n  name: string;\n} & (\n",
        "  | {{\n      state: 'hot{0}';\n      heat: {0};\n{1}    }}\n",
        "      at{0}: {{\n        hour: number;\n      }};\n",
        "  | {",
    ),
    "schema.ts": (
        "export const kettle: Schema = s.union('state', [\n",
        "  s.object({{\n    state: s.literal('hot{0}'),\n{1}  }}),\n",
        "    at{0}: s.array(\n      s.number(),\n    ),\n",
        "  s.object({",
    ),
    "test.ts": (
        "export const isHot = (kettle: Kettle) =>\n  kettle.on\n",
        "  || (kettle.heat > {0} &&\n{1}    kettle.full)\n",
        "    kettle.at{0}(\n      'noon',\n    ) &&\n",
        "  || (",
    ),
}


@pytest.mark.parametrize("path", MEMBERS)
@pytest.mark.parametrize("fields", [1, 2, 3])
def test_a_long_expression_is_cut_at_its_members(path: str, fields: int) -> None:
    opening, member, field, begins = MEMBERS[path]
    body = "".join(member.format(n, "".join(field.format(m) for m in range(fields))) for n in range(12))
    text = f"{opening}{body}{')' * (path == 'union.ts')}{']);' * (path == 'schema.ts')};\n"
    chunks = chunks_of(text, path, limit=100)
    assert_tiles(text, chunks, 100)
    assert len(chunks) > 2 and {chunk.title for chunk in chunks} <= {"Kettle", "kettle", "isHot"}
    for chunk in chunks[1:]:
        assert chunk.content.startswith(begins), chunk.content


def test_statements_that_no_blank_line_parts_stay_together() -> None:
    rows = "".join(f"OLD_NAME(Kettle_{name});\n" for name in ("boils", "cools", "leaks", "whistles", "rests") * 6)
    first = " + ".join("1" * 60)
    text = f"int first = {first};\n\n#define OLD_NAME(name) const int OLD_##name = name\n{rows}\nint last;\n"
    held = next(chunk.content for chunk in chunks_of(text, "a.c", limit=512) if "#define" in chunk.content)
    assert held.count("OLD_NAME(") == 31


@pytest.mark.parametrize(("opens", "closes"), [
    ("NAMESPACE_BEGIN(detail)", "NAMESPACE_END(detail)"), ("TEA_BEGIN_NAMESPACE", "TEA_END_NAMESPACE"),
    ("namespace detail {", "}  // namespace detail"), ("namespace {", "}  // end anonymous namespace"),
    ("namespace tea {\nnamespace detail {", "} // namespace detail\n} // namespace tea\n"),
])  # fmt: skip
def test_the_end_of_a_namespace_is_no_part_of_its_last_function(opens: str, closes: str) -> None:
    held = f"{opens}\n\n{BOILS.format('first')}\n{BOILS.format('last')}\n{closes}\n"
    text = f"#ifndef TEA_H\n#define TEA_H\n{held}\n#endif  // TEA_H\n"
    assert chunks_of(text, "a.cpp")[-1].content == BOILS.format("last").rstrip()


BOILS = "int boil_{}(int kettle) {{\n    heat(kettle, 100);\n    wait(kettle, 3);\n    return pour(kettle);\n}}\n"


@pytest.mark.parametrize(("path", "text", "title"), [
    ("a.ts", "/** How hot. */\nexport const heat: Heat = read({ max: 9 });\n\n/** How full. */\ntype Level = 1 | 2;\n",
     "heat, Level"),
    ("a.go", "package tea\n\n// How hot a kettle may become.\nconst Heat = 100 + margin + reserve - loss\n", "Heat"),
    ("a.yml", "# Whether the lid is open.\n#lid_open:\n\n# How many cups: two or more.\n# cup_count: 2\n",
     "lid_open, cup_count"),
    ("a.yml", "# Note: this file is empty.\n# Remember: it may stay so.\n", None),
])  # fmt: skip
def test_values_below_comments_name_their_chunk(path: str, text: str, title: str | None) -> None:
    assert chunks_of(text, path)[-1].title == title


def test_a_part_with_several_functions_is_called_by_all_of_them() -> None:
    body = "".join(f"  heat(kettle, {n});\n" for n in range(9))
    functions = "".join(
        f"{head} (kettle) {{\n{body}}}\n\n"
        for head in ("window.boil = function", "kettle.boil = function", "kettle.pour = function", "function rest")
    )
    titles = [
        chunk.title for chunk in chunks_of(f"define('tea', function (require) {{\n{functions}}});\n", "a.js", limit=180)
    ]
    assert titles == ["window.boil, kettle.boil", "kettle.pour, tea.rest"]


def test_signatures_above_a_function_of_the_same_name_are_a_part_of_it() -> None:
    signatures = "".join(f"/** @internal */\nexport function boil(kettle: Kettle{n}): Tea{n}\n" for n in range(3))
    other = "export function pour(tea: Tea): void\n"
    text = (
        f"{other}{signatures}export function boil(kettle: Kettle): Tea {{\n  return kettle.boil({{ heat: 100 }})\n}}\n"
    )
    chunks = chunks_of(text, "a.ts")
    assert [(chunk.title, chunk.content.count("boil(kettle:")) for chunk in chunks] == [("pour", 0), ("boil", 4)]


def test_a_long_comment_is_cut_at_its_paragraphs() -> None:
    paragraph = "/// Boils what is in the kettle.\n" * 6
    text = "///\n".join([paragraph] * 12) + "#[derive(Debug)]\npub struct Kettle {\n    heat: u8,\n}\n"
    chunks = chunks_of(text, "a.rs", limit=200)
    assert len(chunks) > 2
    for chunk in chunks[:-1]:
        assert chunk.content.count("/// Boils") % 6 == 0
    assert chunks[-1].title == "Kettle" and "pub struct" in chunks[-1].content


@pytest.mark.parametrize(("text", "path", "said"), [
    ("const X = require('./X');\n\nmodule.exports = X;\n", "index.js",
     ["const X = require('./X');\n\nmodule.exports = X;"]),
    ("declare module 'a';\ndeclare module 'b';\n", "m.d.ts", ["declare module 'a';", "declare module 'b';"]),
    ("require 'set'\nputs Set.new\n", "a.rb", ["require 'set'\nputs Set.new"]),
    ("def main():\n    return lid + kettle * 2 - rate\n\n\nmain()\n", "a.py",
     ["def main():\n    return lid + kettle * 2 - rate", "main()"]),
])  # fmt: skip
def test_a_statement_that_says_too_little_stands_with_its_neighbour(text: str, path: str, said: list[str]) -> None:
    assert [chunk.content for chunk in chunks_of(text, path)] == said


@pytest.mark.parametrize("opener", ["(", "{", "[", "if(a){", "x=(", "class A{", "def f():\n ", '"', "/*", "#if X\n"])
@pytest.mark.parametrize("path", ["a.py", "a.ts", "a.cpp", "a.rb"])
def test_deep_nesting_neither_raises_nor_loses_text(opener: str, path: str) -> None:
    text = opener * 3_000
    assert_tiles(text, chunks_of(text, path))


def test_code_that_takes_too_long_to_parse_is_cut_at_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "SECONDS_AT_LEAST", -1e9)
    monkeypatch.setattr(parsing, "UNTIMED_BYTES", 0)
    text = "\n\n".join(f"def f_{n}(a, b):\n    return a + b * {n}" for n in range(80))
    chunks = chunks_of(text)
    assert_tiles(text, chunks)
    assert len(chunks) > 1
    assert all(chunk.content.startswith("def") for chunk in chunks)
    assert "node_type" not in chunks[0].metadata


def test_a_small_file_from_which_a_grammar_does_not_come_back_is_cut_at_lines() -> None:
    text = (
        '{""\n""\n# A\ndif\n' + "#if A\n#endif\n" * 8 + "if a then if a the//import a;\n"
        'app.option("--a", 5)\napp.option("--a", 5)\nswitch(a){' + "namespace a {" * 4 + "name"
    )
    chunks = chunks_of(text, "a.kt")
    assert_tiles(text, chunks)
    assert "node_type" not in chunks[0].metadata


def test_an_unknown_language_is_cut_at_lines() -> None:
    text = "proc f {} {\n}\n" * 200
    chunks = list(chunk_code(document(text, "a.tcl", "tcl"), TokenIndex(text, Words())))
    assert_tiles(text, chunks)


@pytest.mark.parametrize("text", ["", " \n\t\n", "\ufeff"])
def test_blank_text_has_hardly_a_chunk(text: str) -> None:
    assert len(chunks_of(text)) == len(text.split())


# --- tables ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("path", "language"), [
    ("src/a.py", "python"), ("A.TSX", "typescript"), ("x.d.ts", "typescript"), ("a.mjs", "javascript"),
    ("a.h", "c"), ("a.hpp", "cpp"), ("a.cc", "cpp"), ("lib/Rakefile", "ruby"), ("a.kts", "kotlin"),
    ("a.cs", "csharp"), ("README.md", None), ("py", None), (".py", None),
])  # fmt: skip
def test_language_of(path: str, language: str | None) -> None:
    assert language_of(path) == language


@pytest.mark.parametrize(("path", "text", "language"), [
    ("t/a.t", "#!perl\n# x\nok(1);\n", "perl"), ("a.t", "# x\nuse Test::More;\n", "perl"),
    ("a.t", "Dear <<name>>,\nuse it.\n", None),
    ("a.t", "", None), ("a.pl", ":- module(a, [b/1]).\nb(1).\n", None),
    ("a.pl", "sub a { 1 }\n", "perl"), ("A.pm", "", "perl"),
    ("save-tree", "#!/usr/bin/env perl\n1;\n", "perl"), ("a.t", "#!/usr/bin/env ruby\nputs 1\n", "ruby"),
])  # fmt: skip
def test_perl_is_told_by_its_text(path: str, text: str, language: str | None) -> None:
    assert code_format_of(path, text) == language
    assert format_of(path, text, Domain.CODE) == (language or ("text" if path == "a.pl" else None))
    assert reads(Domain.CODE, path)


@pytest.mark.parametrize("name", sorted(GRAMMARS))
def test_the_tables_name_node_types_that_exist(name: str) -> None:
    grammar = GRAMMARS[name]
    language = parsing.language(grammar.name)
    known = {language.node_kind_for_id(number) for number in range(language.node_kind_count)}
    named = {
        kind
        for field in fields(grammar)
        if field.type == "frozenset[str]" and "words" not in field.name
        for kind in getattr(grammar, field.name)
    }
    assert named - known <= {"field_definition", "public_field_definition", "ambient_declaration"}


# --- for any text ---------------------------------------------------------------------------------------------------

TEXTS = [(source.name, source.read_text(encoding="utf-8")) for source in SOURCES]
SNIPPETS = st.sampled_from(
    ["{", "}", "(", ")", "\n", "'", '"', "/*", "#", "end\n", ":", "é", "\ufeff", "\0", "\r\n", "  ", "class ", "😀"]
)


@st.composite
def damaged_sources(draw: st.DrawFn) -> tuple[str, str]:
    """Return a golden file, cut, glued to another one, with marks thrown in, under its own name or another one's."""
    path, text = draw(st.sampled_from(TEXTS))
    _, other = draw(st.sampled_from(TEXTS))
    start = draw(st.integers(0, len(text)))
    text = draw(st.sampled_from([text, text[start:], text[:start], text[:start] + other, text.replace("\n", "\r\n")]))
    for snippet in draw(st.lists(SNIPPETS, max_size=5)):
        at = draw(st.integers(0, len(text)))
        text = text[:at] + snippet + text[at:]
    return draw(st.sampled_from([path, path, draw(st.sampled_from(TEXTS))[0]])), text


@settings(max_examples=150, deadline=None)
@given(source=damaged_sources(), limit=st.sampled_from([8, 40, 512]))
def test_damaged_sources_are_tiled(source: tuple[str, str], limit: int) -> None:
    path, text = source
    assert_tiles(text, chunks_of(text, path, limit=limit), limit)


@settings(max_examples=100, deadline=None)
@given(text=st.text(max_size=300), path=st.sampled_from([path for path, _ in TEXTS]), limit=st.integers(1, 20))
def test_any_text_is_tiled(text: str, path: str, limit: int) -> None:
    assert_tiles(text, chunks_of(text, path, limit=limit), limit)


def test_parsing_keeps_nothing() -> None:
    """Parsing through a callback leaks the source (tree_sitter 0.26): ordinary files must not go that way."""
    source = b"def pay(amount):\n    return amount\n" * 500
    grammar = GRAMMARS["python"]
    parsing.parse(grammar, bytes(bytearray(source)))
    tracemalloc.start()
    try:
        for _ in range(50):
            parsing.parse(grammar, bytes(bytearray(source)))
        assert tracemalloc.get_traced_memory()[0] < 10 * len(source)
    finally:
        tracemalloc.stop()


def test_comments_behind_the_last_value_of_yaml_stand_in_one_chunk() -> None:
    remark = "# A remark of some words that is long enough to stand alone, and says what could be set.\n" * 9
    text = f"addresses:\n  - 127.0.0.1\n  - 0::1\n{remark}# path: a\n\n{remark}# keys:\n#   - b\n"
    spans = [chunk.span for chunk in chunks_of(text, "a.yml", limit=100)]
    assert len(spans) > 1
    assert all(one.end <= other.start for one, other in itertools.pairwise(spans))


ITEM = "key{0}:\n  name: kettle {0}\n  boils: water and more words here\n  list: [a, b, c]\n"


@pytest.mark.parametrize(("above", "below", "around"), [
    ("{{{{- if .Values.a{0} }}}}", "{{{{- end }}}}", "spec:\n"),
    ("{{%- if a{0} %}}", "{{%- endif %}}", ""),
    ("{{% for a{0} in b %}}", "{{% endfor %}}", "spec:\n"),
    ("# about {0}", "", "spec:\n"),
    ("# about {0}", "", ""),
])  # fmt: skip
def test_what_stands_above_an_item_of_yaml_begins_its_part(above: str, below: str, around: str) -> None:
    item = "\n".join((above, ITEM, below)) + "\n"
    if around:
        item = re.sub(r"(?m)^(?=.)", "  ", item)
    parts = chunks_of(around + "".join(map(item.format, range(9))), "templates/a.yaml", limit=40)
    assert len(parts) > 5
    for part in parts:
        lines = [line.strip() for line in part.content.strip().splitlines()]
        assert lines[0] == around.strip() or lines[0].startswith(above[:7].replace("{{", "{")), part.content
        assert not lines[-1].startswith(above[:7].replace("{{", "{")), part.content


BRANCHES = {
    "a.swift": ("func brew(kind: Int) {\n", "if kind == {} {{", "kettle.set(kind, to: {})"),
    "a.ts": ("export function brew(kind: number) {\n", "if (kind === {}) {{", "kettle.set(kind, {});"),
    "a.go": ("package tea\n\nfunc brew(kind int) {\n", "if kind == {} {{", "kettle.Set(kind, {})"),
    "a.kt": ("fun brew(kind: Int) {\n", "if (kind == {}) {{", "kettle.set(kind, {})"),
    "a.c": ("void brew(int kind) {\n", "if (kind == {}) {{", "kettle_set(kind, {});"),
    "a.rs": ("fn brew(kind: u8) {\n", "if kind == {} {{", "kettle.set(kind, {});"),
    "a.php": ("<?php\nfunction brew($kind) {\n", "if ($kind == {}) {{", "$kettle->set($kind, {});"),
    "a.java": ("class A {\n  void brew(int kind) {\n", "if (kind == {}) {{", "kettle.set(kind, {});"),
}


@pytest.mark.parametrize("path", BRANCHES)
@pytest.mark.parametrize("calls", [2, 3, 4, 7])
def test_a_branch_begins_with_its_condition(path: str, calls: int) -> None:
    opening, condition, call = BRANCHES[path]
    branches = ["".join(f"      {call.format(n * 10 + m)}\n" for m in range(calls)) for n in range(9)]
    chain = " else ".join(f"{condition.format(n)}\n{branch}    }}" for n, branch in enumerate(branches))
    text = f"{opening}    {chain}\n{'  }' * (path == 'a.java')}\n}}\n"
    chunks = chunks_of(text, path, limit=120)
    assert_tiles(text, chunks, 120)
    assert len(chunks) > 2
    for chunk in chunks[1:]:
        assert chunk.content.lstrip().startswith(("} else if", "void")), chunk.content
    assert not any(chunk.content.rstrip().endswith("{") for chunk in chunks)


LONG = " ".join(f"word{number} of the gate that opens for those who waited" for number in range(7))


@pytest.mark.parametrize(("path", "above", "comment", "definition"), [
    ("a.c", "int first(void) { return 1; }", f"/* {LONG}. */", "int open_gate(int key) {\n  return key;\n}"),
    ("a.py", "import os", f"# {LONG}.\n# It waits.", "def open_gate(key):\n    return os.open(key)"),
    ("a.js", "const first = 1;", f"/**\n * {LONG}.\n */", "class Gate {\n  open_gate(key) { return key; }\n}"),
])  # fmt: skip
def test_a_comment_above_a_blank_line_belongs_to_the_definition_below(
    path: str, above: str, comment: str, definition: str
) -> None:
    def holding(text: str) -> Chunk:
        return next(chunk for chunk in chunks_of(text, path, limit=128) if "word6 of" in chunk.content)

    joined = holding(f"{above}\n\n{comment}\n\n{definition}\n")
    assert "open_gate" in joined.content
    assert joined.metadata.get("function_name") or joined.metadata["class_name"]
    assert "open_gate" not in holding(f"{above}\n{comment}\n\n{definition}\n").content  # it is as near to what is above
    assert "open_gate" not in holding(f"{above}\n\n{comment}\n\n\n\n{definition}\n").content
    assert "open_gate" not in holding(f"{comment}\n\n{definition}\n").content  # it is about the file


@pytest.mark.parametrize("lines", [8, 10, 12])
@pytest.mark.parametrize("filler", [3, 20, 60])
def test_a_step_of_yaml_keeps_all_lines_of_its_script(filler: int, lines: int) -> None:
    script = "".join(
        f"        pour --cup {at} --into kettle --with water --for guests --at noon\n" for at in range(lines)
    )
    head = f"jobs:\n  brew:\n    env:\n      WORDS: {'tea ' * filler}\n    steps:\n    - uses: boil@v7\n"
    steps = [f"    - name: Step {at}\n      run: |\n{script}" for at in range(6)]
    parts = chunks_of(head + "".join(steps), ".github/workflows/ci.yml")
    assert [step for step in steps if not any(step.strip() in part.content for part in parts)] == []
    assert len(parts) > 3 and all(part.token_count <= 320 for part in parts)


def test_macros_in_a_function_are_whole() -> None:
    macros = [
        f"   #define POUR_{at}(cup) \\\n      do {{ \\\n         /* Is it full? */ \\\n         fill(cup); \\\n"
        f"         if (cup) {{ stir(cup); \\\n         }} else (void) 0 \\\n      }} while (0)\n"
        for at in range(9)
    ]
    macros.append(
        "   #define SIP(cup) \\\n      if (cup) { \\\n         sip(cup); \\\n      } else (void) 0 /* say ; */\n"
    )
    body = f"{''.join(macros)}\n   switch (kind) {{\n   case 1:\n      return 2;\n   }}\n   return 0;"
    parts = chunks_of(f"int brew(int kind) {{\n{body}\n}}\n", "a.c", limit=90)
    assert [macro for macro in macros if not any(macro.strip() in part.content for part in parts)] == []
    assert {part.title for part in parts} <= {"brew", *(f"brew.POUR_{at}" for at in range(9))}


def test_a_data_url_stays_with_what_it_is_given_to() -> None:
    url = "url('data:image/svg+xml;utf8," + "%3Csvg%20width%3D" * 60 + "')"
    text = f".cup {{\n  height: 3px;\n  background-image: {url};\n}}\n" + ".pot {\n  height: 4px;\n}\n" * 9
    assert any(f"background-image: {url};\n}}" in part.content for part in chunks_of(text, "a.css"))


EXPORTED = "const state = { a: [] }\n\nconst actions = {}\n\nexport default {\n  state,\n  actions\n}\n"
COMMON = "const { cup, pot } = require.main\nconst state = 1, rest = 2\nmodule.exports = { state }\n"
FIELDS = "#ifndef A_H\n#define A_H\n#define CUPS \\\n   ONE = 1, \\\n   TWO = 2, \\\n   // the end\n\n#endif\n"
BRANCHED = "#ifndef LESS\n#define LESS(a) a\n#endif\n\n#ifdef B\n#define MORE(a) 2\n#else\n#define MORE(a) 3\n#endif\n"


@pytest.mark.parametrize(("path", "text", "title"), [
    ("a.js", EXPORTED, "state, actions"),
    ("a.js", COMMON, "state, rest"),
    ("a.js", EXPORTED.replace("const actions", "brew(state)\nconst actions"), None),
    ("a.h", FIELDS, "CUPS"),
    ("a.h", BRANCHED, "LESS, MORE"),
    ("a.h", "#if defined(A) && defined(B)\n#define HAS_KETTLE\n#endif\n", "HAS_KETTLE"),
    ("a.h", "#ifndef A_H\n#define A_H\n#endif\n", None),
])  # fmt: skip
def test_values_and_macros_that_stand_together_are_the_title(path: str, text: str, title: str | None) -> None:
    assert [part.title for part in chunks_of(text, path)] == [title]
