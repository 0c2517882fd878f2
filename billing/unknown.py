"""What is asked for and not there."""


class AccountUnknown(Exception):
    """There is no such account."""
