"""When sources last confirmed what is published, from the sync to the answer."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from questions import query
from typer.testing import CliRunner
from workspace_support import HASHED

from lab.apis.server import Reply, serving
from lab.apis.site import SiteServer
from nornweave.ask.engine import Engine
from nornweave.ask.search.question import Question
from nornweave.ask.views.answer import FusionResult
from nornweave.ask.views.status import status_document
from nornweave.carry.wiring import domain_folder, store_of
from nornweave.cli.main import app
from nornweave.config import Settings
from nornweave.connect.connectors import load_settings
from nornweave.core.access import OPERATOR, Viewer
from nornweave.core.types import Domain, Entry, GenerationId, Listing, present
from nornweave.index.outcomes import VERIFIED, Verified, VerifiedFile, VerifiedSource, read_verified, write_verified
from nornweave.ingest.diff import Unavailable
from nornweave.ingest.pipeline import verified_by

NOON, ONE, TWO = (datetime(2026, 1, 1, hour, tzinfo=UTC) for hour in (12, 13, 14))
LIMITED = Reply(b"", 429, {"retry-after": "9999"})
G1 = GenerationId("gen-000001")


def texts(*moments: datetime) -> tuple[str, ...]:
    return tuple(moment.isoformat().replace("+00:00", "Z") for moment in moments)


def test_what_a_source_does_not_confirm_keeps_its_moment() -> None:
    noon, one, two = texts(NOON, ONE, TWO)
    before = Verified(G1, {"a": VerifiedSource(noon, noon, {"failed": None}), "b": VerifiedSource(one, one)})
    listing = Listing(
        (
            Entry(path="seen", gate=""),
            Entry(path="old", gate="", verified_at=ONE),
            Entry(path="failed", gate=""),
            Entry(path="new", gate=""),
        )
    )
    listings: Mapping[str, Listing | Unavailable] = {"a": listing, "b": Unavailable("is down")}
    unconfirmed = {("a", "failed"), ("a", "held"), ("b", "x")}
    after = verified_by(listings, before, G1, TWO, unconfirmed=unconfirmed)
    shown = {path: after.sources["a"].of(path) for path in ("seen", "new", "old", "failed", "held")}
    assert shown == {"seen": two, "new": two, "old": one, "failed": None, "held": noon}
    assert (after.sources["a"].listed_at, after.sources["a"].oldest) == (two, None)
    assert after.sources["b"] == before.sources["b"]


def test_a_listing_that_ended_early_is_not_complete() -> None:
    noon, one, two = texts(NOON, ONE, TWO)
    before = Verified(G1, {"a": VerifiedSource(noon, noon)})
    early = Listing((Entry(path="x", gate=""),), problem="a folder cannot be read")
    mirrored = Listing((Entry(path="x", gate="", verified_at=ONE),), problem="is down", listed_at=ONE)
    assert verified_by({"a": early}, before, G1, TWO, unconfirmed=()).sources["a"] == VerifiedSource(noon, two)
    assert verified_by({"a": mirrored}, before, G1, TWO, unconfirmed=()).sources["a"] == VerifiedSource(one, one)


def test_the_file_holds_for_its_generation_and_is_read_again_when_it_changes(tmp_path: Path) -> None:
    file = VerifiedFile(tmp_path)
    assert file.of(G1) == Verified()
    for moment in texts(NOON, ONE):
        written = Verified(G1, {"a": VerifiedSource(moment, moment)})
        write_verified(tmp_path, written)
        assert file.of(G1) == written
        assert file.of("gen-000002") == Verified()
    (tmp_path / VERIFIED).write_text('{"generation": 1, "sources": {"a": {"x": 1}}}')
    assert file.of(G1) == Verified()


@pytest.mark.slow
def test_answers_say_when_a_source_confirmed_what_they_cite_and_how_soon_a_change_counts(tmp_path: Path) -> None:
    with serving(SiteServer(has_sitemap=False)) as site:
        assert isinstance(site, SiteServer)
        site.put("/guide/", "Home of the zebracorn.", links=["zebracorn.html", "beta.html", "gamma.html"])
        site.put("/guide/zebracorn.html", "A zebracorn returns 418.")
        site.put("/guide/beta.html", "Beta is stable.")
        site.put("/guide/gamma.html", "Gamma comes after beta.")
        settings = configured(tmp_path, site)
        began = present().replace(microsecond=0)
        assert synced(tmp_path) == 0
        first = places(ask(settings))
        assert set(first) == {f"guide/{name}.html" for name in ("zebracorn", "beta", "gamma", "index")}
        assert all(began <= moment <= present() for moment in first.values() if moment)

        wait_a_second()
        assert synced(tmp_path) == 0  # nothing changed, nothing is published, and what is there is confirmed again
        answer = ask(settings)
        assert answer["coverage"]["documentation"]["generation"] == G1
        second = places(answer)
        assert all(first[path] < second[path] for path in first)  # type: ignore[operator]
        told = answer["coverage"]["documentation"]["sources"]["manual"]
        status = status_document(settings, Domain.DOCUMENTATION)["sources"]["manual"]
        assert told == {"listed_at": status["listed_at"], "bound": status["bound"]}
        assert "within 24 h" in status["bound"]
        assert datetime.fromisoformat(status["listed_at"] or "") < min(filter(None, second.values()))

        site.before = lambda _: site.faults.append(Reply(b"Sorry", 503))
        assert synced(tmp_path) == 1
        assert places(ask(settings)) == second
        site.before = lambda _: None
        site.faults.clear()

        site.delete("/guide/zebracorn.html")
        assert synced(tmp_path) == 0
        third = places(ask(settings))
        assert set(third) == {"guide/beta.html", "guide/gamma.html", "guide/index.html"}

        site.delete("/guide/beta.html")  # and the site fails right after it said so
        site.before = lambda request: site.faults.append(LIMITED) if "gamma" in request.path else None
        assert synced(tmp_path) == 1
        site.before = lambda _: None
        site.faults.clear()
        assert set(places(ask(settings))) == {"guide/gamma.html", "guide/index.html"}

        store_of(settings, Domain.DOCUMENTATION).rollback(G1)
        assert set(places(ask(settings)).values()) == {None}, "nothing was confirmed of what was given up"
        assert synced(tmp_path) == 0
        assert set(places(ask(settings)).values()) == {None}


def test_who_may_see_only_some_documents_is_told_of_their_sources_alone(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "board").mkdir()
    (tmp_path / "open/a.md").write_text("# Zebracorn\n\nA zebracorn returns 418.\n")
    (tmp_path / "board/b.md").write_text("# Merger\n\nThe merger is near.\n")
    sources = [
        {"id": "open", "domain": "documentation", "type": "files", "path": "open"},
        {"id": "board", "domain": "documentation", "type": "files", "path": "board", "access": ["board"]},
    ]
    settings = written(tmp_path, {"sources": sources, "access": {"tokens": "tokens.yaml"}})
    (tmp_path / "tokens.yaml").write_text("{}\n")
    assert synced(tmp_path) == 0
    assert {"open", "board"} <= ask(settings)["coverage"]["documentation"]["sources"].keys()
    outsider = Viewer(name="eve", groups=frozenset())
    assert ask(settings, outsider)["coverage"]["documentation"]["sources"].keys() == {"open"}
    assert (read_verified(domain_folder(settings, Domain.DOCUMENTATION)).sources["board"].verified_at or "") > ""


def configured(folder: Path, site: SiteServer) -> Settings:
    source = {"id": "manual", "domain": "documentation", "type": "web", "url": f"{site.url}/guide/"}
    return written(folder, {"sources": [source]})


def written(folder: Path, keys: Mapping[str, object]) -> Settings:
    file = folder / "nornweave.yaml"
    file.write_text(yaml.safe_dump({"data_dir": "var", "domains": {"documentation": HASHED}, **keys}))
    return load_settings(file, {})


def synced(folder: Path) -> int:
    result = CliRunner().invoke(app, ["--config", str(folder / "nornweave.yaml"), "sync", "--json"])
    print(result.output)  # noqa: T201 - pytest shows it when the test fails
    return result.exit_code


def ask(settings: Settings, viewer: Viewer = OPERATOR) -> FusionResult:
    with Engine(settings, settings.served_domains, watch=False) as engine:
        return query(engine, Question(text="zebracorn beta home", now=present(), viewer=viewer, top_k=20))


def places(answer: FusionResult) -> dict[str, datetime | None]:
    cited = [item["citation"] for item in json.loads(json.dumps(answer["items"]))]
    return {
        each["source_path"]: datetime.fromisoformat(each["verified_at"]) if each["verified_at"] else None
        for each in cited
    }


def wait_a_second() -> None:
    """Wait until moments have another second."""
    second = present().second
    while present().second == second:
        pass
