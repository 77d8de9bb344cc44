"""Documentation states facts about named things in headings, tables, lists, docstrings, help and prose."""

import pytest
from growth import assert_subquadratic
from hypothesis import given, settings
from hypothesis import strategies as st

from nornweave.core.text.analyzer import sequence
from nornweave.core.types import Fact
from nornweave.disagree.drift.options import documented_options
from nornweave.disagree.facts.documentation import MAX_FACTS, documentation_facts
from nornweave.disagree.facts.extract import extract_facts
from nornweave.disagree.facts.passage import Passage
from nornweave.disagree.facts.statement import described

Row = tuple[str, str, str, str | None]


def read(text: str, *, subject: str = "", owner: str = "", **known: str) -> list[Fact]:
    known.setdefault("format", "markdown")
    return list(documentation_facts(Passage(text=text, **known), subject=subject, owner=owner))  # type: ignore[arg-type]


def rows(text: str, **known: str) -> list[Row]:
    return [(fact.name, fact.attribute, fact.value, fact.unit) for fact in read(text, **known)]


def only(text: str, **known: str) -> Fact:
    (fact,) = read(text, **known)
    return fact


@pytest.mark.parametrize("cell", ["`true`*", "2 * LaneWidth", "2×`lane_b`"])
def test_a_value_with_a_footnote_or_a_factor_is_not_read(cell: str) -> None:
    row = only(f"| Flag | Default |\n|---|---|\n| `-lane_a` | {cell} |\n| `-lane_b` | `true` |\n\n* unless\n")
    assert (row.name, row.value) == ("lane b", "true")


@pytest.mark.parametrize(("line", "value", "unit"), [
    ("Default: 25", "25", None), ("*Default: 90000 (90 seconds)*", "90000", None),
    ("- **Default:** `30`", "30", None), ("+ Default: `'gzip'`", "gzip", None),
    (r"The default is 100 \* 1024.", "102400", None), ("Default: `'[$lane]($colour) '`", "[$lane]($colour) ", None),
    ("Defaults to `4 KiB`.", "4096", "byte"), ("The default is 20 minutes.", "1200", "s"),
    ("Default value: ``None``", "none", None), ("Default: `2097152` (2 MiB)", "2097152", None),
    ("By default it is set to `false`.", "false", None), ("This is disabled by default.", "false", None),
    ("Default: no limit", "unlimited", None), ("Default: `[400, 404]`", '["400", "404"]', None),
])  # fmt: skip
def test_default_below_the_heading_of_an_option(line: str, value: str, unit: str | None) -> None:
    fact = only(f"## Cache\n\n### `cacheMaxIdle`\n\n{line}\n", title="Cache")

    assert (fact.name, fact.owner, fact.attribute, fact.form) == ("cache max idle", "cache", "default", "heading")
    assert (fact.value, fact.unit) == (value, unit)


@pytest.mark.parametrize("text", [
    "### `--beam=<red|dim|off>`\n\nThe beam.\n\n**Default:** `red`\n",
    "### `--beam <KIND>`\n\n- `red`: as at dusk (*default*).\n- `dim`: less.\n",
    "- `--beam`: which.\n  - `red` - as at dusk (default)\n  - `dim` - less\n",
    "### `beam`\n\n* `dim`: less.\n* `red`: what most take [default]\n",
    "### `beam`\n\n- **Kind**: `text`\n- **Default**: `red`\n- **Use**: Default light of all lamps\n",
    "### `beam`\n\n- `red`: Default. As at dusk.\n- `dim`: less.\n",
])  # fmt: skip
def test_a_choice_that_says_default_is_that_of_what_stands_above(text: str) -> None:
    fact = only(text)
    assert (fact.name, fact.attribute, fact.value) == ("beam", "default", "red")


@pytest.mark.parametrize(("text", "expected"), [
    ("**rung_gap**\n\n*Default: 31*\n\nHow far.\n\n`rung_tilt`\n\nType: `number`\n\nDefault: `5`\n\nDegrees.\n",
     [("rung gap", "31"), ("rung tilt", "5")]),
    ("**rung_gap**\n\nHow far rungs are.\n\nIt folds. The timeout is 30 seconds by default.\n", [("timeout", "30")]),
    ("**Note**\n\nThe batch size defaults to 8.\n", [("batch size", "8")]),
    ("RungMark (number)\nA notch is cut when\nRungGap\nis set. Default: 4.\n", [("rung mark", "4")]),
])  # fmt: skip
def test_a_name_that_stands_alone_is_what_stands_below_it(text: str, expected: list[tuple[str, str]]) -> None:
    assert [(fact.name, fact.value) for fact in read(text)] == expected


