"""Outlines of formatted text: its blocks, headings and sections."""
