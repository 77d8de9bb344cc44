"""Fit the plan of a domain to what was judged, and put it in force if it is better beyond chance."""
