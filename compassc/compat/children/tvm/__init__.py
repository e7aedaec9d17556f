"""The module `tvm` for programs started by a program under `python -m compassc.compat`: the same names."""

import importlib

from compassc.compat import install

install(shadow=True)
importlib.import_module("tvm")
