"""The command line: one file per sub-command under `commands/`, imported only when it is used."""
