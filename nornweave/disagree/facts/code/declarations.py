"""Extract facts from what code declares.

Definitions are parameters, fields, constants, assignments, and members of literals and calls, with keys that describe
an option: ``default=5``. Calls declare options, fallback expressions have values, functions return HTTP statuses.
Annotations of a field have defaults: struct tags of Go, attributes of Rust. Pieces of code that no grammar can parse,
such as parts of literals, are read as well.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from http import HTTPStatus

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Attribute, Form
from nornweave.disagree.facts.code.reading import Reading, function_of, is_maker, owner_of, says_default
from nornweave.disagree.facts.code.sites import KEYS, NAMED_ROLES, NAMING_KEYS, STORES, ValueSite, default_behind_name
from nornweave.disagree.facts.expressions import read_value
from nornweave.disagree.facts.names import is_other_of, read_name, words_of
from nornweave.disagree.facts.values import FALSE, TRUE, Value

_CONSTANT = lazy_pattern(
    r"\b(?:static\s+(?:\w+\s+)?final|final\s+static|const|constexpr|static\s+let|static\s+readonly)\b"
)
_UPPER = lazy_pattern(r"^[A-Z][A-Z0-9_]+$")
_UNNAMED = lazy_pattern(r"[{\[(]|__|[^(]*\(")
_MEMBER = lazy_pattern(r"^(?:self|this|cls|\$this)(?:\.|->|\?\.)|^@")
_EMPTY = lazy_pattern(
    r"\b(?P<asked>\w+)\)?(?:\s*(?:={2,3}|is)\s*(?:\"\"|''|0|None|null|nil|['\"]?undefined)"
    r"|\.(?:is_?[eE]mpty|empty|is_none|nil))(?!\w)"
    r"|(?:!|\bnot )\s*(?:[\w$]+(?:\.|->))*(?P<denied>\w+)\s*[){:\n]"
)
_CONDITION = 200
"""Characters between the word *if* and the first thing that is set under it."""
_FALLS_BACK = lazy_pattern(r"\|\||\?|\bor\b|\belse\b|[gG]et|fetch|[eE]nv|default|pop\(")
_ASKED = lazy_pattern(r"\(?(?P<cast>!!\s*)?(?:(?P<of>[\w$]+)(?:\?\.|\.|->|\[['\"]))*(?P<name>[\w$]+)(?:['\"]\])?"
                      r"(?(cast)|\s*(?:!==?\s*(?P<on>false)|===?\s*true))\)?$")  # fmt: skip
"""A switch that is asked for by its name: ``options.trace !== false``, ``opts.trace === true``, ``!!opts.trace``."""
_SOURCE = lazy_pattern(r"[\w$.>?-]+(?=\s*(?:\|\||\?\?))")
"""What a value is taken from, if it is there."""
_MEMBERS = frozenset({"pair", "kwarg"})
_CONFIGURES = re.compile(r"\.(?:config|conf)\.[cm]?[jt]s$")
_GROUPS = frozenset({"class", "assign", "pair"})

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

# Read by lines and not by the tree: a chunk may begin within the structure.
FIELDS = {
    "go": lazy_pattern(
        r"^[ \t]*+(?P<name>[A-Za-z]\w{0,79})(?:,[ \t]*+\w{1,80})*+[ \t]++[^\s`][^`\n]{0,80}`(?P<said>[^`\n]{1,800})`",
        re.M,
    ),
    "rust": lazy_pattern(
        r"^[ \t]*+(?P<said>(?:#\[(?:[^\]\[\"]{1,200}+|\"(?:[^\"\\]|\\.){0,400}+\"|\[[^\]\n]{0,200}+\]){0,40}+\]\s*+"
        r"(?://[^\n]*+\s*+)*+){1,8}+)(?:pub(?:\([^)\n]{1,40}\))?\s+)?(?P<name>[a-z_]\w{0,79})\s*:(?!:)", re.M
    ),
}  # fmt: skip
_FUNCTIONS = lazy_pattern(r"serde\([^)]{0,400}\)")
"""Names the function that makes the value."""
_SAID = lazy_pattern(
    r"(?P<key>\w+)\s*+[:=]\s*+(?:\"(?P<string>(?:[^\"\\]|\\.)*+)\"|(?P<code>[^\s,()\]\"][^,\]\n]*?)(?=\s*[,)\]]))"
)
_NAMING = frozenset({"long", "env"})

_NUMBERS = {re.sub(r"[^A-Z]", "", status.name): str(status.value) for status in HTTPStatus}
_STATUS = lazy_pattern(
    r"(?:\.(?:status|code|sendStatus|set_status|writeHead|WriteHeader|SetStatusCode|status_code|statusCode)\s?[(=]\s?"
    r"|\b(?:abort|HTTPException|HttpResponse|HTTPError|StatusCode|redirect)\([^()\n]{0,60}?"
    r"|\b(?:status_code|statusCode|httpStatus|status|HTTP_STATUS)\s?[:=]\s?)\b(?P<number>[1-5]\d\d)\b(?!\.\d)"
    r"|(?:http\.Status|HttpStatus\.|HttpStatusCode\.|HTTPStatus\.|StatusCode::|StatusCodes\.|Response\.Status\."
    r"|HttpServletResponse\.SC_)(?P<name>[A-Za-z_]{2,40})|\bHTTP_(?P<coded>[1-5]\d\d)_[A-Z_]{2,40}"
)
_COMPARED = lazy_pattern(r"(?:[=!]=|\bcase)\s{0,2}$")

MAX_CHARACTERS = 4_000
"""Of a part."""
_LINE = lazy_pattern(
    r"[ \t]*(?:(?:private|public|protected|internal|static|final|const|readonly|pub|let|var|val|export)\s){0,4}"
    r"(?P<name>['\":]?[A-Za-z_#@$][\w.$-]{0,80}['\"]?)\??"
    r"(?:\s{0,3}:\s{0,2}[A-Za-z_][\w.\[\]<>| ?,]{0,60}?(?=\s?=))?"
    r"\s{0,40}(?:=>|:=|:(?!:)|=(?![=>]))\s{0,40}(?P<value>\S[^\n]{0,400})"
)
_COMMENT = lazy_pattern(r"\s(?:#|//|--|/\*).*$")


def read_statement(site: ValueSite, reading: Reading) -> None:
    """Add the default or value that a place states for its name. Most assignments in functions state neither."""
    text = reading.value_text(site).strip()
    if not text or (site.role == "assign" and _UNNAMED.match(site.name)):
        return
    function = function_of(site)
    is_default = _is_default(site, function, reading)
    asked = _asked(site, text)
    if site.role == "assign" and function is not None and not (asked or is_default or _FALLS_BACK.search(text)):
        return  # most: cheap to tell
    value = asked or reading.constants.read(text.rstrip(", "))
    if value is None or (site.role in _MEMBERS and read_key(site, value, reading)):
        return
    if value.is_fallback and _is_of_another(site, text):
        return
    is_fallback = value.is_fallback and (site.role != "assign" or _is_like(site, text))
    attribute: Attribute | None = "default"
    if not (is_default or is_fallback):
        attribute = None if value.is_fallback else _stated(site, function, reading)
    if attribute is not None:
        is_set = site.role == "assign" and function is not None and not _MEMBER.match(site.name)
        form: Form = "example" if _is_in_use(site, attribute, reading) else "definition"
        reading.add(site, value, attribute, "fallback" if is_fallback or is_set else form)


def _stated(site: ValueSite, function: ValueSite | None, reading: Reading) -> Attribute | None:
    """Return what a place states if nothing marks it as a default: ``value``, ``default``, or ``None`` for neither."""
    if site.role in _MEMBERS:
        return None if (function is not None and not is_maker(function.name)) or _is_loose(site) else "value"
    if site.role == "assign" and (function is not None or (site.parent and site.parent.role in {"if", "call"})):
        return None
    if site.role == "const" or _UPPER.match(site.bare_name) or _CONSTANT.search(reading.before(site)):
        return "value"
    base = reading.base
    is_in_group = (base.is_part and base.is_class) or any(place.role in _GROUPS for place in site.ancestors())
    if site.role != "assign" or is_in_group or _MEMBER.match(site.name):
        return "default"
    return None if base.is_body else "value"


def _is_default(site: ValueSite, function: ValueSite | None, reading: Reading) -> bool:
    """Tell whether a place or the code around it marks the place's value as a default."""
    if site.role != "assign":
        return site.role == "param" or (site.role in _MEMBERS and default_by_place(site, reading))
    if function is None:
        is_argument = reading.value_text(site).endswith(",") or reading.text[site.end : site.end + 1] == ","
        if reading.base.is_part and is_argument and reading.language == "python" and site.name not in KEYS:
            return True  # a signature that was cut
        return default_by_place(site, reading)
    condition = reading.text[site.parent.start : site.start] if site.parent and site.parent.role == "if" else ""
    is_member = bool(_MEMBER.match(site.name)) or _is_own_field(site, function, reading)
    is_made = not condition and is_member and (is_maker(function.name) or function.name[:1].isupper())
    return is_made or (says_default(function.name) and ("." in site.name or is_member)) or _is_unset(site, condition)