def test_a_picture_before_a_name_that_stands_alone_does_not_indent_it() -> None:
    text = "# Lamps\n\n{0}``isDim``<br/>\nIt dims all *Lamps*\nof a room.\n*Default: false*\n"
    for picture in ("&#10062;", ":bulb: ", "\N{ELECTRIC LIGHT BULB}"):
        assert [(fact.name, fact.value, fact.form) for fact in read(text.format(picture))] == [
            ("is dim", "false", "heading")
        ]


def test_heading_comes_from_the_passage_when_the_text_has_none() -> None:
    fact = only("Default: 12\n\nHow many.", title="CACHE_SLOTS", section="Settings > CACHE_SLOTS")

    assert (fact.name, fact.owner, fact.value, fact.form) == ("cache slots", "settings", "12", "heading")


@pytest.mark.parametrize("heading", ["`Lanes`", "lanes", "The `Lanes` option", "--lanes `<n>`"])
def test_a_name_in_a_heading_is_a_word_marked_as_code_or_one_small_word(heading: str) -> None:
    assert only(f"# Settings\n\n## {heading}\n\nDefault: 7\n").name == "lanes"


def test_heading_in_ordinary_words_is_a_weak_name() -> None:
    fact = only("### Idle connection lifetime\n\nDefault: 40 seconds\n")

    assert (fact.name, fact.value, fact.form) == ("idle connection lifetime", "40", "topic")


def test_heading_that_says_nothing_is_no_name() -> None:
    assert read("# Configuration\n\nDefault: 40\n") == []


def test_underlined_headings_of_rst() -> None:
    text = "``queue_depth``\n~~~~~~~~~~~~~~~\n\nDefault: 7.\n"

    assert rows(text, format="rst") == [("queue depth", "default", "7", None)]


def test_what_a_note_on_a_version_says_held_then_and_is_not_read() -> None:
    text = "``lanes``\n~~~~~~~~~\n\n.. versionchanged:: 2\n   ``lanes`` is ``None`` by default.\n\nDefault: 7.\n"

    assert rows(text, format="rst") == [("lanes", "default", "7", None)]


def test_what_a_directive_names_is_a_heading() -> None:
    text = "Lanes\n=====\n\n.. confval:: max_lanes\n\n   How many.\n\n   Default: 7.\n"

    assert rows(text, format="rst") == [("max lanes", "default", "7", None)]


def test_line_of_only_a_name_is_a_heading() -> None:
    text = "``poolGrace``\nHow many ms to wait.\n*Default: 2000 (2 seconds)*\n"

    assert rows(text, title="Configuration") == [("pool grace", "default", "2000", None)]


PIPES = """| Option | Type | Default | Description |
|--------|------|---------|-------------|
| `retryLimit` | int | `4` | How often. |
| `shape\\|form` | string | - | No default is told. |
"""
RULED = """=========== ========= =========================
Name        Default   Description
=========== ========= =========================
laneWidth   3 seconds The width of
                      a lane in the hall.
laneColour  (none)    The colour.
=========== ========= =========================
"""
GRID = """+------------+---------+----------------------+
| Setting    | Default | Description          |
+============+=========+======================+
| lane_depth | ``12``  | How deep a lane is   |
|            |         | at its end.          |
+------------+---------+----------------------+
"""
BELOW = """============== ==========================
Name           Description
============== ==========================
``lane_turns`` How often a lane
               turns. Defaults to ``40``.
``lane_grip``
               Whether it grips. Defaults
               to ``True``.
``lane_slope`` The slope. Defaults to
               ``7``.
============== ==========================
"""


