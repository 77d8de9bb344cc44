"""Exact evidence over real generations: definitions lead, then uses, then tests; rare runs of words win."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import MemorySource, memory_parts, sync

from lab.small_segments import small_segments
from nornweave.ask.search.combine import ExactEvidence, Ranking
from nornweave.ask.search.exact import exact_evidence
from nornweave.ask.search.folding import fold
from nornweave.ask.search.pasted import searched_text
from nornweave.ask.search.query import read_query, statistics_of
from nornweave.ask.search.search import Told, tell
from nornweave.core.text.index_fields import RELEASE
from nornweave.core.types import Document, Domain, Entry
from nornweave.disagree.facts.extract import extract_facts
from nornweave.disagree.facts.passage import Passage
from nornweave.disagree.facts.statement import settings_in
from nornweave.index.index import Index
from nornweave.index.port import NO_HITS, Numbers, Scores
from nornweave.index.searching.segments import Segments
from nornweave.ingest.records import DomainParts
from nornweave.models.encoders.hashing import HashEncoder
from nornweave.models.encoders.port import EncodedQuery, Encoder, Progress, Vectors, projection_of
from nornweave.read.chunking.chunker import Chunker

TABLE = '''"""Tables."""

import os
import sys
from pathlib import Path


class Table:
    """A table of a database, which has rows and columns and an index for each of these columns, as tables do."""

    def __init__(self, name):
        self.name = name
        self.columns = [column for column in os.listdir(name) if Path(column).suffix in sys.path]

    def upsert_all(self, records):
        """Change what is there and add the rest, one record after the other, in one transaction."""
        for record in records:
            self.upsert(record)

    def upsert(self, record):
        """Change a record or add it."""
        if record is None:
            raise ValueError(f"frozen ledger {record} accepts nothing new")
        return [*self.columns, record]
'''
PAGED = '''class Page:
    """A page of rows, which is read when it is needed and forgotten when the next one is turned to, as pages are."""

    class Raw:
        """What a page was before anybody looked at it: bytes as they came, with nothing said of rows or columns."""

        def turn(self):
            """Go on to the next bytes, wherever they are, and say how many there were in all of them before it."""
            return self.read(self.size) or self.close()

    def turn(self):
        """Go on to the next page, wherever it is, and say how many rows there were in all of the pages before it."""
        return self.table.page(self.number + 1)


def turn(page):
    return page.turn()
'''
KIND = '''class WeaveAll:
    """What is woven in one go, with all of its threads and knots, as long as there is a loom for each of them."""

    def tear(self):
        """Take it apart again, one thread after the other, until nothing is left that could hold together."""
        return [*self.threads, *self.knots]


def weave_all(threads):
    """Weave all of these threads in one go, on as many looms as there are, and say how long it took for each one."""
    return WeaveAll(threads)
'''
SETTINGS = """class Runner:
    def prepare(self):
        self.poll_timeout = self.settings.get("poll_timeout", 5)
        self.idle_limit = self.settings.get("idle_limit", None)
"""
OPTIONS = """program
  .option("--warp <n>", "most threads that a heddle holds", 5)
  .option("--pause <s>", "seconds between two picks of the shuttle", 9)
