"""The figures that a refactoring must not change: recorded by ``python -m lab.baseline``, compared by a later run."""
