"""Decides whether a request may become a project: by its words, and by what there is to make it with."""

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

from models.checks import Draft, draft_request
from models.commands import Want
from models.faults import Fault, Place, fault, shown
from models.ports import Offers
from models.request import ProjectRequest
from models.scene import estimated_cost, wants_of
from models.work import ClipRequest, JobKind
from sceneloom.pictures import broken_picture
from sceneloom.providers.catalogue import Misfit
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
        misfits: Callable[[Want], Iterable[Misfit]] = lambda _: (),
        why_unknown: Callable[[str, str], str] = lambda name, _: f"there is no provider {name}",
        is_local: Callable[[Want], bool] = lambda _: True,
    ) -> None:
        self._voices = voices
        self._known_providers = known_providers
        self._is_stored = is_stored
        self._offers = offers
        self._misfits = misfits
        self._why_unknown = why_unknown
        self._is_local = is_local

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
                *self._model_faults(draft),
                *self._price_faults(draft),
            ]
        )

    def _provider_faults(self, draft: Draft) -> Iterator[Fault]:
        chosen: list[tuple[Place, Mapping[Any, str]]] = [(("providers",), draft.request.providers)]
        for index, scene in enumerate(draft.request.scenes):
            chosen.append((("scenes", index, "providers"), scene.providers))
        for place, names in chosen:
            for kind, name in names.items():
                if name not in self._known_providers.get(kind, ()):
                    why = self._why_unknown(name, kind)
                    yield fault((*place, kind), "unknown_provider", f"is {shown(name)}, and {why}")

    def _model_faults(self, draft: Draft) -> Iterator[Fault]:
        """Find what the chosen models cannot do; what is the project's is told once for all scenes."""
        told = set[Place]()
        for index, scene in enumerate(draft.request.scenes):
            for want in wants_of(scene, draft.request):
                for misfit in self._misfits(want):
                    of_project = misfit.field in ProjectRequest.model_fields
                    place: Place = (misfit.field,) if of_project else ("scenes", index, misfit.field)
                    if place not in told and draft.tells(place):
                        told.add(place)
                        yield fault(place, misfit.rule, f"{misfit.text}{self._nearest(want, misfit)}")

    def _nearest(self, want: Want, misfit: Misfit) -> str:
        """Say what comes nearest, and its price where it has one."""
        if not isinstance(misfit.nearest, ClipRequest):
            return ""
        near = misfit.nearest
        what = near.aspect_ratio if misfit.field == "aspect_ratio" else f"{near.duration_seconds:g}"
        nearest_one = f"; the nearest is {what}"
        if self._offers is None:
            return nearest_one
        offer = self._offers.offer_for(want.model_copy(update={"request": near}))
        return f"{nearest_one}, for ${offer.cost_usd:.2f}" if offer.cost_usd else nearest_one

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
        if not (draft.tells(("language",)) and self._is_spoken_here(request)):
            return
        voice, found = self._chosen_voice(request)
        if found:
            yield found
        elif draft.tells(("voice",)):
            yield from self._unspeakable(request, voice)

    def _is_spoken_here(self, request: ProjectRequest) -> bool:
        """Tell whether any narration is spoken by our own voices; those of a service are its own affair."""
        wants = [want for scene in request.scenes for want in wants_of(scene, request)]
        speakers = [want for want in wants if want.kind is JobKind.SPEECH]
        return not speakers or any(map(self._is_local, speakers))

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