CELLS = """.Lamps
[cols="1,1,2,1"]
|===
|Property |Values |Meaning |Default

|lamp.glow
|TRUE or FALSE
|Whether it glows
|FALSE

|lamp.level
a|1-10
|1 is each lamp, 5 each fifth
|7
|===
"""
TAGS = """<table>
<tr><th>Option</th><th>Allowed</th><th>Default</th></tr>
<tr>
  <td><code>lamp-level</code></td>
  <td>1, 2 | 3</td>
  <td>2</td>
</tr>
<tr><td>lampColour</td><td>true or false</td><td>true</td></tr>
</table>
"""
ITEMS = """.. list-table:: Lamps
   :header-rows: 1

   * - Name
     - Type
     - Default
   * - ``lamp_level``
     - ``5`` to ``9``
     - 4
   * - ``lamp_glow``
     - ``true`` or ``false``
     - ``false``
"""


@pytest.mark.parametrize(("text", "expected"), [
    (CELLS, [("glow", "default", "false", None), ("level", "default", "7", None)]),
    (TAGS, [("lamp colour", "default", "true", None), ("lamp level", "default", "2", None)]),
    (ITEMS, [("lamp glow", "default", "false", None), ("lamp level", "default", "4", None)]),
    (
        PIPES,
        [
            ("retry limit", "default", "4", None),
        ],
    ),
    (RULED, [("lane width", "default", "3", "s"), ("lane colour", "default", "none", None)]),
    (
        RULED.replace("\nlaneColour", "\n\nlaneColour"),
        [("lane width", "default", "3", "s"), ("lane colour", "default", "none", None)],
    ),
    (GRID, [("lane depth", "default", "12", None)]),
    (BELOW, [("lane grip", "default", "true", None), ("lane slope", "default", "7", None),
             ("lane turns", "default", "40", None)]),
])  # fmt: skip
def test_tables_are_read_by_their_header(text: str, expected: list[Row]) -> None:
    found = rows(text, title="Lanes")

    assert sorted(row for row in found if row[0] != "form") == sorted(expected)
    assert {fact.form for fact in read(text, title="Lanes")} == {"table"}


@pytest.mark.parametrize(("entry", "expected"), [
    ("- `drain` (bool, default `true`)", [("drain", "default", "true")]),
    ("- `drain` `(bool: false)` - Whether.", [("drain", "default", "false")]),
    ("* **drain** `boolean` (optional): Default: `true`", [("drain", "default", "true")]),
    ("- `-linger=4m`: How long to stay.", [("linger", "default", "240")]),
    ("* `lanes`, the number of lanes to open.\n  Default `6`.", [("lanes", "default", "6")]),
    ("- `wait_policy` `(map: { turns = 3 pause = \"2s\" })` - How to wait.", [
        ("turns", "default", "3"), ("pause", "default", "2s")]),
    ('- `"lane_count"`: `int`\n  Lanes to open. Defaults to `4`.', [("lane count", "default", "4")]),
    ("- `lane_count`, lanes to open, or `None` for all. (Defaults 4)", [("lane count", "default", "4")]),
    ("- `lanes = (integer)`\n  Lanes to open. Default is 4.", [("lanes", "default", "4")]),
    ("### `-l, --lanes <n>`\n\nHow many, defaulting to 4.", [("lanes", "default", "4")]),
])  # fmt: skip
def test_entries_of_lists(entry: str, expected: list[tuple[str, str, str]]) -> None:
    assert sorted((fact.name, fact.attribute, fact.value) for fact in read(entry)) == sorted(expected)


@pytest.mark.parametrize("text", [
    "The default `lane_depth` is 1,200.", "The default value of `lane_depth` is set to `1200`.",
    "Lanes are cut at `lane_depth` (default: `1,200`).", "The default laneDepth is 1,200.",
])  # fmt: skip
def test_defaults_of_a_name_in_the_sentence(text: str) -> None:
    assert [(fact.name, fact.attribute, fact.value) for fact in read(text)] == [("lane depth", "default", "1200")]


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("  [ drain_delay: <duration> | default = 3s ]", "drain delay", "3"),
        ("[drain_rows: <int> | default = 7]", "drain rows", "7"),
        ("  -d, --drain-rows int     How many at once (default 7)", "drain rows", "7"),
    ],
)
def test_notations_in_blocks_of_code(line: str, name: str, value: str) -> None:
    facts = read(f"# Reference\n\n```\n{line}\n```\n")
    assert [(fact.name, fact.attribute, fact.value) for fact in facts] == [(name, "default", value)]


def test_references_in_comments_of_csharp_are_names() -> None:
    text = '/// <see cref="LaneOptions.LaneDepth"/> defaults to <c>30</c>.\n'
    assert rows(text, format="", path="Lane.cs") == [("lane depth", "default", "30", None)]


