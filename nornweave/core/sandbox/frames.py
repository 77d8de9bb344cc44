"""Messages between a process and its parent: JSON and raw bytes, each preceded by its length.

JSON is used instead of pickle, because unpickling the answer of a compromised parser could run code in the parent.
Functions cross by their name, ``module:qualname``, and nothing else.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import lru_cache
from importlib import import_module
from types import FunctionType
from typing import Any

from pydantic_core import PydanticSerializationError, from_json, to_json

from nornweave.core.types import JsonValue

PACKAGE = __name__.partition(".")[0]
"""Only functions of this package run in the sandbox of the product."""


def address_of(function: Callable[..., object]) -> str:
    """Return ``module:name`` of a function, which ``function_at`` can import.

    Raises:
        ValueError: it is a lambda, a method or a closure, and not a function of a module.
    """
    module, name = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    if not isinstance(function, FunctionType) or not name.isidentifier():
        raise ValueError(f"{function!r} cannot be run in another process; expected a function of a module")
    return f"{module}:{name}"


@lru_cache(maxsize=256)
def function_at(address: str, package: str = PACKAGE) -> Callable[..., object]:
    """Return the function with the address ``module:name``; import its module.

    Raises:
        ValueError: ``address`` is not that of a function that a module of ``package`` defines.
    """
    module, _, name = address.partition(":")
    if module.partition(".")[0] != package or not name.isidentifier():
        raise ValueError(f"{address!r} is not a function of {package}")
    function = getattr(import_module(module), name, None)
    if not isinstance(function, FunctionType) or function.__module__ != module:
        raise ValueError(f"{address!r} is not a function of {package}")
    return function


MAX_FRAME_BYTES = 512 * 1024 * 1024
"""Of one message; more is not taken from a process that may be lying."""
_LENGTHS = struct.Struct("!QQ")
_READ_BYTES = 1 << 20


def send(connection: socket.socket, values: object, raw: bytes = b"") -> None:
    """Send one message within the connection's timeout.

    Args:
        values: JSON, which may contain records of ``types``. A record is sent as an object of its fields.
        raw: bytes to send beside it.
    """
    text = _spell(values)
    connection.sendall(_LENGTHS.pack(len(text), len(raw)) + text)
    if raw:
        connection.sendall(raw)


def receive(connection: socket.socket, due: float | None = None) -> tuple[JsonValue, bytes]:
    """Receive one message; return its JSON and the bytes that were sent beside it.

    Args:
        due: the ``time.monotonic()`` until which to wait; ``None`` waits without end.

    Raises:
        TimeoutError: the message was not complete in time.
        EOFError: the other side ended.
        ValueError: the message is too long or not JSON.
    """
    text_size, raw_size = _LENGTHS.unpack(_take(connection, _LENGTHS.size, due))
    if text_size + raw_size > MAX_FRAME_BYTES:
        raise ValueError(f"a message of {text_size + raw_size:,} bytes, at most {MAX_FRAME_BYTES:,} are taken")
    text = _take(connection, text_size, due)
    return _read(text), bytes(_take(connection, raw_size, due))


def _spell(values: object) -> bytes:
    try:
        return to_json(values, fallback=_plain)
    except PydanticSerializationError:  # a lone surrogate, which the standard library escapes
        return json.dumps(values, default=_plain).encode("ascii")


def _read(text: bytearray) -> JsonValue:
    values: JsonValue
    try:
        values = from_json(text)
    except ValueError:
        values = json.loads(text)
    return values


@lru_cache(maxsize=64)
def _names(record: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(record))


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return {name: getattr(value, name) for name in _names(type(value))}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, frozenset):
        return sorted(value)
    raise TypeError(f"a {type(value).__name__} cannot be sent")


def _take(connection: socket.socket, size: int, due: float | None) -> bytearray:
    taken = bytearray()
    while len(taken) < size:
        if due is not None:
            left = due - time.monotonic()
            if left <= 0:
                raise TimeoutError
            connection.settimeout(left)
        chunk = connection.recv(min(size - len(taken), _READ_BYTES))
        if not chunk:
            raise EOFError
        taken += chunk
    return taken
