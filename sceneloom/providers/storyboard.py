"""Pictures that need no network: drawn from what the prompt mentions."""

from models.shapes import Size
from sceneloom.providers.studio import Studio


class Storyboard:
    """A TextToImageProvider; equal prompt, size and seed give equal bytes."""

    def __init__(self, studio: Studio) -> None:
        self._studio = studio

    async def generate(self, prompt: str, size: Size, *, seed: int = 0) -> bytes:
        """Return a JPEG of exactly *size*. Raises `ProviderFailure`."""
        answer = await self._studio.ask(
            "draw", prompt=prompt, width=size.width, height=size.height, seed=seed
        )
        return answer.content

    def cost_per_call(self) -> float:
        """Return 0.0 US dollars: this machine does the work."""
        return 0.0
