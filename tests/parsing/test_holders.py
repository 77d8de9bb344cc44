"""Whose code a file is, by its head and those of the whole source."""

import pytest

from nornweave.read.holders import Holders, Notice
from nornweave.read.worth import is_generated

MIT = "Permission is hereby granted, free of charge, to any person obtaining a copy of this software."
ISC = "Permission to use, copy, modify, and/or distribute this software for any purpose is hereby granted."
BSD = "Redistribution and use in source and binary forms are permitted."
LICENCE = (
    "LICENSE",
    f"Copyright 2011-2014 Ann Smith\nCopyright 2014-2026 Kettle contributors\n\n{BSD}\n\nCOPYRIGHT HOLDERS BE",
)
PLAIN = [(f"src/{number}.c", "int a;\n") for number in range(30)]


def comment(*lines: str) -> str:
    return "/*\n" + "".join(f" * {line}\n" for line in lines) + " */\nint a;\n"


def foreign(text: str, *others: tuple[str, str], path: str = "test/greatest.h", name: str = "kettle") -> str | None:
    return Holders.of(name, [*others, (path, text)]).foreign(path, Notice.of(text))


AWESOME = "/* SPDX-License-Identifier: MIT */\n/**\n\nAwesome\n\nCopyright (c) 2021 - 2025 jo\n*/\na {}\n"
PROTOCOL = f'<?xml version="1.0"?>\n<protocol><copyright>\nCopyright © 2008 Kim Lee\n{BSD}\n</copyright></protocol>'


@pytest.mark.parametrize(
    ("path", "text", "holder"),
    [
        ("test/greatest.h", comment("Copyright (c) 2011-2021 Scott Vokes <s@example.org>", "", ISC), "Scott Vokes"),
        ("doc/awesome.css", AWESOME, "jo"),
        ("test/greenest.awk", f"#!/usr/bin/awk -f\n# Copyright (c) 2016 Scott Vokes\n#\n# {ISC}\n", "Scott Vokes"),
        ("src/xdg.xml", PROTOCOL, "Kim Lee"),
        ("util/iso.py", f'"""Parse dates.\n\nCopyright (c) 2007 Mia Noll\n\n{MIT}\n"""\n', "Mia Noll"),
    ],
)
def test_a_file_of_another_project_is_told_by_its_notice(path: str, text: str, holder: str) -> None:
    assert foreign(text, LICENCE, *PLAIN, path=path) == holder


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.c", comment("Copyright 2015 Ann Smith", ISC)),
        ("a.c", comment("Copyright 2015 Bob Stone", "Copyright 2020 Kettle contributors", ISC)),
        ("a.c", comment("Copyright 2015 The Kettle Authors", ISC)),
        ("a.c", comment("Copyright 2015 Bob Stone", BSD)),  # under the licence of the rest: somebody signed his file
        ("a.c", comment("Copyright 2015 Bob Stone")),
        ("a.yml", f"# Copyright 2015 Bob Stone\n# {ISC}\na: 1\n"),
        ("a.c", comment("See the copyright notice of the licence", ISC)),
    ],
)
def test_a_file_of_the_projects_own_is_none(path: str, text: str) -> None:
    assert foreign(text, LICENCE, *PLAIN, path=path) is None


def test_where_nobody_says_whose_the_source_is_nothing_is_foreign() -> None:
    stranger = comment("Copyright 2011 Scott Vokes", ISC)
    law = ("COPYING", "GNU GENERAL PUBLIC LICENSE\nCopyright (C) 2007 Free Software Foundation, Inc.\n")
    assert foreign(stranger, *PLAIN) is None
    assert foreign(stranger, law, *PLAIN) is None
    apache = (
        "LICENSE",
        "Apache License\n\n(c) You must retain, in the Source form of any Derivative Works, notices.\n",
    )
    assert foreign(stranger, apache, *PLAIN) is None


