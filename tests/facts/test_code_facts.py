"""What source code states, in every language, whole or cut out of its file."""

from textwrap import dedent

import pytest
from growth import assert_subquadratic
from hypothesis import given, settings
from hypothesis import strategies as st

from nornweave.core.types import Attribute, Fact
from nornweave.disagree.conflicts.comparable import keys_of
from nornweave.disagree.facts.code import read_code
from nornweave.disagree.facts.code.declarations import FIELDS
from nornweave.disagree.facts.extract import extract_facts
from nornweave.disagree.facts.passage import Passage
from nornweave.disagree.facts.statement import statement_at
from nornweave.read.chunking.languages import LANGUAGES


def passage(text: str, **known: str) -> Passage:
    return Passage(text=dedent(text).strip("\n"), domain="code", **known)  # type: ignore[arg-type]


def read(text: str, language: str, **known: str) -> list[Fact]:
    return list(read_code(passage(text, **known), language).facts)


def one(facts: list[Fact], name: str, attribute: Attribute) -> Fact:
    found = [fact for fact in facts if (fact.name, fact.attribute) == (name, attribute)]
    assert len(found) == 1, [(fact.name, fact.attribute, fact.value) for fact in facts]
    return found[0]


def test_what_is_assigned_under_a_condition_is_a_default_only_where_nothing_was_given() -> None:
    code = "class Pump:\n    def __init__(self):\n        if fast:\n            self.rate = 9\n"
    code += "        if self.flow is None:\n            self.flow = 7\n"
    found = extract_facts(Passage(text=code, domain="code", language="python", path="pump.py"))
    assert [(fact.name, fact.value) for fact in found] == [("flow", "7")]


def test_or_not_in_the_line_before_denies_nothing() -> None:
    comment = "  /**\n   * httpOnly or not\n   * Default is `true`\n   */\n"
    code = f"const S = z.object({{\n{comment}  httpOnly: z.boolean().default(true),\n}});\n"
    found = extract_facts(Passage(text=code, domain="code", language="typescript", path="a.ts"))
    assert [(fact.side, fact.negated) for fact in found] == [("documentation", False), ("code", False)]


@pytest.mark.parametrize(("code", "forms"), [
    ("await run({pump: {flow: 7}});", {"example"}), ("export default {pump: {flow: 7}};", {"example"}),
    ("module.exports = {flow: 7};", {"example"}), ("const limits = {flow: 7};", {"definition"}),
    ("const pump = Object.assign({flow: 7}, given);", {"definition"}), ("const defaults = {flow: 7};", {"definition"}),
])  # fmt: skip
def test_a_literal_without_a_name_is_one_use(code: str, forms: set[str]) -> None:
    assert {fact.form for fact in read(code, "javascript") if fact.name == "flow"} == forms


@pytest.mark.parametrize(("code", "language", "expected"), [
    ("<?php\n$t->integerNode('max_beds')->min(1)->defaultValue(32)->end()\n  ->booleanNode('cut')->defaultFalse();\n",
     "php", {("max beds", "32"), ("cut", "false")}),
    ('fn f() { Arg::new("flow").long("flow").default_value("8080"); }', "rust", {("flow", "8080")}),
    ("<?php\n$t->scalarNode('a_bed')->end()->scalarNode('b_bed')->defaultValue('soil');\n", "php", {("b bed", "soil")}),
    ('pub fn default_bed_form() -> String {\n    "%H".to_string()\n}\nfn default_bed_rows() -> usize { 12 }\n', "rust",
     {("bed form", "%H"), ("bed rows", "12")}),
    ("def get_default_bed_rows():\n    return 12\n", "python", {("bed rows", "12")}),
    ("def default_bed_rows():\n    return 12 * count()\n", "python", set()),
])  # fmt: skip
def test_a_default_is_given_by_a_chain_of_calls_or_by_a_function_called_so(
    code: str, language: str, expected: set[tuple[str, str]]
) -> None:
    assert {(fact.name, fact.value) for fact in read(code, language) if fact.attribute == "default"} == expected


