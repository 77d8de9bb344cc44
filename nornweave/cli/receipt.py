"""``nornweave receipt``: sign that nothing holds a deleted document, or name the places that do. ``nornweave key``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nornweave.cli.options import DOMAIN, JsonOption, messages, output, settings_of
from nornweave.config import Settings
from nornweave.core.deletion import Deleted, Place, Search, look, read_receipt, signed_receipt, store_receipt
from nornweave.core.errors import ConfigError, NornWeaveError
from nornweave.core.signatures import NEXT, check_signed, own_keys, public_key, rotate, signer_of
from nornweave.core.text.terminal import print_json, print_text
from nornweave.core.types import Domain

if TYPE_CHECKING:
    from nornweave.index.port import Writer

WAIT_S = 60.0
REPLICA_S = 600.0


def receipt(
    context: typer.Context,
    path: Annotated[
        str | None, typer.Argument(metavar="PATH", help="The document, as citations name it.", show_default=False)
    ] = None,
    domain: Annotated[Domain | None, typer.Option(metavar="D", help="Its domain.", **DOMAIN)] = None,
    source: Annotated[str | None, typer.Option(metavar="ID", help="Its source.")] = None,
    purge: Annotated[
        bool, typer.Option(help="Remove what is left of it, kept generations that have it included.")
    ] = False,
    containing: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="Also search every file for these bytes; may be repeated.")
    ] = None,
    replica: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL",
            help="Also ask this replica; its token is read from NORNWEAVE_SERVICE_TOKEN. May be repeated.",
        ),
    ] = None,
    verify: Annotated[Path | None, typer.Option(metavar="FILE", help="Check the signature of a receipt.")] = None,
    key: Annotated[
        list[str] | None, typer.Option(help="With --verify: a public key that is trusted. Default: this workspace's.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Sign that nothing here holds a deleted document; if something does, name the places and exit with 1."""
    settings = settings_of(context)
    if verify:
        _verify(settings, verify, key or (), as_json=as_json)
        return
    deleted = _identify_document(settings, path, domain, source)
    made = make_receipt(settings, deleted, purge=purge, containing=containing or (), replicas=replica or ())
    _print(made, store_receipt(settings.data_dir, made), as_json=as_json)
    sys.exit(0 if made["gone"] else 1)


