"""Table of tree-sitter queries for statements of values in each grammar; ``sites`` reads it.

Each pattern captures one site as ``@<role>`` and its parts as ``@name``, ``@value``, ``@tag`` and ``@key``.
The roles are those of ``sites.Site``.
"""

from __future__ import annotations

_PYTHON = """
(class_definition name: (_) @name) @class
(function_definition name: (_) @name) @function
(default_parameter name: (identifier) @name value: (_) @value) @param
(typed_default_parameter name: (identifier) @name type: (_) value: (_) @value) @param
(typed_parameter (identifier) @name type: (_)) @param
(assignment left: (_) @name right: (_) @value) @assign
(assignment left: (identifier) @name type: (_) !right) @field
(pair key: (_) @name value: (_) @value) @pair
(keyword_argument name: (_) @name value: (_) @value) @kwarg
(call function: (_) @name arguments: (argument_list) @value) @call
(dictionary) @group
(dictionary (dictionary_splat) @tag .) @group
(if_statement) @if
(boolean_operator left: (_) @name operator: "or" right: (_) @value) @fallback
(decorator) @mark
(comment) @comment
(module (expression_statement (string) @doc))
(block (expression_statement (string) @doc))
(ERROR) @error
"""

_ECMA = """
(class_declaration name: (_) @name) @class
(class name: (_) @name) @class
(function_declaration name: (_) @name) @function
(generator_function_declaration name: (_) @name) @function
(function_expression name: (_)? @name) @function
(method_definition name: (_) @name) @function
(arrow_function) @function
(object_assignment_pattern left: (_) @name right: (_) @value) @param
(variable_declarator name: (_) @name value: (_) @value) @assign
(assignment_expression left: (_) @name right: (_) @value) @assign
(augmented_assignment_expression left: (_) @name operator: ["||=" "??="] right: (_) @value) @assign
(pair key: (_) @name value: (_) @value) @pair
(pair_pattern key: (_) @name value: (assignment_pattern right: (_) @value)) @param
(call_expression function: (_) @name arguments: (arguments) @value) @call
(new_expression constructor: (_) @name arguments: (arguments) @value) @call
(object) @group
(object (spread_element) @tag .) @group
(if_statement) @if
(binary_expression left: (_) @name operator: ["||" "??"] right: (_) @value) @fallback
(decorator) @mark
(labeled_statement label: (_) @name body: (expression_statement (_) @value)) @pair
(comment) @comment
(ERROR) @error
"""
_JAVASCRIPT = (
    _ECMA
    + """
(field_definition property: (_) @name value: (_) @value) @field
(formal_parameters (assignment_pattern left: (identifier) @name right: (_) @value) @param)
"""
)
_TYPESCRIPT = (
    _ECMA
    + """
(interface_declaration name: (_) @name) @class
(abstract_class_declaration name: (_) @name) @class
(type_alias_declaration name: (_) @name) @class
(enum_declaration name: (_) @name) @class
(enum_assignment name: (_) @name value: (_) @value) @const
(property_signature name: (_) @name type: (type_annotation (_))) @field
(method_signature name: (_) @name) @function
(public_field_definition name: (_) @name value: (_)? @value) @field
(required_parameter pattern: (_) @name value: (_)? @value) @param
(optional_parameter pattern: (_) @name value: (_)? @value) @param
"""
)

_GO = """
(type_spec name: (_) @name type: [(struct_type) (interface_type)]) @class
(function_declaration name: (_) @name) @function
(method_declaration receiver: (parameter_list (parameter_declaration type: (_) @owner)) name: (_) @name) @function
(parameter_list (parameter_declaration name: (_) @name type: (_)) @param)
(const_spec name: (_) @name value: (expression_list . (_) @value .)) @const
(var_spec name: (_) @name value: (expression_list . (_) @value .)) @assign
(short_var_declaration left: (expression_list . (_) @name .) right: (expression_list . (_) @value .)) @assign
(assignment_statement left: (expression_list . (_) @name .) right: (expression_list . (_) @value .)) @assign
(field_declaration name: (_) @name type: (_)) @field
(keyed_element key: (_) @name value: (_) @value) @pair
(composite_literal type: (_) @name) @group
(call_expression function: (_) @name arguments: (argument_list) @value) @call
(if_statement) @if
(labeled_statement label: (_) @name (expression_statement (_) @value)) @pair
(comment) @comment
(ERROR) @error
"""

