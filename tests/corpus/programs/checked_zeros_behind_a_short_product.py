"""Zeros behind what a product sums are chosen by a comparison with a ramp; the checker knows what it says there.

bucket: checked error: the checker: padding, batchmatmul in LX, of zeros chosen by a ramp
"""

given = {
    "a": ('whole', 'float16', (3, 2), 1, ''),
    "b": ('whole', 'float16', (2, 5), 2, ''),
    "c": ('whole', 'float16', (3, 67), 3, ''),
    "d": ('whole', 'float16', (67, 5), 4, ''),
}


def program(a, b, c, d):
    t0 = (a + 1) @ b
    t1 = (c + 1) @ (d + 1)
    return (t0, t1)
