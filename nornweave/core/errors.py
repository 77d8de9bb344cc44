"""The error tree.

::

    NornWeaveError
    ├── ConfigError            nornweave.yaml, a domain file or the environment is wrong: key, value, what is allowed
    ├── SourceUnavailableError a whole source cannot be listed (missing path, broken export, API refuses)
    ├── DocumentError          one document cannot be ingested; the others go on
    │   ├── DocumentSkipped    nothing to ingest there by design (binary, generated, vendored, empty code file)
    │   ├── ReaderLostError    reading it took too much time or memory, or ended the process that did
    │   └── TransientDocumentError   may pass by itself (permission, I/O, rate limit): tried again at every sync
    ├── EncoderError           a model cannot be loaded or answers with the wrong shape
    ├── StoreError             the working file or a generation cannot be read or written
    │   ├── DiskFullError      no space is left; the message says on which disk and what to do
    │   ├── HistoryError       what Dagster records of runs cannot be read or written; documents and index are elsewhere
    │   ├── DomainBusyError    another process is writing this domain
    │   ├── LeaseLostError     another machine has taken over this domain
    │   ├── NoGenerationError  nothing is published yet
    │   └── GenerationNotKeptError   an older generation is asked for that is not kept (HTTP: 404)
    ├── PublicationError       an object store cannot be reached, refuses, or holds what is damaged
    │   ├── MissingObjectError the store has no such object
    │   └── PublisherConflictError   another publisher was there first
    ├── QueryError             a query is wrong: field, value, what is allowed (HTTP: 422)
    ├── NotPermittedError      the viewer may not do or see this (HTTP: 403)
    ├── RerankerError          a cross-encoder cannot be loaded or fails; the combined order stands
    ├── ReconciliationError    an invariant of the store does not hold; nothing is published
    ├── AgentError             an agent on another machine gives no answer, or none that can be used
    │   └── ConflictingAgentError  an agent cannot be registered: its name is taken, or there are too many
    ├── QualityError           a candidate answers worse than what is published
    ├── ConfirmationError      what a person confirmed cannot be written, or does not count
    └── SignatureError         a document is not signed by a key that is trusted, or was changed since

Foreign errors are translated where they enter, ``from error``. A message says what was found, what was expected, where,
and what to do.
"""

import math


class NornWeaveError(Exception):
    """Anything that NornWeave raises on purpose."""


class ConfigError(NornWeaveError):
    """Configuration is wrong; the message names the key, the value and what is allowed."""


class SourceUnavailableError(NornWeaveError):
    """A source cannot be listed. Its missing documents do not count as removed."""


EMPTY = "empty:"
"""What the reason of a document without text begins with: nothing is wrong with its file."""


class DocumentError(NornWeaveError):
    """One document cannot be ingested; ``str(error)`` is the reason shown to people."""


class DocumentSkipped(DocumentError):  # noqa: N818 - not a failure: the document is left out on purpose
    """A document is left out on purpose. It counts as not listed."""


class ReaderLostError(DocumentError):
    """Reading a document exceeded its time or memory limit, or crashed the reading process.

    Attributes:
        cpu_s: seconds of processor time that the reading may have taken.
    """

    def __init__(self, reason: str, cpu_s: float = math.inf) -> None:
        super().__init__(reason)
        self.cpu_s = cpu_s


class TransientDocumentError(DocumentError):
    """A document cannot be read now but perhaps later. Every sync tries it again."""


class EncoderError(NornWeaveError):
    """An embedding model cannot be loaded, or its output is not what the domain declares."""


class StoreError(NornWeaveError):
    """The working file or a generation cannot be read or written."""


class DiskFullError(StoreError):
    """No space is left on a disk that is written to."""


class HistoryError(StoreError):
    """Dagster's records of runs cannot be read or written; the message names the file and a remedy."""


class DomainBusyError(StoreError):
    """Another process holds the domain's writer lock. The message says which process."""


class LeaseLostError(StoreError):
    """Another machine has taken over the domain, so this process must not publish anything more."""


class NoGenerationError(StoreError):
    """Nothing is published for a domain yet."""


class GenerationNotKeptError(StoreError):
    """The generation of the requested time is not kept; the message names the oldest one that is kept."""


class PublicationError(NornWeaveError):
    """Generations cannot be copied to an object store or read from it."""


class MissingObjectError(PublicationError):
    """An object store has no such object."""


class PublisherConflictError(PublicationError):
    """Another publisher wrote to the same place first; this one published nothing."""


class QueryError(NornWeaveError):
    """A query is invalid. ``field`` is the path of the wrong value, such as ``filters.code.since``."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


class NotPermittedError(NornWeaveError):
    """A viewer may not do or see something that concerns the whole service; the message says who may."""


class RerankerError(NornWeaveError):
    """A cross-encoder cannot be found, loaded or run. Answers are made without it and say so."""


class ReconciliationError(NornWeaveError):
    """The counts of listed, stored, embedded and indexed items do not agree. The candidate must not be published."""


class QualityError(NornWeaveError):
    """A candidate is worse than the published generation; the message names the judged sets."""


class ConfirmationError(NornWeaveError):
    """A confirmation cannot be written, or it is forged, used, too old or about something else."""


class SignatureError(NornWeaveError):
    """A document is unsigned, signed by a key that is not trusted, or changed after it was signed."""


class AgentError(NornWeaveError):
    """A remote agent gives no usable answer; the message becomes the reason of a coverage gap."""


class ConflictingAgentError(AgentError):
    """An agent cannot be registered: its name is taken, or there are too many agents."""
