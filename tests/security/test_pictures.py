"""Folders of pictures that somebody else filled."""

from __future__ import annotations

import io
import os
import signal
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compass_core.errors import CompassError
from compass_core.reading.limits import IMAGE_PIXELS
from compassc.graph import Graph, GraphBuilder
from compassc.quantizer.data import load
from compassc.quantizer.pictures import FORMATS

Image = pytest.importorskip("PIL.Image")

PLAIN = Image.fromarray(np.arange(16 * 16 * 3, dtype=np.uint8).reshape(16, 16, 3))
EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 16 16\n%%EndComments\n(x) show\n%%EOF\n"


def graph() -> Graph:
    g = GraphBuilder("net")
    return g.finish([g.input("x", (1, 3, 8, 8), "float32")])


def content(kind: str) -> bytes:
    file = io.BytesIO()
    PLAIN.save(file, kind)
    return file.getvalue()


def png(width: int, height: int, lines: int) -> bytes:
    """A black picture of two colours, which takes a thousandth of the memory that its pixels do; so many lines of it are there."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0))
    data = zlib.compress(bytes(lines * (1 + (width + 7) // 8)))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", data) + chunk(b"IEND", b"")


@pytest.fixture
def no_waiting():
    """An error for whoever waits for a pipe that nobody writes to."""

    def tell(*_: object) -> None:
        raise AssertionError("it waits")

    before = signal.signal(signal.SIGALRM, tell)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def refusal(folder: Path) -> CompassError:
    with pytest.raises(CompassError) as caught:
        list(load(folder, graph()))
    assert str(folder) in caught.value.message
    return caught.value


@pytest.mark.parametrize("kind", FORMATS)
def test_formats_are_read(tmp_path, kind):
    """By their content, under any name of a picture."""
    (tmp_path / f"a{FORMATS[kind][0]}").write_bytes(content(kind))
    (tmp_path / "b.png").write_bytes(content(kind))
    a, b = load(tmp_path, graph())
    assert (a["x"] == b["x"]).all() and a["x"].shape == (1, 3, 8, 8) and a["x"].any()


def test_no_other_program_draws_a_picture(tmp_path, monkeypatch):
    """As Ghostscript does for Pillow, whatever the file is called."""
    from PIL import EpsImagePlugin

    (tmp_path / "bin").mkdir()
    tool = tmp_path / "bin" / "gs"
    tool.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(EpsImagePlugin, "gs_binary", None)
    (tmp_path / "x.png").write_bytes(EPS)
    with pytest.raises(OSError), Image.open(tmp_path / "x.png") as opened:
        opened.load()
    assert (tmp_path / "ran").exists(), "this attack works"
    (tmp_path / "ran").unlink()
    assert refusal(tmp_path).code == "calibration-data"
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("kind", ["GIF", "ICO", "PDF", "TGA", "PCX", "SGI", "JPEG2000"])
def test_other_formats_are_refused(tmp_path, kind):
    (tmp_path / "x.jpg").write_bytes(content(kind))
    assert "PNG, JPEG" in refusal(tmp_path).help


@pytest.mark.parametrize("what", ["pipe", "folder", "device", "link to nothing"])
def test_only_files_are_read(tmp_path, no_waiting, what):
    path = tmp_path / "x.png"
    if what == "pipe":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero" if what == "device" else "nothing")
    assert refusal(tmp_path).code == "calibration-data"


def test_pictures_of_too_many_pixels_are_refused(tmp_path):
    side = int(IMAGE_PIXELS.most**0.5) + 1
    made = png(side, side, side)
    assert len(made) < 1 << 20
    (tmp_path / "x.png").write_bytes(made)
    assert refusal(tmp_path).code == "limit-exceeded"
    (tmp_path / "x.png").write_bytes(png(60_000, 60_000, 1000)[:2000])
    assert (
        "60000" in refusal(tmp_path).message or "limit" in refusal(tmp_path).message
    )  # Pillow's own, which it is beyond, too


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kind=st.sampled_from(list(FORMATS)),
    places=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), max_size=6),
    keep=st.floats(0, 1) | st.just(1.0),
)
def test_damaged_pictures_are_errors(tmp_path, kind, places, keep):
    data = bytearray(content(kind))
    for at, value in places:
        data[int(at * (len(data) - 1))] = value
    (tmp_path / "x.png").write_bytes(data[: int(keep * len(data))])
    try:
        (sample,) = load(tmp_path, graph())
    except CompassError as error:
        assert error.code in ("calibration-data", "limit-exceeded")
        return
    assert sample["x"].shape == (1, 3, 8, 8)
