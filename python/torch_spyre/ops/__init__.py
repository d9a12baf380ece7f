"""Where scripts look for what concerns operators."""
