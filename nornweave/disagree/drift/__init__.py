"""``nornweave drift``: find where documentation and code of one folder disagree."""
