"""Draws a picture from a prompt: reads the prompt, chooses light and colour, and paints a landscape."""
