"""Everything that can go wrong, named by what the caller can do about it.

* DomainError              -- a rule of the domain said no
  x IllegalTransition      -- the state machine has no such move
  x VersionConflict        -- somebody else changed the project first: read it again
  x UnknownProject         -- there is no such project
  x UnknownScene           -- the project has no such scene
  x NothingToConfirm       -- nobody waits for a decision about that job
  x NothingToAdopt         -- that call makes no task that could be gone on with
  x SceneNotMissing        -- the scene is finished: only what is missing can be changed
* ProviderFailure          -- an outside service did not deliver; carries an ErrorCode
* OutcomeUnknown           -- nobody can tell whether a paid call was accepted: do not make it again by itself
* AssetMissing             -- nothing is stored under that URL
* BadMedia                 -- these bytes are not the picture, sound or video they claim to be
"""

from enum import StrEnum


class ErrorCode(StrEnum):
    """Why a job failed, in words that do not depend on the provider."""

    PROVIDER_TIMEOUT = "provider_timeout"
    MODERATION_REJECTED = "moderation_rejected"
    ASSET_FETCH_FAILED = "asset_fetch_failed"
    PROVIDER_RATE_LIMITED = "provider_rate_limited"
    OUTPUT_MISSING = "output_missing"
    INVALID_REQUEST = "invalid_request"
    PROVIDER_QUOTA_EXHAUSTED = "provider_quota_exhausted"
    PROVIDER_AUTH = "provider_auth"
    PROVIDER_BAD_REQUEST = "provider_bad_request"
    PROVIDER_MODEL_RETIRED = "provider_model_retired"
    PROVIDER_UNAVAILABLE = "provider_unavailable"
    PROVIDER_CANCELLED = "provider_cancelled"
    SUBMIT_UNKNOWN = "submit_unknown"
    BUDGET_EXCEEDED = "budget_exceeded"
    INSUFFICIENT_CREDITS = "insufficient_credits"


class DomainError(Exception):
    """A rule of the domain said no."""


class IllegalTransition(DomainError):
    """The state machine has no such move."""

    def __init__(self, subject: str, current: str, target: str) -> None:
        super().__init__(f"{subject} is {current} and cannot become {target}")
        self.subject = subject
        self.current = current
        self.target = target


class VersionConflict(DomainError):
    """The command was meant for another version of the project."""

    def __init__(self, project_id: str, expected: int, current: int) -> None:
        super().__init__(
            f"project {project_id} is at version {current}, and the command expected {expected}: "
            "read it again and decide anew"
        )
        self.expected = expected
        self.current = current


class UnknownProject(DomainError):
    """There is no such project."""

    def __init__(self, project_id: str) -> None:
        super().__init__(f"there is no project {project_id}")


class UnknownScene(DomainError):
    """The project has no such scene."""

    def __init__(self, project_id: str, scene_id: str) -> None:
        super().__init__(f"project {project_id} has no scene {scene_id}")


class NothingToConfirm(DomainError):
    """Nobody waits for a decision about that job."""

    def __init__(self, job_id: str) -> None:
        super().__init__(
            f"job {job_id} waits for no decision: see `sceneloom status` for what does; "
            "an answer counts once, and only while its scene is in progress"
        )


class NothingToAdopt(DomainError):
    """That call makes no task that could be gone on with."""

    def __init__(self, job_id: str) -> None:
        super().__init__(f"job {job_id} is one call and has no task: send it again, or give it up")


class SceneNotMissing(DomainError):
    """The scene is finished: only what is missing can be changed."""

    def __init__(self, scene_id: str) -> None:
        super().__init__(f"{scene_id} is finished and paid for: only a scene that is missing can be changed")


class ProviderFailure(Exception):
    """A provider did not deliver. `detail` is for operators only; users see the code's message."""

    def __init__(self, code: ErrorCode, detail: str = "", *, retry_after: float | None = None) -> None:
        super().__init__(f"{code}: {detail}" if detail else str(code))
        self.code = code
        self.detail = detail
        self.retry_after = retry_after
        """Seconds to wait before another attempt, where the provider said so."""


class OutcomeUnknown(Exception):
    """Nobody can tell whether the provider accepted the call: it must not be made again by itself."""


class AssetMissing(Exception):
    """Nothing is stored under that URL."""


class BadMedia(ValueError):
    """These bytes are not the picture, sound or video they claim to be."""
