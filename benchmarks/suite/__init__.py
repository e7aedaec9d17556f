"""One benchmark per file: `GOALS` says what is measured and what it is held to, `measure()` gives the values."""
