"""What the caller of a render has to know when there is no film."""


class RenderFailed(Exception):
    """ffmpeg could not make a part of the film; `last_lines` is the end of what it said, for operators."""

    def __init__(self, message: str, last_lines: str = "") -> None:
        super().__init__(f"{message}\n{last_lines}" if last_lines else message)
        self.last_lines = last_lines
