"""Where documents come from: one folder for each kind of source."""
