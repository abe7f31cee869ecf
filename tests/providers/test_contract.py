"""Every adapter of ours keeps the contract."""

import pytest

from models.work import JobKind
from sceneloom.providers.catalogue import Aid, entries
from sceneloom.testing.contract import Case, cases
from tests.providers.wires import (
    ark,
    fal,
    google,
    hosted_pictures,
    kling,
    luma,
    minimax,
    openai,
    own_machines,
    replicate,
    runway,
    speech,
    stability,
    transcription,
)

EMULATIONS = (
    ark.EMULATION,
    fal.EMULATION,
    google.EMULATION,
    hosted_pictures.FAL,
    hosted_pictures.REPLICATE,
    kling.EMULATION,
    luma.EMULATION,
    minimax.EMULATION,
    openai.PICTURES,
    openai.SPEECH,
    own_machines.AUTOMATIC1111,
    own_machines.COMFYUI,
    replicate.EMULATION,
    replicate.BY_VERSION,
    replicate.BY_BARE_VERSION,
    runway.EMULATION,
    speech.AZURE,
    speech.ELEVENLABS,
    stability.EMULATION,
    transcription.SCRIBE,
    transcription.WHISPER,
)


@pytest.mark.parametrize("case", [case for each in EMULATIONS for case in cases(each)], ids=str)
async def test_the_adapter_keeps_the_contract(case: Case) -> None:
    await case.run()


def test_every_service_of_the_catalogue_is_held_to_the_contract() -> None:
    played = {(each.service.entry.name, each.kind) for each in EMULATIONS}
    searched = {("pexels", JobKind.CLIP), ("pixabay", JobKind.CLIP)}  # see test_stock.py
    local = {("whisper", Aid.TRANSCRIPTION)}  # speaks no HTTP: see test_whisper.py
    assert played | searched | local == {
        (entry.name, kind) for entry in entries().values() for kind in entry.kinds
    }
