"""The sentences that an answer is made of without a model, word for word."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from fact_support import fact
from growth import assert_subquadratic
from hypothesis import given
from hypothesis import strategies as st
from ranked_items import citation, ranked

from nornweave.ask.answer.extract import LONGEST, MOST_SENTENCES, READ_PASSAGES, as_read, extract
from nornweave.ask.fuse.records import FusedItem
from nornweave.core.types import Span
from nornweave.disagree.facts.extract import extract_facts
from nornweave.disagree.facts.passage import Passage

RUNBOOK = (
    "Deliveries are signed. The webhook timeout is 30 seconds. After that the delivery is tried again, "
    "at most five times.\n\nMerchants can pause deliveries."
)


def test_the_sentence_that_holds_what_is_asked_comes_first() -> None:
    sentences = extract(
        [
            ranked("page", RUNBOOK, domain="documentation"),
            ranked("other", "Timeouts are a fact of life.", domain="documentation"),
        ],
        "webhook timeout",
    )
    assert [(each.chunk_id, each.text) for each in sentences] == [
        ("page", "The webhook timeout is 30 seconds."),
        ("other", "Timeouts are a fact of life."),
    ]


def test_the_line_that_says_a_setting_answers_for_its_name_in_words() -> None:
    text = "class Link:\n    # The socket connect timeout is\n    # for connecting\n    socket_connect_timeout = 4.0\n"
    start = text.index("socket_connect_timeout =")
    stated = fact("socket_connect_timeout", "4.0", span=Span(100 + start, 100 + len(text)))
    item = ranked("link", text, facts=(stated,), cited=citation(char_range=(100, 100 + len(text))))
    (line,) = extract([item], "what is the default socket connect timeout of a link")
    assert line.text == "socket_connect_timeout = 4.0"


@pytest.mark.parametrize(("code", "language", "question", "quoted"), [
    ('type Opts struct {\n\tSoak int `long:"soak" description:"Hours that seeds lie in water" default:"53"`\n'
     '\tRows int `long:"rows" description:"Beds dug side by side" default:"7"`\n}\n',
     "go", "how long do seeds lie in water?", 'default:"53"'),
    ('program\n  .option(\n    "--beds <n>",\n    "beds that are dug side by side",\n    7\n  )\n'
     '  .option("--soak <h>", "hours that seeds lie in water", 53)\n',
     "javascript", "how many beds are dug side by side?", "7\n  )"),
    ('parser.add_argument(\n    "--soak",\n    default=53,\n    help="hours that seeds lie in water",\n)\nx = 1\n',
     "python", "how long do seeds lie in water?", "default=53"),
    ("struct Args {\n    /// Hours that seeds lie in water.\n    #[arg(default_value_t = 53)]\n    soak: u64,\n}\n",
     "rust", "how long do seeds lie in water?", "default_value_t = 53"),
])  # fmt: skip
def test_what_describes_a_setting_is_quoted_with_its_value(
    code: str, language: str, question: str, quoted: str
) -> None:
    facts = extract_facts(Passage(text=code, language=language, domain="code", path="a"))
    item = ranked("code", code, facts=facts, cited=citation(char_range=(0, len(code))))
    assert quoted in extract([item], question)[0].text


def test_the_setting_that_the_search_found_is_quoted_first_with_what_describes_it() -> None:
    page = "* **beds** - int, defaults to 5\n\n  How many are dug.\n\n* **soak**\n\n  Default: 53. Of seeds.\n"
    facts = extract_facts(Passage(text=page, format="markdown", domain="documentation"))
    cited = citation(char_range=(0, len(page)))
    best = ranked("best", "How many flower places are made at most is said below.", domain="documentation")
    for told, quoted in zip(facts, ("**beds** - int, defaults to 5\n\n  How many are dug.",
                                    "**soak**\n\n  Default: 53. Of seeds."), strict=True):  # fmt: skip
        item = ranked("page", page, domain="documentation", facts=facts, cited=cited)
        item = replace(item, item=replace(item.item, told=told))
        first, *_ = extract([best, item], "how many flower places are made at most?")
        assert first.text == quoted


def test_a_default_far_below_its_name_is_quoted_from_the_name() -> None:
    described = "How often the digger tries to sow a bed again before it gives up and marks the bed as fallow. " * 2
    note = "After each attempt that failed the digger waits a little longer, until the day is over. " * 2
    page = f"``sowattempts``\n\n  {described}\n\n  .. note::\n\n     {note}\n\n  *Default*: 4\n\n  *Required*: no\n"
    facts = extract_facts(Passage(text=page, format="rst", domain="documentation"))
    item = ranked("page", page, domain="documentation", facts=facts, cited=citation(char_range=(0, len(page))))
    item = replace(item, item=replace(item.item, told=facts[0]))
    first, *_ = extract([item], "how many times will it try before it marks a bed as fallow?")
    assert first.text.startswith("``sowattempts``") and first.text.endswith("*Default*: 4")
    assert len(first.text) > LONGEST


def test_a_heading_in_words_is_not_quoted_with_the_value_that_the_search_found() -> None:
    page = "Retention\n\n\n\nLogs are kept for 90 days.\n"
    (kept,) = extract_facts(Passage(text=page, format="markdown", domain="documentation"))
    item = ranked("page", page, domain="documentation", facts=(kept,), cited=citation(char_range=(0, len(page))))
    item = replace(item, item=replace(item.item, told=kept))
    first, *_ = extract([item], "how long does one see what the service has written?")
    assert first.text == "Logs are kept for 90 days."


def test_an_attribute_above_a_field_is_quoted_with_it() -> None:
    text = 'struct Args {\n    #[arg(long, default_value = "90")]\n    firing_limit: u64,\n}\n'
    facts = extract_facts(Passage(text=text, language="rust", domain="code", path="a.rs"))
    item = ranked("args", text, facts=facts, cited=citation(char_range=(0, len(text))))
    (line,) = extract([item], "what is the default of --firing-limit?")
    assert line.text == '#[arg(long, default_value = "90")]\n    firing_limit: u64,'


@pytest.mark.parametrize(("code", "quoted"), [
    ('def build(post_height="not_specified"):\n    post_height = env.get("HEIGHT", 12)\n', 'env.get("HEIGHT", 12)'),
    ("def build(post_height=None):\n    post_height = post_height or 12\n", "post_height or 12"),
    ('def build(post_height="unset"):\n    ...\n', '"unset"'), ("def build(post_height=None):\n    ...\n", "=None"),
])  # fmt: skip
def test_what_stands_for_no_value_is_not_quoted_where_a_value_is_said(code: str, quoted: str) -> None:
    facts = extract_facts(Passage(text=code, language="python", domain="code", path="a.py"))
    item = ranked("code", code, facts=facts, cited=citation(char_range=(0, len(code))))
    assert quoted in extract([item], "what is the default of post_height?")[0].text
    page = "`post_height`: how high a post is. Default: 12.\n"
    facts = extract_facts(Passage(text=page, format="markdown", domain="documentation"))
    cited = citation("documentation", char_range=(0, len(page)))
    said = extract(
        [item, ranked("page", page, domain="documentation", facts=facts, cited=cited)], "post_height default"
    )
    assert not any('"unset"' in each.text or "not_specified" in each.text for each in said)


PRUNING = "- `prunePasses`: how often a hedge is cut. Default: 4.\n- `blade-gap`: between two blades (default=3)\n"
SOAKING = "## soak_limit\n\nHow long seeds lie in water.\n\nThe seeds that float are taken out. It defaults to\n90.\n"
DRYING = "dry_rows\n~~~~~~~~\n\nRows of a rack. Nobody counts them.\n\nDefault: 7\n\nMore rows dry slowly.\n"


@pytest.mark.parametrize(("text", "question", "sentence"), [
    (PRUNING, "what is the default of prunePasses?", "`prunePasses`: how often a hedge is cut. Default: 4."),
    (PRUNING, "what does prunePasses do?", "`prunePasses`: how often a hedge is cut. Default: 4."),
    (PRUNING, "how often is a hedge cut by default?", "`prunePasses`: how often a hedge is cut. Default: 4."),
    (PRUNING, "which --blade-gap is there unless I change it?", "`blade-gap`: between two blades (default=3)"),
    (SOAKING, "what is soak_limit if nothing is set?", SOAKING.partition("\n\n")[2].strip()),
    (PRUNING, "what is the default of --blade-gap?", "`blade-gap`: between two blades (default=3)"),
    ("## rack_gap\n\nDefault: 5\n\nHow wide a gap is.\n\nMore.\n", "how wide is a gap?",
     "Default: 5\n\nHow wide a gap is."),
    (SOAKING, "soak_limit default", SOAKING.partition("\n\n")[2].strip()),
    (DRYING, "how many dry_rows are there by default?", "Rows of a rack. Nobody counts them.\n\nDefault: 7"),
    ("`sieve` (default 1) and `rake_teeth` (default 12) wear out.", "what is the default of rake_teeth?",
     "`sieve` (default 1) and `rake_teeth` (default 12) wear out."),
    ("---\nhoop_size: 3\n---\nThe hoop is round.\n", "what is the default hoop_size?", "The hoop is round."),
    (SOAKING, "what is the default of --blade-gap?", ""), (PRUNING, "what is the default of --soak-limit?", ""),
])  # fmt: skip
def test_prose_is_quoted_from_the_name_of_a_setting_to_its_value(text: str, question: str, sentence: str) -> None:
    facts = extract_facts(Passage(text=text, start=50, format="markdown", domain="documentation"))
    cited = citation("documentation", char_range=(50, 50 + len(text)))
    item = ranked("page", text, domain="documentation", facts=facts, cited=cited)
    assert next((each.text for each in extract([item], question)), "") == sentence


LADDERS = "**rung_gap**\n\n*Default: 31*\n\nCentimetres between two rungs.\n\n**rung_count**\n\n*Default: 9*\n\nMore.\n"
TILT = "`rung_tilt`\n\nDegrees of a rung, 5 at most.\n"
OLD = "Ladders may be leant on things; to remove every ladder that is too old, run the\nstatement:"
LISTED = "Whoever has only a list of ladders to read, as `WebLadder\n<https://example.org/>`_ is, copies it.\n"
MANUAL = (
    "LADDERS\nRungGap\nHow far rungs are from each other, in centimetres. The\nvalue is 31 unless it is changed.\n"
    "\nRungMark (number)\nEvery so often a notch is cut when\nRungGap\nis set. Default: 4.\nSIGNALS\n"
    "On\nSIGHUP, SIGINT\nthe ladder is folded.\n"
)


@pytest.mark.parametrize(("text", "path", "question", "sentence"), [
    (LADDERS, "a.md", "what is the default of rung_gap?", LADDERS[: LADDERS.index("\n\n**rung_count")]),
    (LADDERS, "a.md", "what is rung_gap?", LADDERS[: LADDERS.index("\n\n**rung_count")]),
    (TILT, "a.md", "rung_tilt", TILT.strip()),
    ("- rung_tilt\n", "a.md", "rung_tilt", ""),
    (MANUAL, "a.5", "what is the default of RungGap?", MANUAL[MANUAL.index("RungGap") : MANUAL.index("\n\nRungMark")]),
    (MANUAL, "a.5", "RungMark default", MANUAL[MANUAL.index("RungMark") : MANUAL.index("\nSIGNALS")]),
    (MANUAL, "a.5", "what happens on SIGHUP?", "On\nSIGHUP, SIGINT\nthe ladder is folded."),
    (f"{OLD}\n\n```\ncut\n```\n", "a.md", "how do I remove a ladder?", f"{OLD}\n\n```\ncut"),
    (LISTED, "a.rst", "a list to read", LISTED.strip()),
])  # fmt: skip
def test_a_name_is_quoted_with_what_is_said_of_it(text: str, path: str, question: str, sentence: str) -> None:
    facts = extract_facts(Passage(text=text, format="markdown", domain="documentation", path=path))
    cited = citation("documentation", path, char_range=(0, len(text)))
    item = ranked("page", text, domain="documentation", facts=facts, cited=cited)
    assert next((each.text for each in extract([item], question)), "") == sentence


def test_a_sentence_is_not_cut_before_what_it_denies() -> None:
    text = (
        "Other than by the day of the week and the weather of the region in which it stands, as the keeper of it\n"
        "wrote it down when it was built, you cannot limit how a ladder is folded (for example, nobody can say\n"
        "that only ladders of the last three hours are folded, or that a ladder is only folded if the next one is\n"
        "not due within the hours which come); it would surprise those who stand on one of them while it is folded.\n"
    )
    (sentence,) = extract([ranked("page", text, domain="documentation")], "can I limit which ladders are folded?")
    assert sentence.text == text.strip()


RUNGS = "### ladder.rungGap\n\nDefault value: `31`\n\nCentimetres between two rungs.\n"


@pytest.mark.parametrize(("files", "question", "quoted"), [
    ({"demo/a.yml": "ladder:\n  rungGap: 48\n", "docs/a.md": RUNGS}, "what is the default of rungGap?",
     "Default value: `31`\n\nCentimetres between two rungs."),
    ({"a.yml": "# rungGap: 48\n", "a.rs": "pub fn rung_gap(&self) -> Gap {\n    self.rung_gap\n}\n"}, "rungGap default",
     "# rungGap: 48"),
    ({"demo/a.yml": "ladder:\n  rungGap: 48\n"}, "what is the default of rungGap?", "rungGap: 48"),
    ({"a.js": "const gap = options.rungGap ?? 1;\n", "b.js": "const x = add('rungGap').default(31);\n"},
     "rungGap default",
     "const x = add('rungGap').default(31);"),
    ({"a.js": "const rungGap = given.rungGap ?? DEFAULT_RUNG_GAP;\n", "b.js": "const DEFAULT_RUNG_GAP = 31;\n"},
     "rungGap default", "const DEFAULT_RUNG_GAP = 31;"),
    ({"a.yml": "ladder.rung_gap:\n  type:\n    name: Int\n    minval: 0\n  default: 48\n  desc: Between rungs.\n"
               "ladder.min_rung_gap:\n  default: 1\n  type: Int\n"},
     "what is the default of ladder.rung_gap?",
     "ladder.rung_gap:\n  type:\n    name: Int\n    minval: 0\n  default: 48\n  desc: Between rungs."),
    ({"use.go": 'package p\nfunc g() {\n\t// Default\n\tgap := viper.GetInt("ladder.gap")\n}\n',
      "set.go": 'package p\nfunc f() {\n\tv.SetDefault("post.gap", 9)\n\tv.SetDefault("ladder.gap", 48)\n}\n'},
     "what is the default of ladder.gap?", 'v.SetDefault("ladder.gap", 48)'),
    ({"a.c": "#define RUNGMARK 4\n#define RUNGGAP 31\n"}, "what is the default of RungGap?", "#define RUNGGAP 31"),
])  # fmt: skip
def test_a_default_that_is_declared_comes_before_what_one_place_sets(
    files: dict[str, str], question: str, quoted: str
) -> None:
    items = []
    for path, text in files.items():
        domain, form = ("documentation", "markdown") if path.endswith(".md") else ("code", path.rpartition(".")[2])
        facts = extract_facts(Passage(text=text, path=path, domain=domain, format="" if form == "yml" else form))
        cited = citation(domain, path, char_range=(0, len(text)))
        items.append(ranked(path, text, domain=domain, facts=facts, cited=cited))
    assert extract(items, question)[0].text == quoted


def test_an_item_is_quoted_with_the_sentence_that_denies_it() -> None:
    text = "What cannot be asked of a ladder:\n\n- to fold one rung\n- to fold the last\n\n"
    text += "Ladders fold:\n\n- at dusk of a warm day\n"
    page = ranked("page", text, domain="documentation")
    sentence, *_ = extract([page], "can I fold one rung?")
    assert sentence.text == "What cannot be asked of a ladder:\n\n- to fold one rung"
    (sentence,) = extract([page], "dusk")
    assert sentence.text == "at dusk of a warm day"


def test_sentences_are_of_one_version_unless_two_are_compared() -> None:
    pages = [
        ranked(name, f"The upload limit is {size} MB.", domain="documentation", cited=citation("documentation", name))
        for name, size in (("docs/v3/limits.md", 100), ("docs/v2/limits.md", 25), ("docs/sizes.md", 7))
    ]
    quoted = [each.chunk_id for each in extract(pages, "upload limit")]
    assert quoted == ["docs/v3/limits.md", "docs/sizes.md"]
    assert len(extract(pages, "upload limit in v2 and v3")) == 3


@pytest.mark.parametrize(("question", "quoted"), [
    ("what changed in 2.1.0?", ["Glazes dry faster.", "Ovens cool on Sundays."]),
    ("release notes v2.1", ["Glazes dry faster.", "Ovens cool on Sundays."]),
    ("what is the latest release", ["2.1.0 - 2026-05-04", "Glazes dry faster.", "Ovens cool on Sundays."]),
    ("what changed in 2.0.0?", []), ("when do ovens cool in 2.1.0", ["Ovens cool on Sundays."]),
])  # fmt: skip
def test_the_section_of_a_release_is_quoted_from_its_beginning(question: str, quoted: list[str]) -> None:
    text = "## 2.1.0 - 2026-05-04\n\n- Glazes dry faster.\n- Ovens cool on Sundays.\n"
    cited = replace(citation("documentation", "CHANGELOG.md"), section="2.1.0 - 2026-05-04")
    item = ranked("changes", text, domain="documentation", cited=cited)
    assert [each.text for each in extract([item], question)] == quoted


def test_a_conversation_that_is_exported_as_json_is_no_file_of_values() -> None:
    cited = citation("conversations", "export/day.json")
    talk = ranked("talk", "ana: The small oven is used.", domain="conversations", score=0.9, cited=cited)
    plain = ranked("plain", "The large oven is used.", domain="documentation", score=0.6)
    assert {each.chunk_id for each in extract([talk, plain], "used oven")} == {"talk", "plain"}


def test_what_leads_to_code_is_quoted_with_the_code_over_its_blank_lines_and_options() -> None:
    code = "   from kiln import Oven\n\n   class Night(Oven):\n       def fire(self):\n           self.heat(9)"
    lead = "You fire the oven every night like so:\n\n.. code-block:: python\n   :emphasize-lines: 4\n\n"
    page = ranked("page", f"{lead}{code}\n\nElsewhere nothing burns.\n", domain="documentation")
    assert extract([page], "how do I fire the oven every night")[0].text == f"{lead}{code}"


@pytest.mark.parametrize("text", [
    "To rinse the kettle, run this:\n\n```sh\nkettle rinse --full\n```\nThe lamp goes out then. It stays so.\n",
    "- To rinse the kettle:\n  ```\n  kettle rinse --full\n  ```\n  The lamp goes out then.\n- Another entry.\n",
    "1. To rinse the kettle, run:\n\n   ~~~\n   kettle rinse --full\n   ~~~\n   The lamp goes out then.\n",
    "To rinse the kettle, write:\n\n```ini\n[a]\nb = 1\n\n[rinse]\n- kettle rinse --full\n```\n\nIt is out.\n",
])  # fmt: skip
def test_what_leads_to_code_is_quoted_to_the_end_of_the_code(text: str) -> None:
    first, *_ = extract([ranked("page", text, domain="documentation")], "how do I rinse the kettle")
    assert first.text.endswith("kettle rinse --full")


def test_a_line_of_code_does_not_go_on_behind_the_end_of_its_fence() -> None:
    text = 'Every kettle answers alike.\n\n```json\n{"kettle": {"rinse": "full"}}\n```\n\nBefore 1.9 a lamp said it.\n'
    said = [each.text for each in extract([ranked("page", text, domain="documentation")], "kettle rinse full")]
    assert '{"kettle": {"rinse": "full"}}' in said


def in_code(chunk_id: str, text: str, title: str, *, score: float = 0.5) -> FusedItem:
    kind, _, function = title.partition(".")
    cited = replace(citation("code", "lamp/log.py"), title=title)
    metadata = {"class_name": kind, "function_name": function or None}
    return ranked(chunk_id, text, score=score, cited=cited, metadata=metadata)


@pytest.mark.parametrize("question", ["which class rolls the log over", "where in the code is the log rolled over"])
def test_where_something_is_in_the_code_is_said_by_definitions_and_never_by_a_bare_constructor(question: str) -> None:
    page = ranked("page", "If the log is not rolled over, the log grows.", domain="documentation", score=0.6)
    old = in_code("old", "    def __repr__(self):\n        return '<log that is rolled over>'\n", "OldLog.__repr__")
    init = in_code("init", "class Log:\n    def __init__(self, path):\n        self.path = path\n", "Log.__init__")
    body = "self.test_time = test_time or max(test_time, self.test_time)\n        rename(self.log)"
    roll = in_code("roll", f"    def do_roll(self, test_time):\n        {body}\n", "Log.do_roll")
    said = [each.text for each in extract([page, old, init, roll], question)]
    assert said[0] == "def do_roll(self, test_time):"
    assert not any("__init__" in text or "__repr__" in text for text in said)


@pytest.mark.parametrize("question", ["what does dim_on_idle do", "what is dim_on_idle for?"])
def test_what_something_does_is_said_by_its_description_before_its_declaration(question: str) -> None:
    declared = 'Attribute<bool> dim_on_idle = {"dim_on_idle", false};\n'
    told = 'dim_on_idle.setDoc("If nobody touches the lamp, the light of it is lowered.");\n'
    facts = extract_facts(Passage(text=declared, language="cpp", domain="code", path="lamp.h"))
    cited = citation("code", "lamp.h", char_range=(0, len(declared)))
    header = ranked("header", declared, facts=facts, score=0.42, cited=cited)
    first, *_ = extract([header, ranked("source", told, score=0.38)], question)
    assert "is lowered" in first.text


@pytest.mark.parametrize("question", ["which version of Glaze is needed", "what Glaze version do I need?"])
def test_the_version_of_another_thing_does_not_answer(question: str) -> None:
    text = "Glaze version 2.7 or later. Pots need kiln-core.\n\nYou need to have version 0.30 of it.\n"
    quoted = [each.text for each in extract([ranked("page", text, domain="documentation")], question)]
    assert quoted[0] == "Glaze version 2.7 or later." and not any("0.30" in each for each in quoted)
    below = replace(citation("documentation", "install.md"), section="Install > Glaze")
    (only,) = extract([ranked("page", "You need version 0.30.", domain="documentation", cited=below)], question)
    assert only.text == "You need version 0.30."


def test_an_entry_that_says_nothing_of_a_release_is_not_quoted() -> None:
    text = "## 2.1.0\n\n### Added\n* *Nothing*\n\n### Changed\n* None\n* Glazes dry faster.\n"
    cited = replace(citation("documentation", "CHANGELOG.md"), section="2.1.0 > Added")
    item = ranked("changes", text, domain="documentation", cited=cited)
    assert [each.text for each in extract([item], "what changed in 2.1.0")] == ["Glazes dry faster."]
    assert [each.text for each in extract([item], "newest version")] == ["2.1.0", "Glazes dry faster."]


TESTED = "Each test fires the kiln, as testing does.\n\n"
TESTED += "The tests of glaze, the tests of clay, and for these the small oven is used.\n"


@pytest.mark.parametrize(("path", "section", "text", "named"), [
    ("docs/working.md", "Working > Checks", TESTED, "tests of glaze: which oven is used"),
    ("docs/ovens.md", "Ovens > Considered options", "The small oven is used.", "which oven is used, by the options"),
    ("docs/ovens.md", "Ovens > Pros and cons", "Good: the small oven is used.", "used oven, or which alternative"),
    ("site/index.json", "", '{"small": "the small oven is used"}', "oven used in small_index"),
])  # fmt: skip
def test_what_is_beside_the_point_gives_way(path: str, section: str, text: str, named: str) -> None:
    domain = "code" if path.endswith("json") else "documentation"
    beside = ranked("beside", text, domain=domain, score=0.9, cited=replace(citation(domain, path), section=section))
    plain = ranked("plain", "The large oven is used.", domain="documentation", score=0.6)
    asked = "used oven"
    assert {each.chunk_id for each in extract([beside, plain], asked)} == {"plain"}
    assert "beside" in {each.chunk_id for each in extract([beside, plain], named)}
    assert {each.chunk_id for each in extract([beside], asked)} == {"beside"}
    far = replace(plain, score=0.4)
    assert "beside" in {each.chunk_id for each in extract([beside, far], asked)}


def test_the_opposite_of_what_is_asked_is_not_quoted() -> None:
    texts = {"auth": "Orders require a token.", "open": "Health needs no token at all.", "other": "Not a word."}
    pages = [ranked(name, text, domain="documentation") for name, text in texts.items()]
    assert extract(pages, "which endpoints do not require a token")[0].chunk_id == "open"
    assert extract(pages[:1], "which endpoints do not require a token")[0].chunk_id == "auth"


def test_a_heading_and_a_question_are_no_answer() -> None:
    page = ranked(
        "page",
        "## Webhook timeout\n\nDo we change the webhook timeout? It is 30 seconds for every webhook.",
        domain="documentation",
    )
    assert [each.text for each in extract([page], "webhook timeout")] == ["It is 30 seconds for every webhook."]


@pytest.mark.parametrize(
    "heading",
    [
        "webhook_timeout\n~~~~~~~~~~~~~~~\n",
        ".. _webhook_timeout:\n\n",
        "## webhook_timeout\n",
        "```sh webhook timeout\n",
        '<a id="webhook-timeout"></a>\n',
    ],
)
def test_headings_and_targets_are_no_answers(heading: str) -> None:
    page = ranked("page", f"{heading}It is 30 seconds.\n", domain="documentation")
    beside = ranked("beside", RUNBOOK, domain="documentation")
    sentences = extract([page, beside], "webhook timeout")
    assert [each.text for each in sentences] == ["The webhook timeout is 30 seconds.", "It is 30 seconds."]


def test_front_matter_is_no_answer() -> None:
    page = ranked("page", f"---\ntitle: Webhook timeout\ntags: [webhook]\n---\n{RUNBOOK}", domain="research")
    assert [each.text for each in extract([page], "webhook timeout")] == ["The webhook timeout is 30 seconds."]


def test_of_fenced_code_a_line_is_taken() -> None:
    text = "Settings:\n\n```go\nstore.Interval = 24 * time.Hour // how often\nstore.Kept = 7 * day // how long\n```\n"
    (line,) = extract([ranked("page", text, domain="documentation")], "how often is the interval")
    assert line.text == "store.Interval = 24 * time.Hour // how often"


def test_a_passage_far_below_the_best_is_not_quoted() -> None:
    scores = (0.8, 0.4, 0.3)
    pages = [
        ranked(f"c{score}", f"{place} is the webhook timeout.", domain="documentation", score=score)
        for place, score in enumerate(scores)
    ]
    assert [each.chunk_id for each in extract(pages, "webhook timeout")] == ["c0.8", "c0.4"]


def test_what_two_versions_of_a_page_say_is_quoted_once() -> None:
    pages = [
        ranked(f"v{place}", f"The webhook timeout is {text}", domain="documentation")
        for place, text in enumerate(("30 seconds.", "`30` seconds", "20 seconds."))
    ]
    assert [each.chunk_id for each in extract(pages, "webhook timeout")] == ["v0", "v2"]


def test_one_sentence_of_each_of_the_best_passages() -> None:
    """What ranked a passage knows more than the words of one sentence: those of lower passages do not push it out."""
    low = [ranked(f"low{place}", f"Timeout {place} is a webhook timeout.", domain="research") for place in range(3)]
    best = ranked("best", "A delivery is given up after 30 seconds.", domain="documentation")
    (first, *_) = sentences = extract([best, *low], "webhook timeout")
    assert {each.chunk_id for each in sentences} == {"best", "low0", "low1"}
    assert first.chunk_id == "low0"


@pytest.mark.parametrize("mark", ["- ", "* ", "> ", "12. ", "3) "])
def test_an_entry_of_a_list_is_quoted_without_its_mark(mark: str) -> None:
    text = f"- Keys stay.\n{mark}The webhook timeout is 30 seconds.\n"
    (quoted,) = extract([ranked("page", text, domain="documentation")], "webhook timeout")
    assert quoted.text == "The webhook timeout is 30 seconds."
    assert text[quoted.span.start : quoted.span.end] == quoted.text


def test_a_side_of_a_conflict_that_does_not_hold_is_not_quoted() -> None:
    stale = ranked("stale", "The webhook timeout is 20 seconds.", domain="documentation", demoted=True)
    sentences = extract([stale, ranked("page", RUNBOOK, domain="documentation")], "webhook timeout")
    assert [each.chunk_id for each in sentences] == ["page"]


def test_of_code_a_line_is_taken() -> None:
    code = "def deliver(event):\n    timeout = WEBHOOK_TIMEOUT_SECONDS\n    return post(event, timeout)\n"
    (line,) = extract([ranked("code", code, domain="code")], "WEBHOOK_TIMEOUT_SECONDS")
    assert line.text == "timeout = WEBHOOK_TIMEOUT_SECONDS"


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (
            'def deliver(event):\n    """Send it.\n\n    The timeout of a webhook is thirty seconds.\n    """\n'
            "    return post(event, timeout=webhook_timeout)\n",
            "The timeout of a webhook is thirty seconds.",
        ),
        (
            "// The webhook timeout is short. It was longer.\nconst WEBHOOK_TIMEOUT = 30;\n",
            "The webhook timeout is short.",
        ),
        ("# --- webhook timeout\nTIMEOUT = 30\n", "webhook timeout"),
        ("/*\n * The webhook timeout is short.\n */\nint webhook_timeout;\n", "The webhook timeout is short."),
    ],
)
def test_of_code_what_it_says_in_words_answers_a_sentence(code: str, sentence: str) -> None:
    question = "how long is the timeout of a webhook"
    assert [each.text for each in extract([ranked("code", code, domain="code")], question)] == [sentence]
    assert extract([ranked("code", "webhook_timeout = 30\n", domain="code")], question) == ()


@pytest.mark.parametrize(("text", "quoted"), [
    (
        "a: 1\n# How long an answer may take.\n# In ms.\n# wait: 50\n",
        "How long an answer may take.\n# In ms.\n# wait: 50",
    ),
    ("# How long an answer may take.\n\nwait: 50\n", "How long an answer may take."),
    (f"# {'Word ' * 90}.\n# How long an answer may take.\nwait: 50\n", "How long an answer may take.\nwait: 50"),
])  # fmt: skip
def test_a_comment_right_above_a_value_is_quoted_with_it(text: str, quoted: str) -> None:
    facts = extract_facts(Passage(text=text, domain="code", path="a.yml"))
    item = ranked("conf", text, facts=facts, domain="code", cited=citation(domain="code", char_range=(0, len(text))))
    assert [each.text for each in extract([item], "how long may an answer take?")] == [quoted]


def test_a_value_below_a_heading_of_rst_is_quoted_with_the_sentence_after_it() -> None:
    text = ".. _most_posts:\n\nmost_posts\n~~~~~~~~~~\n\nDefault: 50\n\nHow many fences stay in memory.\n"
    facts = extract_facts(Passage(text=text, format="rst"))
    item = ranked("page", text, facts=facts, domain="documentation", cited=citation(char_range=(0, len(text))))
    (sentence,) = extract([item], "how many fences stay in memory?")
    assert sentence.text == "Default: 50\n\nHow many fences stay in memory."


def test_of_a_passage_that_shows_less_than_its_document_the_line_of_a_value_is_quoted() -> None:
    page = ".TH A 1\n.SH X\n.TP\n.B \\-\\-wait \\fIms\\fR\nTime of an answer.\nDefault: 50.\n"
    facts = extract_facts(Passage(text=page, format="man"))
    shown = "X\n\n--wait ms\nTime of an answer.\nDefault: 50."
    cited = citation(char_range=(8, len(page)), line_range=(2, 6))
    (sentence,) = extract([ranked("man", shown, facts=facts, domain="documentation", cited=cited)], "default of --wait")
    assert sentence.text.endswith("Default: 50.")


def test_a_sentence_of_code_is_read_without_the_marks_of_its_lines() -> None:
    comment = (
        "    /// When a change is undone, an inverse of the stored transaction (a/b - c # d) will\n"
        "    /// be applied, which moves the buffer back.\n    fn undo() {}\n"
    )
    (sentence,) = extract([ranked("code", comment, domain="code")], "what happens when a change is undone")
    assert sentence.text in comment
    read = "When a change is undone, an inverse of the stored transaction (a/b - c # d) will be applied, which moves"
    assert as_read(sentence.text, is_code=True) == f"{read} the buffer back."


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("Tea &amp; cake cost\n&lt; 5&nbsp;euro.", "Tea & cake cost < 5 euro."),
        ("Write `&amp;` for &amp;, ``a`&lt;`` for &lt;.", "Write `&amp;` for &, ``a`&lt;`` for <."),
        ("A `single back quote and &#8364;", "A `single back quote and €"),
    ],
)
def test_character_references_of_prose_are_read_as_characters(written: str, read: str) -> None:
    assert as_read(written, is_code=False) == read
    assert as_read("return '&amp;'", is_code=True) == "return '&amp;'"


def test_many_open_comments_are_read_in_no_time() -> None:
    assert_subquadratic(
        lambda text: extract([ranked("code", text, domain="code")], "what is it that it says"),
        lambda size: "/*" * size,
        1_000,
    )


def test_nothing_is_taken_where_no_word_of_the_question_stands() -> None:
    assert extract([ranked("page", RUNBOOK, domain="documentation")], "unobtainium alloy") == ()
    assert extract([ranked("page", RUNBOOK, domain="documentation")], "the of and") == ()
    assert extract([], "webhook timeout") == ()


@given(st.lists(st.text(max_size=400), max_size=12), st.text(min_size=1, max_size=80))
def test_sentences_stand_word_for_word_in_passages_that_are_shown(texts: list[str], question: str) -> None:
    items = [ranked(f"c{place}", text) for place, text in enumerate(texts)]
    content = {item.chunk_id: item.item.content for item in items}
    sentences = extract(items, question)
    assert len(sentences) <= MOST_SENTENCES
    quoted = sorted((each.chunk_id, each.span.start, each.span.end) for each in sentences)
    assert all(one[0] != other[0] or one[2] <= other[1] for one, other in pairwise(quoted)), "nothing is quoted twice"
    for each in sentences:
        assert each.text.strip() == each.text != ""
        assert content[each.chunk_id][each.span.start : each.span.end] == each.text


@pytest.mark.parametrize(("pages", "question", "quoted"), [
    (["### signature_action\nDefault: `ignore`\n\nWhat to do when a signature is not valid.\n",
      "### expiry\nDefault: `120h`\n\nTime for which a signature is valid.\n"],
     "For how long is a signature valid?", "Default: `120h`\n\nTime for which a signature is valid."),
    (["### keep_copies\n[Source](https://example.org/x)\n\nCopies that stay.\n\n"
      "```php title=\"Default value\"\n7\n```\n"],
     "keep_copies", 'Copies that stay.\n\n```php title="Default value"\n7'),
    (["Beds are dug by people.\n\nBeds may also be dug by machines, otherwise by 3 people."],
     "How many people dig beds?", "Beds may also be dug by machines, otherwise by 3 people."),
])  # fmt: skip
def test_where_a_value_is_asked_for_what_says_one_comes_first(pages: list[str], question: str, quoted: str) -> None:
    items = [
        ranked(
            f"p{place}", text, domain="documentation", score=0.5 - place / 100,
            facts=extract_facts(Passage(text=text, format="markdown")), cited=citation(char_range=(0, len(text))),
        )
        for place, text in enumerate(pages)
    ]  # fmt: skip
    assert extract(items, question)[0].text == quoted


def test_a_line_of_configuration_is_quoted_where_its_value_is_asked_for() -> None:
    text = "player:\n  name: heron\n  bufferMs: 5000 # how much audio is kept\n  port: 2333\n"
    facts = extract_facts(Passage(text=text, domain="code", format="yaml", path="app.yml"))
    item = ranked("app", text, domain="code", facts=facts, cited=citation(char_range=(0, len(text))))
    for question, line in (
        ("How much audio does a player keep?", "bufferMs: 5000 # how much audio is kept"),
        ("On which port does the player listen?", "port: 2333"),
    ):
        assert extract([item], question)[0].text == line


def test_a_comment_that_says_default_and_nothing_else_is_no_default() -> None:
    code = 'func lag(s Store) int {\n\tif s.Has("lag") {\n\t\treturn s.Int("lag")\n\t}\n\t// Default\n\treturn 3\n}\n'
    item = ranked("lag", code, domain="code", cited=citation("code", "lag.go", char_range=(0, len(code))))
    assert all("Default" not in each.text for each in extract([item], "what is the default of store.lag_limit"))


def test_what_was_pasted_is_no_answer() -> None:
    code = "EXITS = {\n    'ok': 0,\n    'option_error': 1,\n    'build_error': 4,\n}\n"
    item = ranked("exits", code, domain="code", cited=citation("code", "exits.py", char_range=(0, len(code))))
    question = "my build_error ends with 4\nEXITS = {\n    'ok': 0,\n    'option_error': 1,"
    assert [each.text for each in extract([item], question)] == ["'build_error': 4,"]
    assert [each.text for each in extract([item], "option_error 1")] == ["'option_error': 1,"]


ERROR = "Kiln refused bowl: glaze is still wet inside"


@pytest.mark.parametrize(("text", "quoted"), [
    (f"# Troubles\n\nA bowl that was glazed today makes it stop with:\n\n{ERROR}\n\nElse it is fine.\n",
     f"A bowl that was glazed today makes it stop with:\n\n{ERROR}"),
    (f"# Troubles\n\n{ERROR}.\nWait for one more day.\n", f"{ERROR}.\nWait for one more day."),
])  # fmt: skip
def test_a_message_is_quoted_with_what_stands_beside_it(text: str, quoted: str) -> None:
    item = ranked("page", text, domain="documentation")
    said = f"# {ERROR}?\n"  # in code a question is a sentence like others
    code = ranked("code", said, domain="code", cited=citation("code", "a.py", char_range=(0, len(said))))
    assert extract([item, code], ERROR)[0].text == quoted


def test_a_message_of_several_lines_is_quoted_to_its_end() -> None:
    code = (
        'if wet {\n    bail!(\n        r#"bowl {bowl} of the kiln is wet:\n * wait, or\n * use "dry" clay"#\n    )\n}\n'
    )
    item = ranked("bowl", code, domain="code", cited=citation("code", "bowl.rs", char_range=(0, len(code))))
    assert extract([item], "bowl 7 of the kiln is wet")[0].text.endswith('* use "dry" clay"')


def test_of_what_is_compared_each_is_quoted_once() -> None:
    modes = "- `slow`: heats the oven over a night.\n- `fast`: heats the oven in an hour.\n- `none`: keeps it cold.\n"
    page = ranked("modes", f"Three modes heat an oven, `slow` by default:\n\n{modes}", domain="documentation")
    code = ranked("code", "SLOW = 'slow'\nFAST = 'fast'\n", domain="code", score=0.4)
    for question in ("slow vs fast", "what is the difference between slow and fast?"):
        said = [each.text for each in extract([page, code], question)]
        assert said[:2] == ["`slow`: heats the oven over a night.", "`fast`: heats the oven in an hour."]


def test_why_something_is_left_is_told_by_what_is_worse_about_it() -> None:
    text = (
        "Globs name the bowls of a shelf. Globs are written between bars, as in the examples below.\n\n"
        "!!! warning\n    Globs take far more time than plain names and are slower on a full shelf.\n"
    )
    for question in ("why are globs discouraged", "why should I avoid globs", "why not use globs for a shelf"):
        assert "more time" in extract([ranked("page", text, domain="documentation")], question)[0].text


def test_several_sentences_of_a_passage_are_quoted_if_they_answer() -> None:
    shed = (
        "Clay is kept in the shed. Wet clay is recommended over dry clay for bowls.\n\n"
        "The reason for wet clay is that bowls keep their form. Pots are another thing."
    )
    pages = [
        ranked("shed", shed, domain="documentation", score=0.6),
        ranked("kiln", "Dry clay is for bricks.", domain="documentation", score=0.3),
    ]
    quoted = [(each.chunk_id, each.text) for each in extract(pages, "why is wet clay recommended for bowls?")]
    assert quoted[0] == ("shed", "The reason for wet clay is that bowls keep their form.")
    assert ("shed", "Wet clay is recommended over dry clay for bowls.") in quoted
    assert all("Pots" not in text for _, text in quoted)


@pytest.mark.parametrize(("text", "domain", "quoted"), [
    ("# Bowls are glazed with the ash of beech wood, which is collected in\n# autumn by two people.\nx = 1\n", "code",
     "Bowls are glazed with the ash of beech wood, which is collected in\n# autumn by two people."),
    ("Glaze\n~~~~~\n\nBowls are glazed with the ash of beech wood, which is collected in\nautumn by two people.\n",
     "documentation", "Bowls are glazed with the ash of beech wood, which is collected in\nautumn by two people."),
    ("Bowls are glazed in these steps:\n\n- sift the ash\n- stir it\n\nVases are not.\n", "documentation",
     "Bowls are glazed in these steps:\n\n- sift the ash\n- stir it"),
    ("To have bowls glazed, ask:\n\n```\nheron glaze --all\n```\n\nVases are another thing.\n", "documentation",
     "To have bowls glazed, ask:\n\n```\nheron glaze --all"),
])  # fmt: skip
def test_a_sentence_is_quoted_to_its_end(text: str, domain: str, quoted: str) -> None:
    item = ranked("page", text, domain=domain, cited=citation(domain, char_range=(0, len(text))))
    assert extract([item], "how are bowls glazed?")[0].text == quoted


KILN = (
    "# Heats the oven before bowls are baked.\ndef warm(oven):\n    if oven.door_is_open:\n"
    "        # people may stand near\n        raise OvenError(\n"
    '            "the oven %s cannot be heated while it stands open" % oven.name\n        )\n'
    "    oven.heat()\n"
)


@pytest.mark.parametrize(("question", "quoted"), [
    ("OvenError: the oven north cannot be heated while it stands open",
     'if oven.door_is_open:\n        # people may stand near\n        raise OvenError(\n'
     '            "the oven %s cannot be heated while it stands open" % oven.name'),
    ("kiln.py:14 when do I get there?",
     "if oven.door_is_open:\n        # people may stand near\n        raise OvenError("),
    ("where in the code is an oven made hot?", "Heats the oven before bowls are baked.\ndef warm(oven):"),
    ("    if oven.door_is_open:\n        # people may stand near\n        raise OvenError(\n"
     '            "the oven %s cannot be heated while it stands open" % oven.name',
     'if oven.door_is_open:\n        # people may stand near\n        raise OvenError(\n'
     '            "the oven %s cannot be heated while it stands open" % oven.name'),
    ("what is this for?\n    oven.heat()\n    if oven.door_is_open:",
     "Heats the oven before bowls are baked.\ndef warm(oven):"),
])  # fmt: skip
def test_of_code_its_definition_or_the_condition_of_a_line_answers(question: str, quoted: str) -> None:
    cited = citation("code", "src/kiln.py", char_range=(0, len(KILN)), line_range=(10, 18))
    item = ranked("kiln", KILN, domain="code", cited=cited, metadata={"function_name": "warm"})
    assert quoted in [each.text for each in extract([item], question)]


@pytest.mark.parametrize(("code", "quoted"), [
    ("<%#\n# Glaze Letter Field\n\n## Local glaze:\n\n- `f`\n%>\n# Each letter of the glaze is hidden.\n",
     {"Each letter of the glaze is hidden."}),
    ('class Glaze:\n    """Hide each letter of the glaze.\n\n    ## Glaze Letters\n\n    A dot hides it, and glaze is'
     ' blue.\n\n    [1]: http://glaze.org/letter\n    """\n',
     {"Hide each letter of the glaze.", "A dot hides it, and glaze is blue."}),
    ("/// Hides each letter of the glaze.\n///\n/// # Glaze Errors\n///\n/// None of the glaze.\nfn hide() {}\n",
     {"Hides each letter of the glaze.", "None of the glaze."}),
    ("# The glaze letters are\n# hidden by a dot.\nhide = 1\n", {"The glaze letters are", "hidden by a dot."}),
    ("# tuning:\n#   # Hidden for the eye.\n#   # hide_glaze_letter: 1\nx: 2\n",
     {"Hidden for the eye.", "hide_glaze_letter: 1"}),
])  # fmt: skip
def test_a_heading_in_a_comment_is_no_sentence(code: str, quoted: set[str]) -> None:
    item = ranked("code", code, domain="code")
    said = extract([item], "which sign is shown in place of each letter of the glaze when somebody looks at it")
    assert {each.text for each in said} <= quoted
    assert said


