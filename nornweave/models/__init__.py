"""Models: encoders, rerankers and language models, and one way to find, convert and load them."""
