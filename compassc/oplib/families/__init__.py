"""The families of layers. Every module here is imported, and registers what it can do with `@operator`."""
