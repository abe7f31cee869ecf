import io

import pytest
from PIL import Image

from models.ports import TextToImageProvider
from models.shapes import AspectRatio
from sceneloom.providers.storyboard import Storyboard
from sceneloom.providers.studio import Studio


@pytest.mark.media
@pytest.mark.parametrize("ratio", AspectRatio)
async def test_a_picture_has_exactly_the_size_of_the_video(ratio: AspectRatio, studio: Studio) -> None:
    picture = await Storyboard(studio).generate("Старый маяк у моря", ratio.size, seed=3)
    with Image.open(io.BytesIO(picture)) as opened:
        opened.load()
        assert (opened.format, opened.mode, opened.size) == ("JPEG", "RGB", tuple(ratio.size))


def test_it_is_a_free_text_to_image_provider() -> None:
    storyboard = Storyboard(Studio())
    assert isinstance(storyboard, TextToImageProvider)
    assert storyboard.cost_per_call() == 0.0
