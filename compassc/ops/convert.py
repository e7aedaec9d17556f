"""Conversion operations."""

from __future__ import annotations
