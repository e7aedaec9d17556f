"""`compassc aipubuild`, which is also the program `aipubuild`."""

from __future__ import annotations

from compassc.cli.aipubuild import command

__all__ = ["command"]
