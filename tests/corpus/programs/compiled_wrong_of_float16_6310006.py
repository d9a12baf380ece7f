"""t5: 1 of 3 elements, first at [0, 2]: nan, expected -inf

bucket: compiled wrong: + of float16
seed: 6310006 
"""

given = {
    "a": ('inf', 'float16', (1, 3), 226, ''),
}


def program(a):
    t5 = a + a
    return (t5,)
