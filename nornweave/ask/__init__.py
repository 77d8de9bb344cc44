"""The path of a question, in its order: route, search, fuse, answer, views."""
