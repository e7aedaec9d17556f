"""Operators whose functions layers and expressions share (`compassc.importers.onnx.maker`); a module per family."""
