"""Relay: the graph language. Expressions with types, modules, text, operators, passes, and what runs them."""
