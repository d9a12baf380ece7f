"""Every second row was written in place; a core that reads one of them sees nothing of the rest.

bucket: checked error: the checker: layout, sub in HBM
seed: 9320112 
"""

given = {
    "a": ('whole', 'float32', (1, 32, 33), 722, ''),
}


def program(a):
    a[:, 1:32:2].fill_(-3)
    t3 = a - a
    return (t3,)
