"""GitHub: JSON dumps and the API."""
