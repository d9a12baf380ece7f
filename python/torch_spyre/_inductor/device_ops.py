"""Operations of the card that Inductor has no name for; bodies call them as ``ops.<name>``."""

DEVICE_OPERATIONS = (
    "checked_index",
    "clamp",
    "gelu",
    "gelu_tanh",
    "layernormnorm",
    "layernormscale",
    "silu",
    "softplus",
)
