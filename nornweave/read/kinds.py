"""The kind of a file, by its name and, if that is not enough, by its content.

The tables say which files each domain reads. A new language is a row of ``languages.EXTENSIONS``, a new format of
documents one of ``front_matter.FORMATS`` or ``reader.CONVERTED``; a suffix that stands for several has its patterns in
``languages`` or below.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice
from pathlib import PurePosixPath

from nornweave.core.types import Domain
from nornweave.read.blocks.man import is_called_manual, is_man, is_pod
from nornweave.read.chunking.languages import PAGES, UNTOLD, below_example, code_format_of, program_suffix
from nornweave.read.formats.reader import CONVERTED
from nornweave.read.front_matter import FORMATS
from nornweave.read.worth import PROSE_SHARE, is_json, prose_share


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Text that belongs to code without being in a language of ``languages``: others, manifests, infrastructure, CI.
CODE_SUFFIXES = _words("""
    .ac .ada .adb .ads .am .asm .astro .avsc .awk .bash .bash-completion .bashcomp .bat .bazel .bicep .build .bzl .cabal
    .caddyfile .cfg .clj .cljs .cmake .cmd .cnf .cob .coffee .conf .cr .cshtml .csproj .css .cu .cue .cuh .cypher
    .config .d .dart .desktop .dhall .dockerfile .ebuild .edn .eex .ejs .el .elm .erb .erl .ex .exs .f .f90 .feature
    .fish .frag .fs .g4 .glsl .gn .gni .gotmpl .gql .gradle .grammar .graphql .groovy .haml .hbs .heex .hcl .hlsl
    .hs .http .in .inc .ini .j2 .jinja .jl .json .json5 .jsonc .jsonnet .kdl .kql .l .lalrpop .less .libsonnet
    .liquid .lisp .ll .lua .m .m4 .mk .ml .mli .mm .nim .nix .options .pas .pest .pl .plist .pm .podspec .prisma
    .properties .props .proto .proto3 .ps1 .pug .pxd .pyx .qml .r .razor .rc .rego .rkt .rmd .rules .s .sass .sbt
    .scala .scss .service .sh .slim .slnx .smk .socket .sol .spec .sql .star .styl .svelte .targets .tcl .template
    .tf .tfvars .thrift .timer .tmpl .toml .tpl .treetop .twig .ui .v .vala .vb .vert .vhd .vue .wgsl .xml .xsd .xsl
    .xslt .y .yaml .yml .yy .zig .zsh
    .applescript .capnp .cljc .dfy .dts .dtsi .entitlements .fbs .gd .gleam .gyp .gypi .hx .ino .lds .lean .marko .metal
    .fishcomp .just .nf .nimble .nu .odin .p4 .pkl .purs .res .resi .sln .strings .stringsdict .sv .svh .vbs .wat .wrap
    .mak .modulemap .neon .pch .plantuml .psd1 .psm1 .puml .theme .xcconfig .zshcomp
""")
CODE_NAMES = _words("""
    dockerfile containerfile makefile gnumakefile jenkinsfile procfile vagrantfile rakefile gemfile podfile
    brewfile justfile .justfile tiltfile earthfile pipfile caddyfile kconfig sconstruct wscript snakefile cmakelists.txt
    meson.build go.mod go.work build workspace codeowners .gitlab-ci.yml .dockerignore .editorconfig
    .babelrc .clang-format .clang-tidy .eslintrc .prettierrc .stylelintrc .swiftformat .textlintrc doxyfile _headers
    .ansible-lint .yamllint
    _redirects .htaccess robots.txt
""")
TEMPLATES = _words(".ejs .erb .gotmpl .hbs .in .j2 .jinja .jinja2 .liquid .mako .mustache .template .tmpl .tpl .twig")
# These hold data as often as configuration; a big one is data.
DATA_SUFFIXES = _words(".json .jsonc .json5 .yaml .yml .xml .sql .edn")

TEST_DATA = _words("""
    fixtures __fixtures__ testdata test-data test_data snapshots __snapshots__ golden goldens cassettes
