"""Make the office files of the example corpus: a document, a workbook, slides, a book, a notebook and an e-mail.

    python examples/make_office.py [FOLDER]

They come out the same every time: dates inside of them are fixed. Everything that they say is invented.
"""

from __future__ import annotations

import io
import json
import re
import sys
import zipfile
from datetime import datetime
from pathlib import Path

import docx
import openpyxl
import pptx

FOLDER = Path(__file__).parent / "payments"
WRITTEN = datetime(2025, 11, 4, 9, 0, 0)  # noqa: DTZ001 - office files have no zones

CHARGEBACKS = (
    ("Chargebacks", 1, "A chargeback is money that a cardholder's bank takes back. This page says who answers it, and by when."),
    ("Who answers", 2, "The risk desk owns every chargeback. Support forwards letters from banks to risk-desk@heronpay.example and tells the shop."),
    ("What to send", 2, "Send the receipt, the delivery note and the shop's terms in one PDF. Evidence that arrives in parts is refused by most banks."),
    ("When a shop disagrees", 2, "A shop may escalate once. The second review is done by somebody who has not seen the case."),
)
DEADLINES = (
    ("Scheme", "Days to answer", "Pre-arbitration"),
    ("Visa", "18", "yes"),
    ("Mastercard", "40", "yes"),
    ("Girocard", "10", "no"),
)
FEES = (
    ("Method", "Country", "Share of amount", "Fixed fee", "Payout delay in days"),
    ("card, debit", "Germany", 0.009, 0.10, 2),
    ("card, credit", "Germany", 0.014, 0.10, 2),
    ("card, credit", "Norway", 0.016, 0.15, 3),
    ("bank transfer", "Germany", 0.004, 0.05, 1),
    ("bank transfer", "Italy", 0.005, 0.05, 2),
    ("invoice", "Germany", 0.029, 0.35, 14),
)
SLIDES = (
    ("Your first week", ("Monday: laptop, badge, lunch with your guide", "Tuesday: shadow a support shift")),
    ("Who to ask", ("Access and accounts: the help desk, extension 1199", "Anything about payslips: Maren in the people team")),
    ("Rules that surprise people", ("No card numbers in chats, not even test cards", "Releases stop on Thursdays at noon")),
)
BOOK = (
    ("Opening a shop", "Contracts are signed by two people: the owner and a witness from the bank. Verification takes three working days."),
    ("Getting paid", "Payouts leave on banking days at 14:30. An amount below 20 euros waits for the next day."),
    ("Closing a shop", "Notice is four weeks. The reserve of five per cent is released 180 days after the last payment."),
)
CELLS = (
    ("markdown", "# How often shoppers try again\n\nA sample of 12,000 declined payments from October 2025."),
    ("code", "share = retried.groupby('reason').size() / declined.groupby('reason').size()\nshare.sort_values()"),
    ("markdown", "## What it says\n\nThree in five shoppers whose card had expired never come back; of those who mistyped a digit, nine in ten do."),
)
MAIL = """\
From: Erin Walsh <erin@heronpay.example>
To: shops@heronpay.example
Subject: Terminals of type P400 are called back
Date: Tue, 04 Nov 2025 09:00:00 +0000
Message-ID: <recall-p400@heronpay.example>
MIME-Version: 1.0
Content-Type: text/plain; charset=utf-8

Dear shops,

the battery of card terminals of type P400 with serial numbers from HP-77000 to HP-78499 may swell. Stop charging them,
put them into the box that reaches you this week, and drop it at any parcel shop. A replacement is on its way.

Erin Walsh, operations
"""


def main(folder: Path) -> None:
    """Write all files below a folder."""
    made = {
        "docs/runbooks/chargebacks.docx": _document(),
        "docs/finance/fees.xlsx": _workbook(),
        "docs/people/first-week.pptx": _slides(),
        "docs/merchant-handbook.epub": _book(),
        "docs/announcements/terminal-recall.eml": MAIL.encode(),
        "research/second-attempts.ipynb": _notebook(),
    }
    for path, content in made.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def _document() -> bytes:
    document = docx.Document()
    for heading, level, text in CHARGEBACKS:
        document.add_heading(heading, level)
        document.add_paragraph(text)
        if heading == "What to send":
            document.add_heading("Deadlines", 2)
            table = document.add_table(0, len(DEADLINES[0]))
            for row in DEADLINES:
                for cell, value in zip(table.add_row().cells, row, strict=True):
                    cell.text = value
    document.core_properties.author = "Erin Walsh"
    document.core_properties.created = document.core_properties.modified = WRITTEN
    return _same(document.save)


def _workbook() -> bytes:
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    sheet.title = "Fees 2026"
    for row in FEES:
        sheet.append(row)
    workbook.properties.creator = "Chiara Rossi"
    workbook.properties.created = workbook.properties.modified = WRITTEN
    return _same(workbook.save)


def _slides() -> bytes:
    deck = pptx.Presentation()
    for title, points in SLIDES:
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = "\n".join(points)
    deck.core_properties.author = "Maren Lie"
    deck.core_properties.created = deck.core_properties.modified = WRITTEN
    return _same(deck.save)


def _book() -> bytes:
    chapters = [(f"c{number}.xhtml", title, text) for number, (title, text) in enumerate(BOOK, start=1)]
    manifest = "".join(f'<item id="{name[:2]}" href="{name}" media-type="application/xhtml+xml"/>' for name, _, _ in chapters)
    spine = "".join(f'<itemref idref="{name[:2]}"/>' for name, _, _ in chapters)
    container = (
        '<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
    )
    package = (
        '<package version="3.0" unique-identifier="id" xmlns="http://www.idpf.org/2007/opf">'
        '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:identifier id="id">heronpay-handbook</dc:identifier>'
        "<dc:title>Heron Pay: the handbook for shops</dc:title><dc:language>en</dc:language>"
        "<dc:creator>Dana Petrov</dc:creator></metadata>"
        f"<manifest>{manifest}</manifest><spine>{spine}</spine></package>"
    )
    page = '<html xmlns="http://www.w3.org/1999/xhtml"><head><title>{0}</title></head><body><h1>{0}</h1><p>{1}</p></body></html>'
    files = {"mimetype": "application/epub+zip", "META-INF/container.xml": container, "book.opf": package}
    files |= {name: page.format(title, text) for name, title, text in chapters}
    return _zipped({name: text.encode() for name, text in files.items()})


def _notebook() -> bytes:
    cells = []
    for number, (kind, source) in enumerate(CELLS, start=1):
        cell = {"id": f"cell-{number}", "cell_type": kind, "metadata": {}, "source": source.splitlines(keepends=True)}
        cells.append(cell | ({"execution_count": 1, "outputs": []} if kind == "code" else {}))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, indent=1).encode() + b"\n"


def _same(save: object) -> bytes:
    """Save an office file, and pack it again with one date for all its parts."""
    raw = io.BytesIO()
    save(raw)  # type: ignore[operator]
    with zipfile.ZipFile(raw) as packed:
        files = {name: packed.read(name) for name in packed.namelist()}
    # openpyxl writes the present moment.
    files["docProps/core.xml"] = re.sub(
        rb"(<dcterms:modified[^>]*>)[^<]*", rb"\g<1>" + WRITTEN.strftime("%Y-%m-%dT%H:%M:%SZ").encode(), files["docProps/core.xml"]
    )
    return _zipped(files)


def _zipped(files: dict[str, bytes]) -> bytes:
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in files.items():
            packed.writestr(zipfile.ZipInfo(name, WRITTEN.timetuple()[:6]), content, zipfile.ZIP_DEFLATED)
    return raw.getvalue()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
