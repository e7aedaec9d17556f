"""Damaged and hostile input for everything that reads files: `python -m tests.hostile TARGET --count N --seed S`."""