""")
TESTS = _words("test tests __tests__ testing e2e")
OF_TESTS = re.compile(r"(?i:(?:.*[_.-])?(?:tests?|specs?|testing|e2e)_*)|.*[a-z]Tests?")
_NOT_CODE = DATA_SUFFIXES | _words(".txt .csv .toml .ini .properties .plist .conf .cfg .css .less .scss .html .htm")
_CONFIGURES = re.compile(
    r"\..*|.*rc|.*(?:config|settings|package|project|manifest|compose|launch|tasks|options|schema|pom|log4j|logback|build"
    r"|jest|mocha|karma|babel|phpunit|testng|suite)\b.*",
    re.IGNORECASE,
)
"""What configuration that programs look for is called."""
_CONFIGURING = re.compile(r'^\s*"(?:compilerOptions|extends|scripts|(?:devD|d)ependencies)"\s*:', re.MULTILINE)
_BESIDE = re.compile(r'"[\w.-]+"\s*:\s*(?:\[\s*)?"\.\./')
"""A small file that names folders outside of its own says where things lie."""
_INITIAL = re.compile(r'(?=.*\bmodel"?\s*:).*\bfields"?\s*:', re.DOTALL)
"""What a database begins with, as Django has it; its folder is called ``fixtures`` as well."""
_BODY = re.compile(r"\)\s*\{")
_DOUBLE = re.compile(
    r"\)\s*\{\s*(?:(?:\(void\)\s*\w+|check_expected\w*\([^;{}]{0,200}\)|function_called\(\)"
    r"|return\b(?:[^;{}]{0,200}\bmock\w*\([^;{}]{0,200}\)|\s*(?:-?\d\w*|[A-Z_]+|nullptr|true|false|\"\")?))\s*;\s*)*+\}"
)
"""A function of C that takes the place of another one in tests: it does nothing, or what the test says."""
_DOUBLES, _DOUBLES_SHARE = 5, 0.8
_TESTING = re.compile(r"pytest|fixture|unittest|mock|stub|assert|expect\(|describe\(|factory", re.IGNORECASE)
_HEAD = 8_000
_RECORDED = re.compile(r"\A(?:---\s+)?(?:http_)?interactions:\s")


BINARY_SUFFIXES = _words("""
    .7z .a .aac .apk .avi .avif .bin .bmp .bz2 .class .dat .db .deb .dll .dmg .doc .docx .duckdb .dylib .eot .epub .exe
    .flac .gif .gz .heic .ico .iso .jar .jpeg .jpg .lib .lz4 .mkv .mov .mp3 .mp4 .mpeg .npy .npz .o .obj .odp .ods
    .odt .ogg .onnx .otf .parquet .pdf .pickle .pkl .png .ppt .pptx .pt .pth .pyc .pyd .pyo .rar .rpm .safetensors
    .so .sqlite .sqlite3 .tar .tgz .tif .tiff .ttf .wasm .wav .webm .webp .whl .woff .woff2 .xls .xlsx .xz .zip .zst
""")

_LICENCE_NAME = re.compile(
    r"(?:un)?(?:licen[sc]e|copying)(?:[-_]\w+|\.(?:txt|md|rst|adoc|mit|bsd|apache|l?gpl|lesser))*", re.IGNORECASE
)

# Text, and known to be no code: drawings, tables, translations, mail, patches, keys, and what tools write.
_OTHER = _words("""
    .aiff .ambr .asc .bib .cer .crt .csr .csv .diff .drawio .eml .gpg .har .ics .key .lnk .log .map .mbox .odg .orig
    .patch .pbxproj .pem .po .pom .pot .psd .rej .resolved .resx .rtf .sig .snap .stderr .stdout .storyboard .svg .tsv
    .vcxproj .xcscheme .xib .xlf .xliff
