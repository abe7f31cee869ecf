"""Keys and values that are no message of ours."""

from typing import Final

POISON: Final[list[tuple[str | None, bytes | None]]] = [
    ("p1", b"{not json"),
    ("p1", b"[]"),
    ("p1", b""),
    ("p1", None),
    ("p1", b"\xff\xfe"),
    ("p1", b'{"type": "Dance", "project_id": "p1"}'),
    ("p1", b'{"type": "SubmitProject", "project_id": "p1"}'),
    ("p1", b'{"type": "CancelProject", "project_id": "p2"}'),
    (None, b'{"type": "CancelProject", "project_id": "p1"}'),
    ("p1", b'{"type": "RetryProject", "project_id": "p1"}'),
    ("p1", b'{"type": "SceneFailed", "project_id": "p1", "scene_id": "x", "attempt": "many"}'),
    ("p1", b'{"pad": "' + b"x" * 2_000_000 + b'"}'),
]
