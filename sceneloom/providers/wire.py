"""The one place where a paid request leaves, and where its outcome gets a name.

No request is ever sent twice from here. What surely was not sent, or surely was refused, is a
`ProviderFailure`; everything else that goes wrong after a paid request left is an `OutcomeUnknown`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import httpx
from pydantic import SecretStr

from models.errors import ErrorCode, OutcomeUnknown, ProviderFailure
from models.ports import Clock
from sceneloom.providers.keys import key_of
from sceneloom.providers.redaction import redacted
from sceneloom.providers.verdicts import Answer, Verdicts, retry_after

MAY_BUY: Final[ContextVar[Callable[[], Awaitable[bool]]]] = ContextVar("MAY_BUY")
"""Asked before a paid request leaves, and again once there is a connection: may whoever orders it still?

The first answer may take long, and nothing is open meanwhile. The second one must come at once.
"""

_LEAVES: Final = frozenset({"http11.send_request_headers.started", "http2.send_request_headers.started"})
"""What httpcore traces right before the first byte of a request, once there is a connection."""

_AT_ONCE_SECONDS: Final = 2.0
"""A provider closes a connection on which nothing comes, and then nobody could tell whether anything did."""

_LARGEST_ANSWER: Final = 64 * 1024 * 1024
_NOT_SENT: Final = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
)


class NotAllowed(Exception):
    """The request was not sent: whoever orders it may not any more, or was not told in time that they may."""


async def _require_allowed() -> None:
    """Raise `NotAllowed` where `MAY_BUY` says no."""
    if not await MAY_BUY.get(_always)():
        raise NotAllowed


async def _require_allowed_at_once(step: str, _: object) -> None:
    """Raise `NotAllowed` where a request is about to leave, and `MAY_BUY` says no, or nothing for long."""
    if step not in _LEAVES:
        return
    try:
        async with asyncio.timeout(_AT_ONCE_SECONDS):
            await _require_allowed()
    except TimeoutError:
        raise NotAllowed from None


@dataclass(frozen=True, kw_only=True, slots=True)
class Patience:
    """Seconds to wait for each step of one request, and for all of it, so that no drip of bytes holds us."""

    connect: float = 10.0
    read: float = 60.0
    write: float = 60.0
    pool: float = 10.0
    total: float = 120.0

    @property
    def timeout(self) -> httpx.Timeout:
        """The same for httpx, which knows no total."""
        return httpx.Timeout(connect=self.connect, read=self.read, write=self.write, pool=self.pool)


def open_client(**options: Any) -> httpx.AsyncClient:
    """Make a client fit for paid requests: no retries, no redirects, and no connection kept for the next one.

    A kept connection that the provider closes just as we send would make the outcome unknown for no reason.
    """
    limits = httpx.Limits(max_connections=100, max_keepalive_connections=0)
    return httpx.AsyncClient(**{"limits": limits, "follow_redirects": False, **options})


class Wire:
    """Speaks HTTP with one provider, without a key where that is None.

    Raises `ValueError` for a key that no header may hold.
    """

    def __init__(
        self,
        client: httpx.AsyncClient,
        *,
        base_url: str,
        key: SecretStr | None,
        verdicts: Verdicts,
        clock: Clock,
        scheme: str = "Bearer",
        header: str = "Authorization",
        signs: bool = False,
        headers: Mapping[str, str] = MappingProxyType({}),
        patience: Patience | None = None,
    ) -> None:
        self._client = client
        self._base_url = base_url.rstrip("/")
        self._auth = (
            None if key is None else key_of(key, scheme=scheme, header=header, signs=signs, clock=clock)
        )
        self._headers = dict(headers)
        self._verdicts = verdicts
        self._clock = clock
        self._patience = patience or Patience()

    async def buy(
        self,
        path: str,
        body: Mapping[str, Any] | bytes,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] = MappingProxyType({}),
        form: bool = False,
        reference: str | None = None,
        hidden: Iterable[str] = (),
    ) -> Answer:
        """Make one paid POST and return its 2xx answer, whole; *hidden* texts never show up in an error.

        *body* goes as JSON, as a multipart *form*, where a file is a tuple of name, content and media type,
        or as the bytes that it is.
        Raises `ProviderFailure` where surely nothing was accepted, `OutcomeUnknown` where nobody can tell,
        and `NotAllowed`, having sent nothing, where `MAY_BUY` says no or does not answer in time.
        """
        more = {**headers, **({"X-Client-Request-Id": reference} if reference else {})}
        request = self._request("POST", path, params=params, more=more, **_encoded(body, form=form))
        await _require_allowed()
        request.extensions = {**request.extensions, "trace": _require_allowed_at_once}
        try:
            answer = await self._exchange(request)
        except _NOT_SENT as error:
            outcome: Exception = ProviderFailure(
                ErrorCode.PROVIDER_UNAVAILABLE, self.redacted(f"not sent: {_shown(error)}", hidden)
            )
        except (httpx.HTTPError, TimeoutError, OSError) as error:
            outcome = OutcomeUnknown(self.redacted(f"{path}: {_shown(error)}", hidden))
        else:
            if answer.is_success:
                return answer
            outcome = self._judged(answer, hidden)
        # Raised out here: the cause is named but not chained, as its frames hold the request and so the key.
        raise outcome

    async def ask(self, method: str, path: str, *, params: Mapping[str, str] | None = None) -> Answer:
        """Make one request that costs nothing and return its answer, of whatever status.

        Raises `ProviderFailure` (PROVIDER_UNAVAILABLE) where no whole answer came.
        """
        request = self._request(method, path, params=params)
        try:
            return await self._exchange(request)
        except (httpx.HTTPError, TimeoutError, OSError) as error:
            failure = ProviderFailure(ErrorCode.PROVIDER_UNAVAILABLE, self.redacted(_shown(error)))
        raise failure

    async def read(self, path: str, *, params: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return the JSON object at *path*. Raises `ProviderFailure` (PROVIDER_UNAVAILABLE) for all else."""
        answer = await self.ask("GET", path, params=params)
        body = answer.json() if answer.is_success else None
        if body is None:
            raise self.unreadable(answer)
        return body

    def failure(self, answer: Answer, hidden: Iterable[str] = ()) -> ProviderFailure:
        """Return what *answer*, which is not a success, means by the provider's table."""
        wait = retry_after(answer.headers, self._clock.now())
        return ProviderFailure(self._verdicts.code(answer), self._described(answer, hidden), retry_after=wait)

    def unreadable(self, answer: Answer) -> ProviderFailure:
        """Return the failure for a harmless question to which *answer* is no answer."""
        wait = retry_after(answer.headers, self._clock.now())
        return ProviderFailure(ErrorCode.PROVIDER_UNAVAILABLE, self._described(answer), retry_after=wait)

    def unclear(self, answer: Answer, missing: str, hidden: Iterable[str] = ()) -> OutcomeUnknown:
        """Return the outcome of a paid request that was answered with 2xx, but without what is *missing*."""
        said = self._described(answer, hidden)
        return OutcomeUnknown(f"answered {answer.status} without {missing}: {said}")

    def redacted(self, text: str, hidden: Iterable[str] = ()) -> str:
        """Return *text* as one short line without our key, *hidden* texts, or what looks like a key."""
        own = () if self._auth is None else self._auth.secrets
        return redacted(text, [*own, *hidden])

    def _judged(self, answer: Answer, hidden: Iterable[str]) -> Exception:
        if self._verdicts.is_refusal(answer):
            return self.failure(answer, hidden)
        return OutcomeUnknown(self._described(answer, hidden))

    def _described(self, answer: Answer, hidden: Iterable[str] = ()) -> str:
        names, message = self._verdicts.read(answer)
        said = f"{names}: {message}".strip(": ") or answer.content[:2000].decode(errors="replace")
        # Many a server's plain page begins with the status itself, as in `405: Method Not Allowed`.
        said = said.removeprefix(f"{answer.status}: ")
        return self.redacted(f"HTTP {answer.status} {said}", hidden)

    def _request(
        self, method: str, path: str, *, more: Mapping[str, str] = MappingProxyType({}), **content: Any
    ) -> httpx.Request:
        url = f"{self._base_url}/{path.lstrip('/')}"
        headers = {**self._headers, **more}
        return self._client.build_request(
            method, url, timeout=self._patience.timeout, headers=headers, **content
        )

    async def _exchange(self, request: httpx.Request) -> Answer:
        async with asyncio.timeout(self._patience.total):
            response = await self._client.send(request, auth=self._auth, follow_redirects=False, stream=True)
            try:
                content = await _content(response)
            except httpx.HTTPError:
                if not response.is_client_error:
                    raise
                content = b""  # a refusal is one, whether or not its reasons arrive
            finally:
                await response.aclose()
        return Answer(response.status_code, response.headers, content)


def _encoded(body: Mapping[str, Any] | bytes, *, form: bool) -> dict[str, Any]:
    if isinstance(body, bytes):
        return {"content": body}
    if form:
        return {
            "files": {
                name: value if isinstance(value, tuple) else (None, str(value))
                for name, value in body.items()
            }
        }
    return {"json": dict(body)}


async def _content(response: httpx.Response) -> bytes:
    if "," in response.headers.get("content-encoding", ""):
        # Packed twice, a few kilobytes unpack to gigabytes before anybody can count them.
        raise httpx.DecodingError("the answer is compressed more than once")
    content = bytearray()
    async for chunk in response.aiter_bytes():
        content += chunk
        if len(content) > _LARGEST_ANSWER:
            raise httpx.DecodingError(f"the answer is longer than {_LARGEST_ANSWER} bytes")
    return bytes(content)


def _shown(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")


async def _always() -> bool:
    return True
