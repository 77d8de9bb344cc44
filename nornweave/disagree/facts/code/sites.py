"""Find the places in a source file that may state a fact, with tree-sitter queries.

Each pattern of the table of queries captures one site as ``@<role>``. Other tables have the calls that declare options
in many libraries, and the keys that describe an option.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast, get_args

from tree_sitter import Language, Node, Query, QueryCursor, Tree

from nornweave.core.text.patterns import lazy_pattern
from nornweave.core.types import Attribute
from nornweave.read.chunking.languages import grammar_of
from nornweave.read.chunking.parsing import mask, parse

MAX_SITES = 60_000
WINDOW_BYTES = 1 << 19
"""The deadline is looked at between windows; a window takes about 0.1 s."""
MAX_NAME = 160
MAX_ARGUMENTS = 12
MAX_ARGUMENT = 400
MAX_MATCHES = 256
"""Of unfinished matches inside tree-sitter; more make long lists quadratic, and no real file needs them."""

Role: TypeAlias = Literal[
    "class", "function", "param", "field", "const", "assign", "pair", "kwarg", "call", "group", "if", "fallback",
    "comment", "doc", "error",
]  # fmt: skip
"""What a place is: ``group`` is a literal with members, ``fallback`` an ``a or b``."""

_ROLES = frozenset(get_args(Role))
NAMED_ROLES = frozenset({"class", "function", "param", "field", "const", "assign", "pair", "kwarg"})
_KEYWORD_SIGNS = {"python": "=", "ruby": ":=", "php": ":", "csharp": ":", "swift": ":", "kotlin": "="}
_SELF = lazy_pattern(r"^(?:self|this|cls|\$this)(?:\.|->|\?\.)|^@@?")

# Role, the field with the name, the field with the value (``?``: it may be missing), nodes that have these fields.
_BY_FIELDS = (
    ("class", "name", "", """
        class_declaration class_definition abstract_class_declaration interface_declaration trait_declaration
        struct_declaration record_declaration enum_declaration annotation_type_declaration type_alias_declaration
        protocol_declaration object_declaration struct_item enum_item trait_item mod_item class
    """),
    ("class", "type", "", "impl_item"),
    ("function", "name", "", """
        function_declaration generator_function_declaration function_item method_declaration method_definition
        method_signature constructor_declaration local_function_statement method singleton_method
    """),
    ("group", "name", "", "struct_expression"),
    ("group", "type", "", "composite_literal"),
    ("param", "name", "value", "keyword_parameter default_parameter typed_default_parameter"),
    ("param", "name", "default_value?", "simple_parameter property_promotion_parameter"),
    ("param", "pattern", "value?", "required_parameter"),
    ("param", "left", "right", "object_assignment_pattern"),
    ("param", "name", "", "formal_parameter"),
    ("field", "name", "", "property_signature"),
    ("field", "name", "value", "annotation_type_element_declaration"),
    ("field", "name", "value?", "public_field_definition"),
    ("field", "property", "value", "field_definition"),
    ("const", "name", "value", """
        enum_assignment enum_variant enumerator preproc_def enum_member_declaration enum_case const_item static_item
    """),
    ("const", "name", "raw_value", "enum_entry"),
    ("kwarg", "name", "value", "keyword_argument"),
    ("kwarg", "key", "value", "element_value_pair"),
    ("pair", "key", "value", "pair keyed_element"),
    ("assign", "left", "right", "assignment assignment_expression"),
    ("assign", "pattern", "value", "let_declaration"),
    ("assign", "target", "result", "assignment"),
    ("call", "function", "arguments", "call call_expression function_call_expression invocation_expression"),
    ("call", "name", "arguments", "method_invocation member_call_expression"),
    ("call", "method", "arguments", "call"),
    ("call", "constructor", "arguments", "new_expression"),
    ("fallback", "value", "if_nil", "nil_coalescing_expression"),
)  # fmt: skip
# Nodes without a name.
_BARE = (
    ("function", "arrow_function init_declaration"),
    ("group", "dictionary object hash initializer_expression array_creation_expression initializer_list literal_value"),
    ("if", "if_statement if_expression if if_modifier"),
    ("comment", "comment line_comment block_comment multiline_comment"),
)
_SHARED = (
    *(
        f"({node} {name}: (_) @name{f' {value}: (_){optional} @value' if value else ''}) @{role}"
        for role, name, written, nodes in _BY_FIELDS
        for value, optional in [(written.rstrip("?"), "?" * written.endswith("?"))]
        for node in nodes.split()
    ),
    *(f"({node}) @{role}" for role, nodes in _BARE for node in nodes.split()),
    "(ERROR) @error",
)

_ECMA = """
(variable_declarator name: (_) @name value: (_) @value) @assign
(function_expression name: (_)? @name) @function
(pair_pattern key: (_) @name value: (assignment_pattern right: (_) @value)) @param
(binary_expression left: (_) @name operator: ["||" "??"] right: (_) @value) @fallback
(labeled_statement label: (_) @name body: (expression_statement (_) @value)) @pair
"""
_TYPESCRIPT = f"""{_ECMA}
(optional_parameter pattern: (_) @name value: (_)? @value) @param
"""
_C = """
(struct_specifier name: (_) @name body: (_)) @class
(union_specifier name: (_) @name body: (_)) @class
(enum_specifier name: (_)? @name body: (_)) @class
(function_definition declarator: (function_declarator declarator: (_) @name)) @function
(function_definition declarator: (pointer_declarator declarator: (function_declarator declarator: (_) @name))) @function
(field_declaration type: (_) declarator: (field_identifier) @name) @field
(declaration type: (_) declarator: (init_declarator declarator: (_) @name value: (_) @value)) @assign
(initializer_pair designator: (field_designator (_) @name) value: (_) @value) @pair
"""

_OWN = {
    "python": """
