"""What goes to the card comes back: number formats over all inputs, and random shapes, strides and views."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

DTYPES = [
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.bool,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.uint8,
]


def on_card(x):
    """The values a tensor has after a trip through the card."""
    return x.to("spyre").cpu()


def sample(shape, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    if dtype == torch.bool:
        return torch.randint(0, 2, shape, generator=generator).bool()
    if dtype.is_floating_point:
        return on_card(torch.randn(shape, generator=generator).to(dtype).clamp(-3, 3) + 8)  # no subnormals
    return torch.randint(0, 100, shape, generator=generator).to(dtype)


def all_halves():
    return torch.arange(-32768, 32768, dtype=torch.int32).to(torch.int16).view(torch.float16)


def test_all_halves():
    x = all_halves()
    y = on_card(x)
    normal = (x.abs() >= 2**-14) & x.isfinite()
    assert normal.sum() == 61440 and (y[normal] == x[normal]).sum() == 30720
    error = ((y[normal].double() - x[normal].double()).abs() / x[normal].double().abs()).max()
    assert error < 2**-10
    subnormal = (x.abs() < 2**-14) & (x != 0)
    assert subnormal.sum() == 2046 and torch.equal(y[subnormal], x[subnormal])
    assert torch.equal(y[x.isinf()], x[x.isinf()])
    assert torch.equal(y.isnan(), x.isnan())
    assert on_card(torch.tensor([65504.0]).half()).item() == 65472.0
    assert on_card(torch.tensor([-0.0]).half()).signbit().item()


@pytest.mark.parametrize(
    "value, back",
    [(1.0, 1.0), (0.5, 0.5), (100.0, 100.0), (1025.0, 1026.0), (2.0**-14, 2.0**-14), (2.0**-15, 2.0**-15)],
)
def test_worked_halves(value, back):
    assert on_card(torch.tensor([value], dtype=torch.float16)).item() == back


def test_integers_are_exact_in_half_up_to_1024():
    x = torch.arange(-1024, 1025).half()
    assert torch.equal(on_card(x), x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bool, torch.int8, torch.int16, torch.int32, torch.uint8])
def test_exact_dtypes(dtype):
    x = torch.randint(0, 2, (70, 130)).to(dtype) if dtype == torch.bool else (torch.randn(70, 130) * 50).to(dtype)
    assert torch.equal(on_card(x), x)


def test_float32_keeps_every_bit():
    x = torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0, 1e-45, 3.4e38]).float()
    assert torch.equal(on_card(x).view(torch.int32), x.view(torch.int32))


def test_int64_that_fits_is_exact_and_that_does_not_is_an_error():
    x = torch.tensor([-(2**31), 2**31 - 1])
    assert torch.equal(on_card(x), x)
    with pytest.raises(RuntimeError, match=r"value 2147483648 at index \[1\] does not fit"):
        torch.tensor([0, 2**31]).to("spyre")


def test_dtype_changes_on_the_way():
    x = torch.randn(5, 70)
    once = x.to("spyre", torch.float16).cpu()  # rounded once, from fp32 straight to the card's format
    assert once.dtype == torch.float16
    torch.testing.assert_close(once.float(), x, rtol=2**-10, atol=1e-4)
    assert x.to("spyre").to("cpu", torch.float16).dtype == torch.float16
    assert torch.equal(torch.arange(9).to("spyre").to(torch.float32).cpu(), torch.arange(9.0))
    assert torch.equal(torch.arange(9.0).to("spyre").to(torch.int64).cpu(), torch.arange(9))


def test_raw_copy_refuses_pairs_the_card_cannot_convert():
    from torch_spyre._C import copy_tensor

    x = torch.zeros(4, device="spyre")
    with pytest.raises(RuntimeError, match="Unsupported DCI data format conversion"):
        copy_tensor(x, torch.zeros(4, dtype=torch.float16))
    with pytest.raises(RuntimeError, match="Unsupported copy types"):
        copy_tensor(x, x)


def test_values_beyond_half_survive_a_copy_on_the_card():
    x = torch.tensor([1e6, -3e8]).to("spyre", torch.float16)  # the card's 16-bit float reaches 8.5e9
    assert torch.allclose(x.clone().to("cpu", torch.float32), torch.tensor([1e6, -3e8]), rtol=2e-3)


def test_padding_is_zero_after_a_whole_write():
    from torch_spyre._C import DataFormats, SpyreTensorLayout, as_strided_with_layout

    x = torch.ones(3, 65, dtype=torch.float16, device="spyre")
    image = SpyreTensorLayout([6, 64], [64, 1], DataFormats.SEN169_FP16)  # the same bytes as six plain sticks
    sticks = as_strided_with_layout(x, [6, 64], [64, 1], 0, image).cpu()
    assert sticks.sum() == 3 * 65 and (sticks[3:, 1:] == 0).all()


@st.composite
def views(draw):
    """A base shape and a chain of view operations that is legal on it."""
    rank = draw(st.integers(0, 6))
    shape = tuple(
        draw(st.sampled_from([1, 2, 3, 5, 7]) if i < rank - 1 else st.sampled_from([1, 3, 64, 65, 130]))
        for i in range(rank)
    )
    steps, current = [], list(shape)
    for _ in range(draw(st.integers(0, 3))):
        if not current:
            break
        kind = draw(st.sampled_from(["slice", "transpose", "expand", "select", "unsqueeze"]))
        dim = draw(st.integers(0, len(current) - 1))
        if kind == "slice":
            start = draw(st.integers(0, current[dim] - 1))
            step = draw(st.integers(1, 3))
            steps.append(("slice", dim, start, step))
            current[dim] = len(range(start, current[dim], step))
        elif kind == "transpose":
            other = draw(st.integers(0, len(current) - 1))
            steps.append(("transpose", dim, other))
            current[dim], current[other] = current[other], current[dim]
        elif kind == "expand" and current[dim] == 1:
            steps.append(("expand", dim, 3))
            current[dim] = 3
        elif kind == "select":
            steps.append(("select", dim, draw(st.integers(0, current[dim] - 1))))
            del current[dim]
        elif kind == "unsqueeze":
            steps.append(("unsqueeze", dim))
            current.insert(dim, 1)
    return shape, steps


def apply(x, steps):
    for name, dim, *rest in steps:
        if name == "slice":
            index = [slice(None)] * x.dim()
            index[dim] = slice(rest[0], None, rest[1])
            x = x[tuple(index)]
        elif name == "transpose":
            x = x.transpose(dim, rest[0])
        elif name == "expand":
            x = x.expand(*[rest[0] if i == dim else -1 for i in range(x.dim())])
        elif name == "select":
            x = x.select(dim, rest[0])
        else:
            x = x.unsqueeze(dim)
    return x


@settings(max_examples=150, deadline=None, derandomize=True)
@given(views(), st.sampled_from(DTYPES), st.integers(0, 1000))
def test_views_read_and_write_as_on_the_cpu(chain, dtype, seed):
    shape, steps = chain
    host = sample(shape, dtype, seed)
    card = host.to("spyre")
    assert torch.equal(apply(card, steps).cpu(), apply(host, steps))
    assert torch.equal(apply(host, steps).to("spyre").cpu(), apply(host, steps))  # any host strides
    if not any(name == "expand" for name, *_ in steps):
        value = sample(apply(host, steps).shape, dtype, seed + 1)
        apply(card, steps).copy_(value)
        apply(host, steps).copy_(value)
        assert torch.equal(card.cpu(), host)
        apply(card, steps).fill_(1)
        apply(host, steps).fill_(1)
        assert torch.equal(card.cpu(), host)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.permutations(range(4)), st.booleans(), st.sampled_from([1, 5, 64, 100]), st.integers(0, 1000))
def test_every_dim_order_holds_every_element(order, sparse, last, seed):
    from torch_spyre._C import SpyreTensorLayout

    host = sample((2, 3, 5, last), torch.float16, seed)
    layout = SpyreTensorLayout(
        list(host.shape), list(host.stride()), torch.float16, [*order, -1] if sparse else [*order]
    )
    card = host.to("spyre", device_layout=layout)
    assert torch.equal(card.cpu(), host) and torch.equal(card[:, 1:, ::2].cpu(), host[:, 1:, ::2])
