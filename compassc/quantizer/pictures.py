"""Pictures in files as arrays of pixels. Files of others are read: regular ones alone, of few formats, and not too large.

Pillow goes by the content of a file, not by its name, and knows formats whose pictures other programs draw.
"""

from __future__ import annotations

import io
import warnings
from pathlib import Path

import numpy as np

from compass_core import files
from compass_core.arrays import Array
from compass_core.errors import CompassError
from compass_core.reading.limits import IMAGE_BYTES, IMAGE_PIXELS

CODE = "calibration-data"
FORMATS = {
    "PNG": (".png",),
    "JPEG": (".jpg", ".jpeg"),
    "BMP": (".bmp",),
    "WEBP": (".webp",),
    "PPM": (".ppm",),
    "TIFF": (".tif", ".tiff"),
}
"""Formats under Pillow's names, and what their files are called."""
SUFFIXES = tuple(suffix for suffixes in FORMATS.values() for suffix in suffixes)
_MODES = {1: "L", 3: "RGB", 4: "RGBA"}
"""Pillow's names for pixels of so many channels."""


def need_pillow() -> None:
    """CompassError where Pillow is not installed."""
    try:
        import PIL.Image  # noqa: F401
    except ImportError:
        help = "pip install pillow"
        raise CompassError("reading images needs the package pillow", code="missing-package", help=help) from None


def pictures_in(folder: Path) -> list[Path]:
    """The pictures of a folder and those below it, in the order of their names."""
    return sorted(p for p in folder.rglob("*") if p.suffix.lower() in SUFFIXES)


def pixels(path: Path, height: int, width: int, channels: int, size: tuple[int, int] | None) -> Array:
    """The picture in a file, float32 from 0 to 255, resized to [height, width, channels]; where there is a `size` (height
    and width), resized to that, and of it the middle. CompassError for a file that is no picture."""
    from PIL import Image

    content = files.read_regular(path, IMAGE_BYTES, CODE)
    tall, wide = size or (height, width)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # the limit is ours
            opened = Image.open(io.BytesIO(content), formats=tuple(FORMATS))
        with opened:
            IMAGE_PIXELS.check(opened.width * opened.height, str(path))
            image = opened.convert(_MODES[channels]).resize((wide, tall), Image.Resampling.BILINEAR)
    except CompassError:
        raise
    except Exception as error:  # noqa: BLE001 (decoders raise anything for a damaged file)
        help = f"{', '.join(FORMATS)} are read"
        raise CompassError(f"'{path}' is no image: {error or type(error).__name__}", code=CODE, help=help) from None
    left, top = (wide - width) // 2, (tall - height) // 2
    if size:
        image = image.crop((left, top, left + width, top + height))
    return np.asarray(image, np.float32).reshape(height, width, channels)
