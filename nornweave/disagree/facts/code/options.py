"""Calls that declare options in many libraries, and keys that describe an option."""

from __future__ import annotations

import re

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Attribute

_BY_KEYWORD = frozenset("add_argument add_option make_option addOption class_option method_option".split())  # noqa: SIM905
_BEHIND_HELP = frozenset(("option", "requiredOption", "argument"))
_BEHIND_NAME = frozenset(
    """
    SetDefault setDefault set_default setdefault config_param default define getenv get_env getEnv GetEnv env Env envOr
    EnvOr getEnvOrDefault GetEnvOrDefault get_bool getenv_or getOrDefault getProperty
    """.split()  # noqa: SIM905
)
_GETTERS = frozenset("get pop fetch getInt getBoolean getint getboolean getfloat get_or".split())  # noqa: SIM905
STORES = lazy_pattern(
    r"(?:config|conf|setting|settings|option|options|opts|env|environ|params|kwargs|args|properties|props)\w*$",
    re.IGNORECASE,
)
"""What options are taken from."""
# ``flags.IntVarP(&rows, "rows", "r", 100, "rows of a page")``
_FLAG = lazy_pattern(
    r"(?:String|Bool|U?[Ii]nt(?:8|16|32|64)?|Float(?:32|64)|Duration|Count|StringSlice|StringArray|IntSlice|Size)(?:Var)?(?P<short>P)?$"
)
# ``Setting("page_size", 100, "Rows of a page")``: an object that describes one option.
_DESCRIBED = lazy_pattern(
    r"(?:DEFINE|define)_|[A-Z]\w*(?:Setting|Option|Config|Param|Parameter|Property|Flag|Knob)$|(?:Setting|Option|Param)$"
)
# ``declare_parameter("rate", 10)``, ``registerOption("rate", 10)``: a verb, and what an option is called.
_DECLARES = lazy_pattern(
    r"(?:register|declare|define|add|set|with)_?(?:default|option|setting|config|param(?:eter)?|property|flag|knob)"
    r"(?:_?value)?$",
    re.IGNORECASE,
)


def default_behind_name(name: str) -> tuple[int, bool] | None:
    """Return the position of the default in a call that declares something.

    Args:
        name: the function as written: ``parser.add_argument``, ``flags.DEFINE_integer``.

    Returns:
        The number of arguments from the name to the default (0 if it is only a keyword), and whether a description
        has to follow the default; ``None`` if calls of this function declare nothing.
    """
    *receivers, last = re.split(r"\.|::|->|\s", name.rstrip("!?"))
    if last in _BY_KEYWORD:
        return 0, False
    if last in _BEHIND_HELP:
        return 2, False
    if (
        last in _BEHIND_NAME
        or _DECLARES.match(last)
        or (last in _GETTERS and receivers and STORES.search(receivers[-1]))
    ):
        return 1, False
    if _DESCRIBED.match(last):
        return 1, True
    flag = _FLAG.match(last) if receivers else None
    return (2 if flag["short"] else 1, True) if flag else None


_KEYS: tuple[tuple[Attribute | None, str], ...] = (
    ("default", "default default_value defaultvalue defaultval default_t default_value_t envdefault"),
    (None, "required type minimum min ge min_value minvalue gte maximum max le max_value maxvalue lte"),
    (None, "choices enum allowedvalues allowed_values one_of oneof"),
)
KEYS = {key: attribute for attribute, keys in _KEYS for key in keys.split()}
"""Keys with which a declaration says something of what it declares (lower case); ``None``: nothing that is compared."""
NAMING_KEYS = frozenset("name key id field flag long option property param dest".split())  # noqa: SIM905
"""Keys whose string names what the keys beside it declare (lower case)."""
