"""Tiles: values of a constant shape in LSRAM. What they do is written once, in operations of the kernel language.

The same functions run while a kernel is parsed, where they emit its statements, and in PySim, where they compute: the
`Machine` of each of the two has what differs between them, loops and variables. So the order of sums is one.
"""
