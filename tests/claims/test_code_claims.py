from __future__ import annotations

import pytest

from nornweave.claims.code import code_claims
from nornweave.claims.extract import extract_claims
from nornweave.claims.passage import Passage
from nornweave.types import Claim


def claims(text: str, language: str = "python", path: str = "src/payments/client.py") -> list[Claim]:
    return code_claims(Passage(text=text, language=language, domain="code", path=path), language)


def told(text: str, language: str = "python", path: str = "src/payments/client.py") -> set[tuple[str, str, str | None]]:
    return {(claim.attribute, claim.value, claim.unit) for claim in claims(text, language, path)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("WEBHOOK_TIMEOUT_SECONDS = 10", ("timeout", "10", "s")),
        ("MAX_RETRIES: int = 5", ("retries", "5", None)),
        ("MAX_BODY_BYTES: Final[int] = 10 * 1024 * 1024", ("size_limit", "10485760", "byte")),
        ("TOKEN_TTL = timedelta(hours=24)", ("lifetime", "86400", "s")),
        ("RATE_LIMIT_PER_MINUTE = 60", ("rate_limit", "1", "request/s")),
        ("def send(url, timeout=30): ...", ("timeout", "30", "s")),
        ("def send(url, read_timeout: float | None = 2.5): ...", ("timeout", "2.5", "s")),
        ("def f():\n    client.get(url, timeout=3)", ("timeout", "3", "s")),
        ('TIMEOUT_MS = int(os.environ.get("HERON_TIMEOUT_MS", "1500"))', ("timeout", "1.5", "s")),
        ('timeout = os.getenv("TIMEOUT_SECONDS") or 20', ("timeout", "20", "s")),
        ('parser.add_argument("--max-retries", type=int, default=4)', ("retries", "4", None)),
        ('conf = settings.get("cache_ttl_minutes", 5)', ("lifetime", "300", "s")),
        ("class S(BaseSettings):\n    batch_size: int = Field(64, ge=1)", ("batch_size", "64", None)),
        ("class S(BaseSettings):\n    batch_size: int = Field(default=64)", ("batch_size", "64", None)),
        ("class C:\n    def __init__(self):\n        self.max_retries = 7", ("retries", "7", None)),
        ('__version__ = "1.4.2"', ("version", "1.4.2", None)),
        ('API_VERSION = "v2.1"', ("version", "2.1", None)),
        ('DEFAULT_CURRENCY = "EUR"', ("currency", "eur", None)),
        ("TRACING_ENABLED = False", ("enabled", "off", None)),
        ("DISABLE_TRACING = True", ("enabled", "off", None)),
        ("DISPUTE_EVIDENCE_DAYS = 30", ("dispute evidence", "2592000", "s")),
    ],
)
def test_python_settings(text: str, expected: tuple[str, str, str | None]) -> None:
    assert told(text) == {expected}


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("typescript", "const maxAttempts: number = 3;", ("retries", "3", None)),
        ("typescript", "class A { private readonly timeoutMs = 5_000; }", ("timeout", "5", "s")),
        ("typescript", "function f({ retries = 2 }: Options = {}) {}", ("retries", "2", None)),
        ("javascript", "const opts = { timeout: 30 * 1000 };", ("timeout", "30", "s")),
        ("javascript", "const port = Number(process.env.PORT ?? 8080);", ("port", "8080", None)),
        ("go", "package a\nconst maxAttempts = 3", ("retries", "3", None)),
        ("go", "package a\nvar readTimeout time.Duration = 5 * time.Second", ("timeout", "5", "s")),
        ("go", "package a\nvar c = http.Client{Timeout: 30 * time.Second}", ("timeout", "30", "s")),
        ("java", "class A { static final int MAX_RETRIES = 5; }", ("retries", "5", None)),
        ("java", "class A { Duration ttl = Duration.ofMinutes(2); }", ("lifetime", "120", "s")),
        ("java", "class A { @Retry(maxAttempts = 3) void f() {} }", ("retries", "3", None)),
        ("rust", "const READ_TIMEOUT: Duration = Duration::from_secs(30);", ("timeout", "30", "s")),
        ("rust", "fn f() { Config { max_retries: 5 } }", ("retries", "5", None)),
        ("c", "#define MAX_RETRIES 5", ("retries", "5", None)),
        ("c", "#define MAX_FRAME_BYTES (64 * 1024)", ("size_limit", "65536", "byte")),
        ("cpp", "constexpr int kMaxRetries = 5;", ("retries", "5", None)),
        ("ruby", "READ_TIMEOUT_SECONDS = 35", ("timeout", "35", "s")),
        ("ruby", "def f(retries: 3)\nend", ("retries", "3", None)),
        ("php", "<?php class A { const TOLERANCE_SECONDS = 300; }", ("threshold", "300", "s")),
        ("csharp", "class A { TimeSpan timeout = TimeSpan.FromMinutes(1); }", ("timeout", "60", "s")),
        ("swift", "class A { static let maxRetries: Int = 4 }", ("retries", "4", None)),
        ("kotlin", "class A(val retries: Int = 3)", ("retries", "3", None)),
        ("kotlin", "const val CACHE_TTL_HOURS = 12", ("lifetime", "43200", "s")),
    ],
)
def test_every_language(language: str, text: str, expected: tuple[str, str, str | None]) -> None:
    assert told(text, language, "client.x") == {expected}


