"""Driving clang: from Compass OpenCL C text to an object for the simulator's host."""
