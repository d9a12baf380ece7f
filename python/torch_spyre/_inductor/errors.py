"""How compilation says no."""


class SpyreUnsupportedError(RuntimeError):
    """The program asks for something the compiler or the card cannot do.

    ``node`` names the buffer whose computation was refused, where one is to blame.
    """

    def __init__(self, message: str, node: str | None = None):
        super().__init__(message)
        self.node = node
