"""What the pages show: pure functions from documents of ``nornweave/ask/views`` to what a template prints."""
