"""Why an object store cannot be used, in words: what the client says is long, and names neither variable nor key."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from nornweave.config.object_store import ObjectStoreSettings

SILENT_S = 15

_CREDENTIALS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}
# Where a machine in a cloud finds its own credentials: asked when the environment has none.
_METADATA = re.compile(r"169\.254\.\d+\.\d+|/latest/(?:api/token|meta-data)|computeMetadata|metadata/identity")
_SYSTEM_MESSAGE = re.compile(r'(?:message|error): "([^"]{1,200})"')


def refusal(settings: ObjectStoreSettings) -> str:
    """Say what to look at when the store answers 401 or 403."""
    return (
        f"the store refuses; check {_credentials(settings)}, and that they may list the bucket: without that right, "
        "what is not there yet is refused too"
    )


def reason(error: BaseException, settings: ObjectStoreSettings) -> str:
    """Say why a request failed, from what the client says."""
    text = str(error)
    place = settings.endpoint or "the store"
    if _METADATA.search(text):
        return (
            f"no credentials: {_credentials(settings)} are not set in the environment of this process, and the "
            "machine has none of its own (no cloud's metadata service gives any)"
        )
    if "NoSuchBucket" in text:
        return f"there is no bucket {urlsplit(settings.url).netloc!r} at {place}; check the address"
    if "BadScheme" in text:
        return f"{place} is not encrypted; allow that with 'allow_http: true' or AWS_ALLOW_HTTP=true"
    if "InvalidContentType" in text:
        return f"{place} does not speak TLS; is it http:// instead?"
    if "incorrectly configured region" in text or "AuthorizationHeaderMalformed" in text:
        return "the bucket is in another region; set 'region' or AWS_REGION"
    if "kind: Timeout" in text or "TimedOut" in text:
        return f"{place} did not answer for {SILENT_S} s"
    if "kind: Connect" in text:
        said = _SYSTEM_MESSAGE.search(text)
        return f"{place} cannot be reached" + (f": {said[1]}" if said else "")
    return _first_line(text) or type(error).__name__


def _credentials(settings: ObjectStoreSettings) -> str:
    return _CREDENTIALS.get(urlsplit(settings.url).scheme, "its rights")


def _first_line(text: str) -> str:
    """Return what went wrong without the debugging output below it."""
    return text.partition("\n")[0][:500]
