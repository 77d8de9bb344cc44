"""What requests say: their bodies and parameters, checked, and what each is given when it arrives."""
