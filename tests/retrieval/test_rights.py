"""Who may see a document, as ``nornweave access`` says it, is what searches and ``GET /documents`` show them."""

import tempfile
from pathlib import Path

import hypothesis.strategies as st
from configurations import configured, files
from hypothesis import HealthCheck, given, settings

from lab.access.comparing import DOMAIN, indexes
from lab.access.corpora import GROUPS, NAMES, SOURCES, STATEMENTS, Written, path_of
from lab.small_segments import small_segments
from nornweave.ask.rights import documents_at, people_of, person_in, rights_document
from nornweave.ask.search.question import Question
from nornweave.ask.seen.texts import SeenTexts
from nornweave.core.access import is_met, line_of
from nornweave.core.types import present

DOCUMENTS = st.lists(
    st.tuples(st.sampled_from(tuple(SOURCES)), st.sampled_from(NAMES), st.sampled_from(STATEMENTS)),
    min_size=20,
    max_size=40,
)
VIEWERS = st.lists(st.frozensets(st.sampled_from((*GROUPS, "chiefs")), max_size=3), min_size=4, max_size=8)


@settings(max_examples=4, suppress_health_check=[HealthCheck.too_slow])
@given(documents=DOCUMENTS, viewers=VIEWERS, largest=st.sampled_from((1_000, 4)))
def test_what_is_said_is_what_is_shown(
    documents: list[tuple[str, str, object]], viewers: list[frozenset[str]], largest: int
) -> None:
    written = [
        Written(source, path_of(number, name), f"the ledger of {number}", access)  # type: ignore[arg-type]
        for number, (source, name, access) in enumerate(documents)
    ]
    with tempfile.TemporaryDirectory() as made, small_segments(largest):
        folder = Path(made)
        people = {f"person-{number}": sorted(groups) for number, groups in enumerate(viewers)}
        lines = [line_of(name, groups, name) for name, groups in people.items()]
        (folder / "tokens.yaml").write_text("\n".join(lines))
        for name in (*SOURCES, "index"):
            (folder / name).mkdir()
        access = {"tokens": "tokens.yaml", "operators": ["chiefs"]}
        sources = [files(name, access=list(groups)) if groups else files(name) for name, groups in SOURCES.items()]
        known = configured(folder, *sources, access=access)
        with indexes(folder / "index", written) as pair:
            agents = {DOMAIN: pair.whole}
            for groups in viewers:
                person = person_in(known, groups)
                asked = Question(text="the ledger", now=present(), viewer=person.viewer, top_k=100)
                shown = {item.citation.source_path for item in pair.whole.recall(asked).items}
                for one in written:
                    (placed,) = documents_at(agents, f"{one.source_id}/{one.path}")
                    (found,) = rights_document(known, placed, [person])["people"]
                    served = SeenTexts(known, agents, person.viewer).document(DOMAIN, one.source_id, one.path)
                    expected = one.is_seen_by(person.viewer)
                    assert found["may_see"] is (served is not None) is (one.path in shown) is expected
                    # What is said to decide does: with the statements that are named it would not be seen.
                    said = found["reason"].startswith("not met: ")
                    assert said is (not is_met(placed.ruled.rule, groups) and "chiefs" not in groups) is not expected
            for one in written:
                (placed,) = documents_at(agents, f"{one.source_id}/{one.path}")
                rights = rights_document(known, placed, people_of(known))
                assert rights["unrestricted"] is (not placed.ruled.rule)
                assert {each["name"]: each["may_see"] for each in rights["people"]} == {
                    name: one.is_seen_by(person_in(known, groups).viewer) for name, groups in people.items()
                }
