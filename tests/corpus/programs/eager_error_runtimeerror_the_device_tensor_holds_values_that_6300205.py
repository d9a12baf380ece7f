"""RuntimeError: The device tensor holds values that uint8 cannot, NaN for example

bucket: eager error: RuntimeError: The device tensor holds values that uint8 cannot, NaN for example (not alone: after other programs)
seed: 6300205 
"""

given = {
    "a": ('whole', 'uint8', (32, 5, 100), 836, ''),
}


def program(a):
    t0 = torch.fmax(a, a)
    t1 = t0.clamp(-2, 3)
    t2 = t1 - t1
    return (t0, t1, t2,)
