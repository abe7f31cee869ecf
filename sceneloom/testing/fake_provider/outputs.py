"""The finished files: what is in them, where they are, and for how long."""

import asyncio
import math
from typing import Final

from sceneloom.testing.fake_provider.answers import Answer
from sceneloom.testing.fake_provider.clocks import Time
from sceneloom.testing.fake_provider.media import MEDIA_TYPES, Shape, Workshop, hue_of
from sceneloom.testing.fake_provider.scenario import Behaviour
from sceneloom.testing.fake_provider.tasks import Order, Task
from sceneloom.testing.fake_provider.words import Family

FILES: Final = "/_files"
SHORT_SIDES: Final = {"480p": 480, "720p": 720, "1080p": 1080, "4k": 2160}
_DAY: Final = 86_400.0
_LIVES: Final = {Family.TASKS: _DAY, Family.QUEUE: 7 * _DAY, Family.BLOCKING: _DAY}
_PAGE: Final = b"<!doctype html><title>Sorry</title><p>This service is being improved. Come back soon.</p>"


def frame_of(resolution: str, ratio: str) -> tuple[int, int]:
    """Return even pixels of *ratio* (such as `9:16`) with the area that *resolution* has at 16:9."""
    across, down = (float(part) for part in ratio.split(":"))
    area = SHORT_SIDES[resolution] ** 2 * 16 / 9
    width = math.sqrt(area * across / down)
    return 2 * round(width / 2), 2 * round(width * down / across / 2)


class Outputs:
    """Makes the outputs of tasks and serves them."""

    def __init__(self, clock: Time) -> None:
        self._clock = clock
        self._workshop = Workshop()

    async def make(self, task: Task) -> tuple[bytes, str]:
        """Return the file of *task* and its media type, as right or wrong as the scenario wants it."""
        output = task.behaviour.output
        media_type = MEDIA_TYPES[task.order.media_format]
        if output.file is not None:
            return await asyncio.to_thread(output.file.read_bytes), media_type
        if output.content == "html":
            return _PAGE, "text/html"
        if output.content == "empty":
            return b"", media_type
        whole = await self._workshop.make(_shape_of(task.order, task.behaviour), task.id)
        return (whole[: len(whole) * 3 // 5] if output.content == "truncated" else whole), media_type

    def url(self, task: Task) -> str | None:
        """Return a link to the output of *task*, or None if the scenario forgets it."""
        if task.behaviour.without_url:
            return None
        now = self._clock.elapsed()
        serial = len(task.links) if task.behaviour.link.renewed else 0
        task.links.setdefault(serial, now if task.behaviour.link.renewed else (task.ends_at or now))
        return f"{task.home}{FILES}/{task.id}/{serial}/output.{task.order.media_format}"

    async def serve(self, task: Task, serial: int) -> Answer:
        """Answer a download through link *serial* of *task*, and count it."""
        link = task.behaviour.link
        if serial not in task.links:
            return _dead(404)
        used = task.downloads.get(serial, 0)
        life = _LIVES[task.family] if link.expires_after is None else link.expires_after
        is_old = self._clock.elapsed() >= task.links[serial] + life
        if is_old or (link.max_downloads is not None and used >= link.max_downloads):
            return _dead(link.status)
        task.downloads[serial] = used + 1
        content, media_type = await self.make(task)
        return Answer(200, content, media_type)

    async def close(self) -> None:
        """End what is being made."""
        await self._workshop.close()


def _shape_of(order: Order, behaviour: Behaviour) -> Shape:
    output, width, height = behaviour.output, order.width, order.height
    if output.size is not None:
        width, height = (int(part) for part in output.size.split("x"))
    elif output.resolution is not None and width and height:
        share = SHORT_SIDES[output.resolution] / min(width, height)
        width, height = (2 * round(side * share / 2) for side in (width, height))
    if order.kind == "video":
        width, height = width - width % 2, height - height % 2
    return Shape(
        kind=order.kind,
        media_format=order.media_format,
        width=width,
        height=height,
        seconds=output.seconds or order.seconds,
        sound=order.sound,
        hue=hue_of(order.prompt),
    )


def _dead(status: int) -> Answer:
    body = b'<?xml version="1.0" encoding="UTF-8"?><Error><Message>This link is dead.</Message></Error>'
    return Answer(status, body, "application/xml")