""")
UNKNOWN_BYTES = 64 * 1024
"""Of a file that only what it holds may tell for code; a bigger one is data."""
_CODE_LINE = re.compile(
    r".*(?:[{}();,\\]|[^:]:|=>?|->|\b(?:then|do|else|end|fi|done|endif|begin|endfunction))[ \t]*"
    r"|[ \t]*[\w.$@-]+[ \t]*(?:[+:?]?=|:)(?!//)[ \t]*\S.*"
    r"|[ \t]*(?:alias|autocmd|call|class|command|const|def|echo|export|for|from|function|highlight|if|import|include"
    r"|let|local|map|print|return|set|source|use|var|while)\b.*",
    re.IGNORECASE,
)
_CODE_REMARK = re.compile(r"[ \t]*(?:#|//|--|;|\"|/?\*|%|'|!|(?:rem|dnl)\b)", re.IGNORECASE)
_CODE_LEAST, _CODE_SHARE, _TOLD_SHARE = 3, 0.4, 0.8
"""Lines of code; their share of all; and with remarks."""

# What has a suffix of text; a name without one is text or anything else.
_TEXTS = frozenset(suffix for suffix in FORMATS if suffix)
SUFFIXES: Mapping[Domain, frozenset[str]] = {
    Domain.CODE: CODE_SUFFIXES,
    Domain.DOCUMENTATION: _TEXTS | frozenset(CONVERTED) | {".pdf"},
    Domain.CONVERSATIONS: _TEXTS,
    Domain.RESEARCH: _TEXTS | frozenset(CONVERTED) | {".pdf", ".json"},
}

_MOST_MARKS = 1_000
# Markup under a name that does not say so: of each the marks that only it has, one of which must stand in the text.
_MARKUP: Mapping[str, re.Pattern[str]] = {
    "asciidoc": re.compile(
        r"\A(?:\s|//.*\n)*= \S.*\n|^={2,5} \S.*\n|^:[a-z][\w-]*:(?: .*)?\n(?::[a-z]|\n= )"
        r"|^(?:include|image|ifdef|xref)::\S*\[|^\[source[,\]]",
        re.MULTILINE,
    ),
    "rst": re.compile(
        r"^\.\. (?:[\w-]+:: ?|_[^:\n]+:)|:(?:ref|doc|class|func|meth|mod|ticket|setting|term|option):`", re.MULTILINE
    ),
    "markdown": re.compile(r"\A\s*# \S.*\n|^#{2,4} \S.*\n|^```|\[[^\]\n]+\]\([^)\s]+\)", re.MULTILINE),
}
_HASH = re.compile(r"^#{1,6}(?:[ \t].*)?\n", re.MULTILINE)
_HASH_APART = re.compile(r"(?:\A|(?<=\n\n))#{1,6}[ \t]\S.*\n(?!#)")
"""A heading stands apart from what is above and is one line; of remarks most do not."""
_UNDERLINED = re.compile(r"^(?=\S)([^|\n]{3,80})\n(([=~^*-])\3{2,})\n", re.MULTILINE)
"""A heading of RST and of Markdown, where the line is as long. A letter may begin with one, and is text."""
_BOXED = re.compile(r"^(([=~^*#])\2{2,})[ \t]*\n[ \t]*(?!\2)\S[^\n]{1,80}\n\1[ \t]*\n", re.MULTILINE)
"""A heading of RST with a line above and one below that are alike, whatever their length."""
# The head of YAML, of an INI file and of XML.
_CONFIGURATION = re.compile(r"\A(?:#.*\n|\s)*(?:---\s*$|\[[\w.: -]+\]\s*$|<\?xml\b)", re.MULTILINE)
_SETTING = re.compile(
    r"[ \t]*(?:[#;]+[ \t]*(?=\S+[ \t]*[=:]))?(?:export[ \t]+)?[A-Za-z_][\w.-]*(?:[ \t]*[=:].*|[ \t]+\S+)$"
)
_REMARK = re.compile(r"[ \t]*(?:[#;]|\[[\w.: -]+\]$|$)")
_FIRST = {"": ("asciidoc", "markdown", "rst")}
"""By suffix the markup that is likeliest, first; of files without one what READMEs are written in."""


_VERSION = re.compile(r"(?:^|[-_ ]|(?<=[A-Z])\.)v?\d+(?:\.\d+)+(?:[-_.]?(?:rc|alpha|beta)[-.]?\d*)?$")
# The first line of a manual page in the markup of a document: ``tool(1)``, ``= tool(1)``, ``tool(1) -- boil water``.
_MANUAL = re.compile(r"\A(?:\s|//.*\n)*(?:[=#%]\s*)?[\w.+-]+\(\d\w*\)(?:[ \t].*)?\n", re.ASCII)


def suffix_of(path: str) -> str:
    """Return the suffix of a file in lower case; empty if the name ends with a version (``NOTES-4.23``)."""
    name = PurePosixPath(path).name
    return "" if _VERSION.search(name) else PurePosixPath(name.lower()).suffix


def format_of(path: str, text: str, domain: Domain) -> str | None:
    """Return the format of a text file for ``Document.format``; ``None`` if the domain does not read the file.

    The format of source code is its language, or ``text`` if no parser is known. The format of a document is its
    markup.
    """
    name, suffix = PurePosixPath(path).name, suffix_of(path)
    if domain is Domain.CODE:
        suffix = PurePosixPath(below_example(name.lower())).suffix
        is_known = (
            is_code_name(name)
            or suffix in CODE_SUFFIXES
            or program_suffix(text)
            or (suffix not in PAGES and _CONFIGURATION.match(text))
            or (below_example(name.lower()) != name.lower() and _sets_values(text))
        )
        return code_format_of(path, text) or ("text" if is_known else None)
    known = FORMATS.get(suffix, "text")
    if known != "text":
        return known
    if is_man(text):
        return "man"
    if is_called_manual(name) and is_pod(text):
        return "pod"
    is_page = bool(suffix) and is_called_manual(name) and suffix != ".mdoc"  # Markdoc is called so as well
    if program_suffix(text) or (is_page and not _MANUAL.match(text)):
        return None
    underlined = sum(
        abs(len(found[1]) - len(found[2])) < 3 for found in islice(_UNDERLINED.finditer(text), _MOST_MARKS)
    )
    headings = underlined if underlined > bool(suffix) else 0
    # The code that a document shows may look like another markup, in fewer places.
    marks = {
        form: _count(_MARKUP[form], text) + (headings if form != "asciidoc" else 0)
        for form in _FIRST.get(suffix, _MARKUP)
    }
    boxed = _count(_BOXED, text)
    marks["rst"] += boxed if boxed > bool(suffix) else 0
    if suffix and _count(_HASH, text) > 2 * _count(_HASH_APART, text):
        marks["markdown"] = 0
    form = max(marks, key=marks.__getitem__)
    return form if marks[form] else None if is_page else "text"


def _sets_values(text: str) -> bool:
    """Tell whether all lines of a text are ``name = value`` or comments, as in configuration."""
    rows = text.splitlines()[:_MOST_MARKS]
    settings = [_SETTING.match(row) is not None for row in rows]
    told = sum(sets or _REMARK.match(row) is not None for row, sets in zip(rows, settings, strict=True))
    return any(settings) and told >= 0.9 * len(rows)


def _count(marks: re.Pattern[str], text: str) -> int:
    return sum(1 for _ in islice(marks.finditer(text), _MOST_MARKS))


def is_test_data(path: str, text: str) -> bool:
    """Tell whether a file has data for tests: samples, recorded answers or expected output.

    The result is ``False`` for tests themselves and for files that configure tests.
    """
    *folders, name = path.split("/")
    suffix = PurePosixPath(name.lower()).suffix
    held = next((each for each in (folder.lower() for folder in folders) if each in TEST_DATA), None)
    are_tests = any(map(OF_TESTS.fullmatch, folders))
    if (held or are_tests) and is_unknown(path):
        return bool(held) or not (text.startswith("#!") or program_suffix(text))
    if held and suffix in _NOT_CODE:
        return are_tests or "test" in name.lower() or not _INITIAL.match(text[:_HEAD])
    if held and (held.startswith(("_", "test")) or are_tests):
        return not _TESTING.search(text)
    if suffix in {".json", ".xml"}:
        is_pointing = len(text) <= 1_000 and _BESIDE.search(text)
        return are_tests and not (is_pointing or _CONFIGURES.fullmatch(name) or _CONFIGURING.search(text[:_HEAD]))
    if suffix in {".c", ".cc", ".cpp", ".cxx"}:
        doubles = len(_DOUBLE.findall(text)) if are_tests else 0
        return doubles >= _DOUBLES and doubles >= _DOUBLES_SHARE * len(_BODY.findall(text))
    return suffix in {".yaml", ".yml"} and bool(_RECORDED.match(text))


def is_unknown(path: str) -> bool:
    """Tell whether the suffix of a file is in none of the tables of this module."""
    name, suffix = PurePosixPath(path.lower()).name, suffix_of(path)
    known = suffix in _OTHER | BINARY_SUFFIXES | TEMPLATES | SUFFIXES[Domain.DOCUMENTATION]
    return bool(suffix.strip(".0123456789")) and not (known or is_called_manual(name) or reads(Domain.CODE, path))


def holds_code(text: str) -> bool:
    """Tell whether most lines of a text with an unknown suffix are statements or comments of code or configuration.

    The result is ``False`` for markup, JSON, prose and keys.
    """
    if text.lstrip().startswith("<") or "-----BEGIN " in text or is_json(text) or prose_share(text) >= PROSE_SHARE:
        return False
    rows = [row for row in text.splitlines()[:_MOST_MARKS] if row.strip()]
    stated = [_CODE_LINE.fullmatch(row) is not None for row in rows]
    told = sum(states or _CODE_REMARK.match(row) is not None for row, states in zip(rows, stated, strict=True))
    least = max(_CODE_LEAST, _CODE_SHARE * len(rows))
    return sum(stated) >= least and told >= _TOLD_SHARE * len(rows)


def is_licence_name(name: str) -> bool:
    """Tell whether the name of a file is usual for licences."""
    return _LICENCE_NAME.fullmatch(name) is not None


def is_code_name(name: str) -> bool:
    """Tell whether a file's name alone shows that it is code: a manifest, a build recipe or configuration."""
    lowered = name.lower()
    if lowered in CODE_NAMES:
        return True
    dependencies = lowered.startswith(("requirements", "constraints")) and lowered.endswith((".txt", ".in"))
    return dependencies or lowered.startswith(
        ("dockerfile.", "makefile.", "vagrantfile.", "jenkinsfile.", "caddyfile-")
    )


def reads(domain: Domain, path: str, *, is_program: bool = False) -> bool:
    """Tell whether a domain reads files with this name, or must look into them to decide.

    Args:
        is_program: whether the file has permission to be executed. Its first line may then name its language.
    """
    name = PurePosixPath(path).name
    suffix = suffix_of(below_example(name.lower()) if domain is Domain.CODE else name)
    if domain is Domain.DOCUMENTATION and is_called_manual(name):
        return True
    if suffix in SUFFIXES[domain]:
        return domain is not Domain.DOCUMENTATION or not is_code_name(name)
    if domain is Domain.CODE:
        if code_format_of(name) is not None or is_code_name(name) or below_example(name.lower()) != name.lower():
            return True
        return is_program or suffix in UNTOLD or is_licence_name(name) or not (suffix or name.startswith("."))
    return not (suffix or name.startswith(".") or is_code_name(name))