def test_a_plan_for_a_later_version_is_no_fact() -> None:
    assert read("In Lanes 6.0, `lane_depth` will be set to `30` by default.\n") == []


def test_nested_entries_belong_to_the_one_above() -> None:
    facts = read("- `store` (object): Where it goes.\n  - `size` (int): Default: 3\n")

    assert [(fact.owner, fact.name, fact.attribute) for fact in facts] == [("store", "size", "default")]


def test_fields_of_docstrings() -> None:
    text = '''"""Open a lane.

    :param int depth: How deep (default 5).
    :param bool dry: Whether it stays dry. Defaults to ``False``.
    :raises LaneError: it is closed.
    """'''

    assert rows(text, subject="open_lane", format="") == [
        ("depth", "default", "5", None),
        ("dry", "default", "false", None),
    ]


def test_entries_of_docstrings_with_sections() -> None:
    text = '''"""Close a lane.

    Args:
        linger_ms (int, optional): How long it stays open.
            Default: 2500.
        lane: which.

    Returns:
        set: what was in it.
    """'''

    assert rows(text, subject="close_lane", owner="Hall", format="") == [("linger", "default", "5/2", "s")]


def test_parameters_without_a_type_stand_one_a_line() -> None:
    text = '"""Wait.\n\n    Args:\n        linger: seconds to wait, 30 by default.\n        lane: which.\n    """'
    assert rows(text, subject="wait", format="") == [("linger", "default", "30", None)]


def test_parameters_in_the_style_of_numpy() -> None:
    text = '''"""Fit.

    Parameters
    ----------
    n_turns : int, optional
        How many turns, default is 15.
    """'''

    assert rows(text, subject="fit", format="") == [("n turns", "default", "15", None)]


def test_tags_of_comments_in_javascript_and_java() -> None:
    text = """/**
 * Opens a lane.
 * @param {number} [depth=3] how deep
 */"""

    assert rows(text, subject="openLane", format="") == [("depth", "default", "3", None)]
    assert rows("/**\n * Keep it.\n * @default false\n */", subject="keepLane", format="") == [
        ("keep lane", "default", "false", None)
    ]


@pytest.mark.parametrize("marker", ["# ", "#: ", "// ", "/// ", "    # "])
def test_markers_of_comments_do_not_hide_the_words(marker: str) -> None:
    fact = only(
        f"{marker}How long a lane stays open.\n{marker}\n{marker}The default is 8 seconds.", subject="linger", format=""
    )

    assert (fact.name, fact.value, fact.unit, fact.form) == ("linger", "8", "s", "field")


def test_comments_of_a_stretch_of_source_are_about_what_stands_below_them() -> None:
    text = '\t// How deep a lane is. Default: 4.\n\tLaneDepth int `json:"depth"`\n\t// Default: 9\n\tLaneCount int\n'
    found = extract_facts(Passage(text=text, path="hall/lane.go", title="Hall"))

    assert [(fact.name, fact.value, fact.line, fact.owner) for fact in found] == [
        ("lane depth", "4", 0, "hall"),
        ("lane count", "9", 2, "hall"),
    ]


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("`lane_wait` defaults to 30 seconds.", ("lane wait", "default", "30", "s")),
        ("lane_wait is 1 hour by default.", ("lane wait", "default", "3600", "s")),
        ("`open_lane` responds with a 404 status.", ("open lane", "status", "404", None)),
        ("Halls requires Python 3.9 or newer.", ("python", "requires", ">=3.9", None)),
        ("You must have Node.js 20 installed.", ("node", "requires", "20", None)),
        ("The `quick_lane` option is enabled by default.", ("quick lane", "default", "true", None)),
    ],
)
def test_prose_about_a_name(sentence: str, expected: Row) -> None:
    fact = only(sentence)

    assert (fact.name, fact.attribute, fact.value, fact.unit) == expected
    assert fact.form == "sentence"


def test_what_one_function_requires_is_not_what_the_project_requires() -> None:
    assert read("## `listAll(hall)`\n\nRequires Python 3.9 or newer.\n") == []


