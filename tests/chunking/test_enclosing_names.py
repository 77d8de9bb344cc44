"""A chunk carries the names of all that is around it, in every language."""

# ruff: noqa: E501 - a sample is one line

import pytest
from test_code import assert_tiles, chunks_of

ROWS = "".join(
    f'    {{"key-{n}", OPT_INT(value_{n}), .min = {n}, .max = {n} + 100, .flags = FLAG_{n}}},\n' for n in range(40)
)
STEPS = "".join(f"      - name: step {n}\n        run: make target-{n} --with option-{n}\n" for n in range(40))
MEMBERS = "".join(f"  expect(ledger_{n}).toBe({n})\n" for n in range(12))


def titles(text: str, path: str) -> list[str | None]:
    chunks = chunks_of(text, path)
    assert_tiles(text, chunks)
    return [chunk.title for chunk in chunks]


MACROS = {
    "TEST_F(LedgerTest, Rejects) { post(); }": "LedgerTest.Rejects",
    "TEST(Mutex, Lock) { Lock lock; Lock(); }": "Mutex.Lock",
    'TEST_CASE("strings are cut", "[tags]") { post(); }': "strings are cut",
    "SYSCALL_DEFINE3(open, const char __user *, name, int, flags, umode_t, mode) { return name; }": "open",
    "PYBIND11_MODULE(example, m) { m.doc(); }": "example",
    "BENCHMARK_F(Fixture, Runs)(benchmark::State& state) { run(state); }": "Fixture.Runs",
    "static JS_METHOD(connect, 2) { return 1; }": "connect",
    "START_TEST(keeps) { post(); }\nEND_TEST": "keeps",
    "int ordinary(void) { return 1; }": "ordinary",
    "static LRESULT CALLBACK WindowProc(HWND handle) { return 1; }": "WindowProc",
    "void Ledger::post(int cents) { }": "Ledger.post",
}


@pytest.mark.parametrize("source", MACROS)
def test_a_definition_by_macro_is_called_by_its_arguments(source: str) -> None:
    for path in ("a.c", "a.cc") if "::" not in source else ("a.cc",):
        assert MACROS[source] in titles(f"int first(void) {{ return 2; }}\n\n{source}\n", path), path


HIDDEN = {
    "a namespace": "X_NAMESPACE_BEGIN\n\ntemplate <typename T>\nstruct keeper {\n  int post(int a) { return a; }\n};\n\nX_NAMESPACE_END\n",
    "inside a namespace": "namespace a {\nX_INLINE_BEGIN\nnamespace b {\nstruct keeper { int n; };\n}\nX_INLINE_END\n}\n",
    "Qt": "class keeper : public QObject\n{\n    Q_OBJECT\n    Q_PROPERTY(int a READ a)\npublic:\n    explicit keeper(int);\nsignals:\n    void changed();\n};\n",
    "attributes": "X_NODISCARD\nX_EXPORT\nint keeper(int a)\n{\n    return a;\n}\n",
    "before a type": "X_EXPORT static int keeper(const char *X_NONNULL name)\n{\n    return 1;\n}\n",
    "lower case": "static int keeper(struct a *my_nonnull root, struct a *my_nonnull node) {\n  return 1;\n}\n",
    "braces": "#ifdef A\nint keeper(int a) {\n#else\nint keeper(long a) {\n#endif\n    return 1;\n}\n",
    "a head": "#ifdef A\nstatic int keeper(void)\n#else\nint keeper(void)\n#endif\n{\n    return 1;\n}\n",
    "a condition": "int keeper(int a)\n{\n#ifdef A\n    if (a) {\n#else\n    if (!a) {\n#endif\n        a = 1;\n    }\n    return a;\n}\n",
    "an initializer": "static const int keeper[] = {\n#ifdef A\n    1,\n#endif\n    2,\n};\n",
}


@pytest.mark.parametrize("case", HIDDEN)
def test_macros_and_branches_hide_nothing(case: str) -> None:
    text = f"{HIDDEN[case]}\nint after(void)\n{{\n    return 1;\n}}\n"
    assert {"keeper", "after"} <= set(titles(text, "a.hpp"))


DOCUMENTED = [f"/**\n * Does {n}, which {'is long and ' * length}ends.\n */\n" for n, length in enumerate((1, 1, 90))]
HEADER = f"{DOCUMENTED[0]}X_EXPORT int *first(int a);\n\n{DOCUMENTED[1]}void second(void);\nvoid third(int b) X_PURE;\n\n{DOCUMENTED[2]}int fourth(int c);\n"


@pytest.mark.parametrize(
    "frame",
    [
        "{}",
        "#ifndef A_H\n#define A_H\n\n{}\n#endif\n",
        '#ifdef __cplusplus\nextern "C" {{\n#endif\n\n{}\n#ifdef __cplusplus\n}}\n#endif\n',
        "namespace a {{\n{}}}\n",
    ],
)
def test_a_prototype_with_a_comment_is_titled_and_stands_with_it(frame: str) -> None:
    chunks = chunks_of(frame.format(HEADER), "a.hpp")
    assert [chunk.title for chunk in chunks if "Does" in chunk.content] == ["first, second, third", "fourth"]
    assert [chunk.content.count("/**") for chunk in chunks if "Does" in chunk.content] == [2, 1]
    assert_tiles(frame.format(HEADER), chunks)