def test_a_line_is_of_the_file_at_its_path_before_a_namesake() -> None:
    def of(path: str, reason: str) -> FusedItem:
        code = f"def check():\n    if {reason}:\n        return 3\n"
        return ranked(path, code, cited=citation(path=path, line_range=(1, 3)))

    items = [of("kiln/check.py", "cold"), of("check.py", "hot")]
    for named, quoted in (("check.py", "hot"), ("kiln/check.py", "cold"), ("./check.py", "hot"),
                          ("/home/x/kiln/check.py", "cold")):  # fmt: skip
        first, *_ = extract(items, f"{named}:3 what does this do")
        assert first.text == f"if {quoted}:\n        return 3"
        assert extract(items, f"{named}:2 what does this do")[0].text == first.text


@pytest.mark.parametrize(("raised", "message"), [
    ('return nil, fmt.Errorf("fired %d pots, kiln: %v", n, kiln)', "Error: fired 3 pots, kiln: ./shed/kiln.yaml"),
    ("raise ValueError(f'fired {n} pots in {kiln}')", "ValueError: fired 12 pots in the big one"),
])  # fmt: skip
def test_a_message_with_its_values_is_that_of_its_format(raised: str, message: str) -> None:
    code = f"def fire():\n    if n < least:\n        {raised}\n    return 'fired no pots'\n"
    others = [ranked(f"{place}", "# A kiln for pots that are fired.\n") for place in range(READ_PASSAGES)]
    first, *_ = extract([*others, replace(ranked("code", code), score=0.1)], message)
    assert first.text == f"if n < least:\n        {raised}"


