"""Chunks of papers and threads: sections, limits, contexts, pages."""

from itertools import pairwise

from growth import assert_subquadratic
from hypothesis import given, settings
from hypothesis import strategies as st
from words import Words

from nornweave.core.text.spans import TokenIndex
from nornweave.core.types import (
    Chunk,
    ContentHash,
    Document,
    Domain,
    Section,
    SectionKind,
    SourceId,
    Span,
    document_id,
    freeze,
)
from nornweave.read.chunking.sections import chunk_papers


def document(*parts: tuple[str, int, SectionKind, str], pages: tuple[int, ...] = (), context: str = "") -> Document:
    text = ""
    sections = []
    for heading, level, kind, body in parts:
        start = len(text)
        text += f"{heading}\n\n{body}\n\n" if heading and kind != "answer" else f"{body}\n\n"
        sections.append(
            Section(
                span=Span(start, len(text)),
                heading=heading,
                level=level,
                kind=kind,
                context=context if kind == "answer" else "",
                metadata=freeze({"score": 3} if kind == "answer" else {}),
            )
        )
    return Document(
        id=document_id("papers", "a.pdf"),
        domain=Domain.RESEARCH,
        source_id=SourceId("papers"),
        path="a.pdf",
        text=text,
        format="pdf",
        content_hash=ContentHash("0"),
        title="On Merging",
        metadata=freeze({"source_type": "paper", "authors": ("Ada",), "doi": "10.1/x", "unrelated": 1}),
        sections=tuple(sections),
        page_starts=pages,
    )


def chunks(doc: Document, **limits: int) -> list[Chunk]:
    return list(chunk_papers(doc, TokenIndex(doc.text, Words()), **limits))


def words(count: int) -> str:
    return "\n\n".join(" ".join(["word"] * min(50, count - start)) for start in range(0, count, 50))


def test_sections_within_their_limits_are_one_chunk_each() -> None:
    found = chunks(
        document(
            ("", 1, "front", "On Merging\n\nAda"),
            ("Abstract", 1, "abstract", words(500)),
            ("1 Method", 1, "section", words(1000)),
            ("1.1 Details", 2, "section", words(500)),
            ("References", 1, "references", words(1000)),
        )
    )
    assert [chunk.title for chunk in found] == ["On Merging", "Abstract", "1 Method", "1.1 Details", "References"]
    assert [chunk.token_count for chunk in found] == [3, 501, 1002, 504, 1001]
    assert [chunk.section for chunk in found] == [None, "Abstract", "1 Method", "1 Method > 1.1 Details", "References"]


def test_longer_ones_are_cut_at_paragraphs() -> None:
    found = chunks(document(("1 Method", 1, "section", words(1200)), ("1.1 Details", 2, "section", words(600))))
    assert [chunk.token_count for chunk in found] == [1002, 200, 504, 100]
    assert all(chunk.content.startswith(("word", "1 ", "1.1 ")) for chunk in found)


def test_abstract_stands_alone_and_has_its_own_limit() -> None:
    found = chunks(document(("Abstract", 1, "abstract", words(90)), ("1 A", 1, "section", "x")), abstract_limit=60)
    assert [chunk.token_count for chunk in found] == [51, 40, 3]


def test_one_chunk_per_answer_with_the_question_as_context() -> None:
    doc = document(
        ("How?", 1, "question", "Tell me."),
        ("Accepted answer by Bob", 2, "answer", "So."),
        ("Answer", 2, "answer", words(700)),
        context="How? Tell me.",
    )
    question, accepted, *rest = chunks(doc)
    assert question.content == "How?\n\nTell me."
    assert accepted.content == "So."
    assert accepted.context == "On Merging\nAccepted answer by Bob\nHow? Tell me."
    assert accepted.section == "How? > Accepted answer by Bob"
    assert accepted.metadata["score"] == 3
    assert [chunk.token_count for chunk in rest] == [500, 200]
    assert all("How? Tell me." in chunk.context for chunk in rest)


def test_bare_heading_goes_with_its_first_subsection() -> None:
    found = chunks(
        document(("2 Data", 1, "section", ""), ("2.1 Sources", 2, "section", "Mail."), ("3 End", 1, "section", ""))
    )
    assert [chunk.content for chunk in found] == ["2 Data\n\n\n\n2.1 Sources\n\nMail.", "3 End"]
    assert found[0].section == "2 Data > 2.1 Sources"


def test_context_and_metadata() -> None:
    (chunk,) = chunks(document(("1 Method", 1, "section", "We merge.")))
    assert chunk.context == "On Merging\n1 Method"
    assert dict(chunk.metadata) == {
        "source_type": "paper",
        "title": "On Merging",
        "authors": ("Ada",),
        "doi": "10.1/x",
        "section_name": "1 Method",
    }


def test_page_of_the_first_character() -> None:
    doc = document(("1 A", 1, "section", "a"), ("2 B", 1, "section", "b"), ("3 C", 1, "section", "c"))
    second, third = doc.text.index("2 B"), doc.text.index("3 C")
    paged = document(
        ("1 A", 1, "section", "a"),
        ("2 B", 1, "section", "b"),
        ("3 C", 1, "section", "c"),
        pages=(0, second, third, third),
    )
    assert [chunk.page for chunk in chunks(paged)] == [1, 2, 4]
    assert [chunk.page for chunk in chunks(doc)] == [None, None, None]


def test_without_sections_the_whole_text_is_one() -> None:
    doc = document(("1 A", 1, "section", words(60)))
    bare = Document(
        id=doc.id,
        domain=doc.domain,
        source_id=doc.source_id,
        path=doc.path,
        text=doc.text,
        format="pdf",
        content_hash=doc.content_hash,
    )
    (chunk,) = chunks(bare)
    assert chunk.context == ""
    assert chunk.section is None
    assert chunk.token_count == 62


KINDS: list[SectionKind] = ["section", "front", "abstract", "references", "question", "answer"]
TEXT = st.text(st.sampled_from("ab .\n\té漢𝕏-"), max_size=120)
PARTS = st.lists(
    st.tuples(st.sampled_from(["", "1 A", "B b", "Überschrift"]), st.integers(1, 5), st.sampled_from(KINDS), TEXT),
    max_size=8,
)


@settings(max_examples=200, deadline=None)
@given(PARTS, st.integers(1, 20), st.integers(1, 20), st.integers(1, 20))
def test_chunks_are_in_order_within_limits_and_lose_nothing(
    parts: list[tuple[str, int, SectionKind, str]], section_limit: int, limit: int, abstract_limit: int
) -> None:
    doc = document(*parts)
    found = chunks(doc, section_limit=section_limit, limit=limit, abstract_limit=abstract_limit)
    for chunk in found:
        assert chunk.content == doc.text[chunk.span.start : chunk.span.end]
        assert chunk.content.strip()
        assert chunk.token_count <= max(section_limit, limit, abstract_limit)
    for before, after in pairwise(found):
        assert before.span.end <= after.span.start
    assert "".join("".join(chunk.content.split()) for chunk in found) == "".join(doc.text.split())


def test_long_papers_are_chunked_in_linear_time() -> None:
    def of_sections(count: int) -> tuple[Document, TokenIndex]:
        doc = document(*[(f"{n} Part", 1 + n % 3, "section", words(900)) for n in range(count)])
        return doc, TokenIndex(doc.text, Words())

    assert_subquadratic(lambda read: list(chunk_papers(*read)), of_sections, 300)
