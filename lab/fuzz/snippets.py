"""Snippets of which documents are made: openers, nestings, comments, chains, unclosed things; only data."""

from __future__ import annotations

# fmt: off
CODE = (
    "/** a\n", "/* a */\n", "/* a", "// a\n", "# a\n", "#", "\"\"\"", "\"", "'", "`", "${", "(", "[", "{", "<",
    "((\n", "a.b", "a.", "a(", "a[", "a+", "a-", "a?b:", "a?", "a,", "else if(a)", "if(a)", "if(a){",
    "if (a) {} else ", "if a {} else ", "for(;;)", "for(;;){", "while(a)", "function f(){", "function ", "class A{",
    "class A {\n", "class A:\n", "class ", "def f():\n", "def f(", "def f\n", "x = 1\n", "x = ", "@a\n", "@a", "a=>",
    "a;\n", "a\n", "a b ", "#if A\n", "#if A\n#endif\n", "#define A \\\n", "#define A 1\n", "#include <a>\n",
    "namespace a {", "namespace a;\n", "template<", "template<class T> ", "A<", "A<B>", "case 1:", "switch(a){",
    "try{", "try:\n", "\n", " ", "\t", "\r", "0", "a", "\u00e9", "\\", "\\\n", "let a=", "let a = 1;\n", "var a, ",
    "const a = {", "a: ", "a:1,", "- ", "<?php ", "<<<A\n", "<<A\n", "%w(", "begin\n", "do |a|", "do\n", "end\n",
    "end ", "if a then ", "if a\n", "elif a:\n", "if a:\n", "else:\n", "lambda: ", "import a\n", "import a;\n",
    "from a import b\n", "use a;\n", "#[a]\n", "[A]\n", "impl A {", "fn f() {", "fn f(", "match a {", "func f() {",
    "func (a A) f() {}\n", "switch a {", "guard let a else {", "fun f() {", "fun f() = ", "when (a) {",
    "interface A {", "enum A {", "} else if (a) {", "}", "){", "public void f() {", "public void f() {}\n",
    "public ", "static ", "int a;\n", "int f(){}\n", "int f(", "int *", "struct A {", "struct A {};\n", "return ",
    "return a;\n", "yield ", "await ", "async ", "!", "~", "&", "*", "&&", "||", "==", "->", "::", "A::", "...",
    "f\"{", "f\"{a}\"", "r#\"", "\"a\" ", "\"a\"\n", "'a' ", "1.", "1e", "<a>", "<a", "</a>", "{/*", "//", "/", "/a",
    "///a\n", "x = \"\"\"a\"\"\"\n", "extends A", "private a = 1;\n", "a = b ? c : d;\n", "a ||", "a or ",
    "a if b else ", "a and ", "not ", "( a", "def f(a=1):\n  \"\"\"Default 30.\"\"\"\n", "#: default 5\nA = 5\n",
    "A = 5 # default 5\n", "@a\ndef f(): pass\n", "class A { int a = 5; void f(int b) { if (b == null) b = 5; } }\n",
    "if a: b = 1\n", "a = a or 5\n", "# timeout: 30\n", "type A = ", "type A struct {",
    "type A struct { B int `json:\"b\"` }\n", "export ", "export default ", "export const a = () => {",
    "module.exports = {", "require(\"a\")", "import {a} from \"b\";\n", "goto a;", "a: while(1)", "asm(", "sizeof ",
    "(a)", "(int)", "[a]", "{a}", "{}", "{},", "()", "()=>", "[]", "[],", "\"a\":1,", "{\"a\":", "@interface A ",
    "extern \"C\" {", "using namespace a;\n", "#ifdef A\n", "#else\n", "__attribute__((a)) ", "operator+", "{{",
    "}}", "<%", "%>", "?>", "-", "--", "=", ">", ">>", "|", "^", "%", ":", ";", ",", ".", "$", "$a", "@@a",
    "@a = 1\n", "a&.b", "puts <<~A\n", "\"#{", "`${", "when a\n", "unless a\n", "rescue\n", "A.B = 5\n",
    "self.a = 5\n", "this.a = 5;\n", "this.a = b || 5;\n", "options.a || 30\n",
    "parser.add_argument(\"--a\", default=5)\n", "app.option(\"--a\", 5)\n",
)
"""Of all thirteen languages, each given to every one of them."""
PROSE = (
    "# a\n", "## a\n\n", "# ", "#", "a\n", "a\n\n", "a ", "a", "- a\n", "- ", "-", "  - a\n", "1. a\n", "> ", ">",
    "> a\n", ">>", "* ", "*", "**", "**a", "_", "_a", "__", "`", "``", "`a", "```\n", "```", "~~~\n", "[", "[a",
    "[a](", "[a](b)", "[a]: b\n", "![", "](", "<", "<a", "<a ", "<!--", "<!-- a", "<b>", "</b>", "<div>\n", "<div>",
    "<p>", "<table>", "<tr><td>", "<td>", "<pre>", "<code>", "<ul><li>", "<li>", "<script>", "<style>", "<![CDATA[",
    "<?", "<a href=\"", "<h1>", "<h1>a</h1>\n", "<h1>a", "<br>", "<dl><dt>", "<dd>", "<font>", "<b><i>", "<form>",
    "<option>", "<p>a</p>\n", "&", "&a", "&#", "&#x", "&amp;", "&lt;", "| a ", "|", "| a | b |\n",
    "| a | b |\n|---|---|\n", "|-", "|-|\n", "a | b\n", "+---+\n", "+---", "| a |\n", "=== ===\n", "=== \n",
    "a\n=\n", "a\n===\n", "===\n", "---\n", "...", ".. a::\n", ".. a:\n", ".. ", "..", "::\n\n", "::\n\n  a\n",
    "a::\n\n", ".. code::\n\n  a\n", ".. table::\n", ".. _a:\n", ".. |a| replace:: b\n", ":a: b\n", ":a:", "`a`_",
    "`a`__", "a_ ", "|a|", "[1]_", ".. [1] a\n", "   a\n", "    a\n", "\ta\n", " ", "\t", "\n", "\r\n", "\r", "\f",
    "\u000b", "\u2028", "\u00a0", "\u00e9", "\\", "\\\n", "a. ", "a! b? ", "a.", ".", "!", "?", "\"", "'", "(", "((",
    ")", "( a", "a,", "a: 5\n", "a = 5\n", "a: ", "the default is 5. ", "The default timeout is 30 seconds. ",
    "timeout (default: 30)\n", "by default, ", "defaults to ", "default ", "not ", "a must be between 1 and 5. ",
    "between 1 and ", "at least ", "version 1.2.3 ", "1.2.3", "1.", "1,", "1 ", "0", "1", "5 seconds ",
    "if not set, ", "or ", "and ", "http://a ", "http://a", "http://", "a@b.c ", "www.", "{", "{{", "{%", "{{a}}",
    "$", "$$", "$a$", "\\(", "\\begin{a}", "%", "^", "~", "~~", "~~a", "==", "=", "+", "+ a\n", "--- \n",
    "---\na: b\n---\n", "--a ", "--a", "--a=5\n", "-a, --aa  text\n", "$ a --b\n", ">>> a\n", ">>> a\nb\n", "A_B ",
    "A_B=5\n", "aB.cD ", "`a` is 5. ", "`a`: 5\n", "``a`` defaults to 5.\n", "- `a`: default 5\n", "* a - b\n",
    "Note: ", "TODO ", "```python\na\n```\n", "```yaml\na: 5\n```\n", "<details>", "[^1]", "[^1]: a\n", "- [ ] a\n",
    "***\n", "a  \n", "<a name=\"x\"></a>", "{#a}", "!!! note\n", "=== \"a\"\n", ":::\n", "(a)", "[a][b]", "[a]",
    "[[", "[[a]]", "]]", "Args:\n", "Returns:\n", "    a: b\n", ":param a: b\n", "@param a b\n",
    "2020-01-01 a b=1\n", "2020-01-01T00:00:00Z INFO a=1 b=2\n", "a,b,c\n", "1,2,3,\"a\"\n", "\"a,", "{\"a\":1}\n",
    "{\"a\":", "[1,", "{\"a\":[", "\"a\":1,", "\"\\u0041", "true,", "1e", "00:00:01.000 --> 00:00:02.000\na\n\n",
    "00:00:01.000 --> ", "WEBVTT\n\n", "A: b\n", "A: ", "<v A>a\n", "<v ", "1\n00:00:01,000 --> 00:00:02,000\na\n\n",
    "NOTE a\n", "STYLE\n", "[00:01] A: b\n", "A (00:01): b\n", "10:00 A: b\n", "2026-01-01 10:00 A: b\n", "<c>",
    "<00:00:01.000>", "- A: b\n", "A:\n",
)
"""Of Markdown, reStructuredText, HTML, plain text, transcripts, logs and JSON."""
SETTINGS = (
    "a: b\n", "a:\n", "- a\n", "  a: b\n", "a:\n  ", "&a ", "*a ", "[", "{", "[[a]]\n", "[a]\na=1\n", "a = 1\n",
    "a.b.c = 1\n", "a=1\n", "# a: 1\n", "<a>", "<a b=\"c\">", "<a/>", "<!--", "\"a\": 1,", "{\"a\": ",
    "{\"a\": 1}\n", "\"\"\"", "|\n", ">\n", "a: |\n  b\n", "${A:30}", "export A=1\n", "ENV A=1\n", "FROM a\n",
    "RUN a \\\n", "a: [", "a: {", "? ", "!!a ", "---\n", "\"", "'", "\\", "\n", " ", "a", "a b ", "a: \"",
    "<<: *a\n", "variable \"a\" {\n default = 5\n}\n", "a {\n", "a \"b\" {", "}\n",
)
"""Of YAML, TOML, JSON, XML, INI, Dockerfiles and the like."""
