"""What the pages show: pure functions from documents of ``nornweave/views`` to what a template prints."""
