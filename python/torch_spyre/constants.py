"""Names and numbers that scripts import."""

DEVICE_NAME = "spyre"
DISTRIBUTED_BACKEND_NAME = "spyreccl"  # reserved: there are no collectives yet
BYTES_IN_STICK = 128
DEVICE_ALIGNMENT = 128
SEGMENT_SIZE = 16 * 1024**3
PROG_SEGMENT = 7
PROG_OFFSET_BASE = PROG_SEGMENT * SEGMENT_SIZE