def _is_own_field(site: ValueSite, function: ValueSite, reading: Reading) -> bool:
    """Tell whether a constructor sets a field of its class without ``this.``."""
    owner = function.parent
    if owner is None or owner.role != "class" or owner.bare_name != function.bare_name:
        return False
    return any(other.role == "field" and other.name == site.name and other.parent is owner for other in reading.sites)


def _is_unset(site: ValueSite, condition: str) -> bool:
    """Tell whether an assignment directly follows a check that its own target is empty."""
    last = re.split(r"\W+", site.bare_name)[-1]
    if not last or len(condition) > _CONDITION or "else" in condition:
        return False
    return any(last in match.groups() for match in _EMPTY.finditer(condition))


def _is_like(site: ValueSite, text: str) -> bool:
    """Tell whether the expression before a fallback shares a word with the name."""
    return not text.startswith("new ") and not set(words_of(site.bare_name)).isdisjoint(words_of(text))


def _asked(site: ValueSite, text: str) -> Value | None:
    """Return the value that a switch has until somebody sets it; ``None`` if the text tests no switch of this name."""
    found = _ASKED.match(text.rstrip(", ")) if text[-1] in "e)" or text[:2] == "!!" else None
    is_same = found and words_of(found["name"]) == words_of(re.split(r"\W+", site.bare_name)[-1])
    if not found or not is_same or not (found["of"] is None or STORES.search(found["of"])):
        return None
    return replace(TRUE if found["on"] else FALSE, is_fallback=True)


