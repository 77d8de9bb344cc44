"""Text as all parts of the system read it: decoding, analysis, index fields, dates, markup."""
