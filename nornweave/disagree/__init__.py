"""Facts, the decision that two contradict each other, the ledger, drift."""
