"""Measurements of what must stay quick and small: `make bench`."""
