"""Every third row, multiplied in place: the checker took the rows between for another buffer."""

given = {
    "a": ('whole', 'float16', (1, 1, 1), 896, ''),
    "b": ('whole', 'float16', (2, 64, 1), 542, ''),
}


def program(a, b):
    t2 = b[:, 32:64:3]
    t2.mul_(t2)
    return (a,)
