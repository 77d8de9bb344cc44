"""Extract facts from calls that declare options, and from fallback expressions."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Attribute
from nornweave.disagree.facts.code.options import default_behind_name
from nornweave.disagree.facts.code.reading import Reading
from nornweave.disagree.facts.code.sites import ValueSite
from nornweave.disagree.facts.expressions import read_value
from nornweave.disagree.facts.values import Value

_NAMED = lazy_pattern(r"^(?:\w+\s?[=:](?![=:])|\*\*|\.\.\.)")
_PATH = lazy_pattern(r"[A-Za-z_$@][\w$]*(?:(?:\.|\?\.|->|::)[A-Za-z_]\w*|\[['\"][\w.\-]{1,60}['\"]\])*")
_PLACEHOLDER = lazy_pattern(r"\"\\?\$\{(?P<name>[A-Za-z_][\w.-]{1,80}):(?P<value>[^{}\"\n]{1,80})\}\"")
# ``->integerNode('rows')->min(1)->defaultValue(32)``, ``Arg::new("rows").long("rows").default_value("32")``
_CHAIN = lazy_pattern(
    r"\(\s*(?P<quote>['\"])(?P<name>[A-Za-z][\w.-]{1,79}|--?[\w-]{1,79})(?P=quote)\s*\)"
    r"(?:\s*(?:->|\.)\s*(?!end\b)\w{1,40}\([^()]{0,200}\)){0,8}?\s*(?:->|\.)\s*"
    r"default(?:(?:Value|_value|_value_t)?\((?P<value>[^()]{1,100})\)|(?P<word>True|False|Null)\(\))"
)
# ``fn default_rows() -> u8 { 32 }``, ``def default_rows(): return 32``: nothing but a literal.
_GIVES = lazy_pattern(
    r"\b(?P<name>(?:get_?)?[dD]efault_?[A-Z_a-z]\w{1,60})\s*\(\s*\)[^{};=\n()]{0,60}?(?:\{|:\s*\n|=>?)\s*(?:return\s+)?"
    r"(?:String::from\(|\w+\.of\()?(?P<value>\"[^\"\n]{0,80}\"|'[^'\n]{0,80}'|-?\d[\w.]{0,20}|[Tt]rue|[Ff]alse)"
    r"(?:\.(?:to_string|to_owned|into)\(\)|\))?\s*;?\s*(?:\}|$)",
    re.MULTILINE,
)
_WITH_PROPERTIES = frozenset(("java", "kotlin"))
"""Languages in whose texts that is no other notation."""
_DURATION = lazy_pattern(r"(?:\d{1,9}(?:\.\d{1,3})?(?:ns|us|µs|ms|s|m|h|d))+$")
_NO_NAMES = frozenset("true false null none nil undefined if else and or not is in typeof new".split())  # noqa: SIM905


def read_call(site: ValueSite, reading: Reading) -> None:
    """Add the default of a call that declares an option or looks up a value. The call's first string is the name."""
    declared = default_behind_name(site.name)
    if declared is None:
        return
    positional = [argument for argument in site.arguments if not _NAMED.match(argument)]
    texts = [_string(argument, reading) for argument in positional[:4]]
    at = next((at for at, text in enumerate(texts[:2]) if text), -1)
    if at < 0:
        return
    behind, is_described = declared
    written = texts[at:] if not behind else texts[at : at + 1]  # ``-r``, ``--rows``
    flags = [flag for text in written for flag in re.split(r"[,|\s]+", text) if flag.startswith("-")]
    name = max(flags, key=len) if flags else texts[at]
    default = at + behind
    if " " in name or (
        is_described and (len(site.arguments) < default + 2 or _is_value(positional, default + 1, reading))
    ):
        return
    site.tag = name
    if behind and default < len(positional) and not positional[default].startswith("{"):
        attribute: Attribute = "value" if site.name.endswith("define") else "default"
        value = reading.constants.read(positional[default])
        if value is not None and value.kind == "string" and _DURATION.match(value.text):  # "120s"
            value = read_value(value.text) or value
        reading.add(site, value, attribute, "option", name=name)


def _is_value(arguments: Sequence[str], at: int, reading: Reading) -> bool:
    """Tell whether the argument at an index is a boolean, a number or an empty value, and not a description."""
    value = reading.constants.read(arguments[at]) if at < len(arguments) else None
    return value is not None and value.kind in {"boolean", "number", "none"}


def _string(text: str, reading: Reading) -> str:
    """Return the text of an argument that is a string, a Ruby symbol, or a constant that holds one."""
    value = reading.constants.read(text) if text[:1] != ":" else None
    return text[1:] if text[:1] == ":" else value.text if value is not None and value.kind == "string" else ""


def read_placeholders(reading: Reading) -> None:
    """Add the defaults in strings that name a property: ``@Value("${app.chunk-size:64}")``."""
    for match in _PLACEHOLDER.finditer(reading.text):
        if reading.language in _WITH_PROPERTIES and (value := read_value(match["value"])) is not None:
            known = Value("string", match["value"]) if value.kind == "symbol" else value
            site = ValueSite(
                "kwarg", match.start(), match.end(), match["name"], match.start("name"), match.span("value")
            )
            reading.add(site, known, "default", "option")


def read_chains(reading: Reading) -> None:
    """Add the defaults in a chain of calls whose first call gives the name."""
    for match in _CHAIN.finditer(reading.text) if "default" in reading.text else ():
        place = match.span("word" if match["word"] else "value")
        value = reading.constants.read((match["word"] or match["value"]).strip())
        site = ValueSite("kwarg", match.start("name"), match.end(), match["name"], match.start("name"), place)
        reading.add(site, value, "default", "option")


def read_givers(reading: Reading) -> None:
    """Add the defaults of functions that only return a default, as their name says: ``default_port``."""
    for match in _GIVES.finditer(reading.text) if "efault" in reading.text else ():
        name = match["name"].removeprefix("get").lstrip("_")
        site = ValueSite("kwarg", match.start("name"), match.end(), name, match.start("name"), match.span("value"))
        reading.add(site, reading.constants.read(match["value"]), "default", "definition")


def read_fallback(site: ValueSite, reading: Reading) -> None:
    """Add the fallback in an expression as a default, wherever the expression is: ``options.timeout || 30``."""
    text = reading.value_text(site)
    paths = [path for path in _PATH.findall(site.name) if path.lower() not in _NO_NAMES]
    if not paths or site.name.endswith(")") or (text[:1].isalpha() and text.lower() not in _NO_NAMES):
        return
    path = paths[-1]  # ``PORT`` of ``process.env.PORT``, ``a`` of ``config['a']``
    name = path[path.rfind("[") :] if path.endswith("]") else re.split(r"[.:>]+", path)[-1]
    reading.add(site, reading.constants.read(text), "default", "fallback", name=name.strip("[]'\"@#$"))
