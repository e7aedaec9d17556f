"""Text for hypothesis to draw from, of sets of characters that it knows. Without one it asks which characters UTF-8 has,
which takes it 1.5 s in a fresh checkout."""

from __future__ import annotations

from string import ascii_letters, digits

from hypothesis import strategies as st

CHARACTERS = st.characters(exclude_categories=["Cs"])
"""All that there are in files."""


def word(pattern: str) -> st.SearchStrategy[str]:
    """A word of a regular expression over the letters, digits and underscores of ASCII."""
    return st.from_regex(pattern, fullmatch=True, alphabet=f"{ascii_letters}{digits}_")
