"""Read PDF files: text in reading order, with sections and pages."""
