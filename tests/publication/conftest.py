"""An S3 server for all tests of the folder, and for each test an address of its own."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from publishers import Publisher
from s3_proxy import Proxy, proxy_to

from lab.s3_server import BUCKET, s3_server


@pytest.fixture(scope="session")
def s3() -> Iterator[int]:
    with s3_server() as port:
        yield port


@pytest.fixture
def proxy(s3: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-a-secret-but-never-shown")
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AWS_ALLOW_HTTP", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    with proxy_to(s3) as passing:
        yield passing


@pytest.fixture
def publish_to(proxy: Proxy) -> dict[str, object]:
    return {
        "url": f"s3://{BUCKET}/{uuid.uuid4().hex}",
        "endpoint": proxy.url,
        "region": "us-east-1",
        "allow_http": True,
    }


@pytest.fixture
def publisher(tmp_path: Path, publish_to: dict[str, object]) -> Publisher:
    return Publisher(tmp_path / "publisher", publish_to)
