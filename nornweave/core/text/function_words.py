"""Words that shape a sentence. They need no stemmer, which drift over a bare checkout does without."""

# Words that shape a sentence and say nothing of its subject (van Rijsbergen 1979, table 2.I, shortened to those that
# have no other sense in code or documentation; "not", "after", "over" and the like stay words).
_WORDS = """
a about all also am an and any are as at be been being but by can could did do does doing for from had has
have having he her his how i if in into is it its just me my no nor of on or our out she should so some such
than that the their them then there these they this those to too up us was way we were what when where which
who whom whose why will with would you your
"""
FUNCTION_WORDS = frozenset(_WORDS.split())