@pytest.mark.parametrize("text", ["<h4\n  id='a'>Lanes</h4>\n", "See {@link\n  Lane}.\n"])
def test_markup_over_several_lines_keeps_the_lines(text: str) -> None:
    (fact,) = read(text + "\nThe `lane_count` defaults to 4.\n", format="html")
    assert (fact.name, fact.line) == ("lane count", 3)


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("This is bounded by a timeout, by default seven seconds.", ("timeout", "default", "7", "s")),
        ("The hall waits 20 seconds for your endpoint.", ("timeout", "value", "20", "s")),
        ("A call is retried at most 4 times.", ("retries", "value", "4", None)),
        ("The current API version is v2.1.", ("api version", "value", "2.1", None)),
        ("Events are kept for 5 days.", ("retention", "value", "432000", "s")),
    ],
)
def test_quantities_in_ordinary_words_are_topics(sentence: str, expected: Row) -> None:
    fact = only(sentence, title="Webhooks", section="Webhooks")

    assert (fact.name, fact.attribute, fact.value, fact.unit) == expected
    assert (fact.form, fact.owner[:8]) == ("topic", "webhooks")


def test_papers_give_quantities_by_their_nouns() -> None:
    text = "We train with batch size of 64 for 20,000 steps, learning rate of 3e-4 and weight decay of 0.02."
    found = {row[0]: row[2] for row in rows(text, domain="research", format="")}

    assert found == {"batch size": "64", "learning rate": "3/10000", "weight decay": "1/50"}


@pytest.mark.parametrize(
    ("sentence", "qualifiers"),
    [
        ("Does `lane_wait` default to 30 seconds?", None),
        ("I propose that `lane_wait` defaults to 60 seconds.", None),
        ("`lane_wait` was 10 seconds by default.", None),
        ("For example, `lane_wait` defaults to 10 seconds.", None),
        ("The docs say `lane_wait` defaults to 10 seconds.", None),
        ("> `lane_wait` defaults to 10 seconds.", None),
        ("in our hall lane_wait is 9 seconds by default", None),
        ("On Windows, `lane_wait` defaults to 10 seconds.", ("conditional",)),
        ("I think `lane_wait` defaults to 10 seconds.", ("hedged",)),
        ("`lane_wait` defaults to 10 seconds.", ()),
    ],
)
def test_why_a_statement_may_not_be_meant_as_a_fact(sentence: str, qualifiers: tuple[str, ...] | None) -> None:
    facts = read(sentence, domain="conversations", format="slack")

    assert [fact.qualifiers for fact in facts] == ([] if qualifiers is None else [qualifiers])
    assert {fact.side for fact in facts} <= {"conversation"}


def test_only_the_clause_of_a_value_makes_it_history() -> None:
    facts = read("lane_wait is 10 seconds by default, it was slower in March", domain="conversations", format="slack")

    assert [fact.qualifiers for fact in facts] == [()]


def test_condition_that_only_describes_does_not_scope_the_value() -> None:
    assert only("- `tries`: How often to try when a lane is closed. Default: 5").qualifiers == ()
    assert only("- `tries`: Default: 5 for clusters, otherwise 2.").qualifiers == ("conditional",)


def test_denied_values_are_negated() -> None:
    assert only("`lane_wait` does not default to 30 seconds.").negated


@pytest.mark.parametrize("text", [
    "Released on 2021-03-04.", "See section 3.1.2 of the guide.", "The default lane is fine.",
    "Use `lane_wait` between 10 and 20 lanes of the hall.", "There are 3 lanes in the hall.",
    "The `default` branch has 5 lanes.", "## 2.1.0\n\nSome lanes were opened.", "```yaml\nlane_depth: 6\n```",
    "### Lane colours\n\nDefault: 40", "- `lane=None` selects the first lane.",
    "Messages stay until they are removed from the lane.",
    "===== =======\nName  Default\n===== =======\nlanes 5\n",
    "It can also be enabled by default via the `restart_lanes` option.",
])  # fmt: skip
def test_what_is_no_fact(text: str) -> None:
    assert read(text) == []


def test_places_are_those_of_the_statement() -> None:
    text = "# Lanes\n\nSome words.\n\n### `laneDepth`\n\nDefault: 4\n"
    fact = only(text)

    assert text[fact.span.start : fact.span.end] == "Default: 4"
    assert fact.line == 6
    assert fact.statement == "Default: 4"


def test_facts_of_a_long_document_are_bounded() -> None:
    text = "".join(f"- `lane_{'x' * (number % 40)}_y`: Default: {number}\n" for number in range(MAX_FACTS + 500))

    assert len(read(text)) == MAX_FACTS