def test_a_lone_prototype_is_titled_and_members_stay_with_their_class() -> None:
    text = "int a(void) { return 1; }\n\nstatic int later(int b);\n\nint c(void) { return later(2); }\n\nint (*hook)(int);\n"
    assert titles(text, "a.c") == ["a", "later", "c", "hook"]
    pump = "/** Moves water. */\nclass Pump {\npublic:\n    explicit Pump(int);\n    /** Starts. */\n    bool start(int);\n};\n"
    assert titles(f"{pump}\n/** Of all. */\ntemplate <typename T>\nT best(T a);\n", "a.hpp") == ["Pump", "best"]


ROW = "        Text(row, size: {0}, weight: {0}, color: {0})\n"
HEADS = {
    "a.swift": "struct Panel: View {{\n    var body: some View {{\n        VStack(alignment: .leading) {{\n{}        }}\n    }}\n}}\n",
    "a.kt": "class Panel {{\n    fun body() {{\n        column(1) {{\n{}        }}\n    }}\n}}\n",
    "a.ts": "function body() {{\n    return column(1, () => {{\n{}    }})\n}}\n",
    "a.py": "def body():\n    with column(1):\n{}",
}


@pytest.mark.parametrize("path", HEADS)
@pytest.mark.parametrize("limit", [80, 256])
def test_the_head_of_a_scope_is_no_chunk_of_its_own(path: str, limit: int) -> None:
    rows = "".join(ROW.format(n) for n in range(60))
    rows = rows.replace(":", "=") if path in {"a.py", "a.kt"} else rows
    chunks = chunks_of(HEADS[path].format(rows), path, limit=limit)
    assert_tiles(HEADS[path].format(rows), chunks, limit)
    first = next(chunk for chunk in chunks if "body" in chunk.content)
    assert "Text(row" in first.content


PERL = "package Norn::Loom;\nuse strict;\nour %threads = (warp => 1);\n\n=head2 weave\n\nWeaves.\n\n=cut\n\nsub weave { return 1 }\n\nsubtest 'cuts' => sub { ok(1) };\npackage Other { sub run { 2 } }\nmy $cut = sub { 3 };\n1;\n\n__END__\n\n=head1 SYNOPSIS\n\nUse it with care and with a loom, and never alone: a loom is a thing that many people have to share in peace, all day long.\n"


def test_subs_of_perl_are_titled_below_their_package_with_their_documentation() -> None:
    chunks = chunks_of(PERL, "Loom.pm")
    assert_tiles(PERL, chunks)
    below = ["%threads", "weave", "cuts", "Other", "$cut", "SYNOPSIS"]
    expected = [None, *(f"Norn.Loom.{name}" if name != "Other" else name for name in below)]
    assert [chunk.title for chunk in chunks] == expected
    assert chunks[2].content.startswith("=head2 weave")
    assert chunks[0].metadata["defines"] == ("Norn.Loom",)


@pytest.mark.parametrize(
    "text", ["<<X\n$,", "print <<A, <<~'B';\nB\nA\n$x", 'f(<<"A b");\n@{[1]}', "<<X\r\n$x\r\nX\r\n", "<<A;\n  A\n$x"]
)
def test_a_heredoc_of_perl_that_nothing_ends_keeps_its_grammar_no_longer(text: str) -> None:
    source = f"use strict;\n{text}"
    assert_tiles(source, chunks_of(source, "a.pl"))


def test_a_macro_before_a_name_stands_on_the_line_of_it() -> None:
    text = "struct pixel {\n    char hex[8];\n\n    SLIST_ENTRY(pixel) pixels;\n};\n\nSLIST_HEAD(head, pixel) pixels;\n\nint run(void) {\n    return 1;\n}\n"
    chunks = chunks_of(text, "a.c")
    assert [chunk.content.splitlines()[0] for chunk in chunks] == [
        "struct pixel {",
        "int run(void) {",
    ]
    assert chunks[0].content.endswith("\n\nSLIST_HEAD(head, pixel) pixels;")


def test_suites_name_their_tests() -> None:
    test = f'  it("keeps entry %d", async () => {{\n{MEMBERS}  }})\n'
    inner = f'describe("that is closed", () => {{\n{test % 1}{test % 2}}})\n'
    text = f'describe.each([[1]])("a ledger", () => {{\n  beforeEach(() => {{ open() }})\n{inner}}})\n'
    assert titles(text, "a.spec.ts")[-2:] == [
        "describe.each a ledger > that is closed > keeps entry 1",
        "describe.each a ledger > that is closed > keeps entry 2",
    ]
    bodies = "".join(f"    expect(ledger_{n}).to eq({n})\n" for n in range(12))
    ruby = f'RSpec.describe Ledger, "#post" do\n  let(:cents) {{ 1 }}\n  it "keeps" do\n{bodies}  end\n  it "loses" do\n{bodies}  end\nend\n'
    assert titles(ruby, "a_spec.rb")[-1] == "RSpec.describe Ledger #post > loses"
    elixir = f'defmodule A.LedgerTest do\n  describe "post" do\n    test "keeps" do\n{MEMBERS}    end\n    test "loses" do\n{MEMBERS}    end\n  end\nend\n'
    assert titles(elixir, "a_test.exs")[-1] == "A.LedgerTest.post.loses"
    scala = f'class LedgerSpec extends AnySpec {{\n  "a ledger" should {{\n    "keep" in {{\n{MEMBERS}    }}\n    "lose" in {{\n{MEMBERS}    }}\n  }}\n}}\n'
    assert titles(scala, "LedgerSpec.scala")[-1] == "LedgerSpec > a ledger > lose"


