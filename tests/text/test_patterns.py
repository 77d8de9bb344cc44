import gc
import importlib
import pkgutil
import re

import pytest

import nornweave.disagree
from nornweave.core.text import patterns
from nornweave.core.text.patterns import lazy_pattern


def test_a_lazy_pattern_has_the_members_of_a_compiled_one() -> None:
    lazy, compiled = lazy_pattern(r"(?P<word>\w+)", re.ASCII), re.compile(r"(?P<word>\w+)", re.ASCII)
    assert lazy.findall("a ä b") == compiled.findall("a ä b") == ["a", "b"]
    assert (lazy.pattern, lazy.flags, lazy.groupindex) == (compiled.pattern, compiled.flags, compiled.groupindex)
    found = lazy.match("word")
    assert found
    assert found["word"] == "word"


def test_an_error_in_a_pattern_shows_at_its_first_use() -> None:
    wrong = lazy_pattern("(")
    with pytest.raises(re.error):
        wrong.match("")


def test_every_pattern_can_be_compiled() -> None:
    for module in pkgutil.walk_packages(nornweave.disagree.__path__, "nornweave.disagree."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    sources = [
        (one._source, one._flags)
        for one in gc.get_objects()
        if type(one) is patterns._LazyPattern and one._source != "("
    ]
    for source, flags in sources:
        re.compile(source, flags)
