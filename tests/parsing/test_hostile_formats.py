"""Archives that unpack to much, XML that declares entities, and files that are not what they are called."""

import re
import struct

import pytest
from test_office_formats import presentation, read, word_document, workbook

from lab.fuzz.packed import archive, docx, epub, word_file
from lab.fuzz.targets import TARGETS
from lab.fuzz.targets import read as outcome_of
from nornweave.core.errors import DocumentError
from nornweave.read.formats import archive as archives

BY_PATH = {target.path: target for target in TARGETS}
ENTITIES = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'


def refusal(path: str, raw: bytes) -> str:
    with pytest.raises(DocumentError) as raised:
        read(path, raw)
    assert len(str(raised.value)) < 500
    return str(raised.value)


def sizes_overwritten(raw: bytes, size: int) -> bytes:
    """State another unpacked size of each member in the table of contents of an archive."""
    changed = bytearray(raw)
    for entry in re.finditer(rb"PK\x01\x02", raw):
        struct.pack_into("<I", changed, entry.start() + 24, size)
    return bytes(changed)


@pytest.mark.parametrize("path", ["a.docx", "a.pptx", "a.xlsx", "a.epub"])
def test_an_archive_that_unpacks_to_much_is_refused_by_its_table_of_contents(path: str) -> None:
    bomb = archive({"word/document.xml": b"<x>" + b" " * 110_000_000 + b"</x>"})
    assert len(bomb) < 200_000
    assert refusal(path, bomb) == ("too large: 110,000,007 bytes unpacked, allowed are 100,000,000; split the file")


def test_what_a_table_of_contents_hides_is_not_unpacked() -> None:
    raw = word_file(f"<w:p><w:r><w:t>{'x' * 2_000_000}</w:t></w:r></w:p>")
    assert "broken" in refusal("a.docx", sizes_overwritten(raw, 1_000))
    opened = archives.open_archive(sizes_overwritten(archive({"a.xml": b" " * 2_000_000}), 1_000))
    with opened.open("a.xml") as member, pytest.raises(Exception, match="CRC"):
        assert len(member.read()) <= 1_000


def test_an_archive_of_many_members_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_MEMBERS", 3)
    assert "4 parts, at most 3" in refusal("a.docx", archive({f"{number}": b"" for number in range(4)}))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_office_files_that_declare_entities_are_refused(encoding: str) -> None:
    xml = f'<?xml version="1.0" encoding="{encoding}"?>{ENTITIES}<x>&b;</x>'.encode(encoding)
    for path in ("a.docx", "a.pptx", "a.xlsx"):
        reason = refusal(path, archive({"docProps/core.xml": xml}))
        assert reason == "'docProps/core.xml' declares a document type, which office files may not"


def test_a_books_package_that_declares_entities_is_refused() -> None:
    container = f"{ENTITIES}<container>&b;</container>"
    assert "not well-formed XML" in refusal("a.epub", archive({"META-INF/container.xml": container}))


def test_entities_of_a_chapter_are_not_expanded() -> None:
    assert len(read("a.epub", epub(f"{ENTITIES}<html><body><p>one &b; two</p></body></html>")).text) < 50


@pytest.mark.parametrize(("path", "raw", "found"), [
    ("a.xlsx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "encrypted or of the formats before 2007"),
    ("a.docx", b"plain text", "broken: File is not a zip file"),
    ("a.docx", presentation(), "broken docx"),
    ("a.pptx", word_document(), "broken pptx"),
    ("a.epub", word_document(), "not a book"),
    ("a.docx", word_document()[:4_000], "broken: File is not a zip file"),
    ("a.docx", word_file(""), "no text: nothing to read in this docx file; exclude it"),
    ("a.ipynb", b"{}", "not a notebook of format 4 (2015): it has no cells"),
    ("a.ipynb", b"[" * 100_000, "broken notebook"),
    ("a.eml", b"no headers here", "not an e-mail"),
])  # fmt: skip
def test_a_file_that_cannot_be_read_says_why(path: str, raw: bytes, found: str) -> None:
    assert found in refusal(path, raw)


@pytest.mark.parametrize(("path", "raw"), [
    ("a.docx", word_file("<w:tbl><w:tr><w:tc>" * 3_000 + "</w:tc></w:tr></w:tbl>" * 3_000)),
    ("a.epub", epub("<div>" * 20_000 + "deep")),
    ("a.epub", epub("<table><tr><td colspan=999999 rowspan=999999>x" * 100)),
    ("a.epub", epub("<table>" + "<tr><td rowspan=9999>x" * 2_000)),
    ("a.eml", b"From: a@b.c\n" + b"Content-Type: multipart/mixed; boundary=x\n\n--x\n" * 500),
    ("a.eml", b"From: " + b"a," * 400_000 + b"\nSubject: =?utf-8?q?" + b"=41" * 100_000 + b"?=\n\nx"),
    ("a.ipynb", b'{"cells": [' + b'{"cell_type": "code", "source": "```"},' * 2_000 + b"1]}"),
], ids=["tables", "elements", "spans", "rows", "parts", "headers", "cells"])  # fmt: skip
def test_what_is_nested_or_repeated_without_end_is_read_or_refused_within_the_limits(path: str, raw: bytes) -> None:
    outcome = outcome_of(BY_PATH[path], raw)
    assert outcome.state in {"read", "refused"}, outcome


def test_nothing_outside_a_file_is_read() -> None:
    html = "<p>x<img src='file:///etc/hostname' alt='a host'><iframe src='http://127.0.0.1:9/'></iframe></p>"
    assert read("a.epub", epub(html)).text == "xa host"


def test_a_row_at_the_end_of_a_sheet_costs_what_it_holds() -> None:
    sheet = (
        '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
        '<row r="1"><c r="XFD1" t="inlineStr"><is><t>far</t></is></c></row>'
        '<row r="1100000"><c r="A1100000" t="inlineStr"><is><t>low</t></is></c></row></sheetData></worksheet>'
    )
    raw = workbook({"S": [["x"]]})
    parts = archives.open_archive(raw)
    changed = {name: parts.read(name) for name in parts.namelist()} | {"xl/worksheets/sheet1.xml": sheet.encode()}
    assert read("a.xlsx", archive(changed)).metadata["left_out"] == (
        "S: rows from 1,048,577 on, beyond 1,048,576 rows",
        "S: columns after IV",
    )


def test_plain_files_of_the_fuzzer_are_read() -> None:
    assert read("a.docx", docx("One\ntwo\nthree | four")).text.startswith("# One\n\ntwo")
