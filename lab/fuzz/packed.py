"""Put a text into a file of an office format, as little of it as its reader needs."""

from __future__ import annotations

import io
import json
from html import escape
from zipfile import ZIP_DEFLATED, ZipFile

from openpyxl import Workbook
from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE
from pptx import Presentation

_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_DOCUMENT = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"


def archive(members: dict[str, str | bytes]) -> bytes:
    """Return a ZIP archive with these members."""
    buffer = io.BytesIO()
    with ZipFile(buffer, "w", ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return buffer.getvalue()


def docx(text: str) -> bytes:
    """Return a document with a paragraph for each line, every third a row of a table, the first a heading."""
    return word_file("".join(_paragraph(number, line) for number, line in enumerate(_lines(text))))


def word_file(body: str, styles: str = "", numbering: str = "") -> bytes:
    """Return a .docx with this content of ``w:body``, of ``w:styles`` and of ``w:numbering``."""
    head = f'<?xml version="1.0" encoding="UTF-8"?><w:{{0}} xmlns:w="{_W}">'
    return archive(
        {
            "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>',
            "_rels/.rels": (
                '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
                f'<Relationship Id="r1" Type="{_DOCUMENT}" Target="word/document.xml"/></Relationships>'
            ),
            "word/styles.xml": f"{head.format('styles')}{styles}</w:styles>",
            "word/numbering.xml": f"{head.format('numbering')}{numbering}</w:numbering>",
            "word/document.xml": f"{head.format('document')}<w:body>{body}</w:body></w:document>",
        }
    )


def _paragraph(number: int, line: str) -> str:
    run = f'<w:r><w:t xml:space="preserve">{escape(line)}</w:t></w:r>'
    if number % 3 == 2:
        cell = f"<w:tc><w:p>{run}</w:p></w:tc>"
        return f"<w:tbl><w:tr>{cell}{cell}</w:tr><w:tr>{cell}{cell}</w:tr></w:tbl>"
    style = "" if number else '<w:pPr><w:pStyle w:val="Heading1"/></w:pPr>'
    return f"<w:p>{style}{run}</w:p>"


def pptx(text: str) -> bytes:
    """Return a presentation with all of the text on one slide and in its notes."""
    presentation = Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[1])
    slide.shapes.title.text = (_lines(text) or [""])[0]
    slide.placeholders[1].text = "\n".join(_lines(text))
    slide.notes_slide.notes_text_frame.text = "\n".join(_lines(text))
    buffer = io.BytesIO()
    presentation.save(buffer)
    return buffer.getvalue()


def xlsx(text: str) -> bytes:
    """Return a workbook with a row for each line, a cell for each word; numbers are numbers."""
    workbook = Workbook()
    sheet = workbook.active
    for line in _lines(text):
        words = [ILLEGAL_CHARACTERS_RE.sub("", word)[:1_000] for word in line.split(" ")[:40]]
        sheet.append([int(word) if word.isascii() and word.isdigit() else word for word in words])
    buffer = io.BytesIO()
    workbook.save(buffer)
    return buffer.getvalue()


def epub(text: str) -> bytes:
    """Return a book whose one chapter is the text, as HTML."""
    return archive(
        {
            "META-INF/container.xml": (
                '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
                '<rootfile full-path="b/c.opf"/></rootfiles></container>'
            ),
            "b/c.opf": (
                '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>'
                '<dc:title>Book</dc:title></metadata><manifest><item id="a" href="a.xhtml" '
                'media-type="application/xhtml+xml"/></manifest><spine><itemref idref="a"/></spine></package>'
            ),
            "b/a.xhtml": text.encode("utf-8", "replace"),
        }
    )


def ipynb(text: str) -> bytes:
    """Return a notebook with the text as prose, as code and as output."""
    cells = [
        {"cell_type": "markdown", "source": text},
        {"cell_type": "code", "source": [text], "outputs": [{"output_type": "stream", "text": text}]},
    ]
    return json.dumps({"nbformat": 4, "cells": cells}).encode("ascii")


def eml(text: str) -> bytes:
    """Return an e-mail whose subject and body is the text, followed by a part in HTML."""
    subject = " ".join(text.split())[:200]
    head = f"From: a@b.c\nSubject: {subject}\nContent-Type: multipart/mixed; boundary=x\n\n"
    parts = ("text/plain", "text/html", "message/rfc822")
    body = "".join(f"--x\nContent-Type: {kind}; charset=utf-8\n\n{text}\n" for kind in parts)
    return f"{head}{body}--x--\n".encode("utf-8", "replace")


def _lines(text: str) -> list[str]:
    """Return the lines of a text, without the signs that XML cannot hold."""
    kept = "".join(sign for sign in text if sign in "\t\n" or (" " <= sign <= "\ud7ff") or "\ue000" <= sign <= "\ufffd")
    return kept.split("\n")
