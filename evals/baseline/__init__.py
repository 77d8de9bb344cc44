"""The figures that a refactoring must not change: recorded by ``python -m evals.baseline``, compared by a later run."""
