"""Functions that make layers of TFLite's operators, a module per family."""