def _is_of_another(site: ValueSite, text: str) -> bool:
    """Tell whether the expression before a fallback names another option, to which the default then belongs."""
    name, source = read_name(site.bare_name), _SOURCE.match(text)
    return name is not None and source is not None and is_other_of(source[0], name.name)


def _is_in_use(site: ValueSite, attribute: Attribute, reading: Reading) -> bool:
    """Tell whether a member of an object literal is set for one use and is nobody's default.

    This is so if the literal has no name, as in ``run({retries: 3})`` and ``export default {…}``, or if it is in the
    configuration file of a program, such as ``bundler.config.mjs``.
    """
    if attribute != "value" or site.role != "pair":
        return False
    is_nameless = all(place.role in {"pair", "group"} or place.name == "module.exports" for place in site.ancestors())
    return bool(_CONFIGURES.search(reading.passage.path)) or (is_nameless and not reading.base.is_part)


def _is_loose(site: ValueSite) -> bool:
    """Tell whether a place is a keyword argument without an assignment, a field or the like around it."""
    named = {"assign", "field", "const", "pair", "kwarg", "param"}
    return site.role == "kwarg" and not any(place.role in named for place in site.ancestors())


def default_by_place(site: ValueSite, reading: Reading) -> bool:
    """Tell whether the code around a place shows that its values are defaults."""
    for place in site.ancestors():
        is_made = place.role == "function" and is_maker(place.name)
        if (place.role in NAMED_ROLES and says_default(place.name)) or is_made:
            return True
        if place.role == "class" or (place.role == "call" and site.role == "pair"):  # ``post(url, {retry: true})``
            break
    return reading.base.is_default


def name_groups(reading: Reading) -> None:
    """Store in the ``tag`` of each group and call the name that a member gives it: ``{key: 'sameSite', …}``."""
    for site in reading.sites:
        parent = site.parent
        if parent is None or parent.role not in {"group", "call"} or site.role not in {"pair", "kwarg"}:
            continue
        if site.bare_name.lower() in NAMING_KEYS:
            text = reading.value_text(site)
            value = reading.constants.read(text) if len(text) < 100 else None
            if value is not None and value.kind == "string":
                parent.tag = parent.tag or value.text


def read_key(site: ValueSite, value: Value | None, reading: Reading) -> bool:
    """Add the fact of a key such as ``default=5``. Return whether the key describes an option."""
    key = site.bare_name.strip("#$").lower()
    attribute = KEYS.get(key)
    if key not in KEYS or value is None:
        return False
    subject, place = _subject(site)
    if not subject or place is None:
        return False
    if attribute is not None:
        reading.add(site, value, attribute, "option", name=subject, owner=owner_of(place, reading.base))
    return True


def _subject(site: ValueSite) -> tuple[str, ValueSite | None]:
    """Return the name of the option that a key describes, and its place; an empty name and ``None`` without an option.

    The name is stated in the group of the key (``key: 'sameSite'``), or else the group is the value of the name.
    """
    for place in site.ancestors():
        if place.tag:
            return place.tag, place
        if place.role in {"assign", "pair", "kwarg", "field", "param", "const"}:
            return place.bare_name, place
        if place.role in {"class", "function"}:
            break
    return "", None


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


