"""The conflict ledger: facts that disagree in the whole corpus."""
