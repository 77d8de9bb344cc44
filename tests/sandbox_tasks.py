"""Tasks of a process that misbehave, one way each, and one that does not; ``test_sandbox`` starts it."""

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nornweave.core.errors import DocumentError, DocumentSkipped


def echo(values: Mapping[str, Any], raw: bytes) -> object:
    return {**values, "size": len(raw), "pid": os.getpid()}


def loop(values: Mapping[str, Any], raw: bytes) -> object:
    while True:
        pass


def sleep(values: Mapping[str, Any], raw: bytes) -> object:
    signal.pause()


def fill(values: Mapping[str, Any], raw: bytes) -> object:
    return len(bytearray(3 << 30))


def crash(values: Mapping[str, Any], raw: bytes) -> object:
    os.kill(os.getpid(), signal.SIGSEGV)


def lie(values: Mapping[str, Any], raw: bytes) -> object:
    """Say that more is to come than anybody should take, on whichever descriptor leads to the parent."""
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        try:
            os.write(descriptor, b"\xff" * 16)
        except OSError:
            continue
    signal.pause()


def fail(values: Mapping[str, Any], raw: bytes) -> object:
    raise (DocumentSkipped if values["skipped"] else DocumentError)("empty; fill it")


def defect(values: Mapping[str, Any], raw: bytes) -> object:
    return {}["nobody thought of this"]


def write(values: Mapping[str, Any], raw: bytes) -> object:
    Path(values["path"]).write_text("taken over", encoding="utf-8")


def secrets(values: Mapping[str, Any], raw: bytes) -> object:
    return sorted(name for name in os.environ if "TOKEN" in name or "KEY" in name)
