"""Every adapter of ours keeps the contract."""

import pytest

from sceneloom.providers.catalogue import entries
from sceneloom.testing.contract import Case, cases
from tests.providers.wires import (
    ark,
    fal,
    google,
    kling,
    luma,
    minimax,
    openai,
    replicate,
    runway,
    speech,
    stability,
)

EMULATIONS = (
    ark.EMULATION,
    fal.EMULATION,
    google.EMULATION,
    kling.EMULATION,
    luma.EMULATION,
    minimax.EMULATION,
    openai.PICTURES,
    openai.SPEECH,
    replicate.EMULATION,
    runway.EMULATION,
    speech.AZURE,
    speech.ELEVENLABS,
    stability.EMULATION,
)


@pytest.mark.parametrize("case", [case for each in EMULATIONS for case in cases(each)], ids=str)
async def test_the_adapter_keeps_the_contract(case: Case) -> None:
    await case.run()


def test_every_service_of_the_catalogue_is_held_to_the_contract() -> None:
    played = {(each.service.entry.name, each.kind) for each in EMULATIONS}
    assert played == {(entry.name, kind) for entry in entries().values() for kind in entry.kinds}
