"""AssertionError: expected size 2==2, stride 1==2 at dim=0

bucket: compiled error: AssertionError: expected size #==#, stride #==# at dim=#
seed: 6300068 
"""

given = {
    "a": ('whole', 'float16', (1, 1, 1), 937, ''),
    "b": ('whole', 'bool', (), 370, ''),
    "d": ('whole', 'float16', (2, 2), 611, '[:, -1]'),
}


def program(a, b, d):
    d[4:8:2] *= b
    return (a,)
