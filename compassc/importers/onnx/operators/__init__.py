"""The operators of ONNX, a module per family."""
