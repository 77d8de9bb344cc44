"""Table of calls that declare options in many libraries, and its reader."""

from __future__ import annotations

import re
from dataclasses import dataclass

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Attribute, Form


@dataclass(frozen=True, slots=True)
class OptionCall:
    """How the calls of one name declare something.

    Attributes:
        name: position of the argument that names it; ``None``: the strings at the front, the longest of them.
        default: position of its default; ``None`` if only keywords say it.
        least: arguments that such a call has at least.
        receiver: what the object must be called, if the function's name alone says too little.
    """

    name: int | None
    default: int | None = None
    least: int = 1
    receiver: str = ""
    form: Form = "option"
    attribute: Attribute = "default"


_FALLBACK = OptionCall(0, 1, 2, form="fallback")
_STORES = (
    r"(?i)(?:config|conf|setting|settings|option|options|opts|env|environ|params|kwargs|args|properties|props)\w*$"
)
_CALLS = {
    **dict.fromkeys(("add_argument", "add_option", "make_option", "addOption", "class_option", "method_option"),
                    OptionCall(None)),
    **dict.fromkeys(("option", "requiredOption", "argument"), OptionCall(None, 2)),
    **dict.fromkeys(("SetDefault", "setDefault", "set_default", "setdefault", "config_param"), OptionCall(0, 1, 2)),
    **dict.fromkeys(("getenv", "get_env", "getEnv", "GetEnv", "env", "Env", "envOr", "EnvOr", "getEnvOrDefault",
                     "GetEnvOrDefault", "get_bool", "getenv_or", "getOrDefault", "getProperty"), _FALLBACK),
    **dict.fromkeys(("get", "pop", "fetch", "getInt", "getBoolean", "getint", "getboolean", "getfloat", "get_or"),
                    OptionCall(0, 1, 2, _STORES, "fallback")),
    "default": OptionCall(0, 1, 2),
    "define": OptionCall(0, 1, 2, form="definition", attribute="value"),
}  # fmt: skip
_FLAG = lazy_pattern(
    r"^(?:String|Bool|Int|Int8|Int16|Int32|Int64|Uint|Uint8|Uint16|Uint32|Uint64|Float32|Float64|Duration|Count"
    r"|StringSlice|StringArray|IntSlice|Size)(Var)?(P)?$"
)


# ``Setting("page_size", 100, "Rows of a page")``: an object that describes one option.
_DESCRIBED = lazy_pattern(
    r"[A-Z]\w*(?:Setting|Option|Config|Param|Parameter|Property|Flag|Knob)$|(?:Setting|Option|Param)$"
)


def call_of(name: str) -> OptionCall | None:
    """Return what a call of that name declares, ``None`` if nothing.

    Args:
        name: the function as it is written: ``parser.add_argument``, ``flags.DEFINE_integer``.
    """
    parts = re.split(r"\.|::|->|\s", name.rstrip("!?"))
    last = parts[-1]
    if last.startswith(("DEFINE_", "define_")):
        return OptionCall(0, 1, 2)
    if _DESCRIBED.match(last):
        return OptionCall(0, 1, 3)
    found = _CALLS.get(last)
    if found is not None:
        receiver = parts[-2] if len(parts) > 1 else ""
        return found if not found.receiver or re.search(found.receiver, receiver) else None
    flag = _FLAG.match(last) if len(parts) > 1 else None
    if flag is None:
        return None
    first = 1 if flag[1] else 0
    default = first + (2 if flag[2] else 1)
    return OptionCall(first, default, default + 2)


_KEYS: tuple[tuple[Attribute | None, str], ...] = (
    ("default", "default default_value defaultvalue defaultval default_t"),
    (None, "required type minimum min ge min_value minvalue gte maximum max le max_value maxvalue lte"),
    (None, "choices enum allowedvalues allowed_values one_of oneof"),
)
KEYS = {key: attribute for attribute, keys in _KEYS for key in keys.split()}
"""Keys with which a declaration says something of what it declares (lower case); ``None``: nothing that is compared."""
NAMING_KEYS = frozenset("name key id field flag long option property param dest".split())  # noqa: SIM905
"""Keys whose string names what the keys beside it declare (lower case)."""