@pytest.mark.parametrize(
    "text",
    [
        "for i in range(10):\n    total += x[3]",
        "def f():\n    count = 0\n    attempts = 0",
        "if attempts > 3:\n    stop()",
        "timeout = timeout * 2 + 1",
        "x = data[5:10]",
        "# timeout = 30 was what we had",
        'MESSAGE = "timeout=30 is too short"',
        "assert response.status_code == 404",
        "if status in (500, 502): retry()",
        "def draw(width=640, height=480): ...",
        "TIMEOUT = -1",
        "time.sleep(30)",
        "TIMEOUT_SECONDS = 30 * factor",
        'BASE_URL = "http://" + host',
        "def f(verbose=False): ...",
        "PI = 3.14159",
        "",
    ],
)
def test_counters_comparisons_and_arithmetic_claim_nothing(text: str) -> None:
    assert told(text) == set()


@pytest.mark.parametrize(
    ("language", "text", "codes"),
    [
        ("python", "def f():\n    return JSONResponse(status_code=422, content={})", {"422"}),
        ("python", "def f(e):\n    status = 503 if e.retryable else 502\n    return status", {"502", "503"}),
        ("python", "def f():\n    raise HTTPException(403, 'no')", {"403"}),
        ("python", "def f():\n    abort(404)", {"404"}),
        ("python", "def f():\n    return Response(status=status.HTTP_204_NO_CONTENT)", {"204"}),
        ("python", "def f():\n    return make_response(body, 202)", {"202"}),
        ("python", "def f():\n    if r.status_code == 404:\n        return None", set()),
        ("python", "items = load(200)", set()),
        ("typescript", "function f() { return res.status(422).json({}); }", {"422"}),
        ("go", "package a\nfunc f() { w.WriteHeader(http.StatusNotFound) }", {"404"}),
        ("go", "package a\nfunc f() { if r.StatusCode == http.StatusNotFound { x() } }", set()),
        ("java", "class A { R f() { return ResponseEntity.status(404).build(); } }", {"404"}),
        ("java", "class A { R f() { return new R(HttpStatus.BAD_REQUEST); } }", {"400"}),
        ("rust", "fn f() -> R { (StatusCode::CREATED, x) }", {"201"}),
        ("ruby", "def f\n  render json: x, status: :unprocessable_entity\nend", {"422"}),
        ("php", "<?php function f() { return response()->json([], 404); }", {"404"}),
        ("csharp", "class A { R F() { return StatusCode(409); } }", {"409"}),
        ("cpp", "Result f() { return Status::NotImplemented(); }", set()),
    ],
)
def test_status_codes_that_are_answered(language: str, text: str, codes: set[str]) -> None:
    found = [claim for claim in claims(text, language) if claim.kind == "http_status"]
    assert {claim.value for claim in found} == codes
    assert all(claim.attribute == "http_status" and claim.unit is None for claim in found)


def test_the_worked_example_without_a_language_and_with_a_character_that_is_no_python() -> None:
    text = "def handle_payment_error(e: PaymentError) → Response: return JSONResponse(status_code=422, ...)"
    (claim,) = extract_claims(Passage(text=text, domain="code", path="src/payments/handlers.py"))
    assert (claim.kind, claim.attribute, claim.value, claim.unit) == ("http_status", "http_status", "422", None)
    assert claim.entity == "handle payment error"
    assert {"payment", "error", "handl"} <= set(claim.topics)
    assert "422" in text[claim.span.start : claim.span.end]
    assert claim.statement == text


def test_a_status_is_about_the_function_that_answers_it() -> None:
    text = "def refund(r):\n    return Response(status=409)\n\ndef charge(r):\n    return Response(status=402)\n"
    assert {(claim.entity, claim.value) for claim in claims(text)} == {("refund", "409"), ("charge", "402")}


def test_entity_and_topics_come_from_name_scope_and_file() -> None:
    text = "class WebhookSender:\n    def deliver(self, timeout=10): ...\n"
    (claim,) = claims(text, path="src/events/sender.py")
    assert claim.entity == "deliver"
    assert claim.topics == ("deliv", "event", "sender", "webhook")


def test_a_comment_above_says_what_a_bare_constant_is_about() -> None:
    comment = "// maxAttempts bounds how a transaction is repeated after a serialization failure."
    text = f"package ledger\n\n{comment}\nconst maxAttempts = 3\n"
    (claim,) = claims(text, "go", "ledger/ledger.go")
    assert {"transact", "serial", "ledger"} <= set(claim.topics)


def test_tests_and_examples_only_show() -> None:
    for path in ("tests/test_client.py", "examples/client.py", "src/client_test.go", "web/client.spec.ts"):
        assert {claim.mood for claim in claims("MAX_RETRIES = 5", path=path)} == {"example"}
    assert {claim.mood for claim in claims("MAX_RETRIES = 5", path="src/contest/client.py")} == {"stated"}


def test_spans_hold_the_value_as_written_and_count_from_the_passage() -> None:
    text = "é = 1\nMAX_BODY_BYTES = 2 * 1024\nWEBHOOK_TIMEOUT_SECONDS = 10  # see issue 12\n"
    passage = Passage(text=text, start=100, language="python", domain="code", path="a.py")
    said = [text[claim.span.start - 100 : claim.span.end - 100] for claim in code_claims(passage, "python")]
    assert said == ["MAX_BODY_BYTES = 2 * 1024", "WEBHOOK_TIMEOUT_SECONDS = 10"]


def test_a_method_cut_out_of_its_class_still_speaks() -> None:
    text = "    timeout_seconds = 30\n\n    def send(self, retries=3):\n        return self._post(retries"
    assert ("retries", "3", None) in told(text)


def test_a_table_of_flags_is_no_table_of_settings() -> None:
    text = "".join(f"#define FLAG_LIMIT_{at} (1 << {at})\n" for at in range(30))
    assert told(text, "c", "flags.h") == set()


def test_a_type_is_no_value() -> None:
    assert told('export type Currency = "EUR" | "USD";', "typescript") == set()
    assert told('type Region = "eu-west-1";', "typescript") == set()
