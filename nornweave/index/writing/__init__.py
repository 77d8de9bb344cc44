"""The writing side: the working file, and the segments that are built from it."""
