"""Shared by compiler, runtime and simulator: errors, switches, the clang finder and aipu.bin's layout."""

VERSION = "0.1.0"
PARAMS_FORMAT = "compassc-params/1"
"""The form of `NAME.params.json`, and of the note `compassc` of aipu.bin."""
