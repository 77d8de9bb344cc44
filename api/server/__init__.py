"""One serving process and several: sockets, limits and large bodies around uvicorn."""