@pytest.mark.parametrize(("path", "form"), [("pump.config.mjs", "example"), ("src/pump.mjs", "definition")])
def test_what_a_file_configures_is_one_use(path: str, form: str) -> None:
    (flow,) = read("export const pump = {flow: 7};", "javascript", path=path)
    assert flow.form == form


DEFAULTS = [
    ("python", "class Pump:\n    def run(self, flow=7): ...", "flow", "7"),
    ("python", "class Pump:\n    flow: int = 7", "flow", "7"),
    ("python", "class Pump:\n    def __init__(self):\n        self.flow = 7", "flow", "7"),
    ("typescript", "class Pump { private readonly flow: number = 7 }", "flow", "7"),
    ("typescript", "class Pump { run(flow: number = 7) {} }", "flow", "7"),
    ("javascript", "class Pump { #flow = 7 }", "flow", "7"),
    ("javascript", "class Pump { run({ flow = 7 } = {}) {} }", "flow", "7"),
    ("go", "package p\nfunc NewPump() *Pump { return &Pump{Flow: 7} }", "flow", "7"),
    ("rust", "impl Default for Pump { fn default() -> Self { Self { flow: 7 } } }", "flow", "7"),
    ("java", "class Pump { private int flow = 7; }", "flow", "7"),
    ("cpp", "class Pump { int flow = 7; };", "flow", "7"),
    ("ruby", "class Pump\n  def run(flow: 7)\n  end\nend", "flow", "7"),
    ("ruby", "class Pump\n  def run(mode: 0755)\n  end\nend", "mode", "493"),
    ("php", "<?php class Pump { private int $flow = 7; }", "flow", "7"),
    ("csharp", "class Pump { public int Flow { get; set; } = 7; }", "flow", "7"),
    ("csharp", "class DefaultPump { public virtual int Flow => 7; }", "flow", "7"),
    ("swift", "class Pump { func run(flow: Int = 7) {} }", "flow", "7"),
    ("kotlin", "class Pump(val flow: Int = 7)", "flow", "7"),
]


@pytest.mark.parametrize(("language", "text", "name", "value"), DEFAULTS)
def test_a_default_belongs_to_its_class(language: str, text: str, name: str, value: str) -> None:
    fact = one(read(text, language), name, "default")
    assert fact.value == value
    assert fact.side == "code"
    assert "pump" in fact.owner.split()


CONSTANTS = [
    ("python", "MAX_PIPES = 2 * 12"),
    ("typescript", "export const MAX_PIPES = 2 * 12"),
    ("javascript", "const maxPipes = 2 * 12"),
    ("go", "package p\nconst MaxPipes = 2 * 12"),
    ("rust", "pub const MAX_PIPES: u32 = 2 * 12;"),
    ("java", "class A { static final int MAX_PIPES = 2 * 12; }"),
    ("c", "#define MAX_PIPES (2 * 12)"),
    ("cpp", "constexpr int kMaxPipes = 2 * 12;"),
    ("ruby", "MAX_PIPES = 2 * 12"),
    ("php", "<?php define('MAX_PIPES', 2 * 12);"),
    ("csharp", "class A { public const int MaxPipes = 2 * 12; }"),
    ("swift", "let maxPipes = 2 * 12"),
    ("kotlin", "const val MAX_PIPES = 2 * 12"),
]


@pytest.mark.parametrize(("language", "text"), CONSTANTS)
def test_a_constant_has_its_folded_value(language: str, text: str) -> None:
    assert one(read(text, language), "max pipes", "value").value == "24"


def test_nested_pairs_are_owned_by_their_keys_and_their_variable() -> None:
    fact = one(read('DEFAULTS = {"cache": {"port": 6400}}', "python"), "port", "default")
    assert (fact.value, fact.owner) == ("6400", "default cache")


