"""Reads the accounts of users on Kafka, and grants credits to them."""

import asyncio
import contextlib
from typing import Final

from aiokafka import ConsumerRecord
from pydantic import ValidationError

from models.credit_messages import GrantCredits
from models.credits import Account, AccountSnapshot, entry_name, snapshot
from sceneloom.cli.outcomes import Outcome, Stop
from sceneloom.client import Reader, send
from sceneloom.settings import Settings
from sceneloom.topics import CREDIT_STATES

_ANSWER_SECONDS: Final = 20.0


async def read_account(settings: Settings, user_id: str) -> AccountSnapshot:
    """Return how the account stands; one that nobody has heard of is empty. Raises `BrokerUnreachable`."""
    latest = snapshot(Account(user_id=user_id), None)
    async with Reader(settings, CREDIT_STATES, project_id=user_id) as reader:
        async for record in reader.history():
            latest = _account_in(record) or latest
    return latest


async def grant(settings: Settings, command: GrantCredits) -> AccountSnapshot:
    """Send *command*, and return how the account stands after it. Raises `Stop` where no worker answers."""
    async with Reader(settings, only_new=(CREDIT_STATES,), project_id=command.user_id) as reader:
        await send(settings, command)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_ANSWER_SECONDS):
                return await _answer(reader, entry_name(command))
    raise Stop(
        f"sent as {command.grant_id}, but no worker has answered within {_ANSWER_SECONDS:g} s: it is "
        "carried out once one runs (`sceneloom worker`)",
        Outcome.TIMED_OUT,
    )


async def _answer(reader: Reader, name: str) -> AccountSnapshot:
    async for record in reader.news():
        account = _account_in(record)
        if account and account.last and account.last.name == name:
            return account
    raise AssertionError("news never end")


def _account_in(record: ConsumerRecord) -> AccountSnapshot | None:
    with contextlib.suppress(ValidationError):
        return AccountSnapshot.model_validate_json(record.value or b"")
    return None
