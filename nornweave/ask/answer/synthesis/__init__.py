"""An answer written by a language model, with checked citations."""
