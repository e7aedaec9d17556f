"""Operators of ONNX as expressions of Relay: each a typed function; a module per family."""