def test_keyword_arguments_of_nested_calls_are_owned_by_their_keywords() -> None:
    facts = read("SPACES = Space(job=Space(codec=Option('xml', type='string')))", "python")
    assert one(facts, "codec", "value").value == "xml"
    assert one(facts, "codec", "value").owner == "spaces job"


def test_keyword_arguments_inside_functions_are_no_facts() -> None:
    assert not read("def go():\n    start(depth=3)", "python")


OPTIONS = [
    ("python", "p.add_argument('-d', '--depth', default=3, type=int)"),
    ("python", "@click.option('--depth', default=3)\ndef run(): ..."),
    ("python", "flags.DEFINE_integer('depth', 3, 'How deep.')"),
    ("python", "class A:\n    depth: int = Field(3, ge=1)"),
    ("python", "depth = os.environ.get('DEPTH', 3)"),
    ("go", 'package p\nfunc f() { flag.Int("depth", 3, "how deep") }'),
    ("go", 'package p\nfunc f() { flags.IntVarP(&d, "depth", "d", 3, "how deep") }'),
    ("go", 'package p\nfunc f() { viper.SetDefault("depth", 3) }'),
    ("python", 'node.declare_parameter("pump.depth", 3)'),
    ("javascript", "registry.registerOption('pump.depth', 3)"),
    ("csharp", 'class A { void F() { builder.AddSetting("Depth", 3); } }'),
    ("javascript", "program.option('-d, --depth <n>', 'how deep', 3)"),
    ("javascript", "yargs.option('depth', { type: 'number', default: 3 })"),
    ("rust", 'fn f(b: Builder) -> B { b.set_default("width", 2)?.set_default("depth", 3)?.set_default("tone", 4)? }'),
    ("javascript", "yargs.option('width', { default: 2 }).option('depth', { default: 3 }).command()"),
    ("go", "package p\nfunc (c *C) Init() { if c.Depth == 0 { c.Depth = 3 } }"),
    ("go", "package p\nfunc newLamp() *Lamp { return &Lamp{Depth: 3} }"),
    ("python", "def f(depth=None):\n    if not depth:\n        depth = 3"),
    ("csharp", "class Lamp { int Depth { get; set; } public Lamp() { Depth = 3; } }"),
    ("javascript", "function f (options) { const depth = options.depth ?? 3 }"),
    ("javascript", "function f (depth) { depth = depth == null ? 3 : depth }"),
    ("java", 'class A { void f(@RequestParam(defaultValue = "3") int depth) {} }'),
    ("php", "<?php function f($o) { $depth = $o['depth'] ?? 3; }"),
]


@pytest.mark.parametrize(("language", "text"), OPTIONS)
def test_declared_options_and_fallbacks_state_defaults(language: str, text: str) -> None:
    defaults = {
        (fact.name, fact.value)
        for fact in read(text, language)
        if fact.attribute == "default" and fact.form in {"option", "fallback", "definition"}
    }
    assert ("depth", "3") in defaults


@pytest.mark.parametrize(("language", "text"), [
    ("go", 'package p\nfunc (c *C) Run() { if c.Rows == 0 { c.Depth = 3 } }'),
    ("go", 'package p\nfunc (c *C) Run() { if c.Depth == 5 { c.Depth = 3 } }'),
    ("csharp", "class Lamp { int Depth { get; set; } public void Run() { Depth = 3; } }"),
    ("csharp", "class Lamp { public Lamp(Room room) { Depth = 3; } }"),
])  # fmt: skip
def test_what_is_set_while_a_program_runs_is_no_default(language: str, text: str) -> None:
    assert not [fact for fact in read(text, language) if fact.name == "depth"]


