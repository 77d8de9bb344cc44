"""One serving process and several: sockets and limits around uvicorn."""
