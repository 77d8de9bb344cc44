"""The worker process that reads files into facts until its pipe is closed; ``reading`` starts it."""

from __future__ import annotations

import signal
import sys
from contextlib import suppress
from multiprocessing.connection import Connection

from nornweave.core.errors import DocumentError
from nornweave.core.text.decode import decode
from nornweave.core.types import Fact
from nornweave.disagree.drift.files import SourceFile
from nornweave.disagree.drift.kinds import format_of, is_minified
from nornweave.disagree.facts.extract import extract_facts
from nornweave.disagree.facts.passage import Passage
from nornweave.read.chunking.languages import language_of
from nornweave.read.generated import is_generated


def facts_of(file: SourceFile, raw: bytes) -> tuple[Fact, ...]:
    """Read one file.

    Returns:
        Nothing for generated, minified and empty files.

    Raises:
        DocumentError: it is no text.
    """
    if not raw.strip():
        return ()
    text = decode(raw)
    language = language_of(file.path) if file.kind == "code" else None
    if language and (is_generated(text) or is_minified(text)):
        return ()
    return extract_facts(
        Passage(text=text, domain=file.kind, language=language, format=format_of(file.path), path=file.path)
    )


def serve(pipe: Connection) -> None:
    """Announce that everything is loaded, then answer each file with its facts or an error."""
    pipe.send(None)
    with suppress(EOFError, OSError):
        while True:
            file, raw = pipe.recv()
            try:
                pipe.send(facts_of(file, raw))
            except DocumentError as error:
                pipe.send(str(error))
            except Exception as error:  # one file never stops the others
                pipe.send(f"{type(error).__name__}: {error}"[:300])


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, which then ends this process
    with Connection(int(sys.argv[1])) as connection:
        serve(connection)