def test_keys_of_declarations_are_no_names() -> None:
    facts = read("p.add_argument('--tone', default='low', choices=['low', 'high'], required=False)", "python")
    assert [(fact.name, fact.value) for fact in facts] == [("tone", "low")]
    facts = read("class A:\n    depth: int = Field(3, ge=1, le=9)", "python")
    assert [(fact.name, fact.value) for fact in facts] == [("depth", "3")]


def test_a_group_that_names_itself_is_what_its_keys_speak_about() -> None:
    facts = read("const rows = [{ key: 'tone', default: 'low' }]", "javascript")
    assert one(facts, "tone", "default").value == "low"


STATUSES = [
    ("python", "def show_tank():\n    abort(404)"),
    ("python", "def show_tank():\n    return Answer(status_code=404)"),
    ("javascript", "function showTank (res) { res.status(404).end() }"),
    ("go", "package p\nfunc ShowTank(w W) { w.WriteHeader(http.StatusNotFound) }"),
    ("java", "class A { R showTank() { return R.status(HttpStatus.NOT_FOUND); } }"),
]


@pytest.mark.parametrize(("language", "text"), STATUSES)
def test_a_function_answers_a_status(language: str, text: str) -> None:
    assert one(read(text, language), "show tank", "status").value == "404"


def test_a_status_that_is_compared_with_is_no_answer() -> None:
    facts = read("package p\nfunc f(r R) { if r.Code == http.StatusNotFound { retry() } }", "go")
    assert not [fact for fact in facts if fact.attribute == "status"]


def test_a_constant_of_the_file_stands_for_its_value() -> None:
    facts = read("BASE = 20\nDEPTH = BASE * 2\n\ndef f(level=DEPTH): ...", "python")
    assert one(facts, "level", "default").value == "40"


def test_a_constant_defined_by_itself_or_twice_is_not_known() -> None:
    assert not read("A_B = A_C\nA_C = A_B\n", "python")
    facts = read("A_B = 1\nA_B = 2\n\ndef f(level=A_B): ...", "python")
    assert not [fact for fact in facts if fact.name == "level"]


PARTS = [
    ("python", "    'pump_rate': 7,\n    'tank': 'big',\n", "DEFAULTS", "default"),
    ("python", "        pump_rate=7,\n        tank='big',\n", "Tank.__init__", "default"),
    ("javascript", "  pumpRate: 7, // litres\n  tank: 'big',\n", "defaultTank", "default"),
    ("ruby", "      pump_rate: 7,\n      tank: 'big',\n", "DEFAULTS", "default"),
    ("go", "\t\tPumpRate: 7, // litres\n\t\tTank:     \"big\",\n", "defaultTank", "default"),
    ("java", "    @Given\n    private int pumpRate = 7;\n    private String tank = \"big\";\n", "Tank", "default"),
    ("javascript", " */\nclass Tank extends Vessel {\n  #pumpRate = 7\n  #tank = 'big'\n", "Tank fields", "default"),
    ("javascript", "  pumpRate: 7,", "", "value"),
]  # fmt: skip


@pytest.mark.parametrize(("language", "text", "title", "attribute"), PARTS)
def test_a_part_of_a_literal_or_a_class_still_states_its_values(
    language: str, text: str, title: str, attribute: Attribute
) -> None:
    facts = list(read_code(Passage(text=text, title=title, language=language, domain="code"), language).facts)
    assert one(facts, "pump rate", attribute).value == "7"


def test_spans_count_from_the_start_of_the_document() -> None:
    text = "import x\nDEPTH = 3\n"
    fact = one(list(read_code(Passage(text=text, start=100), "python").facts), "depth", "value")
    assert text[fact.span.start - 100 : fact.span.end - 100] == "DEPTH = 3"
    assert (fact.line, fact.statement) == (1, "DEPTH = 3")