(function_definition name: (_) @name) @function
(typed_parameter (identifier) @name type: (_)) @param
(assignment left: (identifier) @name type: (_) !right) @field
(boolean_operator left: (_) @name operator: "or" right: (_) @value) @fallback
(module (expression_statement (string) @doc))
(block (expression_statement (string) @doc))
""",
    "javascript": f"""{_ECMA}
(formal_parameters (assignment_pattern left: (identifier) @name right: (_) @value) @param)
""",
    "typescript": _TYPESCRIPT,
    "tsx": _TYPESCRIPT,
    "go": """
(type_spec name: (_) @name type: [(struct_type) (interface_type)]) @class
(method_declaration receiver: (parameter_list (parameter_declaration type: (_) @owner)) name: (_) @name) @function
(parameter_list (parameter_declaration name: (_) @name type: (_)) @param)
(const_spec name: (_) @name value: (expression_list . (_) @value .)) @const
(var_spec name: (_) @name value: (expression_list . (_) @value .)) @assign
(short_var_declaration left: (expression_list . (_) @name .) right: (expression_list . (_) @value .)) @assign
(assignment_statement left: (expression_list . (_) @name .) right: (expression_list . (_) @value .)) @assign
(field_declaration name: (_) @name type: (_)) @field
(labeled_statement label: (_) @name (expression_statement (_) @value)) @pair
""",
    "rust": """
(parameter pattern: (identifier) @name type: (_)) @param
(field_declaration name: (_) @name type: (_)) @field
(field_initializer field: (_) @name value: (_) @value) @pair
""",
    "java": """
(field_declaration type: (_) declarator: (variable_declarator name: (_) @name value: (_)? @value)) @field
(constant_declaration declarator: (variable_declarator name: (_) @name value: (_) @value)) @const
(local_variable_declaration type: (_) declarator: (variable_declarator name: (_) @name value: (_) @value)) @assign
""",
    "c": _C,
    "cpp": f"""{_C}
(class_specifier name: (_) @name body: (_)) @class
(field_declaration type: (_) declarator: (field_identifier) @name default_value: (_) @value) @field
(optional_parameter_declaration type: (_) declarator: (identifier) @name default_value: (_) @value) @param
(optional_parameter_declaration declarator: (reference_declarator (_) @name) default_value: (_) @value) @param
(field_declaration declarator: (function_declarator declarator: (_) @name)) @function
(declaration declarator: (function_declarator declarator: (_) @name)) @function
""",
    "ruby": """
