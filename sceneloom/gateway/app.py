"""The HTTP face of the gateway."""

from collections.abc import Awaitable, Callable
from typing import Annotated

import structlog
from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

from sceneloom.callbacks import PREFIX, Call
from sceneloom.gateway.reception import Reception

_log = structlog.get_logger(__name__)


def create_gateway(reception: Reception, *, broker_answers: Callable[[], Awaitable[bool]]) -> FastAPI:
    """Return the app; everything that it needs runs already."""
    app = FastAPI(title="Sceneloom gateway", docs_url=None, redoc_url=None, openapi_url=None)

    @app.post(PREFIX + "/{provider}/{job_id:path}/{attempt}/{call}/{token}")
    async def webhook(called: Annotated[Call, Depends()], token: str, request: Request) -> dict[str, str]:
        try:
            return {"status": await reception.take(called, token, request)}
        except HTTPException:
            raise
        except Exception as error:  # noqa: BLE001 -- a traceback shows addresses; the sender tries again
            _log.error("gateway.failed", error=type(error).__name__)
            raise HTTPException(500, "failed") from None

    @app.exception_handler(RequestValidationError)
    async def no_such_address(_request: Request, _error: Exception) -> Response:
        # The usual answer repeats what was sent.
        return JSONResponse({"detail": "Not Found"}, 404)

    @app.get("/health")
    async def health(response: Response) -> dict[str, str]:
        if await broker_answers():
            return {"status": "ok"}
        response.status_code = 503
        return {"status": "no broker"}

    return app
