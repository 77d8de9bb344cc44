"""Decoding: what comes out for each way in which a text can be stored, and the reasons for refusing the rest."""

import codecs

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nornweave.core.errors import DocumentError
from nornweave.core.text.decode import MAX_BYTES, check_size, composed, decode, is_unknown, likeliest, whole_characters

RUSSIAN = "Платёж отклонён банком. Повторите попытку через тридцать секунд или обратитесь в поддержку.\n" * 5
FRENCH = "Le paiement a été refusé par la banque ; réessayez dans trente secondes, s'il vous plaît.\n" * 5
JAPANESE = "支払いは銀行によって拒否されました。三十秒後にもう一度お試しください。\n" * 10


@pytest.mark.parametrize(("mark", "encoding"), [
    (b"", "utf-8"), (codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"), (codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be"),
])  # fmt: skip
def test_unicode_with_and_without_a_mark(mark: bytes, encoding: str) -> None:
    text = "Größe\r\n金額 🙂\r"
    assert decode(mark + text.encode(encoding)) == text


@pytest.mark.parametrize(
    ("text", "encoding"), [(RUSSIAN, "cp1251"), (RUSSIAN, "koi8_r"), (FRENCH, "latin-1"), (JAPANESE, "shift_jis")]
)
def test_older_encodings_are_guessed(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding)) == text


def test_the_guess_looks_where_the_text_is_not_ascii() -> None:
    text = "plain line\n" * 10_000 + RUSSIAN
    assert decode(text.encode("cp1251")) == text


@pytest.mark.parametrize(("text", "encoding"), [
    ("# -*- coding: latin-1 -*-\n# é\n", "latin-1"), ("#!/bin/sh\n# vim: set fileencoding=koi8-r :\n# Да", "koi8-r"),
    ('<?xml version="1.0" encoding="ISO-8859-2"?>\n<a>łódź', "iso8859-2"), ('<meta charset="Shift_JIS">鍵', "cp932"),
    ('<meta charset="iso-8859-1">naïve', "utf-8"), ('x = "<meta charset=gbk>"  # naïve', "utf-8"),
    ("encoding: gbk\nname: naïve\n", "utf-8"), ("# coding: utf-8\n# café", "cp1252"), ("# coding: x\n# é", "utf-8"),
])  # fmt: skip
def test_what_a_file_declares_counts_where_it_can_be_true(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding)) == text


WESTERN = ["// it’s fine: São Paulo", "// señor Muñoz", "// £ 20, naïve", "// crème brûlée, Zoë", "// größer", "// Åke"]
CENTRAL = [
    "// Łukasz",
    "// Zażółć gęślą jaźń",
    "// łączność wyłączona",
    "// Sprawdź ustawienia użytkownika",
    "// źródło",
]


RUSSIAN_LINES = ["// ключ", "// Проверяет размер", "// г", "// номер строки"] * 3


@pytest.mark.parametrize(("lines", "encoding"), [
    (WESTERN, "cp1252"), (CENTRAL, "cp1250"), (RUSSIAN_LINES, "cp1251"),
    (["// satır", "// değiştirildi", "// geçersiz şifre", "// ışık açık"] * 4, "cp1254"),
])  # fmt: skip
def test_files_of_a_source_tell_their_encoding_together(lines: list[str], encoding: str) -> None:
    files = [line.encode(encoding) for line in lines]
    assert likeliest(files) == encoding
    assert [decode(raw, likeliest(files)) for raw in files] == lines
    assert all(map(is_unknown, files))
    assert not any(map(is_unknown, [b"ascii", "é".encode(), b"%PDF-\xff", b"PK\0\xff", b"\xff\xfea\0"]))


@pytest.mark.parametrize("line", WESTERN)
def test_one_or_two_letters_are_of_the_west(line: str) -> None:
    assert decode(line.encode("cp1252")) == line


def test_a_broken_byte_does_not_change_the_encoding() -> None:
    raw = (FRENCH * 3).encode() + b"\xff cut " + FRENCH.encode()
    assert decode(raw) == FRENCH * 3 + "\ufffd cut " + FRENCH


@pytest.mark.parametrize(("raw", "found"), [
    (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + b"abc" * 50, "NUL bytes"),
    (b"PK\x03\x04\x14\x00 some archive", "NUL bytes"),
    (b"\x7fELF\x02\x01\x01", "control characters"),
    (b"%PDF-1.7\nplain enough\n", "PDF"),
    (b"text\x00text", "NUL bytes, the first at 4"),
    (b"ab\x01\x02\x03\x04" * 20, "control characters"),
    (codecs.BOM_UTF16_LE + b"\x01" + b"\x00" * 99, "utf-16-le"),
])  # fmt: skip
def test_binary_content_is_refused_with_what_was_found(raw: bytes, found: str) -> None:
    with pytest.raises(DocumentError, match=rf"binary content in a file named as text.*{found}"):
        decode(raw)


@pytest.mark.parametrize(
    "raw", [b"", b" \r\n\t \n", codecs.BOM_UTF8, codecs.BOM_UTF16_LE + "\n \u3000".encode("utf-16-le")]
)
def test_blank_files_are_empty(raw: bytes) -> None:
    with pytest.raises(DocumentError, match=r"^empty:"):
        decode(raw)


def test_the_size_limit_names_both_sizes() -> None:
    check_size(MAX_BYTES)
    with pytest.raises(DocumentError, match=r"10,485,761 bytes, allowed are 10,485,760"):
        check_size(MAX_BYTES + 1)
    with pytest.raises(DocumentError, match="too large"):
        decode(b"a" * (MAX_BYTES + 1))


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_decode_or_are_refused(raw: bytes) -> None:
    try:
        assert decode(raw).strip()
    except DocumentError as error:
        assert str(error).startswith(("binary content", "empty"))


@settings(max_examples=100, deadline=None)
@given(st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1).filter(lambda text: bool(text.strip())))
def test_every_text_survives_utf_8(text: str) -> None:
    assert decode(text.encode()) == composed(text.removeprefix("\ufeff"))


def test_a_letter_and_its_accent_are_one_character() -> None:
    assert decode("Mu\u0308ller".encode()) == "Müller"


def test_halves_of_characters_are_replaced_wherever_they_stand() -> None:
    given = {"a\udc00": ["b\ud83d", ("c", 1)], "d": None}
    assert whole_characters(given) == {"a\ufffd": ["b\ufffd", ("c", 1)], "d": None}
    assert whole_characters("🙂 ü") == "🙂 ü"
