"""Functions that cross to a process by their name: ``module:qualname``, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from types import FunctionType

PACKAGE = __name__.partition(".")[0]
"""Only functions of this package run in the sandbox of the product."""


def address_of(function: Callable[..., object]) -> str:
    """Return the name by which a process finds a function.

    Raises:
        ValueError: it is not a function of a module, but a lambda, a method or a closure.
    """
    module, name = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    if not isinstance(function, FunctionType) or not name.isidentifier():
        raise ValueError(f"{function!r} cannot be run in another process; expected a function of a module")
    return f"{module}:{name}"


@lru_cache(maxsize=256)
def function_at(address: str, package: str = PACKAGE) -> Callable[..., object]:
    """Import the function that ``address_of`` named.

    Raises:
        ValueError: it is not a function that a module of ``package`` defines.
    """
    module, _, name = address.partition(":")
    if module.partition(".")[0] != package or not name.isidentifier():
        raise ValueError(f"{address!r} is not a function of {package}")
    function = getattr(import_module(module), name, None)
    if not isinstance(function, FunctionType) or function.__module__ != module:
        raise ValueError(f"{address!r} is not a function of {package}")
    return function
