"""A small workspace: real files in two domains, and the configuration over them."""

from pathlib import Path
from typing import Protocol

from configurations import HASHED, configured, files

from nornweave.config import Settings

CODE = {
    "ledger.py": 'def post(entry):\n    """Post an entry to the ledger."""\n    return entry\n',
    "refund.py": "def refund(payment):\n    return payment.amount\n",
}
DOCUMENTATION = {"guide.md": "# Guide\n\nPayments settle in two days.\n", "faq.md": "# FAQ\n\nRefunds take a week.\n"}


class Configure(Protocol):
    """Writes the workspace; keyword arguments replace a domain's overrides."""

    def __call__(self, **domains: dict[str, object]) -> Settings: ...


def write_workspace(folder: Path, **domains: dict[str, object]) -> Settings:
    """Write sources and configuration, and read the latter."""
    for name, documents in (("code", CODE), ("docs", DOCUMENTATION)):
        for path, text in documents.items():
            file = folder / name / path
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
    sources = files("payments", "code", "code"), files("handbook", path="docs")
    return configured(folder, *sources, domains={"code": HASHED, "documentation": HASHED, **domains})
