import re
import unicodedata
from itertools import chain

import pytest

from models.errors import ErrorCode
from models.lifecycle import JobStatus, ProjectState, SceneStatus, SubmitState
from models.messages import Subject, message_for

LANGUAGES = ("en", "ru", "fa")
SUBJECTS: tuple[Subject, ...] = tuple(chain(ProjectState, SceneStatus, JobStatus, SubmitState, ErrorCode))
SCRIPTS = {"en": "LATIN", "ru": "CYRILLIC", "fa": "ARABIC"}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: f"{type(subject).__name__}.{subject.name}")
def test_every_status_and_code_has_a_sentence_in_the_script_of_its_language(
    subject: Subject, language: str
) -> None:
    message = message_for(subject, language)

    assert message.endswith((".", "؟"))
    assert len(message) >= 10
    letters = [letter for letter in message if unicodedata.category(letter).startswith("L")]
    assert {unicodedata.name(letter).split()[0] for letter in letters} == {SCRIPTS[language]}
    assert "  " not in message
    assert message == message.strip()


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_two_of_a_kind_say_the_same(language: str) -> None:
    for kind in (ProjectState, SceneStatus, JobStatus, SubmitState, ErrorCode):
        messages = [message_for(subject, language) for subject in kind]
        assert len(set(messages)) == len(messages)


def test_statuses_that_are_the_same_word_for_different_things_have_their_own_messages() -> None:
    assert message_for(ProjectState.FAILED, "en") != message_for(SceneStatus.FAILED, "en")
    assert message_for(SceneStatus.COMPLETED, "ru") != message_for(ProjectState.COMPLETED, "ru")


@pytest.mark.parametrize("subject", SUBJECTS, ids=str)
def test_no_message_shows_a_code_or_the_words_of_the_workshop(subject: Subject) -> None:
    for language in LANGUAGES:
        message = message_for(subject, language).lower()
        assert subject.value.lower() not in message.split()
        assert not re.search(
            r"_|\bapi\b|provider|job|timeout|http|error|exception|провайдер|таймаут", message
        )


def test_persian_joins_its_words_with_a_zero_width_non_joiner() -> None:
    messages = [message_for(subject, "fa") for subject in SUBJECTS]

    assert any("\u200c" in message for message in messages)
    for message in messages:
        assert not re.search(r"(^| )ن?می |ي|ك| های ", message)
        assert "\u200c " not in message
        assert " \u200c" not in message


@pytest.mark.parametrize(
    ("asked", "spoken"),
    [("ru-RU", "ru"), ("fa_IR", "fa"), ("FA", "fa"), ("de", "en"), ("", "en"), ("en-GB", "en")],
)
def test_the_primary_language_decides_and_english_is_the_last_resort(asked: str, spoken: str) -> None:
    assert message_for(ErrorCode.PROVIDER_TIMEOUT, asked) == message_for(ErrorCode.PROVIDER_TIMEOUT, spoken)
