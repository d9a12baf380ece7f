"""The square of an infinity is NaN in 16 bits, and NaN is not itself.

bucket: compiled wrong: ** == of float16
seed: 9310157 
"""

given = {
    "a": ('inf', 'float16', (1, 1), 388, ''),
}


def program(a):
    t1 = a ** 2
    t2 = t1 == t1
    return (t2,)
