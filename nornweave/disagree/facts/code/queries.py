"""Table of tree-sitter queries for statements of values; ``sites`` reads it.

Each pattern captures one site as ``@<role>`` and its parts as ``@name``, ``@value`` and ``@key``.
The roles are those of ``sites.ValueSite``. Patterns that several grammars share are written once.
"""

from __future__ import annotations

import re

from tree_sitter import Language

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
    ("group", "dictionary object hash initializer_expression array_creation_expression"),
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


def query_of(grammar: str, language: Language) -> str:
    """Return the query of a grammar: its own patterns, and the shared patterns whose words it knows."""
    return "\n".join((_OWN[grammar], *(one for one in _SHARED if _is_known(one, language))))


def _is_known(pattern: str, language: Language) -> bool:
    node, *fields = re.findall(r"(?<=\()[A-Za-z]\w+|\w+(?=:)", pattern)
    is_node = node == "ERROR" or language.id_for_node_kind(node, True) is not None
    return is_node and all(language.field_id_for_name(field) is not None for field in fields)
