"""The contract that every adapter keeps, as cases to run against a server that speaks its provider's wire.

@pytest.mark.parametrize("case", cases(EMULATION), ids=str)
async def test_the_adapter_keeps_the_contract(case: Case) -> None:
await case.run()
"""

from sceneloom.testing.contract.cases import Case, cases
from sceneloom.testing.contract.emulation import (
    Accepted,
    CallEmulation,
    Refusal,
    Reply,
    Search,
    Seen,
    TakeBack,
    TaskEmulation,
)

__all__ = [
    "Accepted",
    "CallEmulation",
    "Case",
    "Refusal",
    "Reply",
    "Search",
    "Seen",
    "TakeBack",
    "TaskEmulation",
    "cases",
]
