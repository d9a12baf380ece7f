"""A copy of every third row of two sticks walks two sticks of every six: the checker took the gap for steps.

bucket: checked error: the checker: layout, identity in HBM
seed: 7000036 
"""

given = {
    "a": ('whole', 'float32', (2, 1, 64, 1, 33), 242, '[:, :, 32:64:3]'),
}


def program(a):
    t0 = a @ a.transpose(-1, -2)
    return (t0,)
