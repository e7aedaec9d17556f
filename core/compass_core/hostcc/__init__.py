"""Compiling C of the Compass dialect for the simulator's host: flags, precompiled header, the text kept in the object."""
