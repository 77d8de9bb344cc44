"""Why a PostgreSQL server cannot be reached, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Mapping

_WITHOUT_VARIABLE = "PGPASSWORD or ~/.pgpass"
# libpq gives no code for what fails before there is a session, only these words (18.1); what a server says in another
# language is passed on as it is.
_REMEDIES: Mapping[str, str] = {
    r"password authentication failed": "the password is wrong; correct {password}",
    r"no password supplied": "no password was given; set {password}",
    r'database ".*" does not exist': "make the database, or correct {address}",
    r'role ".*" does not exist': "make the role, or correct the user in {address}",
    r"no pg_hba\.conf entry": "the server lets this user in from elsewhere only; add a line to its pg_hba.conf",
    r"Connection refused|No such file or directory": "the server does not answer; start it, or correct {address}",
    r"could not translate host name|failed to resolve host": (
        "nobody knows this host; correct {address}, with @ in a password as %40"
    ),
    r"invalid (integer|port|percent|URI)|in connection info string|in URI": (
        "{address} is not an address; in user and password write @ as %40, / as %2F, : as %3A and % as %25"
    ),
    r"timeout expired|timed out|unreachable": "the server does not answer; check network, firewall and {address}",
    r"too many clients|remaining connection slots|too many connections": (
        "the server has no connection left; raise its max_connections, or lower storage.connections"
    ),
    r"does not support SSL|certificate": "no encrypted connection comes about; check sslmode in {address}",
}


def cause_of(error: Exception, variable: str | None = None) -> str | None:
    """Return why no connection came about and what to do; ``None`` for errors that mean something else.

    Args:
        error: of libpq; it may repeat part of a password that holds ``@`` or ``/``.
        variable: of the environment that holds the address with its password; ``storage.url`` without.
    """
    said = str(error)
    address, password = variable or "storage.url", f"the password in {variable}" if variable else _WITHOUT_VARIABLE
    found = (remedy for words, remedy in _REMEDIES.items() if re.search(words, said))
    return next((remedy.format(address=address, password=password) for remedy in found), None)


def first_line(error: Exception) -> str:
    """Return the first line of what an error says; hints and the statement follow it."""
    return str(error).strip().partition("\n")[0].removeprefix("connection failed: ")
