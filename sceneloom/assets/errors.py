"""What can go wrong with assets beyond what the domain names, drawn as a tree.

* AssetStoreUnavailable    -- the store did not answer or would not write: try again, or repair it
* ProviderFailure (domain)
  x DownloadRefused        -- the address breaks a rule: the same address will break it again
  x DownloadFailed         -- the other side did not deliver; `retryable` tells whether it may yet
"""

from models.errors import ErrorCode, ProviderFailure


class AssetStoreUnavailable(Exception):
    """The asset store could not be reached, read or written; the cause is chained."""


class DownloadRefused(ProviderFailure):
    """A rule of ours forbids this download; another attempt cannot help."""

    retryable = False

    def __init__(self, detail: str) -> None:
        super().__init__(ErrorCode.ASSET_FETCH_FAILED, detail)


class DownloadFailed(ProviderFailure):
    """The address did not deliver. `status` is the HTTP status, where there was an answer."""

    def __init__(
        self, detail: str, *, retryable: bool, status: int | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(ErrorCode.ASSET_FETCH_FAILED, detail, retry_after=retry_after)
        self.retryable = retryable
        self.status = status
