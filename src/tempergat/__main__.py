"""`python -m tempergat`."""

from tempergat.cli import main

main()
