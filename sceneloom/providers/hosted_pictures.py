"""Pictures by any model on fal or Replicate: tasks there, as clips are.

Wire shapes: see fal.py and replicate.py.
"""

from typing import Any, Final

from models.job import Job
from models.shapes import Size
from sceneloom.providers import orders
from sceneloom.providers.fal import Fal
from sceneloom.providers.media import of_area
from sceneloom.providers.replicate import Replicate, prediction
from sceneloom.providers.stability import nearest_ratio
from sceneloom.providers.tasks import Order

_SIDE: Final = 1024
_SEEDS: Final = 2**31


class FalPictures(Fal):
    """A TaskProvider. Its two ways to be told of a shape both go along, as no model knows both."""

    def wishes(self, job: Job) -> dict[str, Any]:
        """Return the input of the model: one picture of about a megapixel. Raises `ProviderFailure`."""
        picture = orders.picture_of(job)
        size = Size(picture.width, picture.height)
        drawn = of_area(size, _SIDE)
        return {
            "prompt": picture.prompt,
            "image_size": {"width": drawn.width, "height": drawn.height},
            "aspect_ratio": nearest_ratio(size),
            "num_images": 1,
            "seed": picture.seed % _SEEDS,
        }


class ReplicatePictures(Replicate):
    """A TaskProvider; the model chooses how many pixels it draws."""

    async def ordered(self, job: Job, callback: str | None) -> Order:
        """Return the order for *job*. Raises `ProviderFailure` where it asks for no picture."""
        return prediction(job.offer.model, self.wishes(job), callback)

    def wishes(self, job: Job) -> dict[str, Any]:
        """Return the input of the model. Raises `ProviderFailure`."""
        picture = orders.picture_of(job)
        return {
            "prompt": picture.prompt,
            "aspect_ratio": nearest_ratio(Size(picture.width, picture.height)),
            "seed": picture.seed % _SEEDS,
        }
