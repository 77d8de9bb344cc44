"""How well disagreements are found: on labelled pairs, on planted drift, and by reading alarms."""
