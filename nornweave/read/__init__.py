"""Parse bytes into documents."""
