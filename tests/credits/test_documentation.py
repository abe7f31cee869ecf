"""The page about credits says what travels."""

import orjson

from models.credit_messages import GrantCredits, ReserveCredits
from sceneloom.credits.http import body_of
from sceneloom.intake import read_for_credits
from tests.test_docs import ROOT, blocks_in


def test_the_grant_and_the_order_on_the_page_are_what_we_read_and_send() -> None:
    grant, order = blocks_in(ROOT / "docs" / "credits.md", "json")

    assert read_for_credits(b"ann", grant.encode()) == GrantCredits(
        user_id="ann", grant_id="invoice-2041", micros=25_000_000
    )
    reserve = ReserveCredits(user_id="ann", project_id="rain-1", version=2, micros=450_000)
    assert orjson.loads(order) == body_of(reserve)
