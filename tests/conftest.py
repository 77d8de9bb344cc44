"""Put ``tests/`` on the path, so that test modules can import ``support``."""
