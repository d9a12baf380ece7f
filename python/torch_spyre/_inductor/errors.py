"""How compilation says no."""


class Unsupported(RuntimeError):
    """What a registered lowering raises for a thing it does not support; the operator then runs on the CPU, counted.

    ``node`` names the buffer whose computation was refused, where one is to blame.
    """

    node: str | None = None

    def __init__(self, thing: object):
        super().__init__(f"Spyre backend does not support: {thing}")


class SpyreUnsupportedError(Unsupported):
    """The program asks for something the compiler or the card cannot do."""

    def __init__(self, message: str, node: str | None = None, extents: tuple[str, ...] = ()):
        RuntimeError.__init__(self, message)
        self.node = node
        self.extents = extents  # what would have to be compiled for one size each


class NeedsFixedSizes(Exception):
    """The graph cannot be compiled for sizes that change: it is compiled again for those of this call."""
