"""Search: the machine tries programs for a workload, measures them, and keeps what it learns as records.

A `Task` is a workload with a space of candidates, each a JSON value; `measure` builds and runs candidates; strategies
choose which ones; `records` keeps results, and builds take the best from there.
"""