def test_most_heads_say_whose_a_source_is() -> None:
    own = [(f"{number}.c", comment("Licensed to the Kettle Foundation", "Apache License")) for number in range(20)]
    stranger = comment("Copyright 2011 Scott Vokes", ISC)
    assert foreign(stranger, *own) == "Scott Vokes"
    names = [f"{first} {last}" for first in ("Ann", "Bob", "Kim", "Mia") for last in ("Lee", "Noll", "Stone")]
    signed = [(f"{name}.c", comment(f"Copyright 2012 {name}", MIT)) for name in names]
    assert foreign(stranger, LICENCE, *own[:3], *signed) is None, "many write it"
    part = [(f"part{number}/a.c", stranger) for number in range(5)]
    assert foreign(stranger, *own, *own, *part) is None, "parts that somebody contributed"


@pytest.mark.parametrize(("near", "licence", "holder"), [
    ([], MIT, "Scott Vokes"), ([], "", None), ([], BSD, None),
    ([("include/tiny/kettle.c", comment("Copyright 2015 Ann Smith", BSD))], MIT, None),
])  # fmt: skip
def test_a_folder_of_another_project_is_told_by_its_files(
    near: list[tuple[str, str]], licence: str, holder: str | None
) -> None:
    plain = comment("Copyright 2012 Scott Vokes", "See LICENSE of tiny.")
    folder = [(f"include/tiny/{number}.h", plain) for number in range(8)]
    folder[0] = (folder[0][0], comment("Copyright 2012 Scott Vokes", licence))
    own = [(f"src/own/{number}.c", comment("Copyright 2015 Ann Smith", BSD)) for number in range(12)]
    assert foreign(plain, LICENCE, *own, *folder, *near, path="include/tiny/9.h") == holder


TINY = ("include/tiny/LICENSE.rst", f"Copyright (c) 2012 - present, Scott Vokes\n\n{MIT}")
OWNED = [(f"src/own/{number}.c", comment("Copyright 2015 Ann Smith", BSD)) for number in range(12)]


@pytest.mark.parametrize(("others", "path", "holder"), [
    ([TINY], "include/tiny/core.h", "Scott Vokes"),
    ([TINY], "include/tiny/deep/er/core.json", "Scott Vokes"),
    ([TINY], "include/core.h", None),
    ([TINY, ("include/tiny/kettle.h", comment("Copyright 2019 Kettle contributors"))], "include/tiny/core.h", None),
    ([TINY, ("include/tiny/package.json", "{}")], "include/tiny/core.h", None),  # a package of a monorepo
    ([("include/tiny/LICENSE", f"Copyright 2015 Ann Smith\n\n{MIT}")], "include/tiny/core.h", None),
    ([("include/tiny/LICENSE", MIT)], "include/tiny/core.h", None),
    ([("deps/tiny/a.h", comment("Copyright 2012 Scott Vokes", BSD))], "deps/tiny/core.h", "Scott Vokes"),
    ([("deps/tiny.h", comment("Copyright 2012 Scott Vokes", BSD))], "deps/tiny.h", "Scott Vokes"),
    ([("deps/tiny.h", comment("Copyright 2012 Scott Vokes", BSD))], "deps/other.h", None),
    ([("deps/tiny/a.h", comment("Copyright 2012 Ann Smith", BSD))], "deps/tiny/core.h", None),
    ([("deps.c", comment("Copyright 2012 Scott Vokes", BSD))], "core.h", None),
    ([("contrib/tiny/a.h", comment("Copyright 2012 Scott Vokes", MIT))], "contrib/tiny/core.h", "Scott Vokes"),
    ([("contrib/tiny/a.h", comment("Copyright 2012 Scott Vokes", "SPDX-License-Identifier: curl"))],
     "contrib/tiny/core.h", "Scott Vokes"),
    ([("contrib/tiny/a.h", f"#ifndef A_H\n#define A_H\n\n{comment('Copyright 2012 Scott Vokes', MIT)}")],
     "contrib/tiny/core.h", "Scott Vokes"),
    ([("contrib/tiny/a.h", f"#pragma once\n{comment('Copyright 2012 Scott Vokes', MIT)}")],
     "contrib/tiny/core.h", "Scott Vokes"),
    ([(f"contrib/tiny/{at}.h", comment(f"Copyright 2012 {'Mia Noll' if at % 2 else 'Scott Vokes'}", BSD))
      for at in range(6)], "contrib/tiny/core.h", "Scott Vokes"),
    ([("contrib/tiny/a.h", comment("Copyright 2012 Scott Vokes", BSD))], "contrib/tiny/core.h", None),
    ([("contrib/a.h", comment("Copyright 2012 Scott Vokes", MIT))], "contrib/b.h", None),
    ([("contrib/tiny/a.h", comment("Copyright 2012 Scott Vokes", MIT)),
      ("contrib/tiny/b.h", comment("Copyright 2015 Kettle contributors", BSD))], "contrib/tiny/core.h", None),
    ([("contrib/tiny/a.h", comment("Copyright 2012 Scott Vokes", MIT)), ("contrib/tiny/package.json", "{}")],
     "contrib/tiny/core.h", None),
])  # fmt: skip
def test_what_lies_in_a_folder_of_another_project_is_of_it(
    others: list[tuple[str, str]], path: str, holder: str | None
) -> None:
    assert foreign("int a;\n", LICENCE, *OWNED, *others, path=path) == holder


