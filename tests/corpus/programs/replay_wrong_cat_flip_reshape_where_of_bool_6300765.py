"""argument 3 of fused_flip_gt_scalar_tensor_view_where: spyre-run computes other bytes

bucket: replay wrong: = > [ cat flip reshape where of bool
seed: 6300765 
"""

given = {
    "a": ('whole', 'bool', (3,), 806, ''),
}


def program(a):
    t0 = a.reshape(1, 3, 1, 1)
    t1 = torch.where(t0 > 1, t0, t0.flip(2))
    a[2:3] = 0
    t2 = torch.cat([t1, t0], 1)
    return (t2,)