def test_a_message_that_has_a_name_is_quoted_with_the_condition_of_its_use() -> None:
    named = 'var (\n\terrHot = errors.New("kiln is above its highest heat")\n)\n'
    used = "func fire(heat int) error {\n\tif heat >= 1300 {\n\t\treturn errHot\n\t}\n\treturn nil\n}\n"
    items = [ranked("named", named), replace(ranked("used", used), score=0.1)]
    said = [each.text for each in extract(items, "cannot go on: kiln is above its highest heat")]
    assert said[0] == "if heat >= 1300 {\n\t\treturn errHot"


def test_the_newest_release_is_named_by_its_heading_wherever_it_stands() -> None:
    text = "## Changes\n\n### 2.1.0 (May 4, 2026)\n\n* Glazes dry faster.\n"
    cited = replace(citation("documentation", "CHANGELOG.md"), section="Changes > 2.1.0 (May 4, 2026)")
    item = ranked("changes", text, domain="documentation", cited=cited)
    for question in ("what is the latest version", "what is the latest version and when did it come out?"):
        assert extract([item], question)[0].text == "2.1.0 (May 4, 2026)"


@pytest.mark.parametrize(("code", "quoted"), [
    ('def fire():\n    if dry:\n        go()\n    else:\n        stop(\n            "bowl {} is wet inside",\n    )\n',
     'if dry:\n        go()\n    else:\n        stop(\n            "bowl {} is wet inside",'),
    ('WET = {\n    A: 1,\n    TooWet { bowl } = "bowl {bowl} is wet inside",\n}\n',
     'TooWet { bowl } = "bowl {bowl} is wet inside",'),
])  # fmt: skip
def test_a_message_is_quoted_with_the_condition_above_else_or_alone_if_there_is_none(code: str, quoted: str) -> None:
    assert extract([ranked("code", code)], "Error: bowl 7 is wet inside")[0].text == quoted