"""
REMARKS = "# How far the reed swings back\n# in millimetres.\nreed_travel: 40\n\nbobbin: 3\n"
DYES = "program\n" + "".join(f'  .option("--dye-{n} <g>", "grams of colour {n}", {n + 20})\n' for n in range(9))
FILES = {
    "db/options.js": OPTIONS,
    "db/edges.js": 'program.option("--selvedge <kind>", "the hem of a cloth woven by a shuttle", "twisted")\n',
    "db/dyes.js": DYES,
    "db/loom.yaml": REMARKS,
    "examples/loom.yaml": REMARKS.replace("40", "41"),
    "db/settings.py": SETTINGS,
    "db/waiting.py": "".join(
        f"def wait_{n}(runner):\n    return poll(runner.poll_timeout, {n})\n\n\n" for n in range(9)
    ),
    "tests/test_settings.py": "".join(
        f"def test_poll_timeout_{n}(runner):\n    assert runner.poll_timeout == {n}\n\n\n" for n in range(9)
    ),
    "db/kind.py": KIND,
    "db/table.py": TABLE,
    "db/view.py": TABLE.replace("class Table", "class View")
    .replace("upsert", "refresh")
    .replace("frozen ledger", "gone"),
    "db/loom.h": "/** Winds the warp. */\nint wind_warp(int ends);\n/** Cuts the cloth. */\nint cut_cloth(int at);\n",
    "db/loom.c": "int wind_warp(int ends)\n{\n    return ends;\n}\n",
    "db/delay.py": "def delay(step):\n    return measure(step) + weigh(step)\n",
    "db/paged.py": PAGED,
    "tests/test_paged.py": "".join(f"class Page{n}:\n    def turn(self):\n        return {n}\n\n\n" for n in range(9)),
    "tests/test_table.py": "".join(
        f"def test_upsert_{n}(db):\n    Table.upsert(db.table, {n})\n    assert Table.upsert(db, {n})\n\n\n"
        for n in range(30)
    ),
    "db/secrets.py": "def hash_password(text):\n    return digest(text, rounds=12)\n",
    "db/cookies.py": "def read_x_session_mark(env):\n    return env['MARK']\n",
    "examples/plain.py": "def plainly(table):\n    return table.rows\n",
    "db/basic.py": "".join(f"import module_{n}\n" for n in range(40))
    + "\n\ndef begin(table):\n"
    + "".join(f"    table.row_{n}(os.name, sys.path, {n})\n" for n in range(30)),
    "db/use.py": "".join(
        f"def step_{n}(record):\n    value = measure(record, {n})\n    return weigh(value, {n}) + weigh(record)\n\n\n"
        for n in range(30)
    ),
}


OWNERS = ("beam", "reed", "heddle", "shed", "warp", "weft")


class CodeSource(MemorySource):
    """A source of Python and C files."""

    def parse(self, entry: Entry, raw: bytes) -> Document:
        return replace(super().parse(entry, raw), format="c" if entry.path.endswith((".c", ".h")) else "python")


class WordMeanings(HashEncoder):
    """A text means what the first of some words in it means; it passes for the encoder whose meanings are compared."""

    MEANINGS: Mapping[str, Sequence[float]] = {"tired": (1, 0, 0), "shuttle": (0.8, 0.6, 0), "heddle": (0.1, 0, 1)}

    def __init__(self) -> None:
        super().__init__(3)
        self.version = "sentence-transformers/all-MiniLM-L6-v2@cbf231bb01e46b0c"
        assert projection_of(self.version) is not None
        self.encoded: list[str] = []

    def encode(self, texts: Sequence[str], *, progress: Progress | None = None) -> Vectors:
        self.encoded += texts
        return super().encode(texts, progress=progress)

    def encode_query(self, text: str) -> Vectors:
        meant = next((meant for word, meant in self.MEANINGS.items() if word in text), (0, 0, 1))
        return np.array(meant, np.float32) / np.float32(np.linalg.norm(meant))


MEANINGS = WordMeanings()


def parts_of(folder: Path, source: MemorySource, encoder: Encoder) -> DomainParts:
    parts = memory_parts(folder, source, encoder=encoder)
    return replace(parts, domain=Domain.CODE, chunker=Chunker(strategy="SYNTAX_AWARE", limit=64))


def built(folder: Path, encoder: Encoder, files: Mapping[str, str] = FILES) -> Iterator[Index]:
    source = CodeSource(domain=Domain.CODE)
    for path, text in files.items():
        source.write(path, text)
    parts = parts_of(folder, source, encoder)
    with parts.store.files.open(sync(parts).generation) as generation:
        yield generation


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    yield from built(tmp_path_factory.mktemp("code"), HashEncoder())


@pytest.fixture(scope="module")
def code_with_meanings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    yield from built(tmp_path_factory.mktemp("code"), WordMeanings())


def evidence_of(text: str, generation: Index, quoting: Numbers = NO_HITS.numbers, within: Any = None) -> ExactEvidence:
    query = read_query(text)
    statistics = statistics_of(query, generation)
    told = told_of(text, generation)
    return exact_evidence(query, statistics, generation, quoting, within, None if told is None else told.scores)


def told_of(text: str, generation: Index, by_words: Numbers = NO_HITS.numbers) -> Told | None:
    """Tell which setting is asked for, with every chunk near."""
    query, encoded = read_query(text), EncodedQuery(text, MEANINGS.encode_query(text))
    every = np.arange(generation.size, dtype=np.int32).reshape(-1, 1)
    return tell(query, encoded, statistics_of(query, generation), generation, [*every], by_words)


def scores_of(evidence: ExactEvidence, generation: Index) -> Scores:
    return np.zeros(generation.size, np.float32) if evidence.scores is None else evidence.scores


def kept_shares(text: str, generation: Index, chunks: Numbers) -> list[float]:
    return evidence_of(text, generation).kept_shares(chunks).tolist()


def leading(text: str, generation: Index) -> str:
    scores = scores_of(evidence_of(text, generation), generation)
    return next(iter(generation.contents(np.array([scores.argmax()], np.int32)).values())) if scores.any() else ""


@pytest.mark.parametrize("text", [
    "Table.upsert", "table::Upsert", "def upsert", "upsert", "where is upsert implemented in Table", "table.upsert",
    "Table.upsret",
])  # fmt: skip
def test_a_definition_leads_however_it_is_named(code: Index, text: str) -> None:
    assert "def upsert(self" in leading(text, code)


@pytest.mark.parametrize("place", [
    "db/table.py:{}", "db/table.py line {}", "table.py#L{}-L99", "why does /srv/app/db/table.py:{} fail",
    "https://forge.example/o/r/blob/main/db/table.py#L{}", "C:\\app\\db\\table.py:line {}",
    "at f (/app/db/table.py:{}:9)",
    "ValueError: x\n  at g (/app/node_modules/g.py:3)\n  at f (/app/db/table.py:{})\n  at h (/app/db/use.py:1)",
    'Traceback (most recent call last):\n  File "/srv/db/use.py", line 1, in a\n    b()\n'
    '  File "/srv/db/table.py", line {}, in c\n    d()\nValueError: frozen',
])  # fmt: skip
def test_a_place_leads_to_its_line(code: Index, place: str) -> None:
    line = 1 + TABLE[: TABLE.index("def upsert(self")].count("\n")
    assert "def upsert(self" in leading(searched_text(place.format(line))[0], code)


def test_a_path_of_another_machine_leads_to_its_file(code: Index) -> None:
    assert '"""Tables."""' in leading("/srv/app/db/table.py", code)


@pytest.mark.parametrize(("text", "definition"), [
    ("Page.turn", "Go on to the next page"), ("where is turn implemented in Page", "Go on to the next page"),
    ("Raw.turn", "Go on to the next bytes"), ("paged.turn", "def turn(page)"), ("delay.delay", "def delay(step)"),
    ("where is delay implemented in delay", "def delay(step)"),
])  # fmt: skip
def test_what_is_right_around_a_member_tells_it_from_others_of_its_name(
    code: Index, text: str, definition: str
) -> None:
    assert definition in leading(text, code)


@pytest.mark.parametrize("text", [
    "what is the default of poll_timeout", "where is the poll timeout set", "poll-timeout",
    "what is the default of --poll-timeout?", "which value does poll-timeout have by default",
    "POLL_TIMEOUT default value",
    "what is idle_limit", "which value does pollTimeout have", "what is poll_timeout unless I change a thing myself?",
    "which value does the poll timeout have if nothing says otherwise?",
])  # fmt: skip
def test_a_setting_leads_to_where_its_value_is_said(code: Index, text: str) -> None:
    assert "self.settings.get" in leading(text, code)


@pytest.mark.parametrize("owner", ["reed", "heddle"])
def test_a_setting_that_is_called_with_its_owner_leads_to_that_owner(owner: str, tmp_path: Path) -> None:
    files = {f"db/{name}.py": f'loom.set_default("{name}.sway_gap", {gap})\n' for gap, name in enumerate(OWNERS)}
    used = {f"db/use_{n}.py": f'def use_{n}(loom):\n    return loom.get("{owner}.sway_gap", {n})\n' for n in range(3)}
    for code in built(tmp_path, HashEncoder(), files | used):
        assert f'set_default("{owner}' in leading(f"what is the default of {owner}.sway_gap", code)


@pytest.mark.parametrize(("text", "stating"), [
    ("how many threads does a heddle hold?", ".option"),
    ("which pause lies between two picks of the shuttle?", ".option"),
    ("how far does the reed swing back unless I say otherwise?", "reed_travel"),
    ("how many bobbins are used?", "bobbin"),
])  # fmt: skip
def test_a_setting_is_found_by_the_words_that_describe_it(code: Index, text: str, stating: str) -> None:
    assert stating in leading(text, code)


def test_a_setting_is_found_by_what_it_means_where_no_word_of_it_is_asked(code_with_meanings: Index) -> None:
    told = told_of("how long may tired weavers rest?", code_with_meanings)
    assert told is not None
    best = int(told.scores.argmax())
    assert (told.facts[best].name, told.facts[best].value) == ("pause", "9")
    for text in (
        "which function lets tired weavers rest?", "how do tired weavers rest?",
        "what is a tired weaver to do at night?", "what are tired weavers supposed to do first?",
    ):  # fmt: skip
        assert told_of(text, code_with_meanings) is None


@pytest.mark.parametrize(("text", "is_told"), [
    ("which hem does a cloth have that a shuttle has woven?", True),
    ("what hem is given to cloth woven by a shuttle?", True),
    ("which knot do tired hands tie at night?", False), ("which knot do tired hands tie by default?", True),
    ("what does the page say is the default hem of a cloth woven by a shuttle?", True),
    ("which hems does a cloth have that a shuttle has woven?", False),
    ("what cloth hems are woven by a shuttle?", False),
])  # fmt: skip
def test_a_text_is_told_where_its_words_say_most_of_what_is_asked_and_one_is_asked_for(
    code_with_meanings: Index, text: str, is_told: bool
) -> None:
    told = told_of(text, code_with_meanings)
    assert ("twisted" in {fact.value for fact in (told.facts.values() if told else ())}) == is_told


def test_a_setting_of_another_thing_does_not_lead_where_a_passage_holds_what_is_asked(tmp_path: Path) -> None:
    files = {
        "quotas.py": "# The maximum number of threads in a region of the mill.\nthreads_max = 6\n",
        "looms.py": 'def looms():\n    """Make up to fifty looms in a region of the mill."""\n    return make(50)\n',
    }
    for generation in built(tmp_path, HashEncoder(), files):
        text = "what is the maximum number of looms in a region of the mill?"
        numbers = {chunk.path: number for number, chunk in generation.chunks(np.arange(generation.size)).items()}
        alone = told_of(text, generation)
        assert alone is not None
        assert alone.facts.keys() == {numbers["quotas.py"]}
        assert told_of(text, generation, np.array([numbers["looms.py"]], np.int32)) is None


def test_a_number_in_a_file_of_records_is_no_setting(tmp_path: Path) -> None:
    for count in (1, 300):
        records = ",\n".join(f'"mill{n}": {{\n"most_bobbins": 7,\n"town": "Weft"\n}}' for n in range(count))
        for generation in built(tmp_path / str(count), HashEncoder(), {"mills.json": f"{{{records}}}"}):
            told = told_of("how many bobbins are the most?", generation)
            assert (told is not None) == (count == 1)


def test_lists_and_variables_that_no_words_describe_are_no_settings() -> None:
    text = 'RETRY_LIMIT = 7\nNAMES = ["warp", "weft"]\n\n\ndef wind(step):\n    turns = step.get("turns", 4)\n'
    facts = extract_facts(Passage(text=text, path="a.py", domain="code", format="python"))
    assert {fact.name for fact in facts} >= {"retry limit", "names", "turns"}
    assert [said for _, said in settings_in(facts, text, 0)] == ["retry limit"]


def test_a_setting_of_a_document_that_one_may_not_read_is_not_told(code_with_meanings: Index) -> None:
    without = code_with_meanings.without("path:options.js")
    told = told_of("how long may tired weavers rest?", without)
    assert told is None or "pause" not in {fact.name for fact in told.facts.values()}


def test_words_of_settings_are_encoded_once_and_go_with_their_document(tmp_path: Path) -> None:
    encoder, source = WordMeanings(), CodeSource(domain=Domain.CODE)
    for path in ("db/options.js", "db/loom.yaml", "tests/options.js"):
        source.write(path, FILES.get(path, OPTIONS))
    parts = parts_of(tmp_path, source, encoder)
    report = sync(parts)
    assert report.embedded == 2 < len(encoder.encoded), "two of three texts are the same"
    first = set(encoder.encoded)
    assert any("seconds between two picks of the shuttle" in said for said in first), first
    source.write("db/loom.yaml", REMARKS.replace("reed_travel: 40", "reed_travel: 44"))
    with small_segments(2):
        generation = sync(parts).generation
    assert {said for said in encoder.encoded if said not in first and "reed travel" in said} == {
        "reed travel How far the reed swings back in millimetres reed travel 44"
    }
    with parts.store.files.open(generation) as opened:
        asked = encoder.encode_query("how long may tired weavers rest?")
        alike = opened.setting_similarities(asked, np.arange(opened.size, dtype=np.int32))
        chunks = opened.chunks(np.array([*alike], np.int32))
        assert isinstance(opened._parts, Segments), "several files are searched"
    told = {chunks[number].facts[place].name: score for number, own in alike.items() for place, score in own.items()}
    assert max(told, key=lambda name: told[name]) == "pause"
    assert all(not own for number, own in alike.items() if chunks[number].path.startswith("tests/"))
    del source.documents["db/options.js"]
    sync(parts, confirm_deletes=True)
    with parts.store.writer() as writer:
        counts = writer.counts()
        (kept,) = writer._rows("select count(*) from embeddings where orphaned_in is null")
    assert (counts.missing_vectors, kept[0]) == (0, counts.texts), "of what is gone, no vector is counted as used"


@pytest.mark.parametrize(
    "text", ["how do I hold the threads of a heddle?", "threads that a heddle holds in swing_back"]
)
def test_who_asks_for_no_value_or_names_one_is_not_led_by_descriptions(code: Index, text: str) -> None:
    assert scores_of(evidence_of(text, code), code).max() < 0.2


@pytest.mark.parametrize("text", [
    "poll_timeout: how long do we really wait for a slow loom before its threads are given to another weaver?",
    "after how many seconds of silence does the watcher of frozen ledgers give up, is that what poll_timeout says?",
])  # fmt: skip
def test_the_only_name_in_a_long_question_for_a_value_leads(code: Index, text: str) -> None:
    assert "poll_timeout" in leading(text, code)


def test_a_question_about_more_than_a_setting_is_not_answered_by_its_value_alone(code: Index) -> None:
    question = "why does measuring a record weigh more than poll_timeout when the table is frozen"
    assert scores_of(evidence_of(question, code), code).max() < 0.2


def test_no_question_is_led_to_tests_unless_it_asks_for_them(code: Index) -> None:
    aside = np.array([number for number, chunk in code.chunks(np.arange(code.size, dtype=np.int32)).items()
                      if chunk.path == "tests/test_table.py"], np.int32)  # fmt: skip
    for text in ("how is a cloth folded", "why is a cloth folded", "can a cloth be folded", "folded cloth"):
        assert kept_shares(text, code, aside) == [pytest.approx(0.85)] * len(aside)
    assert kept_shares("how does a test fold a cloth", code, aside) == [1.0] * len(aside)


def test_tests_of_the_same_name_make_a_definition_no_less_rare(code: Index) -> None:
    assert scores_of(evidence_of("turn", code), code).max() > 0.5


@pytest.mark.parametrize(
    "text", ["upsert_all", "upsertAll", "UpsertAll", "Table.upsertAll", "Table#upsert_all", "upsert-all"]
)
def test_other_spellings_find_it(code: Index, text: str) -> None:
    assert "def upsert_all" in leading(text, code)


def test_a_prototype_leads_only_where_nothing_defines_its_name(code: Index) -> None:
    for text in ("wind_warp", "windWarp", "where is wind_warp implemented in loom"):
        assert "return ends;" in leading(text, code), text
    for text in ("cut_cloth", "cutCloth", "what does cut_cloth do", "loom.cut_cloth"):
        assert "Cuts the cloth" in leading(text, code), text


@pytest.mark.parametrize("text", ["weave_all", "weaveAll", "kind.weaveAll", "wave_all"])
def test_a_function_comes_before_a_type_of_nearly_its_name(code: Index, text: str) -> None:
    assert "def weave_all" in leading(text, code)


def test_a_type_of_nearly_its_name_makes_a_function_no_less_rare(code: Index) -> None:
    assert (
        scores_of(evidence_of("weave_all", code), code).max() == scores_of(evidence_of("refresh_all", code), code).max()
    )


@pytest.mark.parametrize(
    "text", ["frozen ledger accepts nothing new", "ValueError: frozen ledger dogs accepts nothing new", "frozen-ledger"]
)
def test_a_rare_run_of_words_wins_whatever_stands_between(code: Index, text: str) -> None:
    assert "frozen ledger" in leading(text, code)


@pytest.mark.parametrize(
    ("text", "beginning"),
    [
        ("paged.py", "class Page:"),
        ("db/paged.py", "class Page:"),
        ("what does paged.py do", "class Page:"),
        ("db/basic.py", "def begin(table)"),
    ],
)
def test_a_file_that_is_named_begins_behind_its_imports(code: Index, text: str, beginning: str) -> None:
    assert beginning in leading(text, code)


def test_an_example_that_is_named_by_its_file_loses_nothing(code: Index) -> None:
    example = code.named(["path:plain.py"])["path:plain.py"]
    assert kept_shares("plain.py", code, example) == [1]
    assert max(kept_shares("paged.py", code, example)) < 1


@pytest.mark.parametrize("value", ["dogs", "42", "/srv/x9"])
def test_a_value_in_the_middle_does_not_break_a_run(code: Index, value: str) -> None:
    assert scores_of(evidence_of(f"frozen ledger {value} accepts nothing new", code), code).max() > 0.4


@pytest.mark.parametrize("text", [
    "shop1: Cannot glaze batch /home/lea/kiln/2024/blue.yaml, line 12 (see https://kiln.example/help/batches)",
    "why does it say “Cannot glaze batch red-7 of pots for the shop in the old town” when I start it?",
])  # fmt: skip
def test_the_code_that_makes_a_message_leads_whatever_values_were_pasted(tmp_path: Path, text: str) -> None:
    """What was pasted is of other words for the most part, which others hold."""
    raising = 'def glaze(batch):\n    if batch.wet:\n        raise KilnError(f"Cannot glaze batch {batch.name}")\n'
    other = "def shop(kiln):\n    # the shop in the old town: kiln, batches, blue pots and help when it starts\n"
    page = 'The message "Cannot glaze batch" is gone.'
    files = {
        "page.txt": page,
        "glaze.py": raising,
        "shop.py": other,
        **{f"{n}.py": f"def f{n}():\n    return {n}\n" for n in range(30)},
    }
    for code in built(tmp_path, HashEncoder(), files):
        assert "KilnError" in leading(text, code)


def test_a_quoted_phrase_needs_no_other_word_of_the_query(code: Index) -> None:
    quoting = np.array([2], np.int32)
    assert scores_of(evidence_of("whence comes the gone message", code, quoting), code).argmax() == 2


@pytest.mark.parametrize("text", ["how are the records of a day measured", "what is it", "weigh", "?", "dogs", "=>"])
def test_what_is_no_name_and_no_quotation_has_no_evidence(code: Index, text: str) -> None:
    assert not scores_of(evidence_of(text, code), code).any()


def test_tests_lose_where_a_name_is_asked_for_and_not_where_tests_are(code: Index) -> None:
    aside = code.named(["place:aside"])["place:aside"]
    assert max(kept_shares("Table.upsert", code, aside)) < 0.8
    assert min(kept_shares("tests of Table.upsert", code, aside)) == 1
    assert min(kept_shares("what is it", code, aside)) == pytest.approx(0.85)
    assert max(kept_shares("where in the code is it weighed", code, aside)) < 0.7


def test_import_blocks_lose_unless_imports_are_asked_for(code: Index) -> None:
    imports = code.named(["place:imports"])["place:imports"]
    assert max(kept_shares("sys path", code, imports)) == 0.5
    assert min(kept_shares("import sys", code, imports)) == 1


def test_what_is_filtered_out_has_none(code: Index) -> None:
    assert not scores_of(evidence_of("Table.upsert", code, within=np.zeros(code.size, np.bool_)), code).any()


@pytest.mark.parametrize("text", ["where is the password hashed", "which function hashes passwords"])
def test_a_name_is_found_by_its_words_in_another_order_and_form(code: Index, text: str) -> None:
    assert leading(text, code).startswith("def hash_password")


@pytest.mark.parametrize(("text", "is_found"), [
    ("where is the X-Session-Mark header parsed", True), ("which function builds the session mark x", True),
    ("how long is the session mark x", False),
])  # fmt: skip
def test_who_asks_where_may_have_another_verb_than_the_name(code: Index, text: str, is_found: bool) -> None:
    evidence = evidence_of(text, code)
    assert (evidence.scores is not None and bool(evidence.scores.any())) == is_found
    assert not is_found or leading(text, code).startswith("def read_x_session_mark")


class MarkdownSource(MemorySource):
    """A source of Markdown files."""

    def parse(self, entry: Entry, raw: bytes) -> Document:
        return replace(super().parse(entry, raw), format="markdown")


VERSIONS = {
    each.partition(" ")[0]: each
    for each in ("2.1.0 - unreleased", "1.9.0 - 2025-08-11", "2.0.0 - 2026-03-02", "1.10.0 - 2025-11-03")
}


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    source = MarkdownSource()
    told = "".join(f"## {version}\n\nSeveral corrections of {version}, and more.\n\n" for version in VERSIONS.values())
    source.write("CHANGELOG.md", f"# Changelog\n\n{told}")
    clock = (
        "## 1.2.0\n\n*Not yet released*\n\nThe clock ticks.\n\n## ver. 1.1.1 (2026/08/15) - triple\n\nIt is right.\n"
    )
    source.write("tool/ChangeLog", f"# Changes\n\n{clock}")
    source.write(
        "old/CHANGELOG-0.x.md", "# Changelog\n\n## 0.9.1 - 2024-01-02\n\nThe oldest version of all is kept here.\n"
    )
    source.write("docs/versions.md", "# Versions\n\n## 3.1 The latest version\n\nIt is supported for a year.\n")
    parts = memory_parts(tmp_path_factory.mktemp("releases"), source)
    report = sync(replace(parts, chunker=Chunker(strategy="HIERARCHICAL_SECTIONS", limit=64)))
    assert report.generation is not None
    with parts.store.files.open(report.generation) as generation:
        yield generation


@pytest.mark.parametrize("text", [
    "what is the latest version", "newest release", "what changed in the last release",
    "what is the latest version of memory",  # the name of the source
])  # fmt: skip
def test_the_newest_release_is_known_by_its_version(releases: Index, text: str) -> None:
    scores = scores_of(evidence_of(text, releases), releases)
    held = releases.contents(np.flatnonzero(scores == scores.max()).astype(np.int32)).values()
    assert ["2.0.0" in each or "1.1.1" in each for each in held] == [True, True]
    assert not scores_of(evidence_of("what is a version", releases), releases).any()


@pytest.mark.parametrize(("text", "leading"), [
    ("what changed in 1.10.0", {"1.10.0"}), ("what is new since 1.9", {"1.10.0", "2.0.0", "2.1.0"}),
    ("when did 1.10.0 come out", None), ("what changed in 9.0", None),
    ("what changed between 1.9.0 and 2.0.0", {"1.10.0", "2.0.0"}),
])  # fmt: skip
def test_the_release_that_is_asked_for_comes_before_the_others(
    releases: Index, text: str, leading: set[str] | None
) -> None:
    numbers = np.concatenate(
        [releases.named([f"path:{path}"])[f"path:{path}"] for path in ("changelog.md", "docs/versions.md")]
    )
    scores = np.linspace(0.9, 0.8, len(numbers))
    ranking, _ = fold(Ranking(numbers, scores, {"sparse": scores}, scores), text, {}, releases)
    held = [each.partition(" - ")[0] for each in map(releases.contents(numbers).__getitem__, ranking.numbers.tolist())]
    if leading is None:
        assert ranking.numbers.tolist() == numbers.tolist()
    else:
        found = [next((version for version in VERSIONS if version in each), "") for each in held]
        assert set(found[: len(leading)]) == leading
        assert found[len(leading)] == ""  # the page comes before the other sections


@pytest.mark.parametrize("text", ["what changed in 4.2.0", "what changed in memory 4.2.0"])
def test_a_part_of_a_release_that_lists_nothing_does_not_lead_it(tmp_path: Path, text: str) -> None:
    source = MarkdownSource()
    parts = {
        "Added": "A lamp that glows.",
        "Changed": "*Nothing*",
        "Removed": "N/A",
        "Fixed": "No user-facing changes.",
    }
    told = "".join(f"### {part}\n\n- {entry}\n\n" for part, entry in parts.items())
    source.write("CHANGELOG.md", f"# Changelog\n\n## 4.2.0 - 2026-03-02\n\n{told}")
    stored = memory_parts(tmp_path, source)
    report = sync(replace(stored, chunker=Chunker(strategy="HIERARCHICAL_SECTIONS", limit=64)))
    assert report.generation is not None
    with stored.store.files.open(report.generation) as generation:
        numbers = generation.named([RELEASE])[RELEASE][::-1].astype(np.int32)
        scores = np.linspace(0.9, 0.8, len(numbers))
        ranking, behind = fold(Ranking(numbers, scores, {"sparse": scores}, scores), text, {}, generation)
        (leader,) = ranking.numbers.tolist()
        assert "lamp" in generation.contents(np.array([leader], np.int32))[leader]
        assert len(behind[leader]) == len(numbers) - 1
