"""How the queue family says that something is wrong."""

from dataclasses import dataclass
from typing import Any, Final

from sceneloom.testing.fake_provider.answers import Answer
from sceneloom.testing.fake_provider.scenario import Custom
from sceneloom.testing.fake_provider.words import Problem


@dataclass(frozen=True, slots=True)
class Trouble:
    """One error: of the model (`detail` is a list), of the infrastructure (`error_type`), or a plain text."""

    status: int
    kind: str
    message: str
    of_model: bool = False

    def content(self) -> dict[str, Any]:
        """Return the body."""
        if self.of_model:
            fault: dict[str, Any] = {
                "loc": ["body"],
                "msg": self.message,
                "type": self.kind,
                "ctx": {},
                "input": None,
            }
            return {"detail": [fault | {"url": f"https://docs.fal.ai/errors#{self.kind}"}]}
        if self.kind:
            return {"detail": self.message, "error_type": self.kind}
        return {"detail": self.message}

    def answer(self) -> Answer:
        """Return the answer that carries this error."""
        if self.of_model:
            again = "true" if self.status >= 500 else "false"
            return Answer.of(self.content(), self.status, X_Fal_Retryable=again)
        if self.kind:
            return Answer.of(self.content(), self.status, X_Fal_Error_Type=self.kind)
        return Answer.of(self.content(), self.status)


_TROUBLES: Final[dict[Problem, Trouble]] = {
    Problem.INVALID_REQUEST: Trouble(422, "value_error", "The input is not valid", of_model=True),
    Problem.UNAUTHORIZED: Trouble(401, "", "Cannot access application. Authentication is required."),
    Problem.QUOTA_EXHAUSTED: Trouble(402, "", "User is locked. Reason: Exhausted balance."),
    Problem.FORBIDDEN: Trouble(403, "", "Access denied"),
    Problem.MODERATION: Trouble(
        422,
        "content_policy_violation",
        "The content could not be processed because it was flagged by a content checker.",
        of_model=True,
    ),
    Problem.NOT_FOUND: Trouble(404, "", "Request not found"),
    Problem.MODEL_NOT_FOUND: Trouble(404, "", "Application not found"),
    Problem.CONFLICT: Trouble(409, "", "The request is in conflict with an earlier one"),
    Problem.ASSET_FETCH: Trouble(422, "file_download_error", "Failed to download the file", of_model=True),
    Problem.RATE_LIMITED: Trouble(429, "", "Too many requests"),
    Problem.OVERLOADED: Trouble(503, "runner_scheduling_failure", "No runner is available"),
    Problem.UNAVAILABLE: Trouble(500, "internal_server_error", "Internal server error", of_model=True),
    Problem.TIMEOUT: Trouble(504, "request_timeout", "Request timed out"),
    Problem.OUTPUT_MISSING: Trouble(422, "no_media_generated", "No media was generated", of_model=True),
}


def trouble_named(problem: Problem, message: str | None = None) -> Trouble:
    """Return *problem* in this family's words, or with *message*."""
    usual = _TROUBLES[problem]
    return Trouble(usual.status, usual.kind, message or usual.message, of_model=usual.of_model)


def trouble_of(failure: Problem | Custom) -> Trouble:
    """Return why a task failed."""
    if isinstance(failure, Custom):
        return Trouble(422, failure.code, failure.message, of_model=True)
    return trouble_named(failure)
