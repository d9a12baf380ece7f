"""bucket: checked error: a turn of a padded dimension, cut into steps of seven, reads the gap behind it
"""

given = {
    "a": ('whole', 'float16', (2, 3, 9, 20), 5, ''),
}


def program(a):
    t0 = a[:, ::2, ::3, ::7] + 0
    return (t0,)
