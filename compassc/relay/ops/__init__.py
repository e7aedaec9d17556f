"""The operators of Relay, a module per family. `declare` says how one is declared, `relations` what type rules share."""
