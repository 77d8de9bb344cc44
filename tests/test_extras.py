"""Where the package of an extra is missing, what needs it says which extra to install."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from nornweave.core.errors import ConfigError
from nornweave.core.extras import optional

CASES = {
    "office": ("openpyxl", "from nornweave.read.formats.reader import read_converted; read_converted('xlsx', b'PK')"),
    "llm": ("litellm", "from nornweave.models.runtimes import import_litellm; import_litellm()"),
    "objects": (
        "obstore",
        "from nornweave.config.publish import ObjectStoreSettings as Settings\n"
        "from nornweave.index.object_store import ObjectStore\n"
        "ObjectStore(Settings(url='file:///nowhere')).get('key')",
    ),
    "ui": (
        "dagster_webserver",
        "from nornweave.core.extras import optional\n"
        "with optional('ui', 'the Dagster UI'):\n    import orchestration.webserver",
    ),
    "postgresql": (
        "dagster_postgres",
        "from pathlib import Path\n"
        "from nornweave.connect.connectors import load_settings\n"
        "from orchestration.instance import write_instance\n"
        "Path('code').mkdir()\n"
        "Path('n.yaml').write_text('sources: [{id: a, domain: code, type: files, path: code}]')\n"
        "settings = load_settings(Path('n.yaml'), {})\n"
        "write_instance(settings, {'NORNWEAVE_DAGSTER_POSTGRES_URL': 'postgresql://u:p@localhost/d'})",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("extra", CASES)
def test_a_missing_package_names_its_extra(extra: str, tmp_path: Path) -> None:
    package, statements = CASES[extra]
    script = f"import sys; sys.modules[{package!r}] = None\n{statements}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, cwd=tmp_path)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("nornweave.core.errors.") and "Error: " in last, done.stderr
    wanted = f"pip install 'nornweave-search[{extra}]'"
    assert last.endswith(f"needs the package {package!r}, which is not installed: {wanted}")


def test_errors_of_an_installed_package_are_not_translated() -> None:
    with (
        pytest.raises(ConfigError, match=r"a store: needs .*'absent'.*nornweave-search\[objects\]"),
        optional("objects", "a store"),
    ):
        raise ModuleNotFoundError(name="absent")
    with pytest.raises(ValueError, match="broken"), optional("objects", "a store"):
        raise ValueError("broken")