@pytest.mark.parametrize("table", [
    "  ============ =========\n  **Type**     Int\n  **Default**  40\n  **Restart**  yes\n  ============ =========",
    "| Type | Int |\n|---|---|\n| Default | 40 |\n| Restart | yes |",
    "| Default value | 40 |\n|---|---|\n| Type | Int |",
    "| Type | Default | Restart |\n|---|---|---|\n| Int | 40 | yes |",
])  # fmt: skip
def test_a_table_of_properties_states_the_default_of_the_heading_above_it(table: str) -> None:
    text = f"# Settings\n\n## lane-width\n\n{table}\n\n  How wide a lane is drawn.\n"
    fact = only(text)
    assert (fact.name, fact.attribute, fact.value) == ("lane width", "default", "40")
    ((_, (first, last)),) = described([fact], text, 0)
    assert text[first:last].lstrip("# ").startswith("lane-width") and "How wide a lane is drawn." in text[first:last]


@pytest.mark.parametrize("text", [
    "## lane-width\n\n| Type | Int |\n|---|---|\n| Default | n/a |\n",
    "## lane-width\n\n| Type | Int |\n|---|---|\n| Default | - |\n",
    "## The lanes of a chart\n\n| Type | Int |\n|---|---|\n| Default | 40 |\n",
    "## lane-width\n\n| Colour | Green |\n|---|---|\n| Default | 40 |\n",
])  # fmt: skip
def test_a_table_of_properties_without_a_value_or_a_name_above_states_nothing(text: str) -> None:
    assert not read(text)


@pytest.mark.parametrize("text", [
    "`" * 50_000, "| a" * 30_000, "=== ===\n" * 10_000, "Default: 5\n" * 10_000, "<td>" * 30_000, "[a](" * 30_000,
    "the maximum default value of " * 3_000, "{@code " * 20_000, ".. function:: f(" + "a=5, " * 20_000,
    "default: 9**99999999\n" * 500, "İ" * 20_000 + " `a_b` defaults to 5",
    "".join(" " * min(depth, 400) + "- `a_b`: default 5\n" for depth in range(600)),
])  # fmt: skip
def test_hostile_text_is_read_in_linear_time(text: str) -> None:
    for known in ({"format": "markdown"}, {"format": "", "subject": "lane"}):
        assert_subquadratic(lambda part, known=known: read(part, **known), lambda size: text[:size], len(text))  # type: ignore[misc]
        for fact in read(text, **known):
            assert 0 <= fact.span.start <= fact.span.end <= len(text)


FRAGMENTS = st.lists(
    st.sampled_from(
        ["`lane_x`", "default", "Default: ", "is ", "5", " ms", "\n", "\n\n", "- ", "# ", "| ", "---", "===",
         "by default", "at most ", "`", "*", "(", ")", "<td>", "</td>", "```\n", "@param ", ":param x: ", "    ", "?",
         ".", "one of ", "or "]
    ) | st.text(max_size=4),
    max_size=60,
)  # fmt: skip


@given(
    parts=FRAGMENTS,
    subject=st.sampled_from(["", "lane_x"]),
    domain=st.sampled_from(["documentation", "conversations", "research"]),
)
@settings(deadline=None, max_examples=200)
def test_any_text_gives_facts_inside_it(parts: list[str], subject: str, domain: str) -> None:
    text = "".join(parts)
    for fact in read(text, subject=subject, domain=domain, format="markdown"):
        assert 0 <= fact.span.start <= fact.span.end <= len(text)
        assert fact.name


@pytest.mark.parametrize("tag", ["li", "code", "h2"])
def test_a_tag_whose_attributes_stand_on_several_lines_keeps_them(tag: str) -> None:
    fact = only(f"<ul>\n<{tag} class='a'\n    id='b'>x</{tag}>\n</ul>\n\nThe default timeout is 30 seconds.\n")
    assert (fact.name, fact.value, fact.line) == ("timeout", "30", 5)


@pytest.mark.parametrize(("written", "value"), [("300 000 ms", "300"), ("1 000 000 ms", "1000"), ("300000 ms", "300")])
def test_digits_grouped_by_blanks_are_one_number(written: str, value: str) -> None:
    passage = Passage(text=f"### idleTimeout\n\nThe default is {written}.\n", format="markdown", path="a.md")
    assert [(one.name, one.value, one.unit) for one in documentation_facts(passage)] == [("idle timeout", value, "s")]


