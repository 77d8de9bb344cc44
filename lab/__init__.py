"""The laboratory: benchmarks, campaigns, fuzzers, stand-ins, experiments. Not in the wheel; only tests import it."""
