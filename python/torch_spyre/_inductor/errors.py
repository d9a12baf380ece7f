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

    def __init__(self, message: str, node: str | None = None):
        RuntimeError.__init__(self, message)
        self.node = node
