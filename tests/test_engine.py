"""The engine over a real workspace: wired once, watching the pointers, closing without a lost answer."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from questions import query, question_of
from recall_workspace import configure, current_file, publish, write_workspace
from waiting import WITHIN_S, until

from evals.searching import PathSearcher
from nornweave.ask.engine import DOMAIN_THREADS, Engine
from nornweave.ask.search.records import AgentState
from nornweave.config import RerankingSettings, Settings
from nornweave.core.access import OPERATOR
from nornweave.core.errors import NornWeaveError, QueryError, StoreError
from nornweave.core.types import Domain, present

QUERIES = ("payment error", "the", "handle_payment_error", "422 instead of 400", "zzz 🙂", '"shard 4"')


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    settings = write_workspace(tmp_path_factory.mktemp("engine"))
    publish(settings)
    return settings


@pytest.fixture(scope="module")
def engine(settings: Settings) -> Iterator[Engine]:
    with Engine(settings) as engine:
        yield engine


def states(engine: Engine) -> set[AgentState]:
    return {agent.state for agent in engine.agents.values()}


def since(before: set[threading.Thread]) -> list[str]:
    """Return the threads that came and are still there, but those for dense retrieval, which end with the process."""
    return [one.name for one in threading.enumerate() if one not in before and not one.name.startswith("dense-")]


def test_from_starting_to_offline(settings: Settings) -> None:
    before = set(threading.enumerate())
    engine = Engine(settings)
    assert list(engine.agents) == list(Domain)
    assert states(engine) == {AgentState.STARTING}
    engine.start()
    assert states(engine) == {AgentState.READY}
    engine.close()
    assert states(engine) == {AgentState.OFFLINE}
    assert since(before) == []
    with pytest.raises(StoreError, match="shutting down"):
        query(engine, question_of("payment"))
    engine.close()


def test_closing_ends_what_is_being_loaded(settings: Settings) -> None:
    """A thread that still loads when the interpreter ends aborts the process (SIGABRT)."""
    before = set(threading.enumerate())
    engine = Engine(settings)
    engine.start(wait=False)
    engine.close()
    assert since(before) == []
    assert states(engine) == {AgentState.OFFLINE}


def test_ctrl_c_while_it_starts_closes_it(settings: Settings) -> None:
    class Interrupted(Engine):
        def start(self, *, wait: bool = True, watch: bool = True) -> None:
            super().start(wait=False, watch=watch)
            raise KeyboardInterrupt

    before = set(threading.enumerate())
    engine = Interrupted(settings)
    with pytest.raises(KeyboardInterrupt), engine:
        pass
    assert states(engine) == {AgentState.OFFLINE}
    assert since(before) == []


def test_one_domain_alone(settings: Settings) -> None:
    with Engine(settings, [Domain.RESEARCH]) as engine:
        assert list(engine.agents) == [Domain.RESEARCH]
        assert query(engine, question_of("jitter"))["domains_queried"] == ["research"]
        with pytest.raises(QueryError, match="'code' is not served; there are: research"):
            query(engine, question_of("jitter", domains=(Domain.CODE,)))


def test_domains_with_one_encoder_share_it(engine: Engine) -> None:
    encoders = {id(agent.encoder()) for agent in engine.agents.values()}
    assert len(encoders) == 1


def test_cross_encoders_are_shared_by_model_and_device(engine: Engine) -> None:
    models = [RerankingSettings(model="m", device=device) for device in ("cpu", "cuda", "cuda")]
    cpu, cuda, again = (engine.models.reranker(model) for model in models)
    assert cuda is again is not cpu
    devices = [slot._load_model.keywords["device"] for slot in (cpu, cuda)]
    assert devices == ["cpu", "cuda"]


def test_a_publication_answers_within_seconds(tmp_path: Path) -> None:
    settings = write_workspace(tmp_path)
    with Engine(settings) as engine:
        assert states(engine) == {AgentState.DEGRADED}
        gaps = query(engine, question_of("zebra"))["coverage_gaps"]
        assert {gap["domain_id"] for gap in gaps} == {domain.value for domain in Domain}
        publish(settings, Domain.DOCUMENTATION)
        until(lambda: engine.agents[Domain.DOCUMENTATION].state is AgentState.READY)
        (tmp_path / "docs" / "zebra.md").write_text("# Zebra\n\nThe zebra endpoint returns 418.\n")
        publish(settings, Domain.DOCUMENTATION)
        until(lambda: engine.agents[Domain.DOCUMENTATION].health(OPERATOR)["generation"] == "gen-000002")
        result = query(engine, question_of("zebra endpoint"))
        assert result["items"][0]["citation"]["source_path"] == "zebra.md"
        assert result["coverage"]["documentation"]["generation"] == "gen-000002"
        (tmp_path / "docs" / "zebra.md").unlink()
        publish(settings, Domain.DOCUMENTATION)
        until(lambda: engine.agents[Domain.DOCUMENTATION].health(OPERATOR)["generation"] == "gen-000003")
        found = query(engine, question_of("zebra endpoint"))["items"]
        assert "zebra.md" not in {item["citation"]["source_path"] for item in found}, "what was deleted is gone"


def test_a_damaged_publication_is_survived_and_named(tmp_path: Path) -> None:
    settings = write_workspace(tmp_path)
    publish(settings, Domain.CODE)
    running, started_later = Engine(settings, [Domain.CODE]), Engine(settings, [Domain.CODE])
    running.start(watch=False)
    (tmp_path / "code/src/payments/ledger.py").write_text("def other():\n    pass\n")
    publish(settings, Domain.CODE)
    current_file(settings, Domain.CODE).write_bytes(b"garbage" * 1000)
    running.agents[Domain.CODE].refresh()
    started_later.start()
    for engine in (running, started_later):
        assert states(engine) == {AgentState.DEGRADED}
        result = query(engine, question_of("post_entry"))
        assert result["items"][0]["citation"]["title"] == "post_entry"
        assert "gen-000001 answers instead" in str(result["coverage"]["code"]["notices"])
        engine.close()


def test_closing_ends_what_is_running_and_waiting(settings: Settings) -> None:
    """More questions than there are threads, when the engine closes: each gets an answer, gaps or a clear error."""
    engine = Engine(settings)
    engine.start()

    def ask(number: int) -> bool:
        try:
            result = query(engine, question_of(f"payment error {number}"))
        except NornWeaveError as error:
            return "shutting down" in str(error)
        return bool(result["items"]) or bool(result["coverage_gaps"])

    clients = 3 * DOMAIN_THREADS
    with ThreadPoolExecutor(clients) as pool:
        asked = [pool.submit(ask, number) for number in range(clients)]
        until(lambda: any(one.done() for one in asked))
        engine.close()
        assert all(one.result(WITHIN_S) for one in asked)
    assert states(engine) == {AgentState.OFFLINE}


def test_many_clients_get_what_one_gets(engine: Engine) -> None:
    # What is asked at the same moment: an answer that comes later is older by the time between.
    questions = {text: question_of(text) for text in QUERIES}
    expected = {text: query(engine, question)["items"] for text, question in questions.items()}
    with ThreadPoolExecutor(24) as pool:
        asked = [(text, pool.submit(query, engine, questions[text])) for text in QUERIES * 10]
        for text, one in asked:
            assert one.result(WITHIN_S)["items"] == expected[text]


def test_what_is_measured_is_what_is_served(engine: Engine) -> None:
    for text in QUERIES:
        rankings = PathSearcher(engine.path).rankings(text, domains=None, filters={}, depth=10)
        stages = rankings.stages
        served = query(engine, question_of(text))["items"]
        measured = [(one.source_path, one.char_range) for one in stages["fused"]]
        assert rankings.confidence == pytest.approx(served[0]["score"]["value"], abs=1e-4)
        assert measured == [(one["citation"]["source_path"], tuple(one["citation"]["char_range"])) for one in served]
        assert set(stages) == {"dense", "sparse", "fulltext", "structured", "combined", "merged", "fused"}
        assert all(len(found) <= 10 for found in stages.values())
        # Without a reranker what is merged is what was combined.
        assert [one.source_path for one in stages["combined"]] == [one.source_path for one in stages["merged"]]


def test_rankings_of_nothing_published_are_an_error(tmp_path: Path) -> None:
    with Engine(write_workspace(tmp_path)) as engine, pytest.raises(StoreError, match="nornweave sync"):
        PathSearcher(engine.path).rankings("payment", domains=None, filters={}, depth=10)


def test_documents_are_known_by_their_paths(engine: Engine, tmp_path: Path) -> None:
    paths = ["api.md", "src/payments/ledger.py", "ops.log", "storms.md", "nowhere.md"]
    assert PathSearcher(engine.path).domain_of(paths) == {
        "api.md": Domain.DOCUMENTATION,
        "src/payments/ledger.py": Domain.CODE,
        "ops.log": Domain.CONVERSATIONS,
        "storms.md": Domain.RESEARCH,
    }
    with Engine(write_workspace(tmp_path)) as unpublished:
        assert PathSearcher(unpublished.path).domain_of(paths) == {}


def test_an_encoder_that_is_not_there_leaves_three_sources(settings: Settings) -> None:
    changed = configure(settings.file.parent, {"code": {"embedding": {"model": "hash:nonsense"}}})
    with Engine(changed) as engine:
        assert engine.agents[Domain.CODE].state is AgentState.DEGRADED
        result = query(engine, question_of("payment error"))
    configure(settings.file.parent)
    assert result["coverage"]["code"]["retrieval"]["dense"] == "failed"
    assert "hash:nonsense" in str(result["coverage"]["code"]["notices"])
    assert result["coverage"]["documentation"]["retrieval"]["dense"] == "ok"


PROCESS = """
import json, sys
from datetime import datetime
from pathlib import Path
from nornweave.core.access import OPERATOR
from nornweave.ask.engine import Engine
from nornweave.ask.search.question import Question
from nornweave.connect.connectors import load_settings
with Engine(load_settings(Path(sys.argv[1]), {})) as engine:
    for text in json.loads(sys.argv[2]):
        now = datetime.fromisoformat(sys.argv[3])
        question = Question(text=text, top_k=100, expand="on", explain=True, now=now, viewer=OPERATOR)
        result = engine.as_seen_by(OPERATOR).answers.query(question)
        print(json.dumps([result["items"], result["domains_queried"], list(result["coverage"])]))
assert "torch" not in sys.modules and "dagster" not in sys.modules
"""


def test_two_processes_agree_to_the_last_digit(settings: Settings) -> None:
    """Ties, sums and sets must not depend on how a process hashes strings."""
    configure(settings.file.parent)
    now = present().isoformat()
    outputs = [
        subprocess.run(
            [sys.executable, "-c", PROCESS, str(settings.file), json.dumps(QUERIES), now],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[1])},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "4711")
    ]
    assert outputs[0] == outputs[1]
    assert len(outputs[0].splitlines()) == len(QUERIES)
    assert json.loads(outputs[0].splitlines()[0])[0]
