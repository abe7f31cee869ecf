"""The domain: what a project is and may do. Imports no framework, does no I/O, reads no clock."""
