"""Turns pictures, clips, narration and spoken words into a finished film."""

from sceneloom.rendering.cache import FolderCache, SegmentCache
from sceneloom.rendering.errors import RenderFailed
from sceneloom.rendering.film import FPS, Film, SceneMedia
from sceneloom.rendering.renderer import Renderer
from sceneloom.rendering.report import DeliveryReport, FilmFacts, SceneFacts

__all__ = [
    "FPS",
    "DeliveryReport",
    "Film",
    "FilmFacts",
    "FolderCache",
    "RenderFailed",
    "Renderer",
    "SceneFacts",
    "SceneMedia",
    "SegmentCache",
]
