"""The network between a machine and a server: bytes pass, wait or are refused, as a test wants it."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress


class Link:
    """A port of loopback whose connections go on to a server; ``cut`` holds them up as a broken network does."""

    def __init__(self, connect: Callable[[], socket.socket]) -> None:
        self._connect = connect
        self._passing = threading.Event()
        self._passing.set()
        self._at: bytes | None = None
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._run(self._accept)

    def cut(self) -> None:
        """Hold everything up: nothing arrives, and nobody is told."""
        self._passing.clear()

    def cut_at(self, words: bytes) -> None:
        """Cut it at the moment when a machine is about to send these words."""
        self._at = words

    @property
    def is_cut(self) -> bool:
        return not self._passing.is_set()

    def heal(self) -> None:
        """Let everything pass, what was held up first."""
        self._passing.set()

    def close(self) -> None:
        self.heal()  # what waits comes to its end
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):  # it is closed
            while True:
                client, _ = self._listening.accept()
                self._run(self._join, client)

    def _join(self, client: socket.socket) -> None:
        with client:
            self._passing.wait()
            try:
                server = self._connect()
            except OSError:
                return
            with server:
                there = self._run(self._copy, client, server)
                self._copy(server, client)
                there.join()

    def _copy(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(1 << 16):
                if self._at and self._at in piece:
                    self.cut()
                self._passing.wait()
                target.sendall(piece)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    @staticmethod
    def _run(function: Callable[..., None], *arguments: object) -> threading.Thread:
        thread = threading.Thread(target=function, args=arguments, daemon=True)
        thread.start()
        return thread
