from hypothesis import settings

# Other work on the same cores must not fail a test: pytest-timeout bounds the whole.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
