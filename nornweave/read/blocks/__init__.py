"""Blocks of documents: headings, paragraphs, lists, tables, code; read once for the chunker, facts and the pages."""
