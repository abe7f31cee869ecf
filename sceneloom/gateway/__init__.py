"""The process that providers call: it believes nobody, and turns what is proven into hints."""