def test_what_a_test_hands_over_is_no_test_of_its_own() -> None:
    for text, path in (
        (f'test("boils", async () => {{\n  rule("less", (a) => a < 3)\n{MEMBERS}}})\n', "a.spec.ts"),
        (f'it("boils", () => {{\n  rule("less", (a) => a < 3)\n{MEMBERS}}})\n', "a.test.js"),
        (f"subtest 'boils' => sub {{\n  rule 'less', sub {{ 1 }};\n{MEMBERS}}};\n", "a.t"),
        (f'test "boils" do\n  assert_difference "Kettle.count" do\n    post 1\n  end\n{MEMBERS}end\n', "a_test.rb"),
    ):
        assert titles(text, path) == ["boils"]
    inner = f"  test('one', () => {{\n{MEMBERS}  }})\n  test('two', () => {{\n{MEMBERS}  }})\n"
    assert titles(f"test('all', () => {{\n{inner}}})\n", "a.spec.ts")[-1] == "all.two"


def test_a_macro_before_a_class_of_objective_c_stands_with_it() -> None:
    methods = "".join(f"- (void)boil{n}:(int)litres with:(NSString *)lid;\n" for n in range(9))
    classes = [
        "SU_EXPORT @interface Kettle : NSObject",
        "__attribute__((a(1))) @protocol Lid",
        "SU_EXPORT\n@interface Pot",
    ]
    text = "".join(f"{each}\n{methods}@end\n\n" for each in classes)
    chunks = chunks_of(f"#import <A/A.h>\n\nNS_ASSUME_NONNULL_BEGIN\n\n{text}NS_ASSUME_NONNULL_END\n", "a.h")
    assert [chunk.title for chunk in chunks] == [None, "Kettle", "Lid", "Pot"]
    assert all(chunk.content.startswith(head) for chunk, head in zip(chunks[1:], classes, strict=True))


def test_parts_of_a_table_know_whose_they_are() -> None:
    assert set(titles(f"static const struct option options[] = {{\n{ROWS}}};\n", "a.c")) == {"options"}
    workflow = f"name: build\njobs:\n  build:\n    steps:\n{STEPS}  test:\n    steps:\n{STEPS}"
    named = titles(workflow, "ci.yml")
    assert all(
        any((title or "").startswith(f"jobs > {job} > steps > ") for title in named) for job in ("build", "test")
    )
    python = "TABLE = {\n    'first': [\n" + "".join(f"        ({n}, 'name {n}'),\n" for n in range(90)) + "    ],\n}\n"
    assert set(titles(python, "a.py")) == {"TABLE.first"}


