"""Every name that code defines is known with its place, whatever the grammar calls it."""

# ruff: noqa: E501 - a sample is one line

import pytest

from nornweave.core.types import Span
from nornweave.read.chunking import parsing
from nornweave.read.chunking.languages import GRAMMARS
from nornweave.read.chunking.symbols import Definitions

CODE = {
    "python": (
        "MAX = 3\nclass A:\n    limit: int = 2\n    def run(self):\n        x = 1\n        def inner(): pass\n",
        ("MAX", "A", "A.limit", "A.run", "A.run.inner"),
    ),
    "go": (
        "package q\nconst Max = 3\ntype A struct {\n\tn int\n}\nfunc (a *A) Run() {}\nfunc New() *A { return nil }\n",
        ("Max", "A", "A.n", "A.Run", "New"),
    ),
    "typescript": (
        "export const limit = 3;\nexport class A { n = 1; run() {} }\nconst f = () => 1;\ninterface B { x(): void }\n",
        ("limit", "A", "A.n", "A.run", "f", "B"),
    ),
    "java": (
        "class A {\n  static final int MAX = 3;\n  enum E { X }\n  void run() { int y = 1; }\n}\n",
        ("A", "A.MAX", "A.E", "A.E.X", "A.run"),
    ),
    "rust": (
        "const MAX: u8 = 3;\nstruct A { n: u8 }\nimpl A { fn run(&self) {} }\nmod m { pub fn f() {} }\n",
        ("MAX", "A", "A.n", "A.run", "m.f"),
    ),
    "kotlin": (
        "const val MAX = 3\ntypealias F = (Int) -> Unit\nclass A {\n    companion object {\n        const val LIMIT = 5\n    }\n\n    val total: Int\n        get() = 1\n    fun run() {}\n}\n",
        ("MAX", "F", "A", "A.LIMIT", "A.total", "A.run"),
    ),
    "php": ("<?php\nconst MAX = 1;\nclass A { const LIMIT = 3; public $n = 1; function run() {} }\n", ("MAX", "A", "A.LIMIT", "A.$n", "A.run")),
    "c": (
        "#define MAX 3\nint after(int names[]);\nstatic const char *names[] = {\"a\"};\ntypedef struct A { int n; } A;\nvoid run(void) { int y[2]; }\n",
        ("MAX", "after", "names", "A", "A.n", "run"),
    ),
    "csharp": ("class A { public int Total { get; set; } int n = 1; void run() {} }\n", ("A", "A.Total", "A.n", "A.run")),
    "objc": (
        "@interface A : NSObject\n@property int total;\n- (void)announced;\n@end\n@implementation A\n- (void)run:(int)a with:(int)b { }\n@end\n",
        ("A", "A.total", "A.run:with:"),
    ),
    "scala": ("object A {\n  val Max = 3\n  type T = Int\n  def run(): Int = { 1 }\n}\n", ("A", "A.Max", "A.T", "A.run")),
    "elixir": ("defmodule M.A do\n  def run(x), do: x\n  test \"does it\" do\n    1\n  end\nend\n", ("M.A", "M.A.run")),
    "hcl": ('resource "aws" "a" {\n  n = 1\n}\nvariable "run" {}\n', ("resource.aws.a", "variable.run")),
    "ruby": ("class A\n  MAX = 3\n  def run\n    1\n  end\nend\n", ("A", "A.MAX", "A.run")),
}  # fmt: skip


@pytest.mark.parametrize("language", CODE)
def test_names_are_those_that_are_defined(language: str) -> None:
    text, expected = CODE[language]
    tree = parsing.parse(GRAMMARS[language], parsing.mask(text))
    assert tree is not None
    defined = Definitions(tree.root_node, GRAMMARS[language], text)
    assert set(defined.within(Span(0, len(text)))) == set(expected)
    last = text.lower().rindex("run") + 1
    assert "A.run" not in defined.within(Span(last, len(text))), "a part that goes on with it does not define it"


def test_what_is_only_declared_is_told_apart() -> None:
    text = "static void run(void);\nint after(int names[]);\nint (*callback)(int);\n\nvoid run(void) { after(0); }\n"
    tree = parsing.parse(GRAMMARS["c"], parsing.mask(text))
    assert tree is not None
    defined, body = Definitions(tree.root_node, GRAMMARS["c"], text), text.index("void run(void) {")
    assert defined.declared_within(Span(0, body)) == ("run", "after")
    assert defined.within(Span(body, len(text))) == ("run",)
    assert defined.declared_within(Span(body, len(text))) == ()


def test_without_a_tree_nothing_is_defined() -> None:
    assert Definitions(None, None, "class A: pass").within(Span(0, 9)) == ()
