"""What functions, classes, imports and scopes are called in each tree-sitter grammar (tree-sitter-language-pack 0.13).

Only tables: ``syntax`` reads single nodes with them, ``regions`` whole files.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

EXTENSIONS = {
    "python": "py pyi pyw",
    "typescript": "ts tsx mts cts",
    "javascript": "js jsx mjs cjs",
    "go": "go",
    "rust": "rs",
    "java": "java",
    "c": "c h",
    "cpp": "cpp cc cxx c++ hpp hh hxx h++ ipp inl tpp cppm ixx",
    "ruby": "rb rake gemspec ru",
    "php": "php phtml php5",
    "csharp": "cs csx",
    "swift": "swift",
    "kotlin": "kt kts",
}
FILE_NAMES = {"rakefile": "ruby", "gemfile": "ruby", "vagrantfile": "ruby", "podfile": "ruby", "fastfile": "ruby"}

LANGUAGES = tuple(EXTENSIONS)

_BY_EXTENSION = {f".{ending}": language for language, endings in EXTENSIONS.items() for ending in endings.split()}


def language_of(path: str) -> str | None:
    """Name the programming language of a file by its name; ``None`` when it is none of the thirteen."""
    name = PurePosixPath(path).name.lower()
    return FILE_NAMES.get(name) or _BY_EXTENSION.get(PurePosixPath(name).suffix)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """The node types of one grammar that matter for chunking.

    Attributes:
        name: of the grammar in tree-sitter-language-pack.
        functions: functions and methods; without a body they are declarations, unless in ``bodiless``.
        classes: everything that has members and a name (struct, trait, impl, interface, enum, module, …).
        needs_body: a class type that without a body only mentions a class.
        modules: named containers that are no class: they take part in titles, not in ``class_name``.
        namespaces: containers whose name nobody calls (``namespace a {``, ``extern "C" {``).
        branches: statements that hold definitions without naming them (``#ifdef``, ``if``, ``try``, ``class << self``).
        bodies: the node that holds the members of any of the above.
        imports: statements that bring in other files; more of them are told by ``syntax.is_import``.
        wrappers: nodes around one definition (decorators, ``export``, ``template<…>``, ``const f = …``).
        comments: comment types; ``attributes`` are siblings that belong to what follows them like comments.
        glue: too little to stand alone; joins what follows (``package x;``, ``private:``).
        bare: classes whose header says nothing by itself when no members precede the first method.
        closers: ends of something that opened before; they stay with what precedes them.
        receivers: parameters that are not counted.
    """

    name: str
    functions: frozenset[str]
    classes: frozenset[str]
    imports: frozenset[str]
    bodies: frozenset[str]
    bodiless: frozenset[str] = frozenset()
    needs_body: frozenset[str] = frozenset()
    modules: frozenset[str] = frozenset()
    namespaces: frozenset[str] = frozenset()
    branches: frozenset[str] = frozenset()
    wrappers: frozenset[str] = frozenset()
    comments: frozenset[str] = frozenset({"comment"})
    attributes: frozenset[str] = frozenset()
    glue: frozenset[str] = frozenset()
    bare: frozenset[str] = frozenset()
    closers: frozenset[str] = frozenset()
    receivers: frozenset[str] = frozenset()


def node_types(names: str) -> frozenset[str]:
    """Split a list of node types."""
    return frozenset(names.split())


_PREPROCESSOR = "preproc_if preproc_ifdef preproc_else preproc_elif preproc_elifdef"
_ECMA_FUNCTIONS = (
    "function_declaration generator_function_declaration method_definition arrow_function function_expression "
    "generator_function"
)
_ECMA_WRAPPERS = (
    "export_statement expression_statement lexical_declaration variable_declaration variable_declarator "
    "assignment_expression pair field_definition public_field_definition ambient_declaration"
)

_PYTHON = Grammar(
    name="python",
    functions=node_types("function_definition"),
    classes=node_types("class_definition"),
    imports=node_types("import_statement import_from_statement future_import_statement"),
    bodies=node_types("block"),
    branches=node_types(
        "if_statement try_statement with_statement else_clause elif_clause except_clause finally_clause"
    ),
    wrappers=node_types("decorated_definition"),
    receivers=node_types("keyword_separator positional_separator"),
)

_JAVASCRIPT = Grammar(
    name="javascript",
    functions=node_types(_ECMA_FUNCTIONS),
    classes=node_types("class_declaration class"),
    imports=node_types("import_statement"),
    bodies=node_types("class_body statement_block"),
    branches=node_types("if_statement else_clause try_statement catch_clause finally_clause"),
    wrappers=node_types(_ECMA_WRAPPERS),
    attributes=node_types("decorator"),
    glue=node_types("hash_bang_line"),
)


def _typescript(name: str) -> Grammar:
    return Grammar(
        name=name,
        functions=_JAVASCRIPT.functions,
        classes=node_types(
            "class_declaration class abstract_class_declaration interface_declaration enum_declaration "
            "internal_module module"
        ),
        imports=node_types("import_statement import_alias"),
        bodies=node_types("class_body statement_block interface_body enum_body object_type"),
        branches=_JAVASCRIPT.branches,
        wrappers=_JAVASCRIPT.wrappers,
        attributes=_JAVASCRIPT.attributes,
        glue=_JAVASCRIPT.glue,
        bare=node_types("internal_module module"),
    )


_GO = Grammar(
    name="go",
    functions=node_types("function_declaration method_declaration"),
    classes=node_types("type_declaration"),
    imports=node_types("import_declaration"),
    bodies=node_types("field_declaration_list"),
    glue=node_types("package_clause"),
)

_RUST = Grammar(
    name="rust",
    functions=node_types("function_item macro_definition"),
    bodiless=node_types("macro_definition"),
    classes=node_types("struct_item enum_item union_item trait_item impl_item"),
    imports=node_types("use_declaration extern_crate_declaration"),
    bodies=node_types("declaration_list field_declaration_list enum_variant_list"),
    modules=node_types("mod_item"),
    namespaces=node_types("foreign_mod_item"),
    comments=node_types("line_comment block_comment"),
    attributes=node_types("attribute_item"),
    bare=node_types("impl_item"),
    receivers=node_types("self_parameter attribute_item"),
)

_JAVA = Grammar(
    name="java",
    functions=node_types("method_declaration constructor_declaration compact_constructor_declaration"),
    classes=node_types(
        "class_declaration interface_declaration enum_declaration record_declaration annotation_type_declaration"
    ),
    imports=node_types("import_declaration"),
    bodies=node_types("class_body interface_body enum_body enum_body_declarations annotation_type_body"),
    comments=node_types("line_comment block_comment"),
    glue=node_types("package_declaration"),
    receivers=node_types("receiver_parameter"),
)

_C = Grammar(
    name="c",
    functions=node_types("function_definition"),
    classes=node_types("struct_specifier union_specifier enum_specifier"),
    needs_body=node_types("struct_specifier union_specifier enum_specifier"),
    imports=node_types("preproc_include"),
    bodies=node_types("field_declaration_list enumerator_list declaration_list"),
    namespaces=node_types("linkage_specification"),
    branches=node_types(_PREPROCESSOR),
    wrappers=node_types("type_definition"),
    receivers=node_types("variadic_parameter"),
)

_CPP = Grammar(
    name="cpp",
    functions=_C.functions,
    classes=_C.classes | node_types("class_specifier"),
    needs_body=_C.classes | node_types("class_specifier"),
    imports=node_types("preproc_include using_declaration import_declaration"),
    bodies=_C.bodies,
    namespaces=node_types("namespace_definition linkage_specification"),
    branches=_C.branches,
    wrappers=node_types("type_definition template_declaration"),
    glue=node_types("access_specifier"),
    receivers=node_types("explicit_object_parameter_declaration"),
)

_RUBY = Grammar(
    name="ruby",
    functions=node_types("method singleton_method"),
    bodiless=node_types("method singleton_method"),
    classes=node_types("class module"),
    imports=frozenset(),
    bodies=node_types("body_statement then"),
    branches=node_types("singleton_class if unless else elsif begin rescue"),
    wrappers=node_types("call argument_list"),
    glue=node_types("identifier"),
    bare=node_types("module"),
)

_PHP = Grammar(
    name="php",
    functions=node_types("function_definition method_declaration"),
    classes=node_types("class_declaration interface_declaration trait_declaration enum_declaration"),
    imports=node_types("namespace_use_declaration"),
    bodies=node_types("declaration_list enum_declaration_list compound_statement colon_block"),
    namespaces=node_types("namespace_definition"),
    branches=node_types("if_statement else_clause else_if_clause try_statement catch_clause"),
    glue=node_types("php_tag declare_statement"),
)

_CSHARP = Grammar(
    name="csharp",
    functions=node_types(
        "method_declaration constructor_declaration destructor_declaration operator_declaration "
        "conversion_operator_declaration local_function_statement"
    ),
    classes=node_types(
        "class_declaration interface_declaration struct_declaration enum_declaration record_declaration"
    ),
    imports=node_types("using_directive extern_alias_directive"),
    bodies=node_types("declaration_list enum_member_declaration_list"),
    namespaces=node_types("namespace_declaration"),
    branches=node_types("preproc_if preproc_else preproc_elif"),
    wrappers=node_types("global_statement"),
    glue=node_types("file_scoped_namespace_declaration preproc_region"),
    closers=node_types("preproc_endregion"),
    receivers=node_types("attribute_list"),
)

_SWIFT = Grammar(
    name="swift",
    functions=node_types("function_declaration init_declaration deinit_declaration"),
    classes=node_types("class_declaration protocol_declaration"),
    imports=node_types("import_declaration"),
    bodies=node_types("class_body enum_class_body protocol_body"),
    comments=node_types("comment multiline_comment"),
)

_KOTLIN = Grammar(
    name="kotlin",
    functions=node_types("function_declaration secondary_constructor"),
    classes=node_types("class_declaration object_declaration"),
    imports=node_types("import_list import_header"),
    bodies=node_types("class_body enum_class_body"),
    branches=node_types("companion_object"),
    comments=node_types("line_comment multiline_comment"),
    glue=node_types("package_header file_annotation shebang_line"),
)

GRAMMARS = {
    "python": _PYTHON,
    "typescript": _typescript("typescript"),
    "tsx": _typescript("tsx"),
    "javascript": _JAVASCRIPT,
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


# Headers are called .h in both languages; only what is in them tells.
_CPP_HEADER = re.compile(
    r"^[ \t]*(?:namespace\b|template[ \t]*<|class[ \t]+\w|public:|private:|using[ \t]+\w)", re.MULTILINE
)


def grammar_of(language: str, path: str, text: str) -> Grammar | None:
    """Return the tables for a document of that language, or ``None`` for a language that no grammar is known for."""
    if language == "typescript" and path.lower().endswith(".tsx"):
        return GRAMMARS["tsx"]
    if language == "c" and path.lower().endswith(".h") and _CPP_HEADER.search(text):
        return GRAMMARS["cpp"]
    return GRAMMARS.get(language)
