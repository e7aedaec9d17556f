"""`python -m compassc` is `compassc`."""

from compassc.cli.main import main

main()
