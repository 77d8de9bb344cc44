"""Documents that nobody would write, through every parser: ``python -m lab.fuzz``."""
