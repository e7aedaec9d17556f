"""Facts about a module that several stages use."""
