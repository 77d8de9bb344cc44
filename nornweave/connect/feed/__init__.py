"""RSS and Atom feeds; the example of docs/write-a-connector.md."""