def test_the_statement_of_an_argument_is_the_call_around_it_whatever_brackets_stand_between() -> None:
    call = 'flags.add(\n    "queue", kinds(1, [2]),\n    5,\n    range=(1, 9), help="jobs that wait in memory",\n)'
    text = f'flags.add("tries", 3)\n{call}\nflags.add("port", 80)\n'
    at = text.index("5,")
    first, last, is_told = statement_at(text, at, at + 1)
    assert (text[first:last], is_told) == (call, True)


COMMENTED = """
    # How deep it goes,
    # in metres.
    DEPTH = 3

    WIDTH = 4  # in metres

    class Tank:
        \"\"\"Holds water.\"\"\"

        #: Litres a minute.
        rate = 5

        def fill(self, level):
            \"\"\"Fill it.\"\"\"
            # stop early
"""


def test_comments_belong_to_what_they_document() -> None:
    where = passage(COMMENTED)
    found = {
        where.text[one.start : one.end].strip('"#: '): (one.subject, one.owner)
        for one in read_code(where, "python").comments
        if not one.is_remark
    }
    assert found["How deep it goes,\n# in metres."] == ("DEPTH", "")
    assert "in metres" not in found, "a remark behind code"
    assert found["Holds water."] == ("", "Tank"), "what it says of values is said of members"
    assert found["Litres a minute."] == ("rate", "Tank")
    assert found["Fill it."] == ("fill", "Tank")
    assert "stop early" not in found, "a remark inside a function"


def test_a_documentation_block_belongs_to_the_member_behind_its_annotations() -> None:
    text = "class Tank {\n  /** Litres. */\n  @Given\n  private int rate = 5;\n}"
    assert [(one.subject, one.owner) for one in read_code(passage(text), "java").comments] == [("rate", "Tank")]
    text = "class Tank\n  # Litres.\n  attr_accessor :rate\nend"
    assert [(one.subject, one.owner) for one in read_code(passage(text), "ruby").comments] == [("rate", "Tank")]


def test_a_comment_above_a_pair_belongs_to_it_and_one_behind_it_to_nothing() -> None:
    text = "const tank = {\n  // Litres.\n  rate: 5, // a minute\n  depth: 3\n}"
    assert [(one.subject, one.owner) for one in read_code(passage(text), "javascript").comments] == [("rate", "tank")]


def test_minified_code_is_left_out() -> None:
    reading = read_code(passage("a={b:1};" * 8_000), "javascript")
    assert reading.facts == ()


def test_there_are_at_most_so_many_facts() -> None:
    reading = read_code(
        passage("".join(f"NAME_{letter * 3}{n} = {n}\n" for n in range(600) for letter in "abcdefgh")), "python"
    )
    assert len(reading.facts) == 4_000


def test_a_deadline_ends_the_reading() -> None:
    assert not read_code(passage("A_B = 1\n" * 10), "python", deadline_s=0).facts


def test_an_unknown_language_states_nothing() -> None:
    assert not read("A = 5", "cobol")


