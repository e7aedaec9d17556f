"""The `.text` container: what is written is read back, and what is damaged is refused."""

from __future__ import annotations

import pytest

from compass_core.elf.hostcode import HostCodeError, make_text_blob, parse_text_blob

TRIPLE = "x86_64-unknown-linux-gnu"


def test_round_trip() -> None:
    elf = b"\x7fELF" + bytes(range(200))
    data = make_text_blob(elf, ["first", "second"], "+avx2,+fma", TRIPLE)
    blob = parse_text_blob(data)
    assert (blob.elf, blob.features, blob.triple) == (elf, "+avx2,+fma", TRIPLE)
    assert [name for name, _ in blob.entries] == ["first", "second"]
    assert data[blob.offset_of("second") :].startswith(b"CPSENTRY")
    with pytest.raises(HostCodeError, match="third"):
        blob.offset_of("third")


def test_what_parameter_words_are_is_read_back() -> None:
    told = ["01-", "", "01-", "0", "d-+0:0,ffffffe4:1"]
    data = make_text_blob(bytes(100), ["a", "a", "b", "c", "d"], "native", TRIPLE, told)
    assert list(parse_text_blob(data).asids) == told
    for at in (1, 100, len(data) - 1, 2**31):
        damaged = bytearray(data)
        damaged[76:80] = at.to_bytes(4, "little")
        with pytest.raises(HostCodeError, match="parameter words"):
            parse_text_blob(bytes(damaged))


@pytest.mark.parametrize("text", ["4", "0+", "d+10", "d+10:4", "d+10:0,", "d+123456789:0", "+x:0", "d,1:0"])
def test_texts_that_tell_nothing_are_refused(text: str) -> None:
    data = make_text_blob(bytes(100), ["a"], "native", TRIPLE, [text])
    with pytest.raises(HostCodeError, match="parameter words"):
        parse_text_blob(data)


@pytest.mark.parametrize("cut", [0, 7, 63, 70, 200, 250])
def test_truncation_is_refused(cut: int) -> None:
    data = make_text_blob(bytes(100), ["entry"], "native", TRIPLE)
    with pytest.raises(HostCodeError):
        parse_text_blob(data[:cut])


@pytest.mark.parametrize(
    ("offset", "value"), [(0, 0), (8, 0), (11, 255), (12, 1), (15, 255), (64, 0), (72, 9), (80, 0)]
)
def test_damage_is_refused(offset: int, value: int) -> None:
    data = bytearray(make_text_blob(bytes(100), ["entry"], "native", TRIPLE))
    data[offset] = value
    with pytest.raises(HostCodeError):
        parse_text_blob(bytes(data))


@pytest.mark.parametrize("symbol", ["", "x" * 48])
def test_names_must_fit(symbol: str) -> None:
    with pytest.raises(HostCodeError, match="characters|no name"):
        make_text_blob(b"", [symbol], "native", TRIPLE)