def read_tags(reading: Reading) -> None:
    """Add the defaults in annotations: ``Soak int `default:"53"``` and ``#[arg(default_value = "90")]`` above a field.

    A default belongs to the field, and to the flag and the variable that the annotation names.
    """
    fields = FIELDS.get(reading.language)
    if fields is None or "efault" not in reading.text:
        return
    around = [site for site in reading.sites if site.role == "class"]
    for found in fields.finditer(reading.text):
        said = [*_SAID.finditer(_FUNCTIONS.sub("", found["said"]))]
        value = next(filter(None, (_value(one) for one in said if KEYS.get(one["key"].lower()) == "default")), None)
        first = min(found.start("name"), found.start("said"))
        parent = next((site for site in reversed(around) if site.start <= first < site.end), None)
        for name in dict.fromkeys(
            (found["name"], *(one["string"] for one in said if one["key"] in _NAMING and one["string"]))
        ):
            site = ValueSite("field", first, found.end(), name, first, parent=parent)
            reading.add(site, value, "default", "option")


def _value(said: re.Match[str]) -> Value | None:
    if said["code"]:
        return read_value(said["code"])
    bare = read_value(said["string"]) if said["string"] else None
    return bare if bare and bare.kind in {"number", "boolean"} else read_value(f'"{said["string"]}"')


def read_statuses(reading: Reading) -> None:
    """Add the HTTP statuses that functions return. Statuses in comparisons do not count."""
    text, starts = reading.text, [site.start for site in reading.sites]
    for found in (
        _STATUS.finditer(text) if "tatus" in text or "HTTP" in text or "code" in text or "abort" in text else ()
    ):
        name = re.sub(r"[^A-Z]", "", (found["name"] or "").upper())
        number = found["number"] or found["coded"] or _NUMBERS.get(name)
        if number is None or (
            not found["number"] and _COMPARED.search(text[max(0, found.start() - 8) : found.start()])
        ):
            continue
        at = bisect_right(starts, found.start()) - 1
        site: ValueSite | None = reading.sites[at] if at >= 0 else None
        while site is not None and site.end <= found.start():
            site = site.parent
        if site is None or site.role not in {"comment", "doc"}:
            _add_status(ValueSite("call", found.start(), found.end(), parent=site), number, reading)


def _add_status(site: ValueSite, number: str, reading: Reading) -> None:
    function = function_of(site)
    name = function.name if function is not None else reading.base.function
    if function is not None and is_maker(name):  # what making one answers
        name = next((place.name for place in function.ancestors() if place.role == "class"), "")
    if name:
        owner = owner_of(function, reading.base) if function is not None else ""
        reading.add(site, Value("status", number), "status", name=name, owner=owner)


def read_fragments(reading: Reading) -> None:
    """Add the values in lines ``name: value`` of a short passage that cannot be parsed. A long passage is not read."""
    if len(reading.text) > MAX_CHARACTERS:
        return
    stated = {reading.passage.line_of(fact.span.start - reading.passage.start) for fact in reading.facts.values()}
    opened: list[tuple[int, str]] = []
    offset = 0
    for number, line in enumerate(reading.text.splitlines(keepends=True)):
        indent = len(line) - len(line.lstrip())
        while opened and opened[-1][0] >= indent:
            opened.pop()
        found = _LINE.match(line[:600].rstrip())
        text = _COMMENT.sub("", found["value"]).rstrip(" \t,;") if found else ""
        if found and text.endswith(("{", "(")):
            opened.append((indent, found["name"].strip("'\":")))
        elif found and number not in stated:
            _add_option(offset, found, text, [name for _, name in opened], reading)
        offset += len(line)


def _add_option(start: int, found: re.Match[str], text: str, opened: list[str], reading: Reading) -> None:
    text = text.removesuffix("}").rstrip() if text.count("}") > text.count("{") else text
    value = reading.constants.read(text)
    name = found["name"].strip("'\":")
    if value is None or name.lower() in KEYS or (name.lower() in NAMING_KEYS and value.kind == "string"):
        return
    owner = " ".join((reading.base.owner, *opened))
    is_default = reading.base.is_default or says_default(owner) or reading.base.is_class or name[:1] == "#"
    if is_default or opened or "," in found[0] or found[0].endswith(";"):  # others are variables of their own
        at, behind = start + found.start("name"), start + found.start("value")
        site = ValueSite("pair", at, start + found.end("name") + 1, name, at, (behind, behind + len(text)))
        attribute: Attribute = "default" if is_default or value.is_fallback else "value"
        reading.add(site, value, attribute, owner=owner)
