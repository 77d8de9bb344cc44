"""Meeting transcripts."""
