"""Fetching what a URL from outside names: a user's picture, a provider's output."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Final

import httpx

from sceneloom.assets.addresses import permitted_addresses
from sceneloom.assets.errors import DownloadFailed, DownloadRefused

REDIRECTS: Final = 5
_REDIRECTING: Final = frozenset({301, 302, 303, 307, 308})
_PASSING: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_CONNECT_SECONDS: Final = 10.0
_PORTS: Final = {"http": 80, "https": 443}


async def download(
    url: str,
    *,
    limit_bytes: int,
    timeout: float,  # noqa: ASYNC109  # it also bounds the size of the whole transfer, redirects included
    allow_private: bool = False,
    client: httpx.AsyncClient | None = None,
) -> bytes:
    """Return what *url* (http or https) holds, at most *limit_bytes* of it, within *timeout* seconds.

    Each hop is resolved once, checked, and connected to at the checked address, so that a second answer of
    the DNS changes nothing. For that reason no proxy is used and the environment is not asked for one.
    A *client* gives its transport only: none of its headers, cookies or credentials are sent.
    Raises DownloadRefused where a rule forbids it, DownloadFailed where the other side does not deliver.
    """
    try:
        async with asyncio.timeout(timeout), _using(client) as using:
            return await _follow(using, url, limit_bytes, allow_private=allow_private)
    except TimeoutError as exc:
        raise DownloadFailed(f"{shown(url)} took longer than {timeout:g} s", retryable=True) from exc


def shown(url: str) -> str:
    """Return *url* without what may be secret: credentials and the signature in its query."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        return "a URL that cannot be read"
    return str(parsed.copy_with(userinfo=b"", query=None, fragment=None))


@cache
def _trust() -> ssl.SSLContext:
    return httpx.create_ssl_context(trust_env=False)


@asynccontextmanager
async def _using(client: httpx.AsyncClient | None) -> AsyncIterator[httpx.AsyncClient]:
    if client is not None:
        yield client
        return
    async with httpx.AsyncClient(verify=_trust(), trust_env=False) as own:
        yield own


async def _follow(client: httpx.AsyncClient, url: str, limit: int, *, allow_private: bool) -> bytes:
    target = _checked(url)
    for _ in range(REDIRECTS + 1):
        response = await _request(client, target, allow_private=allow_private)
        try:
            if response.status_code not in _REDIRECTING:
                return await _read(response, str(target), limit)
            target = _next(target, response)
        except httpx.HTTPError as exc:
            raise _broken(target, exc) from exc
        finally:
            await response.aclose()
    raise DownloadRefused(f"{shown(url)} redirects more than {REDIRECTS} times")


def _checked(url: str) -> httpx.URL:
    try:
        target = httpx.URL(url)
    except httpx.InvalidURL as exc:
        raise DownloadRefused(f"this is not a URL: {exc}") from exc
    if target.scheme not in _PORTS or not target.host:
        raise DownloadRefused(f"{shown(url)} is not an http or https address")
    if target.userinfo:
        raise DownloadRefused(f"{shown(url)} must not hold a name or password")
    return target


def _next(target: httpx.URL, response: httpx.Response) -> httpx.URL:
    location = response.headers.get("location")
    if not location:
        raise DownloadFailed(
            f"{shown(str(target))} redirects to nowhere", retryable=False, status=response.status_code
        )
    following = _checked(str(target.join(location)))
    if target.scheme == "https" and following.scheme == "http":
        raise DownloadRefused(f"{shown(str(target))} redirects to an address without encryption")
    return following


async def _request(client: httpx.AsyncClient, target: httpx.URL, *, allow_private: bool) -> httpx.Response:
    """Ask for *target* at each of its addresses in turn until one can be connected to."""
    port = target.port or _PORTS[target.scheme]
    addresses = await permitted_addresses(target.raw_host.decode("ascii"), port, allow_private=allow_private)
    for address in addresses:
        try:
            return await client.send(_pinned(target, address), stream=True, auth=None, follow_redirects=False)
        except (httpx.ConnectError, httpx.ConnectTimeout) as exc:
            if address == addresses[-1]:
                raise _broken(target, exc) from exc
        except httpx.HTTPError as exc:
            raise _broken(target, exc) from exc
    raise DownloadFailed(f"the host of {shown(str(target))} has no address", retryable=True)


def _pinned(target: httpx.URL, address: str) -> httpx.Request:
    """Make the request that goes to *address* and to nowhere else, yet is answered and certified as *target*.

    `Connection: close` keeps the connection out of the pool, where another host at the same address would
    find it.
    """
    return httpx.Request(
        "GET",
        target.copy_with(host=address),
        headers={
            "Host": target.netloc.decode("ascii"),
            "Accept": "*/*",
            "Accept-Encoding": "identity",
            "User-Agent": "sceneloom",
            "Connection": "close",
        },
        extensions={
            "sni_hostname": target.raw_host.decode("ascii"),
            "timeout": httpx.Timeout(None, connect=_CONNECT_SECONDS).as_dict(),
        },
    )


async def _read(response: httpx.Response, url: str, limit: int) -> bytes:
    status = response.status_code
    if status != 200:
        raise DownloadFailed(
            f"{shown(url)} answered {status}",
            retryable=status in _PASSING,
            status=status,
            retry_after=_whole_number(response.headers.get("retry-after")),
        )
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise DownloadFailed(f"{shown(url)} sent a compressed body unasked", retryable=False, status=status)
    if (_whole_number(response.headers.get("content-length")) or 0) > limit:
        raise _too_large(url, limit)
    content = bytearray()
    async for chunk in response.aiter_raw():
        content += chunk
        if len(content) > limit:
            raise _too_large(url, limit)
    return bytes(content)


def _whole_number(text: str | None) -> float | None:
    return float(text) if text is not None and text.isascii() and text.isdigit() else None


def _too_large(url: str, limit: int) -> DownloadRefused:
    return DownloadRefused(f"{shown(url)} holds more than the {limit:,} bytes that are allowed")


def _broken(target: httpx.URL, error: httpx.HTTPError) -> DownloadFailed:
    reason = str(error) or type(error).__name__
    return DownloadFailed(f"{shown(str(target))} could not be read: {reason}", retryable=True)
