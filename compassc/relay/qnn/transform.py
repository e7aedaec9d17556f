"""Passes for quantised operators."""

from __future__ import annotations

from compassc.relay.passes import RelayPass, make


def Legalize() -> RelayPass:
    """Write quantised operators as a target wants them; functions of bytes are tables."""
    return make("QnnLegalize")


def CanonicalizeOps() -> RelayPass:
    """Lower quantised operators to plain ones."""
    return make("QnnCanonicalizeOps")
