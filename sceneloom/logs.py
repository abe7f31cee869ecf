"""Log lines of a worker: for people or for machines, on standard error."""

import logging
import sys
from typing import Final

import structlog
from structlog.typing import Processor

from sceneloom.settings import Settings

_QUIET: Final = {
    # Faust and aiokafka tell of every step; making records that nobody reads took 8 % of a worker's time.
    "aiokafka": logging.WARNING,
    "faust": logging.WARNING,
    "mode": logging.WARNING,
    "asyncio": logging.WARNING,
}
_NEVER: Final = ("httpx", "httpcore", "aiokafka.producer.producer", "faust.topics")
"""What tells whole URLs or whole messages, which may hold secrets."""
_REPEATED_SECONDS: Final = 30.0
_SHARED: Final[list[Processor]] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


def configure_logging(settings: Settings) -> None:
    """Send all log lines to standard error, in the format and from the level that *settings* name."""
    last: Processor = (
        structlog.processors.JSONRenderer()
        if settings.log_format == "json"
        # The usual tracebacks show the values of all variables, and so keys and callback addresses.
        else structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    )
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=_SHARED,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            *([structlog.processors.format_exc_info] if settings.log_format == "json" else []),
            last,
        ],
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    handler.addFilter(_Repetitions())
    logging.basicConfig(handlers=[handler], level=settings.log_level, force=True)
    if settings.log_level != "DEBUG":
        for name, level in _QUIET.items():
            logging.getLogger(name).setLevel(level)
    for name in _NEVER:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("aiokafka.consumer.group_coordinator").addFilter(_is_news)
    structlog.configure(
        processors=[*_SHARED, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )


class _Repetitions(logging.Filter):
    """Leaves out what the Kafka client says again and again while a broker is away or refuses us."""

    def __init__(self) -> None:
        super().__init__()
        self._told: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether *record* says something that was not said just now."""
        if not record.name.startswith("aiokafka") or record.levelno < logging.WARNING:
            return True
        message = record.getMessage()
        if record.created - self._told.get(message, 0.0) < _REPEATED_SECONDS:
            return False
        self._told = {said: at for said, at in self._told.items() if record.created - at < _REPEATED_SECONDS}
        self._told[message] = record.created
        return True


def _is_news(record: logging.LogRecord) -> bool:
    """Leave out what every first start on a fresh Kafka says, and is answered by asking again."""
    return "GroupCoordinatorNotAvailable" not in record.getMessage()