_RUST = """
(struct_item name: (_) @name) @class
(enum_item name: (_) @name) @class
(trait_item name: (_) @name) @class
(impl_item type: (_) @name) @class
(mod_item name: (_) @name) @class
(function_item name: (_) @name) @function
(parameter pattern: (identifier) @name type: (_)) @param
(const_item name: (_) @name type: (_) value: (_) @value) @const
(static_item name: (_) @name type: (_) value: (_) @value) @const
(let_declaration pattern: (_) @name value: (_) @value) @assign
(assignment_expression left: (_) @name right: (_) @value) @assign
(field_declaration name: (_) @name type: (_)) @field
(field_initializer field: (_) @name value: (_) @value) @pair
(enum_variant name: (_) @name value: (_) @value) @const
(struct_expression name: (_) @name) @group
(call_expression function: (_) @name arguments: (arguments) @value) @call
(if_expression) @if
(line_comment) @comment
(block_comment) @comment
(ERROR) @error
"""

_JAVA = """
(class_declaration name: (_) @name) @class
(interface_declaration name: (_) @name) @class
(enum_declaration name: (_) @name) @class
(record_declaration name: (_) @name) @class
(annotation_type_declaration name: (_) @name) @class
(method_declaration name: (_) @name) @function
(constructor_declaration name: (_) @name) @function
(formal_parameter type: (_) name: (_) @name) @param
(field_declaration type: (_) declarator: (variable_declarator name: (_) @name value: (_)? @value)) @field
(constant_declaration declarator: (variable_declarator name: (_) @name value: (_) @value)) @const
(local_variable_declaration type: (_) declarator: (variable_declarator name: (_) @name value: (_) @value)) @assign
(assignment_expression left: (_) @name right: (_) @value) @assign
(annotation_type_element_declaration type: (_) name: (_) @name value: (_) @value) @field
(element_value_pair key: (_) @name value: (_) @value) @kwarg
(method_invocation name: (_) @name arguments: (argument_list) @value) @call
(if_statement) @if
(annotation) @mark
(marker_annotation) @mark
(line_comment) @comment
(block_comment) @comment
(ERROR) @error
"""

_C = """
(preproc_def name: (_) @name value: (_) @value) @const
(struct_specifier name: (_) @name body: (_)) @class
(union_specifier name: (_) @name body: (_)) @class
(enum_specifier name: (_)? @name body: (_)) @class
(function_definition declarator: (function_declarator declarator: (_) @name)) @function
(function_definition declarator: (pointer_declarator declarator: (function_declarator declarator: (_) @name))) @function
(enumerator name: (_) @name value: (_) @value) @const
(field_declaration type: (_) declarator: (field_identifier) @name) @field
(declaration type: (_) declarator: (init_declarator declarator: (_) @name value: (_) @value)) @assign
(assignment_expression left: (_) @name right: (_) @value) @assign
(initializer_pair designator: (field_designator (_) @name) value: (_) @value) @pair
(call_expression function: (_) @name arguments: (argument_list) @value) @call
(if_statement) @if
(comment) @comment
(ERROR) @error
"""
_CPP = (
    _C
    + """
(class_specifier name: (_) @name body: (_)) @class
(field_declaration type: (_) declarator: (field_identifier) @name default_value: (_) @value) @field
(optional_parameter_declaration type: (_) declarator: (identifier) @name default_value: (_) @value) @param
(optional_parameter_declaration declarator: (reference_declarator (_) @name) default_value: (_) @value) @param
(field_declaration declarator: (function_declarator declarator: (_) @name)) @function
(declaration declarator: (function_declarator declarator: (_) @name)) @function
"""
)

_RUBY = """
(class name: (_) @name) @class
(module name: (_) @name) @class
(method name: (_) @name) @function
(singleton_method name: (_) @name) @function
(optional_parameter name: (_) @name value: (_) @value) @param
(keyword_parameter name: (_) @name value: (_) @value) @param
(assignment left: (_) @name right: (_) @value) @assign
(operator_assignment left: (_) @name operator: "||=" right: (_) @value) @assign
(pair key: (_) @name value: (_) @value) @pair
(call method: (_) @name arguments: (argument_list) @value) @call
(hash) @group
(if) @if
(if_modifier) @if
(binary left: (_) @name operator: ["||" "or"] right: (_) @value) @fallback
(comment) @comment
(ERROR) @error
"""

