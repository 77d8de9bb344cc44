"""The command line: the only part of ``nornweave`` that may import ``orchestration``, ``api`` and ``evals``."""