PATHS = "".join(f"            - path_{n}\n" for n in range(24))
PAGE = "  <p/>\n" * 60
IMPORTS = "".join(f"import {{ lid_{n} }} from './lids/number_{n}'\n" for n in range(9))
TITLES = {
    ("Panel.vue", f"<template>\n{PAGE}</template>\n\n<script lang='ts'>\nexport default {{\n  methods: {{\n    approve() {{ return 1 }},\n  }},\n}}\n</script>\n"): ["Panel", "approve"],
    ("Last.vue", f"<script>\nfunction a() {{ return 1 }}\n</script>\n\n{PAGE}"): ["a", "Last"],
    ("Small.vue", "<template>\n  <p/>\n</template>\n\n<script lang='ts'>\nexport default {\n  methods: {\n    approve() { return 1 },\n  },\n}\n</script>\n"): ["Small", "approve"],
    ("Kettle.vue", "<script setup>\nimport { lid } from './lid'\nconst hot = computed(() => lid.on)\n</script>\n<template><p/></template>\n"): ["Kettle"],
    ("Pot.vue", f"<script setup>\nimport {{ lid }} from './lid'\n</script>\n<template>\n{PAGE}</template>\n"): ["Pot"],
    ("Pan.vue", f"<script setup>\n{IMPORTS}</script>\n<template>\n{PAGE}</template>\n"): ["Pan", "Pan"],
    ("a.svelte", '<script lang="ts">\n  export function approve() { return 1 }\n</script>\n\n<p>{approve()}</p>\n' + PAGE + '\n<style>\np { color: red }\n</style>\n'): ["approve", "a", "a"],
    ("a.html", '<div id="app">…</div>\n' + "<br>\n" * 60 + '<script type="importmap">\n{"imports": {"b": "b.js"}}\n</script>\n<script type="module">\nexport function boil(litres) {\n  return new Kettle(litres).start();\n}\n</script>\n<style>\np { color: red }\n</style>\n'): ["a", "a", "boil", "a"],
    ("a.tf", 'resource "aws_instance" "web" {\n  ami = "x"\n}\n'): ["resource.aws_instance.web"],
    ("a.m", "@implementation Ledger\n- (void)post:(int)a with:(id)b { run(); }\n@end\n"): ["Ledger"],
    ("a.lua", "local M = {}\nfunction M.post(a) return a end\nreturn M\n"): ["M", "M.post", None],
    ("a.sql", "CREATE TABLE public.entries (id int primary key);\n"): ["public.entries"],
    ("a.sh", "MAX=3\npost() {\n  echo 1\n}\n"): ["MAX", "post"],
    ("a.proto", "message Entry {\n  int32 cents = 1;\n}\n"): ["Entry"],
    ("a.sql", "ALTER TABLE a ADD x INT;\nUPDATE b SET x = 1;\nDROP TABLE c;\nUPDATE b SET y = 2;\n"): ["a, b, c"],
    ("ci.yml", "on: push\njobs:\n  lint:\n    steps: []\n"): ["on, jobs"],
    ("tasks/a.yml", "---\n# first\n- name: Get the secret\n  k8s_info:\n    kind: Secret\n\n- set_fact:\n    x: 1\n  name: 'Keep it'\n"): ["Get the secret, Keep it"],
    ("tasks/b.yml", "- name: Check replicas\n  assert:\n    that:\n" + "".join(f"      - web_pods.{n} == expected_{n}\n" for n in range(30))): ["Check replicas"],
    ("pod.yml", "spec:\n  containers:\n    - image: a\n      name: proxy\n      args:\n" + "".join(f"        - --option-{n}={n}\n" for n in range(60)) + "    - name: web\n"): ["spec.containers.proxy.args", "spec.containers.proxy.args"],
    ("users.yml", "- {name: ann, shell: zsh}\n- {id: bob, name: {first: Bob}}\n- [1, 2]\n- plain\n"): ["ann, bob"],
    ("web.yaml.j2", "---\nkind: Pod\nmetadata:\n  name: '{{ name }}-web'\n{% if labels %}\n  labels: {{ labels | to_json }}\n{% endif %}\n"): ["Pod {{ name }}-web"],
    ("src/tags/list/index.marko", "import { a } from './a'\n\n<for|row| of=input.rows>\n  <p>${row}</p>\n</for>\n"): ["list"],
    ("a.ts", "export const ROWS = 3\nconst most: number = 5 // of them\n"): ["ROWS, most"],
    ("b.ts", "const app = make()\napp.use(json())\n"): [None],
    ("a.h", "#ifndef A_H\n#define A_H\n\n#define MOST 3\ntypedef struct a_t a;\nextern int count;\n\nvoid post(a* one);\nint (*hook)(void);\n\n#endif\n"): ["MOST, a, count, post, hook"],
    ("a.c", "#include <b.h>\n\nstatic GHashTable* sessions;\n\nstatic int post(int cents)\n{\n    return cents;\n}\n"): [None, "post"],
    ("k.yaml", "kind: Pod\nmetadata:\n  name: web\n---\nkind: Job\nmetadata:\n  name: 'nightly'\n"): ["Pod web, Job nightly"],
    ("b.yaml", "---\n# all\nkind: Bond\nname: b0\n---\nversion: 1\nmachine: {a: b}\n---\nkind: Job\nmetadata:\n  labels: {name: x}\n  name: nightly # at three\n"): ["Bond b0, version, machine, Job nightly"],
    ("b.yaml.j2", "kind: Bond\nname: {{ b }}\n---\nkind: Sysctl\nparams: {}\n"): ["Bond {{ b }}, Sysctl"],
    ("metrics.yml", f"spec:\n  watched:\n    - group:\n        kind: Lid\n      metrics:\n        - name: size\n          from:\n{PATHS}{PATHS}{PATHS}    - group:\n        kind: Cup\n      metrics:\n{PATHS}{PATHS}{PATHS}"): ["spec.watched.group", "spec.watched.group"],
    ("app.yml", f"app:\n  lids:\n    hinge:\n{PATHS}{PATHS}    screws:\n{PATHS}{PATHS}    nuts:\n{PATHS}{PATHS}  cups:\n{PATHS}  pots:\n{PATHS}{PATHS}"): ["app.lids", "app > lids … pots"],
    ("lid.vue", f"<script>\nexport default {{\n  props: {{\n    width: {{\n      type: Number,\n      validator(value) {{\n{MEMBERS * 3}      }},\n    }},\n  }},\n}}\n</script>\n"): ["width"],
    ("store.js", f"export default {{\n  cups: {{\n    full: {{\n      get() {{\n{MEMBERS * 4}      }},\n      set(value) {{\n{MEMBERS * 4}      }},\n    }},\n  }},\n}}\n"): ["full.get", "full.set"],
    ("a.swift", f"#Preview {{\n{MEMBERS}}}\n\n#Preview(\"Large lid\") {{\n{MEMBERS}}}\n"): ["#Preview", "#Preview Large lid"],
    ("debian/changelog", "kettle (1.4~rc1-1) unstable; urgency=medium\n\n  * A lid.\n\n -- Ann <ann@example.org>  Wed, 26 Oct 2022 19:40:42 -0400\n\nkettle (1.3-2) unstable; urgency=low\n\n  * A spout.\n"): ["kettle (1.4~rc1-1), kettle (1.3-2)"],
    ("cmake.spec", "###########\n# Bars (of the kettle)\n###########\nbar = 1\n"): ["Bars (of the kettle)"],
    ("t/k.yaml", '{{- if .on }}\nkind: Pod\nmetadata:\n  name: {{ .name }}-web\n  {{- with .x }}\n  {{ toYaml . }}\n  {{- end }}\n{{- end }}\n'): ["Pod {{ .name }}-web"],
    ("a.bats", "@test \"server: starts\" {\n  run a\n}\n\n@test 'b c' {\n  run b\n}\n"): ["server: starts", "b c"],
    ("a.ini", "; all of it\nname = x\n\n[global]\na = 1\n\n[urgency low]\nb = 2\n"): ["global, urgency low"],
    ("Makefile", "A ?= 1\nB := x:y\n\n.PHONY: all\nall: build test\n\tgo\n\nbuild:\n\tcc\n"): ["all, build"],
    ("Dockerfile", "FROM --platform=x node:20 AS build\nRUN a\n\nFROM scratch\nCOPY a b\n"): ["build, scratch"],
    ("_helpers.tpl", '{{- define "kettle.name" -}}\nx\n{{- end }}\n'): ["kettle.name"],
    ("nginx.conf", "http {\n  gzip on;\n}\nlocation /api {\n  deny all;\n}\nif ($x) {\n}\n"): ["http, /api"],
    ("a.ps1", "function Fill {\n  param($a)\n}\nfunction f { 1 }\n$cup = @{\n  x = 1\n}\ni -Pass:$Pass {\n}\n"): ["Fill, f, $cup"],
    ("b.ps1", "In -Module:$M {\n  Describe 'It''s a kettle' -Tag 'x' {\n    It \"fills\" {\n    }\n  }\n}\n"): ["It's a kettle"],
    ("a.go", "package a\n\nconst (\n\tlitres = 1\n\t// in degrees\n\theat = 2\n)\n\nvar (\n\tcups = []string{\"a\", \"b\"}\n)\n"): ["litres, heat, cups"],
    ("a.py", "# ---- Limits of the kettle ----\nLITRES = 2\nHEAT = 3\n"): ["Limits of the kettle"],
    ("run.sh", "set -e\n##########\n# Clean up\n##########\nrm -r x\n# a ---- b\n"): ["Clean up"],
    ("a.libsonnet", "{\n  values:: {\n    a: 1,\n  },\n  deploy(x): {\n  },\n  name: 'b',\n}\n"): ["values, deploy"],
}  # fmt: skip