@settings(max_examples=60, deadline=None)
@given(
    st.text(st.sampled_from("ab=:,;(){}[]<>'\"`#@?|/*\n\t 5.é"), max_size=120)
    | st.lists(st.sampled_from([text for _, text, *_ in DEFAULTS + CONSTANTS + OPTIONS + PARTS]), max_size=3).map(
        lambda parts: "".join(part[len(part) // 3 :] for part in parts)
    ),
    st.sampled_from(LANGUAGES),
)
def test_any_text_gives_facts_and_comments_inside_of_it(text: str, language: str) -> None:
    reading = read_code(Passage(text=text, start=5), language)
    for fact in reading.facts:
        assert 5 <= fact.span.start <= fact.span.end <= 5 + len(text)
    for comment in reading.comments:
        assert 0 <= comment.start <= comment.end <= len(text)


def test_a_switch_that_is_asked_for_by_its_name_has_a_default() -> None:
    code = """
    class Pump {
      constructor(options) {
        this.trace = options.trace !== false;
        this.debug = options.debug === true;
        this.loud = !!options.loud;
        this.ready = state.ready === true;
        this.cold = options.warm !== false;
        this.opts = { color: options?.color !== false, hot: heat === true };
      }
    }
    """
    found = [(fact.name, fact.value) for fact in read(code, "javascript") if fact.attribute == "default"]
    assert found == [("trace", "true"), ("debug", "false"), ("loud", "false"), ("color", "true")]


def test_a_placeholder_of_a_property_has_its_default_behind_it() -> None:
    code = """
    class Pump {
      @Value("${app.lane-width:64}") private int width;
      @Value("${app.mode:fast}") private String mode;
      @Value("${app.none}") private int none;
      Pump(@Value("${app.poll-seconds:5}") long poll) {}
    }
    """
    found = [(fact.owner, fact.name, fact.value, fact.unit) for fact in read(code, "java")]
    assert found == [("app", "lane width", "64", None), ("app", "mode", "fast", None), ("app", "poll", "5", "s")]


@pytest.mark.parametrize(("language", "field", "names", "value"), [
    ("go", '    SoakLimit uint `default:"53" long:"soak-wait" env:"KILN_SOAK" description:"a: default=9"`',
     ["kiln soak", "soak limit", "soak wait"], "53"),
    ("go", '    Cooling time.Duration `envDefault:"15s" json:"cooling"`', ["cooling"], "15"),
    ("go", '    Plan, Other string `default:"kiln.toml"`', ["plan"], "kiln.toml"),
    ("rust", '    #[arg(long, default_value = "90")]\n    /// s\n    pub firing_time: u64,', ["firing time"], "90"),
    ("rust", '    #[serde(default = "usual")]\n    #[clap(short = \'p\', long = "top-heat",\n'
     "    default_value_t = 1240)]\n    heat: u32,", ["heat", "top heat"], "1240"),
    ("rust", '    #[serde(default = "usual_port")]\n    port: u16,', [], ""),
])  # fmt: skip
@pytest.mark.parametrize("whole", [True, False])
def test_a_tag_or_an_attribute_of_a_field_says_its_default(
    language: str, field: str, names: list[str], value: str, whole: bool
) -> None:
    head = {"go": "type Options struct {\n", "rust": "struct Options {\n"}[language]
    facts = [fact for fact in read(f"{head}{field}\n}}\n" if whole else field, language) if fact.attribute == "default"]
    assert sorted(fact.name for fact in facts) == names
    assert {(fact.value, fact.owner) for fact in facts} == ({(value, "options" if whole else "")} if names else set())


@pytest.mark.parametrize(("language", "piece"), [
    ("go", "A b `default:"), ("go", "A,b,"), ("rust", '#[a = "b'), ("rust", "#[a(["), ("rust", '#[a("b")]//'),
])  # fmt: skip
def test_many_open_tags_are_read_in_no_time(language: str, piece: str) -> None:
    for end in ("", "\n"):
        assert_subquadratic(FIELDS[language].findall, lambda size, end=end: f"{piece}{end}" * size, 8_000)


@pytest.mark.parametrize("call", [
    'cfg.String("junk_mailbox", false, false, "Junk", &box)', 'cfg.Bool("junk_open", false, true, &open)',
    'cfg.Int("junk_limit", 5, 32, &limit)',
])  # fmt: skip
def test_what_a_value_follows_is_no_default_with_a_description(call: str) -> None:
    passage = Passage(text=f"package p\nfunc f() {{ {call} }}", language="go", domain="code", path="a.go")
    assert extract_facts(passage) == ()


@pytest.mark.parametrize(("path", "text", "expected"), [
    ("lamp.c", 'fputs("    -P, --beam-pause <s>  seconds (default: 5)\\n"\n'
               '      "    -w, --beam-width   how wide\\n"\n      "                       (default: 0)\\n");\n',
     [("beam pause", "5", 0), ("beam width", "0", 2)]),
    ("lamp.ts", "const help = `\n  --level  what is told. Defaults to 'warning'.\n  --moths <n>  Default: 3.\n`;\n",
     [("level", "warning", 1), ("moths", "3", 2)]),
    ("a.ts", "const help = `\n\t--level\n\t\tOne of\n\t\t'low' and 'warning'.  Defaults to 'warning'\n`;\n",
     [("level", "warning", 3)]),
    ("lamp.py", 'run(["--beam-width", "5"])  # default 3\n# Give --moths, default: 5.\n', []),
    ("lamp.go", 'const usage = `\n\t--moths int   how many [default: 12]\n`\n', [("moths", "12", 1)]),
])  # fmt: skip
def test_what_a_program_s_own_help_states_is_its_default(
    path: str, text: str, expected: list[tuple[str, str, int]]
) -> None:
    found = [one for one in extract_facts(Passage(text=text, path=path, domain="code")) if one.attribute == "default"]
    assert [(one.name, one.value, one.line) for one in found] == expected
    assert {one.side for one in found} <= {"code"}
    assert all("efault" in text[one.span.start : one.span.end] for one in found)


def test_a_duration_in_quotation_marks_is_a_time() -> None:
    facts = read('package p\nfunc f() { viper.SetDefault("pump.idle_timeout", "2m30s") }', "go")
    fact = one(facts, "idle timeout", "default")
    assert (fact.kind, fact.value, fact.unit, fact.owner) == ("number", "150", "s", "f pump")
    assert (
        one(read('package p\nfunc f() { viper.SetDefault("mode", "0o770") }', "go"), "mode", "default").value == "0o770"
    )


def test_calls_that_register_something_else_state_no_default() -> None:
    for call in ("registry.register('json', 3)", "bus.addListener('depth', 3)", "el.setAttribute('depth', 3)"):
        assert not [fact for fact in read(call, "javascript") if fact.attribute == "default"]


@pytest.mark.parametrize(("path", "language", "line", "value"), [
    ("lane/config-template.py", "python", "# LANE_COUNT = 7", "7"),
    ("config/initializers/lane.rb", "ruby", "  # config.lane_count = 7", "7"),
    ("lane/settings.php", "php", "  // 'lane_count' => 7,", "7"),
    ("conf/lane.js", "javascript", "  // laneCount: 7,", "7"),
])  # fmt: skip
def test_a_setting_that_code_of_a_configuration_comments_out_is_an_example(
    path: str, language: str, line: str, value: str
) -> None:
    mark = line.split()[0]
    text = f"{mark} How many ships pass side by side.\n{mark} SHIP = 3\n{mark} How many lanes a chart has.\n{line}\n"
    text = f"<?php\n{text}" if language == "php" else text
    fact = next(
        fact
        for fact in extract_facts(Passage(text=text, domain="code", language=language, path=path))
        if fact.name == "lane count"
    )
    assert (fact.value, fact.form, fact.side, keys_of(fact)) == (value, "example", "configuration", frozenset())
    assert text[fact.span.start : fact.span.end] in line
    first, last, is_told = statement_at(text, fact.span.start, fact.span.end)
    assert is_told and text[first:last].split("\n")[0] == f"{mark} How many lanes a chart has."


@pytest.mark.parametrize(("path", "line"), [
    ("lane/chart.py", "# LANE_COUNT = 7"), ("lane/config.py", "# Note: 7 lanes are enough"),
    ("lane/config.py", "# See lane_count = 7"), ("lane/config.py", '# LANE_TOKEN = "b7c1"'),
])  # fmt: skip
def test_other_comments_of_code_set_nothing(path: str, line: str) -> None:
    text = f"{line}\nSHIP = 3\n"
    found = extract_facts(Passage(text=text, domain="code", language="python", path=path))
    assert [fact.name for fact in found] == ["ship"]
