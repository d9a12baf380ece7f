"""A factor beyond the range of 16 bits: infinite on the CPU, NaN on the card, and its sign a number on both.

bucket: compiled wrong: @ [ mul_ sign of float16
seed: 9310176 
"""

given = {
    "a": ('whole', 'float16', (4,), 693, ''),
}


def program(a):
    a[3:4].mul_(16777217)
    t1 = torch.sign(a) @ torch.sign(a)
    return (t1,)