@pytest.mark.parametrize(("text", "name", "value"), [
    ("| Name | Default |\n|---|---|\n| lane\\_width | 8 |\n", "lane width", "8"),
    ("| Name | Default |\n|---|---|\n| lane\\_origin | \\* |\n", "lane origin", "*"),
    ("- lane\\_width (default: 8)\n", "lane width", "8"), ("- `lane\\_width`: defaults to 8.\n", "lane width", "8"),
    ("### lane\\_width\n\nDefault: 8\n", "lane width", "8"),
    ("The option lane\\_width defaults to 8.\n", "lane width", "8"),
    ("- lane\\_width \\[default: 1\\.5\\]\n", "lane width", "3/2"),
])  # fmt: skip
def test_an_escaped_character_is_the_character(text: str, name: str, value: str) -> None:
    assert [row[:3] for row in rows(text)] == [(name, "default", value)]


def test_a_backslash_of_code_and_of_a_path_stays() -> None:
    assert rows("```\nlane\\_width (default: 8)\n```\n\nIt lies in c:\\lanes\\_a. `a\\.b` is a pattern.\n") == []
    assert rows("\\# `lane_width`\n\nDefault: 8\n") == []


@pytest.mark.parametrize(("text", "form"), [
    ("### lane_width `8`\n", "markdown"), ("### `lane_width` (default: 8)\n", "markdown"),
    ("### lane\\_width = 8 ###\n", "markdown"), ("### lane_width: 8\n\nLanes.\n", "markdown"),
    ("lane_width ``8``\n----------------\n\nLanes.\n", "rst"), ("=== `lane_width` (default: `8`)\n", "asciidoc"),
])  # fmt: skip
def test_a_heading_gives_a_value_beside_its_name(text: str, form: str) -> None:
    assert rows(text, format=form) == [("lane width", "default", "8", None)]


@pytest.mark.parametrize("heading", ["Lanes 8", "Using `lanes`", "`lane_width` 2.0", "Lane_width since `8` days", "8"])
def test_a_number_in_another_heading_is_no_value(heading: str) -> None:
    assert rows(f"## {heading}\n\nWords.\n") == []


@pytest.mark.parametrize(("text", "found"), [
    ("Pumps time out after 15s. Use `-pump-timeout` to change this.", [("pump timeout", "15")]),
    ("The timeout of pumps is 15s by default (`-pump-timeout`).", [("pump timeout", "15")]),
    ("Pumps time out after 15s unless `-pump-timeout` is given.", [("pump timeout", "15")]),
    ("By default, it listens on port 8080. The `-host` and `-port` flags change this.", [("port", "8080")]),
    ("By default it retries 3 times on a `500`, with a 2 second backoff. This can be configured with `-p-retry` and "
     "`-p-backoff`.", [("p retry", "3"), ("p backoff", "2")]),
    ("By default 12 rows are shown. `--port` changes the port.", []),
    ("Version 2 changed the port. Use `--port` to change it.", []),
    ("The port is 80 or the port 81 by default. Change it by `--port`.", []),
    ("Use `--port 9000` to change the port from 8080.", []),
])  # fmt: skip
def test_a_number_belongs_to_the_flag_behind_it_that_ends_with_the_word_beside_it(
    text: str, found: list[tuple[str, str]]
) -> None:
    read_ = [(fact.name, fact.value) for fact in read(text) if fact.form == "sentence"]
    assert read_ == found


def test_an_indented_line_above_a_deeper_one_names_what_it_explains() -> None:
    text = (
        "Loom\n====\n\n    Weaves all day.\n\n    **max_warp**\n        The most threads (in %). Default: 90\n\n"
        "    **pause**\n        Seconds between two picks.\n\n        Nothing is woven.\n\n        Defaults to 30s.\n\n"
        "    **host**\n        Where it stands. (default: hall)\n    **port**\n        By which door. (default: 7)\n"
    )
    assert rows(text, format="rst") == [
        ("max warp", "default", "90", None), ("pause", "default", "30", "s"),
        ("host", "default", "hall", None), ("port", "default", "7", None),
    ]  # fmt: skip


