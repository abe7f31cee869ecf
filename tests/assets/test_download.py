import asyncio
import gzip
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from models.errors import ErrorCode, ProviderFailure
from sceneloom.assets.addresses import is_permitted
from sceneloom.assets.download import download, shown
from sceneloom.assets.errors import DownloadFailed, DownloadRefused

BODY = b"\x89PNG" + bytes(range(256)) * 40
Answer = bytes | Callable[[asyncio.StreamWriter], Awaitable[None]]


def answer(status: str, body: bytes = b"", *headers: str, length: int | None = None) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body) if length is None else length}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def redirect(location: str) -> bytes:
    return answer("302 Found", b"", f"Location: {location}")


class Site:
    """A web server on loopback whose answers are written down byte by byte."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.answers: dict[str, Answer] = {"/ok": answer("200 OK", BODY)}
        self.requests: list[str] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.requests.append(request)
            reply = self.answers.get(request.split()[1].partition("?")[0], answer("404 Not Found"))
            if isinstance(reply, bytes):
                writer.write(reply)
            else:
                await reply(writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def running_site() -> AsyncIterator[Site]:
    listener = socket.create_server(("127.0.0.1", 0))
    site = Site(listener.getsockname()[1])
    server = await asyncio.start_server(site.serve, sock=listener)
    try:
        yield site
    finally:
        server.close()
        await server.wait_closed()


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with running_site() as it:
        yield it


async def fetch(url: str, *, limit: int = 1_000_000, seconds: float = 20, private: bool = True) -> bytes:
    return await download(url, limit_bytes=limit, timeout=seconds, allow_private=private)


async def test_what_the_url_holds_is_returned(site: Site) -> None:
    assert await fetch(f"{site.url}/ok?signature=abc") == BODY
    assert "GET /ok?signature=abc " in site.requests[0]
    assert f"host: 127.0.0.1:{site.port}" in site.requests[0].lower()


async def test_private_addresses_are_refused_unless_allowed(site: Site) -> None:
    with pytest.raises(DownloadRefused, match="not a public address"):
        await fetch(f"{site.url}/ok", private=False)
    assert site.requests == []


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "localhost.", "LOCALHOST", "127.0.0.1", "127.1", "2130706433", "017700000001"),
        *("0x7f.1", "0x7f000001", "0177.0.0.1", "127.0.0.1.", "１２７.0.0.1", "①②⑦.0.0.1"),
        *("[::1]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]"),
        *("0.0.0.0", "0", "[::]"),  # noqa: S104  # refused, not bound
    ],
)
async def test_loopback_is_seen_behind_every_spelling(host: str) -> None:
    with pytest.raises(
        (DownloadRefused, DownloadFailed), match=r"not a public address|not a URL|was not found"
    ):
        await fetch(f"http://{host}/", private=False)


@pytest.mark.parametrize(
    ("address", "public", "own"),
    [
        ("93.184.216.34", True, True),
        ("2606:4700::1111", True, True),
        ("64:ff9b::5db8:d822", True, True),
        ("127.0.0.1", False, True),
        ("10.1.2.3", False, True),
        ("172.16.0.1", False, True),
        ("192.168.0.1", False, True),
        ("fd00::1", False, True),
        ("::ffff:10.0.0.1", False, True),
        ("64:ff9b::7f00:1", False, True),
        ("2002:7f00:1::", False, True),
        ("100.64.0.1", False, False),
        ("169.254.169.254", False, False),
        ("fe80::1", False, False),
        ("fe80::1%eth0", False, False),
        ("::ffff:169.254.169.254", False, False),
        ("0.0.0.0", False, False),  # noqa: S104  # refused, not bound
        ("::", False, False),
        ("224.0.0.1", False, False),
        ("ff02::1", False, False),
        ("240.0.0.1", False, True),
        ("255.255.255.255", False, True),
        ("fec0::1", False, False),
    ],
)
def test_every_kind_of_address_has_its_rule(address: str, public: bool, own: bool) -> None:  # noqa: FBT001  # columns of a table
    assert is_permitted(address) is public
    assert is_permitted(address, allow_private=True) is own


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("file:///etc/passwd", "not an http or https address"),
        ("ftp://example.com/x", "not an http or https address"),
        ("gopher://127.0.0.1:70/", "not an http or https address"),
        ("//example.com/x", "not an http or https address"),
        ("picture.png", "not an http or https address"),
        ("", "not an http or https address"),
        ("http://", "not an http or https address"),
        ("http://user:hunter2@127.0.0.1/x", "must not hold a name or password"),
        ("http://[::1/x", "not a URL"),
        ("http://exa\x00mple.com/", "not a URL"),
    ],
)
async def test_a_url_that_breaks_a_rule_is_refused_by_reason(url: str, reason: str) -> None:
    with pytest.raises(DownloadRefused, match=reason) as refused:
        await fetch(url)
    assert "hunter2" not in str(refused.value)
    assert not refused.value.retryable


async def test_redirects_are_followed_with_each_hop_checked(site: Site) -> None:
    site.answers |= {"/a": redirect("/b"), "/b": redirect(f"{site.url}/ok")}
    assert await fetch(f"{site.url}/a") == BODY
    assert [request.split()[1] for request in site.requests] == ["/a", "/b", "/ok"]


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("http://169.254.169.254/latest/meta-data/", "not a public address"),
        ("file:///etc/passwd", "not an http or https"),
        ("http://me:secret@127.0.0.1/", "must not hold"),
        ("/loop", "redirects more than 5 times"),
    ],
)
async def test_a_redirect_cannot_lead_where_a_url_could_not(site: Site, location: str, reason: str) -> None:
    site.answers["/loop"] = redirect(location)
    with pytest.raises(DownloadRefused, match=reason):
        await fetch(f"{site.url}/loop")


async def test_a_redirect_to_what_is_no_url_fails(site: Site) -> None:
    site.answers["/bad"] = redirect("http://[::1/x")
    with pytest.raises(DownloadFailed, match="Invalid URL in location header"):
        await fetch(f"{site.url}/bad")


async def test_five_redirects_are_still_followed(site: Site) -> None:
    site.answers |= {f"/{n}": redirect(f"/{n + 1}") for n in range(5)} | {"/5": answer("200 OK", b"end")}
    assert await fetch(f"{site.url}/0") == b"end"


async def test_a_redirect_without_an_address_fails(site: Site) -> None:
    site.answers["/nowhere"] = answer("302 Found")
    with pytest.raises(DownloadFailed, match="redirects to nowhere"):
        await fetch(f"{site.url}/nowhere")


async def test_a_host_is_resolved_once_and_connected_to_at_the_checked_address(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    usual, asked = loop.getaddrinfo, []

    async def rebinding(host: Any, port: Any, **options: Any) -> Any:
        if host != "rebind.test":
            return await usual(host, port, **options)
        asked.append(host)
        address = "127.0.0.1" if len(asked) == 1 else "169.254.169.254"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(loop, "getaddrinfo", rebinding)
    assert await fetch(f"http://rebind.test:{site.port}/ok") == BODY
    assert asked == ["rebind.test"]
    assert f"host: rebind.test:{site.port}" in site.requests[0].lower()
    with pytest.raises(DownloadRefused, match=r"rebind.test is at 169.254.169.254"):
        await fetch(f"http://rebind.test:{site.port}/ok")


def resolving_to(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    async def resolve(host: Any, port: Any, **options: Any) -> Any:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve)


async def test_one_private_address_among_public_ones_is_enough_to_refuse(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolving_to(monkeypatch, "93.184.216.34", "10.0.0.1")
    with pytest.raises(DownloadRefused, match=r"10.0.0.1"):
        await fetch("http://mixed.test/", private=False)


async def test_the_next_address_is_tried_where_one_does_not_connect(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolving_to(monkeypatch, "127.9.9.9", "127.0.0.1")
    assert await fetch(f"http://two.test:{site.port}/ok") == BODY


async def test_tls_is_certified_for_the_name_though_the_number_is_connected_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[httpx.Request] = []

    def take(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, stream=httpx.ByteStream(b"x"))

    resolving_to(monkeypatch, "93.184.216.34")
    headers = {"Authorization": "Bearer secret", "Cookie": "a=b"}
    async with httpx.AsyncClient(transport=httpx.MockTransport(take), headers=headers) as client:
        url = "https://bücher.example/pic.png"
        assert await download(url, limit_bytes=10, timeout=5, client=client) == b"x"
    assert str(seen[0].url) == "https://93.184.216.34/pic.png"
    assert seen[0].extensions["sni_hostname"] == seen[0].headers["host"] == "xn--bcher-kva.example"
    assert "authorization" not in seen[0].headers
    assert "cookie" not in seen[0].headers


async def test_https_is_never_left_for_http(monkeypatch: pytest.MonkeyPatch) -> None:
    resolving_to(monkeypatch, "93.184.216.34")
    transport = httpx.MockTransport(lambda _: httpx.Response(302, headers={"Location": "http://a.test/"}))
    async with httpx.AsyncClient(transport=transport) as client:
        with pytest.raises(DownloadRefused, match="without encryption"):
            await download("https://a.test/", limit_bytes=10, timeout=5, client=client)


@pytest.mark.parametrize("status", ["400", "401", "403", "404", "410", "204", "206", "304"])
async def test_a_final_status_fails_for_good(site: Site, status: str) -> None:
    site.answers["/x"] = f"HTTP/1.1 {status} X\r\n\r\n".encode()
    with pytest.raises(DownloadFailed, match=f"answered {status}") as failed:
        await fetch(f"{site.url}/x?sig=secret")
    assert (failed.value.status, failed.value.retryable) == (int(status), False)
    assert "secret" not in str(failed.value)


@pytest.mark.parametrize("status", ["408", "425", "429", "500", "502", "503", "504"])
async def test_a_passing_status_is_worth_another_attempt(site: Site, status: str) -> None:
    site.answers["/x"] = answer(f"{status} X", b"", "Retry-After: 7")
    with pytest.raises(DownloadFailed) as failed:
        await fetch(f"{site.url}/x")
    assert (failed.value.status, failed.value.retryable, failed.value.retry_after) == (int(status), True, 7)


async def test_a_download_error_is_a_provider_failure_with_a_code() -> None:
    with pytest.raises(ProviderFailure) as failed:
        await fetch("file:///x")
    assert failed.value.code is ErrorCode.ASSET_FETCH_FAILED


async def test_a_body_that_ends_early_is_worth_another_attempt(site: Site) -> None:
    site.answers["/x"] = answer("200 OK", BODY, length=len(BODY) + 1)
    with pytest.raises(DownloadFailed, match="could not be read") as failed:
        await fetch(f"{site.url}/x")
    assert failed.value.retryable


async def test_a_dead_host_or_port_is_worth_another_attempt() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(DownloadFailed, match="could not be read") as failed:
        await fetch(f"http://127.0.0.1:{port}/")
    assert failed.value.retryable
    with pytest.raises(DownloadFailed, match="was not found"):
        await fetch("http://no-such-host.invalid/")


async def test_a_body_over_the_limit_is_refused_by_its_header_or_on_the_way(site: Site) -> None:
    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"1000\r\n" + b"x" * 4096 + b"\r\n")
            await writer.drain()

    site.answers |= {"/big": answer("200 OK", b"x", length=10**12), "/endless": endless}
    for path in ("/big", "/endless"):
        with pytest.raises(DownloadRefused, match="more than the 1,000,000 bytes"):
            await fetch(site.url + path)
    assert await fetch(f"{site.url}/ok", limit=len(BODY)) == BODY


async def test_a_compressed_body_is_not_unpacked(site: Site) -> None:
    site.answers["/zip"] = answer("200 OK", gzip.compress(b"\0" * 10**7), "Content-Encoding: gzip")
    with pytest.raises(DownloadFailed, match="compressed"):
        await fetch(f"{site.url}/zip", limit=10**9)


async def test_a_server_that_drips_is_left_when_the_time_is_over(site: Site) -> None:
    async def drip(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.01)

    site.answers["/drip"] = drip
    with pytest.raises(DownloadFailed, match=r"took longer than 0.3 s") as failed:
        await fetch(f"{site.url}/drip", seconds=0.3)
    assert failed.value.retryable


async def test_proxies_of_the_environment_are_not_used(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert await fetch(f"{site.url}/ok") == BODY


def test_a_url_is_shown_without_its_secrets() -> None:
    assert shown("https://a:b@host.test/p/x.png?X-Signature=s#f") == "https://host.test/p/x.png"
