"""The text form of Relay: literals and what has none (`metadata`)."""