_PHP = """
(class_declaration name: (_) @name) @class
(interface_declaration name: (_) @name) @class
(trait_declaration name: (_) @name) @class
(enum_declaration name: (_) @name) @class
(method_declaration name: (_) @name) @function
(function_definition name: (_) @name) @function
(simple_parameter name: (_) @name default_value: (_)? @value) @param
(property_promotion_parameter name: (_) @name default_value: (_)? @value) @param
(const_element (name) @name (_) @value) @const
(property_declaration (property_element name: (_) @name default_value: (_)? @value)) @field
(enum_case name: (_) @name value: (_) @value) @const
(assignment_expression left: (_) @name right: (_) @value) @assign
(augmented_assignment_expression left: (_) @name operator: "??=" right: (_) @value) @assign
(array_element_initializer . (_) @name . (_) @value .) @pair
(argument name: (_) @name (_) @value .) @kwarg
(function_call_expression function: (_) @name arguments: (arguments) @value) @call
(member_call_expression name: (_) @name arguments: (arguments) @value) @call
(array_creation_expression) @group
(if_statement) @if
(binary_expression left: (_) @name operator: ["??" "||"] right: (_) @value) @fallback
(attribute) @mark
(comment) @comment
(ERROR) @error
"""

_CSHARP = """
(class_declaration name: (_) @name) @class
(interface_declaration name: (_) @name) @class
(struct_declaration name: (_) @name) @class
(record_declaration name: (_) @name) @class
(enum_declaration name: (_) @name) @class
(method_declaration name: (_) @name) @function
(constructor_declaration name: (_) @name) @function
(local_function_statement name: (_) @name) @function
(parameter type: (_) name: (_) @name . (_)? @value) @param
(field_declaration (variable_declaration type: (_) (variable_declarator name: (_) @name (_)? @value))) @field
(local_declaration_statement (variable_declaration (variable_declarator name: (_) @name (_) @value))) @assign
(property_declaration type: (_) name: (_) @name value: (_)? @value) @field
(enum_member_declaration name: (_) @name value: (_) @value) @const
(assignment_expression left: (_) @name right: (_) @value) @assign
(argument name: (_) @name (_) @value .) @kwarg
(invocation_expression function: (_) @name arguments: (argument_list) @value) @call
(initializer_expression) @group
(if_statement) @if
(binary_expression left: (_) @name operator: "??" right: (_) @value) @fallback
(attribute) @mark
(comment) @comment
(ERROR) @error
"""

_SWIFT = """
(class_declaration name: (_) @name) @class
(protocol_declaration name: (_) @name) @class
(function_declaration name: (simple_identifier) @name) @function
(init_declaration) @function
(function_declaration (parameter name: (simple_identifier) @name name: (_)) @param . "=" . (_) @value)
(init_declaration (parameter name: (simple_identifier) @name name: (_)) @param . "=" . (_) @value)
(property_declaration name: (pattern (simple_identifier) @name) value: (_) @value) @assign
(property_declaration name: (pattern (simple_identifier) @name) (type_annotation (_)) !value) @field
(enum_entry name: (_) @name raw_value: (_) @value) @const
(assignment target: (_) @name result: (_) @value) @assign
(dictionary_literal key: (_) @name @pair . value: (_) @value)
(value_argument name: (_) @name value: (_) @value) @kwarg
(call_expression (_) @name (call_suffix (value_arguments) @value)) @call
(nil_coalescing_expression value: (_) @name if_nil: (_) @value) @fallback
(if_statement) @if
(attribute) @mark
(comment) @comment
(multiline_comment) @comment
(ERROR) @error
"""

_KOTLIN = """
(class_declaration name: (_) @name) @class
(object_declaration name: (_) @name) @class
(function_declaration name: (_) @name) @function
(class_parameter (identifier) @name . (_)) @param
(class_parameter (identifier) @name (_) "=" . (_) @value) @param
(function_value_parameters (parameter (identifier) @name . (_)) @param . "=" . (_) @value)
(property_declaration (variable_declaration (identifier) @name) "=" . (_) @value) @assign
(assignment left: (_) @name right: (_) @value) @assign
(infix_expression (string_literal) @name (identifier) @key (_) @value (#eq? @key "to")) @pair
(value_argument (identifier) @name "=" . (_) @value) @kwarg
(call_expression (_) @name (value_arguments) @value) @call
(binary_expression left: (_) @name operator: "?:" right: (_) @value) @fallback
(if_expression) @if
(annotation) @mark
(line_comment) @comment
(block_comment) @comment
(ERROR) @error
"""

QUERIES = {
    "python": _PYTHON,
    "javascript": _JAVASCRIPT,
    "typescript": _TYPESCRIPT,
    "tsx": _TYPESCRIPT,
    "go": _GO,
    "rust": _RUST,
    "java": _JAVA,
    "c": _C,
    "cpp": _CPP,
    "ruby": _RUBY,
    "php": _PHP,
    "csharp": _CSHARP,
    "swift": _SWIFT,
    "kotlin": _KOTLIN,
}
"""Name of the grammar → its query."""
