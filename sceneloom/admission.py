"""Decides whether a request may become a project: by its words, and by what there is to make it with."""

import functools
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

from models.checks import Draft, draft_request
from models.faults import Fault, Place, fault, shown
from models.ports import Offers
from models.request import ProjectRequest
from models.scene import estimated_cost
from models.spelling import nearest
from sceneloom.pictures import broken_picture
from sceneloom.request_file import load

__all__ = ["Admission", "Voices", "load"]

_MOST_LETTERS: Final = 8


class Voices(Protocol):
    """The voices there are; the module `sceneloom.providers.voices` is one such thing."""

    def voice_for(self, language: str, voice: str | None = None) -> Any:
        """Return the voice that speaks. Raises `ValueError`, saying which are near, where there is none."""
        ...

    def unspeakable(self, text: str, voice: Any) -> tuple[str, ...]:
        """Return the letters of *text* that *voice* cannot speak."""
        ...

    def has_words(self, text: str) -> bool:
        """Tell whether anything in *text* can be spoken."""
        ...


class Admission:
    """Finds all faults of a request before any work is done or paid."""

    def __init__(
        self,
        *,
        voices: Voices,
        known_providers: Mapping[str, Collection[str]],
        is_stored: Callable[[str], bool],
        offers: Offers | None = None,
    ) -> None:
        self._voices = voices
        self._known_providers = known_providers
        self._is_stored = is_stored
        self._offers = offers

    def check(self, raw: object, *, folder: Path | None) -> ProjectRequest:
        """Return *raw* as a request. Raises `RequestRefused` with all its faults.

        `folder` is where the request's file lies, and relative picture paths start; None for a request that
        came over a topic, whose pictures must be URLs.
        """
        draft = draft_request(raw)
        return draft.accepted(
            [
                *self._provider_faults(draft),
                *self._voice_faults(draft),
                *self._picture_faults(draft, folder),
                *self._price_faults(draft),
            ]
        )

    def _provider_faults(self, draft: Draft) -> Iterator[Fault]:
        chosen: list[tuple[Place, Mapping[Any, str]]] = [(("providers",), draft.request.providers)]
        for index, scene in enumerate(draft.request.scenes):
            chosen.append((("scenes", index, "providers"), scene.providers))
        for place, names in chosen:
            for kind, name in names.items():
                known = sorted(self._known_providers.get(kind, ()))
                if name not in known:
                    near = nearest(name, known)
                    advice = f"did you mean {near}?" if near else f"there is {', '.join(known) or 'none'}"
                    text = f"is {shown(name)}, and no such provider is set up; {advice}"
                    yield fault((*place, kind), "unknown_provider", text)

    def _price_faults(self, draft: Draft) -> Iterator[Fault]:
        most = draft.request.max_cost_usd
        if self._offers is None or most is None:
            return
        price = estimated_cost(draft.request, self._offers.offer_for)
        if price > most:
            text = f"is ${most:.2f}, and this video would cost ${price:.2f}; raise it or ask for less"
            yield fault(("max_cost_usd",), "too_expensive", text)

    def _voice_faults(self, draft: Draft) -> Iterator[Fault]:
        request = draft.request
        for index, scene in enumerate(request.scenes):
            if scene.narration and not self._voices.has_words(scene.narration):
                text = "holds no words to speak; write some, or leave it out"
                yield fault(("scenes", index, "narration"), "nothing_to_speak", text)
        if not draft.tells(("language",)):
            return
        voice, found = self._chosen_voice(request)
        if found:
            yield found
        elif draft.tells(("voice",)):
            yield from self._unspeakable(request, voice)

    def _chosen_voice(self, request: ProjectRequest) -> tuple[Any, Fault | None]:
        place: Place = ("language",)
        try:
            usual = self._voices.voice_for(request.language)
            if request.voice is None:
                return usual, None
            place = ("voice",)
            return self._voices.voice_for(request.language, request.voice), None
        except ValueError as error:
            return None, fault(place, f"unknown_{place[0]}", f"cannot be used: {error}")

    def _unspeakable(self, request: ProjectRequest, voice: Any) -> Iterator[Fault]:
        for index, scene in enumerate(request.scenes):
            letters = self._voices.unspeakable(scene.narration or "", voice)
            if letters:
                some = " ".join(letters[:_MOST_LETTERS]) + (" …" if len(letters) > _MOST_LETTERS else "")
                text = (
                    f"holds letters that the voice for {request.language} cannot speak: {some}; "
                    "change language to that of the text, or write it in other letters"
                )
                yield fault(("scenes", index, "narration"), "unspeakable", text)

    def _picture_faults(self, draft: Draft, folder: Path | None) -> Iterator[Fault]:
        broken = functools.cache(broken_picture)  # many scenes may show one picture; it is read once
        for index, scene in enumerate(draft.request.scenes):
            if scene.picture is None or self._is_stored(scene.picture):
                continue
            found = broken(scene.picture, folder)
            if found:
                yield fault(("scenes", index, "picture"), *found)
