"""Small valid layers of every type, drawn at random on a given input: pages ask which forms have kernels, tests run them."""

from compassc.layers.samples import axes, detection, elements, images, moves, places, rare, regions, rows, windows
from compassc.layers.samples.draw import SAMPLES, Draw, drawn, names

__all__ = [
    "SAMPLES",
    "Draw",
    "axes",
    "detection",
    "drawn",
    "elements",
    "images",
    "moves",
    "names",
    "places",
    "rare",
    "regions",
    "rows",
    "windows",
]