@pytest.mark.parametrize(("text", "terms"), [
    ("### expiry\nDefault: `120h`\n\nTime that it is valid.\n\n### other\nDefault: `3`\n\nBeds.\n",
     [{"time", "valid"}, {"bed"}]),
    ("* **rows** - int, defaults to 5\n\n  How many beds.\n\n* **cols**, int\n\n  Default: 7. Width.\n\n* **copies**\n",
     [{"bed"}, {"width"}]),
    ("| `rows` | How many beds. Defaults to `5` |\n| `cols` | Width. Defaults to `7` |\n", [{"bed"}, {"width"}]),
    ('### keep\nCopies that stay.\n\n```php title="Default value"\n7\n```\n\n### next\nBeds.\n', [{"copi", "stay"}]),
])  # fmt: skip
def test_what_describes_a_value_stands_before_it_or_in_the_paragraph_below(text: str, terms: list[set[str]]) -> None:
    facts = extract_facts(Passage(text=text, format="markdown"))
    words = {"time", "valid", "bed", "width", "copi", "stay"}
    assert [words & {*sequence(text[slice(*told)])} for _, told in described(facts, text, 0)] == terms


@pytest.mark.parametrize("said", [
    "Either glow (default) or dim to show it.", "Possible values: dim, *glow*.", "What to do (*glow*, dim, never).",
])  # fmt: skip
def test_of_choices_the_one_that_is_marked_is_the_default(said: str) -> None:
    expected = [("when lit", "default", "glow", None)]
    assert rows(f"## `--when-lit`\n\nHow. {said}\n") == expected
    assert rows(f"Options:\n\n      --when-lit <when>\n          How.\n          {said}\n", format="") == expected
    manual = f".TH LAMP 1\n.SH OPTIONS\n.HP\n\\fB\\-\\-when\\-lit\\fR <when>\n.IP\nHow. {said}\n"
    assert rows(manual, format="man") == expected


def test_each_row_of_a_help_text_is_about_its_flag() -> None:
    text = "Options:\n\n  --max_rows   rows to keep in memory\n               (default *40*)\n"
    text += "  --lane       run on that lane of all lanes that there are (default *55*)\n"
    assert rows(text, format="rst") == [("max rows", "default", "40", None), ("lane", "default", "55", None)]


@pytest.mark.parametrize("said", [
    "Dim (default) or glow (default).", "Possible values: *dim*, *glow*.", "It is *dim*, never lit.",
])  # fmt: skip
def test_of_choices_without_one_mark_none_is_the_default(said: str) -> None:
    assert not rows(f"## `--when-lit`\n\n{said}\n")


def test_the_one_number_of_a_sentence_about_a_default_is_a_value_of_its_entry() -> None:
    said = "## `--num-rows`\n\nHow many. By default, the reader is set to try {}.\n"
    assert rows(said.format("10 lines")) == [("num rows", "value", "10", None)]
    assert not rows(said.format("10 of 20 lines")) and not rows(said.format("`--lanes` to 10 lines"))


def test_settings_below_a_title_that_says_default_are_defaults() -> None:
    page = "## {}\n\nDo not copy it all; change some.\n\n```yaml\nlamp:\n  glow: soft\n  rows: 4\n```\n"
    assert rows(page.format("Default")) == [("glow", "default", "soft", None), ("rows", "default", "4", None)]
    assert not rows(page.format("Defaults of others"))


SET = """Lamp
====

**lanes=**\\ *NUMBER*
    How many. The default
    number of lanes is 12.
**lanetimeout=**\\ *NUMBER*
    In seconds. The default lane timeout is
    300 seconds.
**rows=**\\ *NUMBER*
    The default is 7.
**glow=**\\ [**0**\\ \\|\\ **1**]
    Default is 1.
**shade=**\\ *WORD*
    The default color of lamps is 3.
"""


def test_a_bold_name_that_is_set_begins_an_entry_and_its_words_may_stand_behind_default() -> None:
    stated = [(fact.name, fact.kind, fact.value) for fact in read(SET, format="rst")]
    assert stated == [("lanes", "number", "12"), ("lanetimeout", "number", "300"), ("rows", "number", "7"),
                      ("glow", "boolean", "true")]  # fmt: skip
    assert [name for name, _ in documented_options(SET)] == ["lanes", "lanetimeout", "rows", "glow", "shade"]
