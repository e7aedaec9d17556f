"""Kernels of layers that are made as IR: their text means the same, and their statements say which Python made them."""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module
from itertools import cycle
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from compassc import layers
from compassc.dsl import parse
from compassc.graph import Layer, LayerError, Tensor
from compassc.ir.equal import structural_equal
from compassc.ir.visit import walk_stmts
from compassc.language.functions import Macro
from compassc.layers.kernel_cache import SHARED, function_of
from compassc.layers.kernels import BUILDERS, STEPS, kernel_of, load_kernels
from compassc.layers.samples import SAMPLES, Draw, drawn
from compassc.layers.source import Kernel
from compassc.layers.support import DTYPES, SHAPES, TRIES
from tests.choosing import some

PACKAGE = Path(layers.__file__).parent


PORTED = (
    "movement",
    "control",
    "reduce",
    "softmax",
    "normalise",
    "rows",
    "counting",
    "sampling",
    "attention",
    "images",
    "pooling",
    "resize",
    "linear",
    "recurrent",
    "detection.decoders",