@pytest.mark.parametrize(("plain", "holder"), [(3, "Scott Vokes"), (30, None)])
def test_a_folder_is_of_those_who_signed_most_of_its_files(plain: int, holder: str | None) -> None:
    said = ["Copyright 2012 Scott Vokes", "Copyright 2013 - present, Scott Vokes and tiny contributors"]
    signed = [(f"include/tiny/{number}.h", comment(said[number % 2], MIT)) for number in range(8)]
    rest = [(f"include/tiny/plain{number}.h", "int a;\n") for number in range(plain)]
    assert foreign("int a;\n", LICENCE, *OWNED, *signed, *rest, path="include/tiny/9.h") == holder
    assert foreign(signed[1][1], LICENCE, *OWNED, *signed, *rest, path="include/tiny/9.h") == "Scott Vokes"


def test_a_group_is_a_holder_without_years() -> None:
    licence = ("COPYING", f"kettle is Copyright (C) the Kettle contributors\n\n{BSD}")
    assert foreign(comment("Copyright 2011 Scott Vokes", ISC), licence, *PLAIN) == "Scott Vokes"


BOOT = "/*!\n * Bootstrap Grid v5.1.3 (https://getbootstrap.com/)\n * Licensed under MIT\n */\na {}\n"
SWATCH = (
    f"/*!\n * Swatches v5.1\n * Homepage: https://tea.example.org\n * Copyright 2012 Tom Park\n * {MIT}\n */\na {{}}\n"
)
FONT = "/*!\n * Font Awesome Free 5.15 by @fontawesome - https://fontawesome.com\n */\na {}\n"
MACRO = f"# {'=' * 60}\n#   https://www.gnu.org/software/autoconf-archive/ax_brew.html\n# {'=' * 60}\n"
SAME = ("LICENSE", f"Copyright 2021 Ann Smith\n\n{MIT}")