def key(
    context: typer.Context,
    next_key: Annotated[bool, typer.Option("--next", help="Make the next key, and print its public key.")] = False,
    rotate_key: Annotated[bool, typer.Option("--rotate", help="Let the next key sign from now on.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Print the public key with which this workspace signs receipts and publications to object storage."""
    data_dir = settings_of(context).data_dir
    signer = signer_of(data_dir, NEXT) if next_key else rotate(data_dir) if rotate_key else signer_of(data_dir)
    if as_json:
        print_json({"public_key": signer.public_key, "former": list(own_keys(data_dir)[1:])})
    else:
        print_text(signer.public_key)


def make_receipt(
    settings: Settings, deleted: Deleted, *, purge: bool, containing: Sequence[str] = (), replicas: Sequence[str] = ()
) -> dict[str, Any]:
    """Search every place and return the signed receipt. With ``purge``, remove the remains first.

    A document that is still indexed is not purged: the receipt says that a sync has to come first.

    Raises:
        DomainBusyError: a sync of the domain is under way.
    """
    from nornweave.cli.receipt_places import known_text, places_of
    from nornweave.index.port import Remains

    if purge:
        _write_files_again(settings, deleted)
    with _writer(settings, deleted.domain) as writer:
        deleted = known_text(settings, deleted)
        deleted = replace(deleted, passages=(*deleted.passages, *(text.encode() for text in containing)))
        places = places_of(settings, deleted, writer)
        needs_sync = ("published generation", Remains.ROWS.value)
        purge = purge and not any(place.search(deleted).found for place in places if place.name in needs_sync)
        if purge:
            for place in places:
                if place.purge:
                    place.purge(deleted)
        others = [_replica(url, purge=purge) for url in replicas]
        looked = [look(place, deleted) for place in (*places, *others)]
    if purge:
        _tell_store(settings)
    return dict(signed_receipt(deleted, looked, signer_of(settings.data_dir), purged=purge))


def _write_files_again(settings: Settings, deleted: Deleted) -> None:
    """Publish the generation in new files if its old files still hold the document's bytes."""
    from nornweave.carry.publishing import publish_after_sync

    with _writer(settings, deleted.domain) as writer:
        has_published = writer is not None and writer.write_again(deleted)
    if has_published:
        publish_after_sync(settings, deleted.domain)


@contextmanager
def _writer(settings: Settings, domain: Domain) -> Iterator[Writer | None]:
    """Yield the locked writer of the domain, so that nothing changes meanwhile; ``None`` on a replica."""
    from nornweave.carry.wiring import encoder_of, store_of

    if settings.replica_of:
        yield None
        return
    published = store_of(settings, domain).published_facts()
    encoder = encoder_of(settings, settings.domains[domain], like=published.get("encoder"))
    tokens = published.get("token_vectors", "")
    store = store_of(settings, domain, dimensions=encoder.dimensions, token_vectors=tokens)
    with store.writer(wait_s=WAIT_S, purpose="receipt") as writer:
        yield writer


def _tell_store(settings: Settings) -> None:
    """Publish the ledger again, so that replicas get it without the removed entries."""
    from nornweave.carry.publishing import refresh_workspace

    refresh_workspace(settings)


def _identify_document(settings: Settings, path: str | None, domain: Domain | None, source: str | None) -> Deleted:
    """Return the named document. A missing domain or source is found in the configuration or in kept generations.

    Raises:
        ConfigError: no document is named, or several fit.
    """
    if path is None:
        raise ConfigError("PATH is missing: the document that is to be gone")
    from nornweave.carry.wiring import INBOX, store_of

    if domain and source:
        return Deleted(domain=domain, source_id=source, path=path)
    domains = [domain] if domain else list(settings.served_domains)
    pairs = [
        (each, name)
        for each in domains
        for name in dict.fromkeys([*(one.id for one in settings.sources_of(each)), INBOX])
        if source in {None, name}
    ]
    if len(pairs) > 1:
        knowing = [pair for pair in pairs if _is_known(store_of(settings, pair[0]), *pair, path)]
        pairs = knowing or [pair for pair in pairs if pair[1] != INBOX]
    if len(pairs) != 1:
        choices = ", ".join(f"--domain {each.value} --source {name}" for each, name in pairs) or "none is configured"
        raise ConfigError(f"{path!r}: say which document is meant: {choices}")
    return Deleted(domain=pairs[0][0], source_id=pairs[0][1], path=path)


def _is_known(store: Any, domain: Domain, source: str, path: str) -> bool:
    deleted = Deleted(domain=domain, source_id=source, path=path)
    return any(store.texts_of(generation, deleted) for generation in store.generations())


def _replica(url: str, *, purge: bool) -> Place:
    """Return a place that asks a replica for its own receipt. With ``purge``, the replica first removes remains."""

    def search(deleted: Deleted) -> Search:
        import httpx

        token = os.environ.get("NORNWEAVE_SERVICE_TOKEN")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        body = {"domain": deleted.domain.value, "source_id": deleted.source_id, "source_path": deleted.path}
        try:
            answer = httpx.post(
                f"{url.rstrip('/')}/receipts", json={**body, "purge": purge}, headers=headers, timeout=REPLICA_S
            )
            document = answer.json()
            answer.raise_for_status()
            holding = tuple(place["place"] for place in document["places"] if place["found"])
        except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
            raise NornWeaveError(f"{url}: gives no receipt: {error}") from error
        return Search(len(holding), f"its own receipt {document['id']}", holding)

    return Place(name=f"replica {url}", search=search)


def _verify(settings: Settings, file: Path, keys: Sequence[str], *, as_json: bool) -> None:
    for each in keys:
        try:
            public_key(each)
        except ValueError as error:
            raise ConfigError(f"--key {each!r}: {error}") from error
    made = read_receipt(file)
    check_signed(made, keys or own_keys(settings.data_dir))
    if as_json:
        print_json({"valid": True, "gone": made.get("gone"), "signed_by": made["signed_by"]})
    else:
        said = "gone" if made.get("gone") else "not gone"
        output.print(f"valid: {made.get('source_id')}/{made.get('source_path')} was {said} at {made.get('signed_at')}")


def _print(made: dict[str, Any], file: Path, *, as_json: bool) -> None:
    if as_json:
        print_json(made)
        return
    for place in made["places"]:
        left = f": {', '.join(place['left'])}" if place.get("left") else ""
        output.print(f"{place['found']:>6}  {place['place']} ({place['through']}){left}", soft_wrap=True)
    output.print(f"receipt {made['id']}, signed: {file}", soft_wrap=True)
    name = f"{made['source_id']}/{made['source_path']}"
    if made["gone"]:
        output.print(f"{name} is gone", style="green")
        return
    for place in made["places"]:
        if place["found"]:
            messages.print(f"{place['place']}: {place['remedy']}", style="yellow", soft_wrap=True)
    messages.print(f"{name} is not gone", style="red", soft_wrap=True)
