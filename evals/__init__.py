"""Measuring: judged sets, quality and speed."""