@pytest.mark.parametrize(("path", "text"), TITLES)
def test_titles(path: str, text: str) -> None:
    assert titles(text, path) == TITLES[path, text]


def test_a_tag_that_closes_a_script_is_in_no_chunk() -> None:
    script = "<script setup>\nfunction a() {\n  return 1\n}\n</script>\n"
    for path, text in {
        "A.vue": f"{script}\n<template>\n{PAGE}</template>\n<style>\np {{ color: red }}\n</style>\n",
        "A.svelte": f"{script}<p>x</p>\n{PAGE}",
        "B.vue": f"<template>\n{PAGE}</template>\n{script}",
        "d.html": f"<i></i>\n{PAGE}<!-- a -->\n<script src=a.js></script>\n{script * 3}",
        "C.vue": "<SCRIPT>\nconst a = 1\n</SCRIPT >\n\n<script setup>\nconst b = 2\n</script>\n<i/>\n" + PAGE,
    }.items():
        chunks = chunks_of(text, path)
        assert_tiles(text, chunks)
        assert not any("</script" in chunk.content.lower() for chunk in chunks)


def test_a_title_is_what_a_reader_calls_it() -> None:
    test = f"describe('a', () => {{\n  it('doesn\\'t \\\"run\\\"', () => {{\n{MEMBERS}  }})\n  it('goes', () => {{\n{MEMBERS}  }})\n}})\n"
    assert 'a > doesn\'t "run"' in titles(test, "a.test.ts")
    taken = f"const {{ submit, pending: waits }} = use(async () => {{\n{MEMBERS}}})\nconst [x, y] = use(() => {{\n{MEMBERS}}})\n"
    assert not any("submit" in (title or "") or "x, y" in (title or "") for title in titles(taken, "a.ts"))


def test_the_last_part_of_a_long_function_is_no_rest_of_two_lines() -> None:
    for lines in range(40, 140, 3):
        body = "".join(f"  expect(ledger_{n}).toBe({n}, 'x')\n" for n in range(lines))
        found = [chunk.token_count for chunk in chunks_of(f"function keeps() {{\n{body}}}\n", "a.ts", limit=256)]
        assert min(found) > 32 or len(found) == 1, (lines, found)


def test_a_package_behind_a_licence_stands_with_what_follows() -> None:
    licence = "/*\n * Copyright (C) 2024 A\n *\n * Licensed under the Apache License, Version 2.0 (the License);\n * you may not use this file except in compliance with the License.\n */\n"
    chunks = chunks_of(f"{licence}package a.b\n\nimport c.d\n\nfun post() {{\n    run()\n}}\n", "Post.kt")
    assert [chunk.content.splitlines()[0] for chunk in chunks] == ["package a.b", "fun post() {"]


APACHE = """Copyright 2014 the authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

     http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software distributed under the License is
distributed on an "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied."""
MIT = """Copyright (c) 2014 Ann

Permission is hereby granted, free of charge, to any person obtaining a copy of this software, to deal in the
Software without restriction, subject to the following conditions: the above copyright notice shall be included in
all copies. THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND."""
CODE = {
    "a.py": ("#", "import os\n\n\ndef post():\n    return os\n"), "a.js": ("//", "import a from 'a'\n\nexport function post() {\n  return a\n}\n"),
    "a.java": ("//", "package a;\n\nimport b.C;\n\nclass Post {\n  int post() { return 1; }\n}\n"),
    "a.go": ("//", "package a\n\nimport \"b\"\n\nfunc post() int { return b.C }\n"), "a.rs": ("//", "use a::B;\n\nfn post() -> B { B }\n"),
    "a.c": ("//", '#include "b.h"\n\nint post(void) { return 1; }\n'), "a.h": ("//", "#pragma once\n\n/* Posts. */\nint post(void);\n"),
    "a.rb": ("#", "require 'b'\n\ndef post\n  b\nend\n"), "a.sh": ("#", "set -e\n\npost() {\n  echo 1\n}\n"), "a.pl": ("#", "use strict;\n\nsub post {\n  return 1;\n}\n"),
    "a.php": ("//", "namespace A;\n\nfunction post() { return 1; }\n"), "a.yaml": ("#", "post: 1\n"), "a.kt": ("//", "package a\n\nfun post() = 1\n"),
}  # fmt: skip