def test_a_manifest_that_names_tests_states_the_version_alone() -> None:
    setup = (
        "setup(\n    name='kiln',\n    python_requires='>=3.12',\n    packages=find(exclude=['tests', 'tests.*']),\n"
    )
    setup += "    test_suite='tests',\n    data={'tests': ['tests/*.txt']},\n)\n"
    conf = "# The version of modules that you need, as strings.\nextensions = ['a.b', 'c.d']\n"
    facts = extract_facts(Passage(text=conf, language="python", domain="code", path="conf.py"))
    items = [
        ranked("setup", setup, cited=citation("code", "setup.py", char_range=(0, len(setup)))),
        ranked("conf", conf, facts=facts, cited=citation("code", "conf.py", char_range=(0, len(conf)))),
    ]
    assert [each.text for each in extract(items, "Which python version do I need?")] == ["python_requires='>=3.12',"]


def test_what_is_compared_is_quoted_from_below_its_heading_and_with_its_class() -> None:
    def page(name: str, text: str) -> FusedItem:
        cited = replace(citation("documentation", "firing.md"), section=f"Kilns > **`{name}`**")
        return ranked(name, text, domain="documentation", cited=cited)

    pages = [page("slow", "`fire(mode='slow')`\n\nThe oven is heated over a night.\n"),
             page("fast", "It is heated in an hour.\n")]  # fmt: skip
    said = [each.text for each in extract(pages, "fire: what is the difference between mode slow and fast")]
    assert said == ["The oven is heated over a night.", "It is heated in an hour."]

    def of(name: str, words: str) -> FusedItem:
        code = f"/**\n * {words}\n */\nclass {name} extends Oven\n{{\n}}\n"
        cited = replace(citation("code", f"{name}.php", char_range=(0, len(code))), title=name)
        return ranked(name, code, cited=cited, metadata={"class_name": name})

    ovens = [of("SlowOven", "An oven that is heated over a night."), of("FastOven", "This is heated in an hour.")]
    for question in ("SlowOven vs FastOven, what do I get", "difference between SlowOven and FastOven?"):
        first, second = (as_read(each.text, is_code=True) for each in extract(ovens, question))
        assert first == "An oven that is heated over a night. */ class SlowOven extends Oven"
        assert second.endswith("class FastOven extends Oven")


