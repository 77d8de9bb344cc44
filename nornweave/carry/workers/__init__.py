"""Several machines: batches of texts that workers encode, and domains that one of them holds at a time."""