@pytest.mark.parametrize("path", CODE)
@pytest.mark.parametrize(
    "licence", [APACHE, MIT, "SPDX-License-Identifier: MIT", "Copyright 2014 Ann. All rights reserved."]
)
def test_code_below_a_licence_is_read_whatever_its_language(path: str, licence: str) -> None:
    mark, code = CODE[path]
    block = "/*\n" + "".join(f" * {line}\n" for line in licence.splitlines()) + " */\n"
    heads = ["".join(f"{mark} {line}\n" for line in licence.splitlines()), *([block] if mark == "//" else [])]
    for head in heads:
        for between in ("", "\n"):
            text = f"{'<?php' + chr(10) if path == 'a.php' else ''}{head}{between}{code}"
            content = "\n".join(chunk.content for chunk in chunks_of(text, path))
            assert "post" in content.lower() and "Copyright 2014 the" not in content and "granted" not in content


@pytest.mark.parametrize("said", ["Retries, because the pump is late.", "adds a label to a request"])
def test_a_sentence_beside_a_notice_is_no_licence(said: str) -> None:
    for notice in ("SPDX-License-Identifier: Apache-2.0", "Licensed under MIT"):
        for order in ((f"Copyright 2024 A. Person\n# {notice}", said), (said, f"Copyright 2024 A. Person\n# {notice}")):
            text = "# " + "\n# ".join(order) + "\ndef retry():\n    return 1\n"
            content = "\n".join(chunk.content for chunk in chunks_of(text, "a.py"))
            assert said in content and ("Copyright" in content) == (order[0] == said)


def test_an_interface_of_objective_c_is_no_c() -> None:
    text = "#import <A/A.h>\n\nNS_ASSUME_NONNULL_BEGIN\n\n@interface Queue : NSObject\n- (void)post:(int)a;\n@end\n\n@protocol Other\n@end\n\nNS_ASSUME_NONNULL_END\n"
    assert {"Queue", "Other"} <= set(titles(text, "Queue.h"))
    enum = (
        "typedef NS_ENUM(NSInteger, Color) {\n"
        + "".join(f"  /// Shown as {n}\n  Color{n},\n" for n in range(30))
        + "};\n"
    )
    assert "Color" in titles(f"#import <A/A.h>\n{enum}", "Color.h")


@pytest.mark.parametrize(("text", "path", "title"), [
    (".lid {\n  top: 0;\n}\n", "a.less", ".lid"),
    ("li.lid--open {\n  top: 0;\n}\nli.lid--open:hover {\n  top: 1px;\n}\n", "a.css", "li.lid--open"),
    (".lid {\n  top: 0;\n}\n@keyframes boil {\n  from { top: 0; }\n}\n", "a.scss", ".lid, boil"),
    (".lid {\n  top: 0;\n}\n.lids {\n  top: 0;\n}\n", "a.css", ".lid, .lids"),
    ("@media (max-width: 640px) {\n  .lid { top: 0; }\n}\n", "a.less", "(max-width: 640px)"),
])  # fmt: skip
def test_styles_are_titled_by_their_selectors(text: str, path: str, title: str) -> None:
    assert titles(text, path) == [title]


def test_a_passage_that_is_all_of_a_value_has_its_name() -> None:
    fields = ", ".join(f'"field_{number}": {{"type": "string", "title": "lid"}}' for number in range(7))
    part = f'{{\n      "type": "object",\n      "properties": {{\n        {fields}\n      }}\n    }}'
    text = f'{{\n  "definitions": {{\n    "Kettle": {part},\n    "Stove": {part}\n  }}\n}}\n'
    assert titles(text, "a.json")[-1] == "definitions.Stove"


def test_a_licence_below_a_name_is_in_no_chunk() -> None:
    """A word above a licence says nothing; a sentence above it stays, without the licence."""
    code = "int kettle_fill(void) {\n  return 1;\n}\n"
    for above, kept in ((" * kettle\n *\n", ""), (" * Fills the kettle with water.\n *\n", "Fills the kettle")):
        block = "".join(f" * {line}\n" for line in MIT.splitlines())
        first, *_ = chunks = chunks_of(f"/*\n{above}{block} */\n{code}", "kettle.c")
        assert kept in first.content
        assert not any("Permission is hereby" in chunk.content or "AS IS" in chunk.content for chunk in chunks)
        assert any("kettle_fill" in chunk.content for chunk in chunks)


@pytest.mark.parametrize("guard", ["", "#ifndef KETTLE_H\n#define KETTLE_H\n", "#pragma once\n\n"])
def test_a_short_notice_is_in_no_chunk(guard: str) -> None:
    """Neither the file's name above it nor the guard of a header makes a passage of it."""
    notice = "/*\npump - kettle.h\n(C) 2004-2011 Ann B\n(C) 2020 Red Pump, Inc.\nReleased under the GNU GPLv2+, see COPYING\n*/\n"
    (chunk,) = chunks_of(f"{guard}{notice}\n#include <a.h>\n\nint kettle_fill(int litres, int degrees);\n", "kettle.h")
    assert chunk.content.startswith("#include")


