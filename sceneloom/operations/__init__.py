"""What an operator asks of a running system, and what is done with the answers; nothing here prints."""
