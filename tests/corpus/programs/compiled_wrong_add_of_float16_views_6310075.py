"""b: 1 of 3 elements, first at [2]: -2.0, expected -8.0, 0.126 allowed

bucket: compiled wrong: [ add_ of float16 views
seed: 6310075 
"""

given = {
    "a": ('whole', 'float16', (1,), 125, ''),
    "b": ('whole', 'float16', (3,), 460, '[0:5:2]'),
}


def program(a, b):
    t1 = b[0:2:2]
    b.add_(t1)
    return (a,)
