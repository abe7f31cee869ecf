"""`python -m sceneloom` is `sceneloom`."""

from sceneloom.cli import main

main()
