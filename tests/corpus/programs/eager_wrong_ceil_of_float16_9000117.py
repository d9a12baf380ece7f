"""t2: 1 of 32 elements, first at [0, 18]: 1.0, expected 0.0

bucket: eager wrong: * ceil of float16
seed: 9000117 
"""

given = {
    "b": ('tiny', 'float16', (1, 32), 393, ''),
}


def program(b):
    t2 = torch.ceil(b * 0.5)
    return (t2,)
