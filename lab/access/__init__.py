"""Compare what a viewer is answered with what an index answers that never had what is hidden from them."""
