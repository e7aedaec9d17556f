"""The language: what kernels are written with, and the parser that makes IR of them. PySim is `compassc.pysim`."""
