"""Layers on the AIFF: which of them the unit can take with the results that they are defined to have."""
