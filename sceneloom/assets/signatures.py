"""Which kind of file some bytes begin, told by their signature and never by a name or a header."""

from typing import Final

HEAD: Final = 64
"""How many of the first bytes `media_type_of` wants to see."""

_PREFIXES: Final = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
    b"fLaC": "audio/flac",
    b"OggS": "audio/ogg",
    b"ID3": "audio/mpeg",
    b"\x1a\x45\xdf\xa3": "video/webm",
}
_RIFF: Final = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}
_BRANDS: Final = {
    b"avif": "image/avif",
    b"avis": "image/avif",
    b"M4A ": "audio/mp4",
    b"M4B ": "audio/mp4",
    b"qt  ": "video/quicktime",
}
_TEXTS: Final = {
    (b"<!doctype html", b"<html", b"<head", b"<body"): "an HTML page",
    (b"<svg",): "an SVG drawing",
    (b"<",): "an XML document",
    (b"{", b"["): "a JSON text",
}
_EXTENSIONS: Final = {
    "application/json": "json",
    "application/x-subrip": "srt",
    "audio/aac": "aac",
    "audio/flac": "flac",
    "audio/mp4": "m4a",
    "audio/mpeg": "mp3",
    "audio/ogg": "ogg",
    "audio/wav": "wav",
    "image/avif": "avif",
    "image/gif": "gif",
    "image/jpeg": "jpg",
    "image/png": "png",
    "image/webp": "webp",
    "text/plain": "txt",
    "text/vtt": "vtt",
    "video/mp4": "mp4",
    "video/quicktime": "mov",
    "video/webm": "webm",
}


def extension(media_type: str) -> str:
    """Return the file extension of *media_type* without its dot, `bin` for one that is not known."""
    essence = media_type.partition(";")[0].strip().lower()
    return _EXTENSIONS.get(essence, "bin")


def media_type_of(head: bytes) -> str | None:
    """Tell the media type of a file from its first bytes, None where it is no known medium."""
    for prefix, media_type in _PREFIXES.items():
        if head.startswith(prefix):
            return media_type
    if head[:4] == b"RIFF":
        return _RIFF.get(head[8:12])
    if head[4:8] == b"ftyp":
        return _BRANDS.get(head[8:12], "video/mp4")
    return _bare_stream(head)


def _bare_stream(head: bytes) -> str | None:
    """Recognise MPEG audio and ADTS, which have no signature but eleven or twelve set bits of sync."""
    if len(head) < 2 or head[0] != 0xFF:
        return None
    if head[1] & 0xF6 == 0xF0:
        return "audio/aac"
    if head[1] & 0xE0 == 0xE0 and head[1] & 0x06 == 0x02:
        return "audio/mpeg"
    return None


def describe(head: bytes) -> str:
    """Say in plain words what a file is, for a person who expected something else."""
    known = media_type_of(head)
    if known is not None:
        return f"{'an' if known[0] in 'aeiou' else 'a'} {known} file"
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:HEAD].lower()
    if not text:
        return "an empty file"
    for openings, words in _TEXTS.items():
        if text.startswith(openings):
            return words
    readable = text.isascii() and all(byte >= 0x20 or byte in b"\t\r\n" for byte in text)
    return "a plain text" if readable else "a file of an unknown kind"