(module name: (_) @name) @class
((call method: (identifier) @_of arguments: (argument_list (simple_symbol) @name)) @field
 (#match? @_of "^(attr_accessor|attr_reader|attr_writer)$"))
(optional_parameter name: (_) @name value: (_) @value) @param
(binary left: (_) @name operator: ["||" "or"] right: (_) @value) @fallback
""",
    "php": """
(function_definition name: (_) @name) @function
(const_element (name) @name (_) @value) @const
(property_declaration (property_element name: (_) @name default_value: (_)? @value)) @field
(array_element_initializer . (_) @name . (_) @value .) @pair
(argument name: (_) @name (_) @value .) @kwarg
(binary_expression left: (_) @name operator: ["??" "||"] right: (_) @value) @fallback
""",
    "csharp": """
(parameter type: (_) name: (_) @name . (_)? @value) @param
(field_declaration (variable_declaration type: (_) (variable_declarator name: (_) @name (_)? @value))) @field
(local_declaration_statement (variable_declaration (variable_declarator name: (_) @name (_) @value))) @assign
(property_declaration type: (_) name: (_) @name value: (_)? @value) @field
(argument name: (_) @name (_) @value .) @kwarg
(binary_expression left: (_) @name operator: "??" right: (_) @value) @fallback
""",
    "swift": """
(function_declaration (parameter name: (simple_identifier) @name name: (_)) @param . "=" . (_) @value)
(init_declaration (parameter name: (simple_identifier) @name name: (_)) @param . "=" . (_) @value)
(property_declaration name: (pattern (simple_identifier) @name) value: (_) @value) @assign
(property_declaration name: (pattern (simple_identifier) @name) (type_annotation (_)) !value) @field
(dictionary_literal key: (_) @name @pair . value: (_) @value)
(value_argument name: (_) @name value: (_) @value) @kwarg
(call_expression (_) @name (call_suffix (value_arguments) @value)) @call
""",
    "kotlin": """
(class_parameter (identifier) @name . (_)) @param
(class_parameter (identifier) @name (_) "=" . (_) @value) @param
(function_value_parameters (parameter (identifier) @name . (_)) @param . "=" . (_) @value)
(property_declaration (variable_declaration (identifier) @name) "=" . (_) @value) @assign
(infix_expression (string_literal) @name (identifier) @key (_) @value (#eq? @key "to")) @pair
(value_argument (identifier) @name "=" . (_) @value) @kwarg
(call_expression (_) @name (value_arguments) @value) @call
(binary_expression left: (_) @name operator: "?:" right: (_) @value) @fallback
""",
}


LANGUAGES = frozenset(_OWN)
"""Grammars whose statements are read."""

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


@dataclass(slots=True, eq=False)
class ValueSite:
    """A place in the text. All offsets count characters of the text.

    Attributes:
        name: its name as it is written, without quotes.
        value: the start and end of its value; ``None`` if it has no value.
        tag: the name that a member gives to its call or group (``key: 'sameSite'``); empty without such a member.
        arguments: the arguments of a call, as they are written.
        parent: the smallest place that contains this place; ``None`` if no place does.
    """

    role: Role
    start: int
    end: int
    name: str = ""
    name_start: int = -1
    value: tuple[int, int] | None = None
    tag: str = ""
    arguments: tuple[str, ...] = ()
    parent: ValueSite | None = None

    @property
    def bare_name(self) -> str:
        """The name without ``self.``, ``this.`` or ``@``."""
        return _SELF.sub("", self.name)

    def ancestors(self) -> Iterator[ValueSite]:
        """Yield the places that contain this place, innermost first."""
        place = self.parent
        while place is not None:
            yield place
            place = place.parent


_queries: dict[str, Query] = {}


def _query(grammar: str, tree: Tree) -> Query:
    query = _queries.get(grammar)
    if query is None:
        query = _queries[grammar] = Query(tree.language, query_of(grammar, tree.language))
    return query


def find_sites(text: str, language: str, path: str, deadline: float) -> tuple[list[ValueSite], bool]:
    """Find the places that may state facts.

    Args:
        language: a key of ``chunking.languages.GRAMMARS``.
        deadline: the CPU time of this thread (``time.thread_time``) after which the search stops.

    Returns:
        The places in order of their start, outer places first, and whether the grammar could not parse some part.
    """
    grammar = grammar_of(language, path, text)
    if grammar is None or grammar.name not in LANGUAGES:
        return [], False
    # A part of a PHP file has no opening tag, without which all of it is text.
    lead = "<?php\n" if grammar.name == "php" and "<?" not in text else ""
    tree = parse(grammar, mask(lead + text))
    if tree is None:
        return [], True
    reader = _Reader(text, len(lead), _query(grammar.name, tree), _KEYWORD_SIGNS.get(grammar.name, ""))
    reader.read(tree, deadline)
    return _nested(reader.sites.values()), reader.has_errors


class _Reader:
    """Turns the matches of one tree into places. A place that several patterns match is one place."""

    def __init__(self, text: str, shift: int, query: Query, keyword: str) -> None:
        self.text = text
        self.keyword = keyword
        self.shift = shift
        self.query = query
        self.sites: dict[tuple[str, int], ValueSite] = {}
        self.has_errors = False
        self.roles: dict[int, Role] = {}

    def read(self, tree: Tree, deadline: float) -> None:
        """Read all windows until the deadline or the limit."""
        length = len(self.text) + self.shift
        for start in range(0, max(length, 1), WINDOW_BYTES):
            cursor = QueryCursor(self.query, match_limit=MAX_MATCHES)
            if length > WINDOW_BYTES:
                cursor.set_byte_range(start, min(start + WINDOW_BYTES, length))
            # No progress_callback: with one, tree_sitter 0.26.1 crashes now and then.
            for pattern, captures in cursor.matches(tree.root_node):
                self._add(pattern, captures)
            if len(self.sites) > MAX_SITES or time.thread_time() > deadline:
                return

    def _role(self, pattern: int, captures: dict[str, list[Node]]) -> Role:
        role = self.roles.get(pattern)
        if role is None:
            role = self.roles[pattern] = cast(Role, next(name for name in captures if name in _ROLES))
        return role

    def _add(self, pattern: int, captures: dict[str, list[Node]]) -> None:
        role = self._role(pattern, captures)
        node = captures[role][0]
        start, end = node.start_byte - self.shift, node.end_byte - self.shift
        if role == "error":
            self.has_errors = True
            return
        site = ValueSite(role, max(start, 0), end)
        if "value" in captures:
            value = captures["value"][0]
            site.value = (value.start_byte - self.shift, value.end_byte - self.shift)
            site.end = max(end, site.value[1])
        if role == "call":
            if not self._may_declare(captures):
                return
            given = [one for one in captures["value"][0].named_children[:MAX_ARGUMENTS] if "comment" not in one.type]
            site.arguments = tuple(self._text(one)[:MAX_ARGUMENT].strip() for one in given)
        if "name" in captures and not self._name(site, captures["name"][0]):
            return
        if "owner" in captures:
            site.name = f"{self._text(captures['owner'][0]).strip('*& ')}.{site.name}"
        self._keep(site)

    def _may_declare(self, captures: dict[str, list[Node]]) -> bool:
        """Tell quickly whether a call may declare something."""
        node, end = captures["value"][0], captures["name"][0].end_byte - self.shift
        start = node.start_byte - self.shift
        text = self.text[start : min(node.end_byte - self.shift, start + 1000)]
        if "default" in text or any(sign in text for sign in self.keyword):
            return True
        begin = max(captures["call"][0].start_byte - self.shift, end - MAX_NAME, 0)
        return default_behind_name(self.text[begin:end]) is not None

    def _text(self, node: Node) -> str:
        return self.text[node.start_byte - self.shift : node.end_byte - self.shift]

    def _name(self, site: ValueSite, node: Node) -> bool:
        """Set the name of a place. Return ``False`` if the name is too long, so that the place is left out."""
        start, end = node.start_byte - self.shift, node.end_byte - self.shift
        site.name_start = start
        if site.role == "call":  # of some grammars the name has what the method is called on, of others it has not
            site.name_start = max(start, self.text.rfind(".", start, end) + 1)
            start = site.start
        if end - start > MAX_NAME:
            if site.role not in {"call", "fallback"}:
                return False
            start = end - MAX_NAME if site.role == "call" else start
            end = min(end, start + MAX_NAME)
        site.name = self.text[start:end].strip("'\"`: \n") if site.role != "call" else self.text[start:end]
        return True

    def _keep(self, site: ValueSite) -> None:
        key = (site.role, site.name_start if site.name_start >= 0 else site.start)
        known = self.sites.get(key)
        if known is None:
            self.sites[key] = site
            return
        known.value = known.value or site.value
        known.end = max(known.end, site.end)


_OUTERMOST = {"class": 0, "function": 0, "assign": 1, "field": 1, "const": 1, "param": 1, "pair": 1, "kwarg": 1}


def _nested(sites: Iterable[ValueSite]) -> list[ValueSite]:
    """Return places in order of their start, and set the ``parent`` of each."""
    ordered = sorted(sites, key=lambda site: (site.start, -site.end, _OUTERMOST.get(site.role, 2)))
    around: list[ValueSite] = []
    for site in ordered:
        while around and around[-1].end <= site.start:
            around.pop()
        if around:
            site.parent = around[-1]
        if site.role not in {"comment", "doc"}:
            around.append(site)
    return ordered


def query_of(grammar: str, language: Language) -> str:
    """Return the query of a grammar: its own patterns, and the shared patterns whose words it knows."""
    return "\n".join((_OWN[grammar], *(one for one in _SHARED if _is_known(one, language))))


def _is_known(pattern: str, language: Language) -> bool:
    node, *fields = re.findall(r"(?<=\()[A-Za-z]\w+|\w+(?=:)", pattern)
    is_node = node == "ERROR" or language.id_for_node_kind(node, True) is not None
    return is_node and all(language.field_id_for_name(field) is not None for field in fields)


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
