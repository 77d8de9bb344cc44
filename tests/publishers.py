"""A workspace that publishes to a store, and replicas that follow it, without processes of their own."""

import atexit
import json
import shutil
import tempfile
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from questions import query
from recall_workspace import publish, write_workspace

from nornweave.ask.engine import Engine
from nornweave.ask.search.question import Question
from nornweave.carry.follower import Follower
from nornweave.carry.parts import ObjectStore
from nornweave.carry.publication import Published, Standing, read_standing, standing_file
from nornweave.carry.publishing import publish_domains
from nornweave.carry.wiring import store_of
from nornweave.config import PublishSettings, Settings
from nornweave.connect.connectors import load_settings
from nornweave.core.access import OPERATOR, Viewer
from nornweave.core.types import Domain, GenerationId, present
from nornweave.index.generations.publish import GenerationFiles

DOCUMENTATION = Domain.DOCUMENTATION


@cache
def _published() -> Path:
    """Return a workspace whose documentation is published here, made once: every publisher begins with a copy."""
    folder = Path(tempfile.mkdtemp(prefix="nornweave-published-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    publish(write_workspace(folder), DOCUMENTATION)
    return folder


class Publisher:
    """The documentation of a small workspace, published here, and copied when it is told to."""

    def __init__(self, folder: Path, publish_to: Mapping[str, Any]) -> None:
        shutil.copytree(_published(), folder)
        self.file = folder / "nornweave.yaml"
        self.configure(publish=dict(publish_to))

    def configure(self, **keys: Any) -> None:
        """Set keys of the configuration; of sources only the documentation's stays."""
        configured = json.loads(self.file.read_text(encoding="utf-8"))
        configured["sources"] = [one for one in configured["sources"] if one["domain"] == "documentation"]
        self.file.write_text(json.dumps({**configured, **keys}), encoding="utf-8")

    @property
    def settings(self) -> Settings:
        """Read the configuration."""
        return load_settings(self.file, {})

    @property
    def files(self) -> GenerationFiles:
        """Return the generations of the documentation."""
        return store_of(self.settings, DOCUMENTATION).files

    @property
    def store(self) -> ObjectStore:
        """Return the store that is published to."""
        assert self.settings.publish
        return ObjectStore(self.settings.publish)

    def change(self, sentence: str) -> GenerationId:
        """Say something new and publish it here."""
        (self.file.parent / "docs" / "news.md").write_text(f"# News\n\n{sentence}\n", encoding="utf-8")
        publish(self.settings, DOCUMENTATION)
        current = self.files.current()
        assert current
        return current

    def copy(self, **options: bool) -> Published | str | None:
        """Copy what is published to the store."""
        return publish_domains(self.settings, [DOCUMENTATION], **options)[DOCUMENTATION]

    def number(self, **options: bool) -> int:
        """Copy what is published; return the number that the store has it under."""
        copied = self.copy(**options)
        assert isinstance(copied, Published), copied
        return copied.number

    def lose_disk(self) -> None:
        """Remove everything but the sources and the configuration."""
        shutil.rmtree(self.settings.data_dir)


class Replica:
    """A follower that looks when it is told to."""

    def __init__(
        self,
        folder: Path,
        publish_to: Mapping[str, Any],
        access: Mapping[str, Any] | None = None,
        *,
        keys: Collection[str] = (),
    ) -> None:
        self.folder = folder
        store = ObjectStore(PublishSettings.model_validate(publish_to))
        self.follower = Follower(store, folder, {"access": access}, keys=keys)

    def look(self) -> str | None:
        """Look at the store once; return the generation that is complete here."""
        if self.follower._settings is None:
            assert self.follower.prepare()
        self.follower.poll()
        return self.files.current()

    @property
    def files(self) -> GenerationFiles:
        """Return the generations of the documentation."""
        return store_of(self.follower.settings, DOCUMENTATION).files

    @property
    def standing(self) -> Standing | None:
        """Return what the replica has noted."""
        return read_standing(standing_file(self.follower.settings.data_dir))

    @property
    def problem(self) -> str:
        """Return what the replica says is wrong with the documentation or the store."""
        standing = self.standing
        assert standing
        return standing.problem or standing.domains["documentation"].problem or ""

    def answers(self, text: str, viewer: Viewer = OPERATOR) -> list[str]:
        """Return the contents that answer a question."""
        with Engine(self.follower.settings, watch=False) as engine:
            asked = Question(text=text, now=present(), viewer=viewer, top_k=20)
            return [item["content"] for item in query(engine, asked)["items"]]
