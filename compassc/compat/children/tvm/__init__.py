"""What a program that was started by one under `python -m compassc.compat` imports as `tvm`: the same names."""

import importlib

from compassc.compat import install

install(shadow=True)
importlib.import_module("tvm")
