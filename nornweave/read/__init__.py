"""Read bytes into documents, and divide these into chunks."""