@pytest.mark.parametrize(("others", "path", "owner"), [
    ([("docs/_sass/bootstrap-grid/grid.css", BOOT)], "docs/_sass/bootstrap-grid/mixins/_caret.scss", "Bootstrap Grid"),
    ([("look/Font-Awesome/all.scss", FONT)], "look/Font-Awesome/_icons.scss", "Font Awesome"),
    ([("look/swatches/dark/all.css", SWATCH)], "look/swatches/light/_variables.scss", "Swatches"),
    ([("look/bootstrap-grid.min.css", BOOT)], "look/bootstrap-grid.min.css", "Bootstrap Grid"),
    ([("look/own.css", BOOT)], "look/own.css", None),  # it only says what it is made for
    ([("look/own.css", BOOT)], "look/bootstrap-grid.css", None),
    ([("bootstrap-grid.config.js", BOOT)], "bootstrap-grid.config.js", None),
    ([("kettle/all.css", BOOT.replace("Bootstrap Grid", "Kettle"))], "kettle/more.css", None),  # the source's own
    ([("package.json", '{"name": "@tea/bootstrap-grid"}'), ("bootstrap-grid/grid.css", BOOT)],
     "bootstrap-grid/a.css", None),
    ([("bootstrap-grid/grid.css", BOOT + "/* */"), *((f"bootstrap-grid/{at}.css", "") for at in range(50))],
     "bootstrap-grid/a.css", None),  # most of the source: it has another name by now
    ([("bootstrap-grid/grid.css", BOOT.replace("Licensed", "Copyright 2021 Ann Smith, licensed"))],
     "bootstrap-grid/a.css", None),
    ([("m4/ax_brew.m4", MACRO)], "m4/ax_brew.m4", "autoconf-archive"),
    ([("m4/ax_brew.m4", MACRO)], "m4/own.m4", None),
    ([("m4/pkg.m4", "# pkg.m4 - Macros to find and use pkg-config.  -*- Autoconf -*-\n# serial 9\n")], "m4/pkg.m4",
     "pkg-config"),
    ([("m4/ax_brew.m4", "# Like AX_BREW of the Autoconf Archive, for kettles.\n")], "m4/ax_brew.m4", None),
])  # fmt: skip
def test_a_folder_or_file_called_as_the_library_that_its_head_names_is_of_others(
    others: list[tuple[str, str]], path: str, owner: str | None
) -> None:
    assert foreign("a {}\n", SAME, *PLAIN, *others, path=path) == owner


def test_half_of_a_folder_under_the_same_licence_is_of_others_where_few_people_sign() -> None:
    signed = [(f"lib/sieve/{at}.c", comment("Copyright 2012 Scott Vokes", MIT)) for at in range(6)]
    path, text = "lib/sieve/a.c", "int a;\n"
    assert foreign(text, SAME, *PLAIN, *signed, path=path) == "Scott Vokes"
    many = [(f"src/{who}.c", comment(f"Copyright 2012 {who} Lee", MIT)) for who in ("Bob", "Mia", "Kim", "Joe")]
    many = [
        (path, text.replace("Lee", each))
        for (path, text), each in zip(many, ("Ash", "Birch", "Cole", "Dorn"), strict=True)
    ]
    assert foreign(text, SAME, *PLAIN, *signed, *many, path=path) is None, "contributors sign"
    spread = [(f"src/tea/{at}.c", comment("Copyright 2012 Scott Vokes", MIT)) for at in range(2)]
    assert foreign(text, SAME, *PLAIN, *signed, *spread, path=path) is None, "a fork, or a company that was renamed"
    assert foreign(text, SAME, *PLAIN[:10], *signed, path=path) is None, "a large part of the source"
    assert foreign(text, SAME, *PLAIN, *signed, ("lib/sieve/package.json", "{}"), path=path) is None, "a package"


@pytest.mark.parametrize(("head", "is_told"), [
    ("/* eslint-disable */\n/* tslint:disable */\n\n/**\n * Tea.\n * - Please do NOT modify this file.\n */\n", True),
    ("// @ts-nocheck\n// Do not edit this file.\n", True), ("/* Do not modify this file, copy it. */\n", False),
    ("/* eslint-disable no-console */\n/* Do not modify this file. */\n", False),
    ("/* eslint-disable */\n/* Do not modify the kettle. */\n", False),
])  # fmt: skip
def test_a_head_that_turns_linters_off_and_forbids_changes_is_of_a_tool(head: str, *, is_told: bool) -> None:
    assert is_generated(f"{head}a()\n") is is_told
