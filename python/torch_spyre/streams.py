"""Streams and events of the card, with the names of torch.cuda."""

import torch

from torch_spyre import _C, profiler


def _index(device=None) -> int:
    if device is None:
        return _C._current_device()
    if isinstance(device, int):
        return device
    device = torch.device(device)
    if device.type != "spyre":
        raise ValueError(f"expected a Spyre device, found {device}")
    return _C._current_device() if device.index is None else device.index


class Stream(torch.Stream):
    """Work of one card in the order it was given. Priority 0 takes a stream of the low pool, any other of the high."""

    def __new__(cls, device=None, priority: int = 0, **kwargs):
        if kwargs:
            return super().__new__(cls, **kwargs)
        index = _index(device)
        stream_id = _C._new_stream(index, priority)
        return super().__new__(cls, stream_id=stream_id, device_index=index, device_type=_device_type())

    @property
    def id(self) -> int:
        return self.stream_id

    @property
    def priority(self) -> int:
        return _C._stream_priority(self.stream_id, self.device_index)

    def __repr__(self) -> str:
        return f"<torch_spyre.Stream device={self.device_index} id={self.stream_id}>"


def _device_type() -> int:
    return torch._C._autograd.DeviceType.PrivateUse1.value


def _make(index: int, stream_id: int) -> Stream:
    return Stream(stream_id=stream_id, device_index=index, device_type=_device_type())


class Event(torch.Event):
    """A point in a stream's work that can be waited for and timed."""

    def __new__(cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False):
        if interprocess:
            raise ValueError("Spyre events cannot be shared between processes")
        return super().__new__(cls, device="spyre", enable_timing=enable_timing, blocking=blocking)

    def elapsed_time(self, end_event: "Event") -> float:
        """Milliseconds of simulated time between two recorded events: how long the card takes, not its emulation."""
        return _C._event_elapsed_ms(self.event_id, end_event.event_id)

    def __repr__(self) -> str:
        return f"<torch_spyre.Event id={self.event_id}>"


def current_stream(device=None) -> Stream:
    index = _index(device)
    return _make(index, _C._current_stream(index))


def default_stream(device=None) -> Stream:
    return _make(_index(device), 0)


def set_stream(stream: torch.Stream) -> None:
    _C._set_stream(stream.stream_id, stream.device_index)


def stream(stream: Stream) -> Stream:
    """For ``with torch.spyre.stream(s):``; the stream itself is the context."""
    return stream


def device_time(stream: torch.Stream | None = None) -> float:
    """When the work that a stream was given so far is done: milliseconds of simulated time since the process began.

    The current stream if none is named. Differences measure the card; ``time.perf_counter()`` measures its emulation.
    """
    stream = current_stream() if stream is None else stream
    if not isinstance(stream, torch.Stream):
        raise TypeError(f"device_time takes a stream, found {type(stream).__name__}")
    return _C._device_time_ms(stream.stream_id, stream.device_index)


def synchronize(device=None) -> None:
    """Waits for all work on a card; on all cards when none is named."""
    index = None if device is None else _index(device)
    with profiler.reported("runtime_launch"):
        if index is None:
            _C._synchronize_all()
        else:
            _C._synchronize(index)
