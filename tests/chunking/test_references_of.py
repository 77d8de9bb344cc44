"""Which definition a reference means: certain where the file says so, by name alone where it does not."""

from collections.abc import Mapping

import pytest

from nornweave.read.chunking.languages import EXTENSIONS, PROGRAMS
from nornweave.read.chunking.references import Meanings, references_of


def uses_of(name: str, files: Mapping[str, str]) -> dict[str, str | None]:
    """Return the uses of a name: ``path:line kind`` → ``path:name`` of the definition that is certainly meant."""
    read = [references_of(path, text, name) for path, text in files.items()]
    meanings = Meanings(read, files)
    found = {}
    for file in read:
        for use in file.references:
            place = meanings.definition(file.path, use.meaning)
            found[f"{file.path}:{use.line} {use.kind}"] = f"{place.path}:{place.name}" if place else None
    return found


LEDGER = "class Ledger:\n    def add(self, n):\n        return self.add(n)\n\n\ndef add(a, b):\n    return a + b\n"


@pytest.mark.parametrize(("text", "expected"), [
    ("from pay.ledger import add\nadd(1, 2)\n", {"1 import": "add", "2 call": "add"}),
    ("from pay.ledger import add as plus\nplus(1, 2)\n", {"1 import": "add", "2 call": "add"}),
    ("from .ledger import add\nadds = [add]\n", {"1 import": "add", "2 name": "add"}),
    ("from . import ledger\nledger.add(1)\n", {"2 call": "add"}),
    ("import pay.ledger\npay.ledger.add(1)\n", {"2 call": "add"}),
    ("import pay.ledger as book\nbook.Ledger.add\n", {"2 name": "Ledger.add"}),
    ("from pay.ledger import Ledger\nLedger.add(1)\nLedger().add(1)\n", {"2 call": "Ledger.add", "3 call": None}),
    ("from pay import add\nadd(1)\n", {"1 import": "add", "2 call": "add"}),  # through __init__.py
    ("def f(ledger):\n    ledger.add(1)\n", {"2 call": None}),
    # Other things of the same name: a parameter, a local variable, a module of somebody else, a comment, a text.
    ("from pay.ledger import add\ndef f(add):\n    return add\n", {"1 import": "add"}),
    ("def f():\n    add = 1\n    return add\n", {}),
    ("from operator import add\nadd(1, 2)\n", {"1 import": None, "2 call": None}),
    ("# add\nNAME = 'add'\n", {}),
    ("try:\n    from pay.ledger import add\nexcept ImportError:\n    add = None\nadd(1)\n",
     {"2 import": "add", "5 call": None}),
    ("def f():\n    from pay.ledger import add\n    return add(1)\ndef g():\n    return add(1)\n",
     {"2 import": "add", "3 call": "add", "5 call": None}),
    ("f(add=1)\n", {"1 name": None}),
    ("from pay.ledger import *\nadd(1)\n", {"2 call": None}),
])  # fmt: skip
def test_what_python_means(text: str, expected: dict[str, str | None]) -> None:
    files = {"pay/__init__.py": "from pay.ledger import add\n", "pay/ledger.py": LEDGER, "pay/use.py": text}
    found = {use.partition(":")[2]: meant for use, meant in uses_of("add", files).items() if "use.py" in use}
    assert found == {use: f"pay/ledger.py:{name}" if name else None for use, name in expected.items()}


def test_inside_its_own_file_and_class() -> None:
    assert uses_of("add", {"ledger.py": LEDGER}) == {"ledger.py:3 call": "ledger.py:Ledger.add"}


def test_a_class_is_inherited_from() -> None:
    files = {
        "src/base.py": "class Base:\n    pass\n",
        "src/a.py": "from base import Base\nclass A(Base):\n    b: Base\n",
    }
    meant = "src/base.py:Base"
    assert uses_of("Base", files) == {
        "src/a.py:1 import": meant, "src/a.py:2 inherit": meant, "src/a.py:3 name": meant,
    }  # fmt: skip


def test_a_module_beside_a_package_is_not_the_library_of_that_name() -> None:
    files = {
        "app/__init__.py": "",
        "app/logging.py": "def getLogger():\n    pass\n",
        "app/main.py": "from logging import getLogger\ngetLogger()\n",
    }
    assert set(uses_of("getLogger", files).values()) == {None}


def test_two_modules_that_an_import_may_mean() -> None:
    text = "def run():\n    pass\n"
    files = {"a/job/run.py": text, "b/job/run.py": text, "c.py": "from job.run import run\nrun()\n"}
    assert set(uses_of("run", files).values()) == {None}


@pytest.mark.parametrize(("files", "expected"), [
    (
        {
            "src/money.ts": "export function round(n: number) { return n }\n",
            "src/pay/index.ts": "import { round } from '../money'\nround(1)\nconst f = (round: any) => round\n",
            "src/pay/bill.tsx": "import * as money from '../money'\nmoney.round(2); other.round(3)\n",
        },
        {"src/pay/index.ts:1 import": True, "src/pay/index.ts:2 call": True, "src/pay/bill.tsx:2 call": False},
    ),
    (
        {
            "internal/db/db.go": "package db\n\nfunc round() {}\n",
            "internal/db/use.go": "package db\n\nfunc Use() { round() }\n",
        },
        {"internal/db/use.go:3 call": True},
    ),
    (
        {
            "src/a/Money.java": "package a;\nclass Money { static int round(int n) { return n; } }\n",
            "src/b/Use.java": "package b;\nimport a.Money;\nclass Use { int f() { return Money.round(1); } }\n",
        },
        {"src/b/Use.java:3 call": False},
    ),
    # No table says what local names are: by name alone.
    ({"a.rs": "fn round() {}\nfn f() { round(); }\n"}, {"a.rs:2 call": False}),
    ({"a.rb": "def round\nend\nround\n"}, {"a.rb:3 name": False}),
])  # fmt: skip
def test_other_languages(files: dict[str, str], expected: dict[str, bool]) -> None:
    found = uses_of("round", files)
    assert found.keys() == expected.keys()
    assert {use for use, sure in expected.items() if sure} <= {use for use, meant in found.items() if meant}


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_language_is_asked_for_imports_that_it_has(name: str) -> None:
    suffix = EXTENSIONS[name].split()[0]
    assert references_of(f"a.{suffix}", "add\n", "add").is_read


@pytest.mark.parametrize("name", ["a.py", "a.ts", "a.go", "A.java", "a.c", "a.rs", "a.unknown"])
def test_broken_text_is_read(name: str) -> None:
    text = "def f(((\n" * 50 + "class {{{ add(" * 50 + "é add\x00"
    assert references_of(name, text, "add").path == name
