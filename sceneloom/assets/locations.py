"""Where an asset store is, and which names inside it are allowed."""

import re
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from obstore.exceptions import BaseError
from obstore.store import LocalStore, MemoryStore, from_url

from sceneloom.assets.errors import AssetStoreUnavailable
from sceneloom.assets.signatures import extension

if TYPE_CHECKING:
    from obstore.store import ClientConfig, ObjectStore, RetryConfig

_CLOUDS: Final = ("s3", "gs", "az")
_SECRET: Final = re.compile("secret|token|password|signature|access_key|account_key|sas", re.IGNORECASE)
_ENTRY_KEY: Final = re.compile(r"[A-Za-z0-9._-]{1,128}(/[A-Za-z0-9._-]{1,128}){0,7}")
_ASSET_KEY: Final = re.compile(r"assets/([0-9a-f]{2})/(?P<digest>\1[0-9a-f]{62})\.[a-z0-9]{1,8}")

# A worker has other scenes to carry on with: it hears of an outage within half a minute and tries again by
# its own schedule. The read timeout ends a stalled transfer, so a long one needs no short overall limit.
_PATIENCE: "RetryConfig" = {"max_retries": 4, "retry_timeout": timedelta(seconds=20)}
_CLIENT: "ClientConfig" = {"timeout": timedelta(minutes=15), "read_timeout": timedelta(seconds=30)}


@dataclass(frozen=True)
class Location:
    """An opened store, the URL its assets begin with, and its folder where it is a local one."""

    store: "ObjectStore"
    url: str
    folder: Path | None = None


def locate(url: str) -> Location:
    """Open the store at *url*, creating a local folder that is missing.

    Raises ValueError for a URL that names no store, AssetStoreUnavailable for a folder that cannot be made.
    """
    if (folder := folder_of(url)) is not None:
        return _local(folder)
    parts = urlsplit(url)
    if parts.username or parts.password:
        raise ValueError("an asset store URL must not hold credentials: set them in the environment")
    if parts.scheme == "memory":
        return Location(MemoryStore(), "memory://")
    if parts.scheme in _CLOUDS and parts.netloc:
        return _cloud(
            f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}", dict(parse_qsl(parts.query))
        )
    raise ValueError(f"{url!r} is no asset store: use a folder, file://, s3://, gs://, az:// or memory://")


def folder_of(url: str) -> Path | None:
    """Return the folder of this machine that *url* names, None for a store elsewhere.

    Raises ValueError for a folder of another machine.
    """
    if "://" not in url and not url.startswith("file:"):
        return Path(url).expanduser()
    parts = urlsplit(url)
    if parts.scheme != "file":
        return None
    if parts.netloc not in ("", "localhost"):
        raise ValueError(f"{url!r} names another machine: write file:///absolute/path")
    return Path(unquote(parts.path))


def _local(folder: Path) -> Location:
    root = folder.resolve()
    try:
        store = LocalStore(root, mkdir=True)
    except (OSError, BaseError) as exc:
        raise AssetStoreUnavailable(f"the asset folder {root} cannot be used: {first_line(exc)}") from exc
    return Location(store, root.as_uri(), root)


def _cloud(url: str, options: dict[str, str]) -> Location:
    for name in options:
        if _SECRET.search(name):
            raise ValueError(f"{name!r} does not belong in an asset store URL: set it in the environment")
    client = _CLIENT.copy()
    if options.get("endpoint", "").startswith("http://"):
        client["allow_http"] = True
    config = cast("Any", options)  # which keys there are depends on the scheme; obstore refuses the others
    try:
        store = from_url(url, config=config, client_options=client, retry_config=_PATIENCE)
    except (BaseError, ValueError) as exc:
        raise ValueError(f"{url!r} cannot be opened: {first_line(exc)}") from exc
    return Location(store, url)


def asset_key(digest: str, media_type: str) -> str:
    """Name the asset whose content has the sha256 *digest* (hex): `assets/ab/ab12….png`."""
    return f"assets/{digest[:2]}/{digest}.{extension(media_type)}"


def digest_in(key: str) -> str | None:
    """Return the sha256 (hex) that *key* was made from, None where it is not the key of an asset."""
    match = _ASSET_KEY.fullmatch(key)
    return match["digest"] if match else None


def entry_key(key: str) -> str:
    """Name the entry called *key* inside the store. Raises ValueError for a name that is not allowed."""
    if not _ENTRY_KEY.fullmatch(key) or any(set(part) == {"."} for part in key.split("/")):
        raise ValueError(
            f"{key!r} cannot name an entry: 1-8 parts of A-Z, a-z, 0-9, '.', '_', '-', joined by '/'"
        )
    return f"entries/{key}.json"


def first_line(error: BaseException) -> str:
    """Return what *error* says without the dump that obstore puts below."""
    return str(error).partition("\n")[0] or type(error).__name__
