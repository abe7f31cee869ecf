"""Why a message is not taken, by what its sender should do about it."""


class Refused(Exception):
    """The message proves nothing: its sender may not be the provider. The reason is for our log alone."""


class NotNow(Exception):
    """The message cannot be checked, or its hint not be kept, at this moment: its sender should try again."""
