"""Which network addresses a download may reach: a URL from outside must not open doors on the inside."""

import asyncio
import socket
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final

from sceneloom.assets.errors import DownloadFailed, DownloadRefused

_NAT64: Final = IPv6Network("64:ff9b::/96")
_GLOBAL_UNICAST: Final = IPv6Network("2000::/3")


async def permitted_addresses(host: str, port: int, *, allow_private: bool) -> list[str]:
    """Resolve *host* to the numeric addresses that a download may connect to.

    Raises DownloadRefused where any of them is not allowed, DownloadFailed where there are none.
    """
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as exc:
        raise DownloadFailed(f"the host {host} was not found: {exc}", retryable=True) from exc
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    for address in addresses:
        if not is_permitted(address, allow_private=allow_private):
            advice = (
                "; SCENELOOM_ALLOW_PRIVATE_DOWNLOADS=true permits it"
                if is_permitted(address, allow_private=True)
                else ""
            )
            raise DownloadRefused(f"the host {host} is at {address}, which is not a public address{advice}")
    return addresses


def is_permitted(address: str, *, allow_private: bool = False) -> bool:
    """Tell whether *address* is public, or of the own network where that is allowed.

    Link-local addresses never are: clouds give out credentials there.
    """
    ip = _carried(ip_address(address))
    if allow_private and ip.is_private and not (ip.is_link_local or ip.is_unspecified or ip.is_multicast):
        return True
    if isinstance(ip, IPv6Address) and ip not in _GLOBAL_UNICAST:
        return False
    return ip.is_global and not (ip.is_multicast or ip.is_reserved)


def _carried(ip: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Return the IPv4 address that an IPv6 address leads to, or the address itself."""
    if isinstance(ip, IPv4Address):
        return ip
    if ip in _NAT64:
        return IPv4Address(int(ip) & 0xFFFF_FFFF)
    return ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None) or ip
