"""The sub-commands; each module has a click command called `command`."""
