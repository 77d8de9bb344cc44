"""Where the package of an extra is missing, what needs it says which extra to install."""

import json
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from nornweave.core.errors import ConfigError
from nornweave.core.installation import optional

CASES = {
    "office": ("openpyxl", "from nornweave.read.formats.reader import read_converted; read_converted('xlsx', b'PK')"),
    "llm": ("litellm", "from nornweave.models.hosted import import_litellm; import_litellm()"),
    "objects": (
        "obstore",
        "from nornweave.config.workspace import ObjectStoreSettings as Settings\n"
        "from nornweave.carry.parts import ObjectStore\n"
        "ObjectStore(Settings(url='file:///nowhere')).get('key')",
    ),
    "slack": (
        "websockets",
        "from nornweave.core.installation import optional\n"
        "with optional('slack', 'the Slack app'):\n    import api.slack",
    ),
    "ui": (
        "dagster_webserver",
        "from nornweave.core.installation import optional\n"
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


PROGRAM = """
import json, sys
for package, statements in json.loads(sys.argv[1]):
    sys.modules[package] = None
    try:
        exec(statements, {})
    except Exception as error:
        print(f"{type(error).__module__}: {error}")
"""


@pytest.mark.slow
def test_a_missing_package_names_its_extra(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, json.dumps(list(CASES.values()))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path, check=True)
    for (extra, (package, _)), said in zip(CASES.items(), done.stdout.splitlines(), strict=True):
        assert said.startswith("nornweave.core.errors: ")
        wanted = f"pip install 'nornweave-search[{extra}]'"
        assert said.endswith(f"needs the package {package!r}, which is not installed: {wanted}")


def test_errors_of_an_installed_package_are_not_translated() -> None:
    with (
        pytest.raises(ConfigError, match=r"a store: needs .*'absent'.*nornweave-search\[objects\]"),
        optional("objects", "a store"),
    ):
        raise ModuleNotFoundError(name="absent")
    with pytest.raises(ValueError, match="broken"), optional("objects", "a store"):
        raise ValueError("broken")


def test_an_environment_without_pip_is_told_of_uv(tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=False)
    program = "from nornweave.core.installation import install_command; print(install_command('llm'))"
    python = tmp_path / "venv" / "bin" / "python"
    environment = {"PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run([python, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == f"uv pip install --python {python} 'nornweave-search[llm]'"
