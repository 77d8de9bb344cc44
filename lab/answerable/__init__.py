"""Fit how probable it is that an answer answers, and measure it on corpora that the fit never saw."""
