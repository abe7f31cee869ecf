"""What each family of providers must be able to say."""

from typing import Any, ClassVar, Protocol

from aiohttp import web

from sceneloom.testing.fake_provider.answers import Answer
from sceneloom.testing.fake_provider.tasks import Order, Standing, Task
from sceneloom.testing.fake_provider.words import Family, Problem


class Dialect(Protocol):
    """The wire shapes of one family."""

    family: ClassVar[Family]
    scheme: ClassVar[str]
    """The word before the key in the Authorization header."""

    def order(self, request: web.Request, body: dict[str, Any]) -> Order:
        """Return what *body* orders. Raises `BadOrder`."""
        ...

    def problem(self, problem: Problem, message: str | None = None) -> Answer:
        """Return the error answer for *problem* in this family's shape."""
        ...

    async def accepted(self, task: Task) -> Answer:
        """Return the answer to the request that made *task*."""
        ...

    def callback(self, task: Task, standing: Standing, *, url: str | None = None) -> dict[str, Any] | None:
        """Return what the callback says of *task* (with another output *url*), or None for nothing."""
        ...

    def signature(self, body: bytes, task: Task, stamp: int, *, forged: bool) -> dict[str, str]:
        """Return the headers that prove, or pretend, that *body* was sent at *stamp* (unix seconds)."""
        ...


_BY_STATUS = {
    401: Problem.UNAUTHORIZED,
    402: Problem.QUOTA_EXHAUSTED,
    403: Problem.FORBIDDEN,
    404: Problem.NOT_FOUND,
    408: Problem.TIMEOUT,
    409: Problem.CONFLICT,
    410: Problem.NOT_FOUND,
    429: Problem.RATE_LIMITED,
    504: Problem.TIMEOUT,
}


def problem_of(status: int) -> Problem:
    """Return the problem that an HTTP *status* usually means."""
    usual = Problem.UNAVAILABLE if status >= 500 else Problem.INVALID_REQUEST
    return _BY_STATUS.get(status, usual)


def text_in(body: dict[str, Any], name: str) -> str:
    """Return the text *name* of *body*, empty where there is none."""
    value = body.get(name)
    return value if isinstance(value, str) else ""