def test_a_forward_declaration_of_objective_c_defines_nothing() -> None:
    value = 'static NSString *const kName = @"name of the queue that holds all kettles and stoves";'
    header = f'#import "A.h"\n\n@class Kettle;\n@class Stove, Pump;\n\n{value}\n\n@interface Queue : NSObject\n- (void)post:(int)a;\n@end\n'
    chunks = chunks_of(header, "Queue.m")
    assert [chunk.metadata.get("defines") for chunk in chunks] == [None, ("kName",), ("Queue",)]
    assert not any("Kettle" in (chunk.title or "") for chunk in chunks)


def test_where_to_write_for_a_licence_is_of_it() -> None:
    notice = "Copyright (c) 2009 Ann B\n *\n * This program is free software; you can redistribute it and/or modify it."
    address = "You should have received a copy of the GNU General Public License along\n * with this program; if not, write to the"
    place = "Free Software Foundation, Inc., 51 Franklin Street, Fifth Floor, Boston, MA 02110-1301 USA."
    (chunk,) = chunks_of(
        f"/*\n * {notice}\n *\n * {address} {place}\n */\n\nint kettle_fill(int a) {{\n  return a;\n}}\n", "a.c"
    )
    assert chunk.content.startswith("int kettle_fill")


def test_a_comment_with_a_notice_at_its_end_stays_whole() -> None:
    for head in ("\\file kettle.c\n * \\brief Returns a kettle", "Fills a kettle and heats it. Then it waits"):
        comment = f"/**\n * {head} that is hot.\n * \\author Copyright (c) 2002-2008 Ann B and others\n */"
        first, *_ = chunks_of(f'{comment}\n\n#include "kettle.h"\n\nint a(void) {{\n  return 1;\n}}\n', "kettle.c")
        assert first.content.startswith(comment)


def test_a_block_ends_where_it_closes() -> None:
    """What follows has no title of it, and a passage within a block that is too long has the names of those around."""
    tests = "".join(f"  It 'fills {n}' {{\n{'    $n | Should -Be 1' + chr(10) * 2}    $m\n  }}\n\n" for n in range(60))
    text = f"function Heat {{\n  1\n}}\n\n{'$w = 1' + chr(10)}{'Write-Host w w w w w w w w w' * 60}\n\nDescribe 'Kettle' {{\n{tests}}}\n"
    head, *_, last = chunks = chunks_of(text, "a.ps1")
    assert head.title == "Heat" and chunks[1].title is None
    within = [chunk for chunk in chunks if "It 'fills" in chunk.content]
    assert len(within) > 1 and all("Kettle" in (chunk.title or "") for chunk in within)
    assert all(chunk.content.lstrip().startswith(("It '", "Describe")) for chunk in within) and last.title


def test_a_test_that_defines_what_it_tests_is_one_passage() -> None:
    """Blocks within it that are given a name are no tests of their own, unlike those of a group."""
    made = 'define_class "Kettle" do\n      attr_accessor :litres, :degrees, :colour, :whistle\n      def boil\n        1\n      end\n    end'
    one = (
        '  it "{0}" do\n    {1}\n\n    define "x" do\n      {2}\n    end\n    expect(Kettle.new.boil).to eq 1\n  end\n'
    )
    text = f'describe "kettles" do\n{"".join(one.format(name, made, "boil 1, 2, 3, 4, 5, 6, 7, 8, 9") for name in "ab")}end\n'
    assert titles(text, "kettle_spec.rb") == ["kettles.a", "kettles.b"]


def test_a_function_is_parted_between_outer_statements() -> None:
    """A branch within a loop stays whole where only the little at the end is left over."""
    calls = "".join(f"      go(a, {number}, here, there);\n" for number in range(22))
    text = (
        f"int f(int a) {{\n  while (a) {{\n    if (a > 1) {{\n{calls}    }} else {{\n{calls}    }}\n  }}\n"
        + "  stop(a);\n" * 12
        + "}\n"
    )
    first, last = chunks_of(text, "a.c")
    assert first.content.endswith(("  }", "stop(a);")) and last.content.startswith("  stop")


def test_data_is_called_by_all_that_stands_beside_each_other() -> None:
    part = '{"type": "number", "description": "how full a kettle is, and how hot"}'
    keys = ",\n".join(f'      "key{number}": {part}' for number in range(60))
    found = titles(f'{{\n  "kettle": {{\n    "properties": {{\n{keys}\n    }}\n  }}\n}}\n', "a.json")
    assert str(found[1]).startswith("kettle > properties > key") and " … key" in str(found[1])


def test_pieces_begin_with_sections_and_later_ones_are_called_as_theirs() -> None:
    """A comment stays above the section that it stands above; a piece within one has its name."""
    lines = "".join(f"key_{number} = value of {number}\n\n" for number in range(150))
    text = f"[first]\na = 1\n\n{'b = 2' + chr(10)}\n# about the second\n[second]\n{lines}"
    first, second, *later = chunks_of(text, "a.ini")
    assert first.title == "first" and second.content.startswith("# about the second\n[second]")
    assert {chunk.title for chunk in (second, *later)} == {"second"} and later


