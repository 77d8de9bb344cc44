"""What leaves as JSON: items, answers, texts, the ledger. Names and shapes are fixed; fields may be added."""
