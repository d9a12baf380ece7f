"""Every third of four columns, padded to two steps of three: who copies them out of LX reads the two that nobody wrote, and
nobody asks for them behind it.

bucket: checked error: the checker: uninitialised, identity in LX
"""

given = {
    "c": ('whole', 'int64', (64, 31, 4), 756, '[:, :, 0:4:3]'),
}


def program(c):
    t0 = c - c
    return (t0,)