def test_a_part_of_data_begins_with_the_item_that_it_belongs_to() -> None:
    """The head of a job does not stand at the end of the part before it, where there is room for both."""
    step = "      - name: Fills the kettle with fresh water\n"
    for head in (
        "    runs-on: linux\n    needs:\n      - lint\n",
        "    needs: [a, b]\n",
        "    # for all\n    env: {A: 1}\n",
    ):
        for steps in (20, 24, 26):
            jobs = "".join(f"  {name}:\n{head}    steps:\n{step * of}" for name, of in (("lint", steps), ("ship", 36)))
            first, *rest = (chunk.content.splitlines() for chunk in chunks_of(f"jobs:\n{jobs}", "ci.yml"))
            assert "  ship:" not in first[-8:] and all("  ship:" not in lines[1:] for lines in rest)


def test_a_block_of_comment_stays_above_the_section_that_it_describes() -> None:
    part = (
        '{{/*\nHow warm the kettle is.\nIn degrees.\n*/}}\n{{- define "kettle.NAME" -}}\n'
        + "a b c\n" * 60
        + "{{- end }}\n\n"
    )
    chunks = chunks_of("".join(part.replace("NAME", name) for name in "abcdefgh"), "_helpers.tpl")
    assert len(chunks) > 1 and all(chunk.content.startswith("{{/*\nHow warm") for chunk in chunks)


@pytest.mark.parametrize(("first", "title"), [
    ("hosts: kettles", "kettles"), ("hosts: 'cups:!broken'", "cups:!broken"),
    ("name: Wash all\n  hosts: cups", "Wash all"), ("hosts: cups\n  name: Wash all", "Wash all"),
])  # fmt: skip
def test_a_play_is_called_by_its_name_or_its_hosts(first: str, title: str) -> None:
    play = f"---\n- {first}\n  become: true\n  tasks:\n    - command: wash\n"
    assert [chunk.title for chunk in chunks_of(play, "play.yml")] == [title]
    played = chunks_of(f"{play}\n- import_playbook: tea.yml\n", "play.yml")
    assert [(chunk.title or "").split(", ")[0] for chunk in played] == [title]


def test_the_items_of_a_list_of_yaml_are_called_by_what_all_begin_with() -> None:
    def titles(*firsts: str) -> list[str | None]:
        rest = "".join(f"    key{n}: a value of some words\n" for n in range(4))
        text = "tests:\n" + "".join(f"  - {first}\n{rest}" for first in firsts)
        return [chunk.title for chunk in chunks_of(text, "a.yaml", limit=120)]

    several = titles(*(f"it: boils {n}" for n in range(6)))
    assert several == ["tests > boils 0 … boils 2", "tests > boils 3 … boils 5"]
    assert titles(*(f"title: n{n}" for n in range(5))) == ["tests > n0 … n2", "tests > n3, n4"]
    assert titles("uses: a", "run: b", "uses: c", "run: d", "uses: e", "run: f") == ["tests", "tests"]
    assert titles(*["kind: Pod"] * 6) == ["tests", "tests"]
    assert titles(*["set:\n      a: 1"] * 6) == ["tests", "tests"]


HANDLED = [
    "    TRY\n    {\n        open(a);\n    }\n    CATCH(Error, e)\n    {\n        log(e);\n    }\n    END_CATCH\n",
    "    KETTLE_TRY {\n        open(a);\n    } KETTLE_CATCH(...) {\n        log(a);\n    }\n",
    "    Q_TRY\n    {\n        open(a);\n    }\n    Q_FINALLY_DO {\n        log(a);\n    }\n",
]


@pytest.mark.parametrize("handled", HANDLED)
def test_exceptions_by_macros_part_no_function(handled: str) -> None:
    text = f"#include <a.h>\n\nvoid first(int a)\n{{\n{handled}}}\n\nint second(int b)\n{{\n    return b;\n}}\n"
    assert [title for title in titles(text, "a.cpp") if title] == ["first", "second"]


ROWS = "".join(f"  key{n}: the value of number {n}\n" for n in range(60))


@pytest.mark.parametrize("mark", ["---\n", "--- # second\n", "---\n\n# Source: b.yaml\n"])
def test_a_document_of_yaml_begins_at_its_mark(mark: str) -> None:
    text = f"kind: A\nmetadata:\n  name: one\ndata:\n{ROWS}{mark}kind: B\nmetadata:\n  name: two\ndata:\n{ROWS}"
    chunks = chunks_of(text, "a.yaml")
    assert_tiles(text, chunks)
    (second,) = (chunk.content for chunk in chunks if "kind: B" in chunk.content)
    assert second.startswith("---") and not any("---" in chunk.content for chunk in chunks if chunk.content != second)


@pytest.mark.parametrize(("path", "begins", "ends"), [
    ("a.sh", "while read -r line; do", "done < in.txt"), ("a.sh", 'if [ -n "$A" ]; then', "fi"),
    ("a.py", "for row in rows:", ""), ("a.js", "if (ready) {", "}"),
])  # fmt: skip
def test_a_loop_stays_whole_as_a_function_would(path: str, begins: str, ends: str) -> None:
    rows = "".join(f'    print("number {n} of the rows", {n})\n' for n in range(24))
    if path == "a.sh":
        rows = rows.replace("print(", "echo ").replace(")", "")
    loop = f"{begins}\n{rows}{ends}".rstrip()
    contents = [chunk.content for chunk in chunks_of(f"{loop}\n", path)]
    assert contents == [loop]
