"""The neural English voice: hibari, whose model is inside its package. Runs inside a studio process."""

import difflib
import functools
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import hibari
import numpy as np
from hibari import dsp
from hibari.voices import VOICES, voice_path

from sceneloom.providers.sound import Samples
from sceneloom.providers.words import Mark, Token

RATE: Final = int(hibari.SAMPLE_RATE)

_DURATIONS: Final = "/Clip_output_0"
"""The tensor inside the model that holds how many frames each phoneme lasts."""

_LONGEST: Final = 400
"""Phonemes of one run; the model is trained on no more."""


class Heard(NamedTuple):
    """One phoneme and when it sounds, in seconds."""

    phoneme: str
    start: float
    end: float


class Narrator:
    """A loaded voice; speaks the same text the same way every time."""

    def __init__(self, voice: str) -> None:
        if not VOICES[voice].get("bundled"):
            raise ValueError(f"the voice {voice} would have to be downloaded")
        # hibari hands the model to onnxruntime, which takes a path or the content.
        model = Path(voice_path(voice)).read_bytes() + _also_output(_DURATIONS)
        self._hibari = hibari.Hibari(voice, model=model, threads=1)

    def speak(self, written: Sequence[Token]) -> tuple[Samples, tuple[Mark | None, ...]]:
        """Return the samples at `RATE`, and when each token sounds: None for one that does not."""
        noise = np.random.default_rng(0)
        parts: list[Samples] = []
        marks: list[Mark | None] = []
        begin = 0.0
        for sentence in self._sentences([_plain(token.text) for token in written]):
            heard: list[Heard] = []
            for phonemes in self._runs(" ".join(sentence)):
                samples, times = self._run(phonemes, noise)
                heard += [Heard(each.phoneme, each.start + begin, each.end + begin) for each in times]
                parts.append(samples)
                begin += len(samples) / RATE
            marks += _align([self._phonemes(word) for word in sentence], heard)
        return (np.concatenate(parts) if parts else np.zeros(0, np.float32)), tuple(marks)

    def _sentences(self, words: Sequence[str]) -> Iterator[Sequence[str]]:
        """Group *words* by the sentences that hibari finds, or as one where it counts words otherwise."""
        counts = [len(sentence.split()) for sentence in self._hibari.split_sentences(" ".join(words))]
        if sum(counts) != len(words):
            counts = [len(words)]
        begin = 0
        for count in counts:
            yield words[begin : begin + count]
            begin += count

    def _runs(self, sentence: str) -> Iterator[str]:
        """Cut what hibari leaves too long (writing without punctuation) at spaces."""
        for phonemes in self._hibari.phonemize(sentence):
            rest = phonemes
            while len(rest) > _LONGEST:
                cut = rest.rfind(" ", 1, _LONGEST)
                cut = cut if cut > 0 else _LONGEST
                yield rest[:cut]
                rest = rest[cut:].lstrip()
            if any(map(str.isalpha, rest)):
                yield rest

    def _run(self, phonemes: str, noise: np.random.Generator) -> tuple[Samples, list[Heard]]:
        known = [phoneme for phoneme in phonemes if phoneme in self._hibari.vocab]
        ids = np.asarray([self._hibari.ids(phonemes)], np.int64)
        outputs: Any = self._hibari.sess.run(None, {"ids": ids, "speed": np.ones(1, np.float32)})
        *spectrum, durations = outputs
        samples = dsp.synth(*[part[0] for part in spectrum], rng=noise)
        ends = np.cumsum(durations.ravel())
        ends = ends * (len(samples) / RATE / ends[-1])
        # The first and the last duration belong to the silence around the phonemes.
        pairs = zip(known, ends[:-2], ends[1:-1], strict=True)
        return samples, [Heard(phoneme, float(start), float(end)) for phoneme, start, end in pairs]

    @functools.lru_cache(maxsize=2048)  # noqa: B019 -- a process keeps its one narrator for life
    def _phonemes(self, word: str) -> str:
        return "".join(filter(str.isalpha, " ".join(self._hibari.phonemize(word))))


@functools.cache
def narrator(voice: str) -> Narrator:
    """Load *voice* once. Raises ValueError where the package does not hold it."""
    return Narrator(voice)


def _align(expected: Sequence[str], heard: Sequence[Heard]) -> list[Mark | None]:
    """Match what each word sounds like alone with what was heard; a sentence changes a few phonemes."""
    sounding = [each for each in heard if each.phoneme.isalpha()]
    owners = [index for index, phonemes in enumerate(expected) for _ in phonemes]
    found: list[list[Heard]] = [[] for _ in expected]
    matcher = difflib.SequenceMatcher(
        None, "".join(expected), "".join(e.phoneme for e in sounding), autojunk=False
    )
    for block in matcher.get_matching_blocks():
        for offset in range(block.size):
            found[owners[block.a + offset]].append(sounding[block.b + offset])
    return [Mark(each[0].start, each[-1].end) if each else None for each in found]


def _plain(word: str) -> str:
    """Write *word* in the letters hibari knows: no invisible signs, digits of any script as 0-9."""
    composed = unicodedata.normalize("NFKC", word)
    shown = (
        letter for letter in composed if unicodedata.category(letter) not in {"Cf", "Cc", "So", "Co", "Cn"}
    )
    spelled = "".join(_digit(letter) for letter in shown)
    # A word that vanished still has to be counted as one.
    return "_".join(spelled.split()) or "-"


def _digit(letter: str) -> str:
    value: Any = unicodedata.digit(letter, None)
    return letter if value is None else str(value)


def _also_output(name: str) -> bytes:
    """Write the protobuf that, appended to an ONNX model, makes tensor *name* one more output.

    Concatenated protobuf messages merge: graph (7) of the model, output (12) of the graph, name (1).
    """
    return _field(7, _field(12, _field(1, name.encode())))


def _field(number: int, content: bytes) -> bytes:
    length, rest = bytearray(), len(content)
    while rest > 0x7F:
        length.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([number << 3 | 2]) + bytes([*length, rest]) + content