@pytest.mark.parametrize(("page", "quoted"), [
    ("Bowls are glazed before they are fired.\n\nHere is an example:\n\n```yaml\nglaze: blue\n```\n\nDone.\n",
     "Bowls are glazed before they are fired.\n\nHere is an example:\n\n```yaml\nglaze: blue"),
    ("Bowls are glazed before they are fired.\n\nFor example ::\n\n    glaze: blue\n\nDone.\n",
     "Bowls are glazed before they are fired.\n\nFor example ::\n\n    glaze: blue"),
    ("Bowls are glazed before they are fired.\n\nThe colour is said here:\n\n- blue\n",
     "Bowls are glazed before they are fired."),
    ("Glazes.\n\n```python\ndef glazed(bowls):\n    fired = [*bowls]\n    return fired\n```\n",
     "def glazed(bowls):\n    fired = [*bowls]\n    return fired"),
])  # fmt: skip
def test_a_sentence_is_quoted_with_its_example_and_a_line_with_its_block(page: str, quoted: str) -> None:
    assert extract([ranked("page", page, domain="documentation")], "how do I get fired bowls")[0].text == quoted


def test_a_sentence_of_a_block_comment_goes_on_over_its_lines_up_to_a_tag() -> None:
    code = (
        "/**\n * Heats the kiln.\n *\n * This keeps the bowls warm for those who take\n * them out late.\n *\n"
        " * @param hours of heat\n */\nfunction hold(hours) {\n}\n"
    )
    item = ranked("hold", code, cited=citation("code", "hold.js"))
    (alone,) = extract([item], "how do the bowls stay warm")
    assert alone.text == "This keeps the bowls warm for those who take\n * them out late."
    named = replace(item, item=replace(item.item, metadata={"function_name": "hold"}))
    (said,) = extract([named], "how do the bowls stay warm")  # what *this* is stands below
    assert said.text == code[code.index("This") : code.index("\n}")]


