"""One module per family of layer types; each declares its types when it is imported."""