def test_where_the_first_passage_lost_a_conflict_what_holds_is_quoted_first() -> None:
    page = ranked("page", "The current API version is v2.0.", domain="documentation", score=0.7)
    notes = "## Changes\n\n### 2.1.0 (May 4, 2026)\n\n* Glazes dry faster.\n"
    cited = replace(citation("documentation", "CHANGELOG.md"), section="Changes > 2.1.0 (May 4, 2026)")
    release = ranked("release", notes, domain="documentation", score=0.6, cited=cited)
    said = 'CURRENT_VERSION = "v2.1"\n'
    facts = extract_facts(Passage(text=said, language="python", domain="code", path="a.py"))
    code = ranked("code", said, score=0.3, facts=facts, cited=citation(char_range=(0, len(said))))
    lost, holds = replace(page, conflict=0, demoted=True), replace(code, conflict=0)
    assert extract([lost, release, holds], "what is the current version of payments")[0].text == said.strip()


GLAZING = (
    "## Glazing\n\nThe glaze option coats each pot before it is fired. Glaze may be cleared with `kiln.strip()`.\n\n"
    "Only pots on the upper shelf of the kiln need it.\n\n---\n"
)


@pytest.mark.parametrize(("before", "follow_up", "first"), [
    ("what does the glaze option do?", "and how do I clear it?", "Glaze may be cleared"),
    ("glaze option", "and is it for the upper shelf?", "Only pots on the upper shelf"),
    ("how do I clear glaze?", "and is it coated before each is fired?", "The glaze option coats"),
])  # fmt: skip
def test_a_follow_up_is_answered_by_what_the_question_before_was_not(before: str, follow_up: str, first: str) -> None:
    page = ranked("page", GLAZING, domain="documentation")
    assert extract([page], f"{before}\n{follow_up}")[0].text.startswith(first)
    assert not extract([page], before)[0].text.startswith(first)


def test_a_rule_below_a_paragraph_makes_it_no_heading() -> None:
    said = "Only pots on the upper shelf of the kiln need it."
    assert extract([ranked("page", GLAZING, domain="documentation")], "which pots on the upper shelf")[0].text == said
    headed = ranked(
        "page", "Pots on the upper shelf\n---\n\nOthers do not need the upper shelf.\n", domain="documentation"
    )
    assert extract([headed], "which pots on the upper shelf")[0].text == "Others do not need the upper shelf."
