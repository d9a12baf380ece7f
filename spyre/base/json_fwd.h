#pragma once

#include <nlohmann/json_fwd.hpp>

namespace spyre {

template <class Key, class T, class Less, class Allocator>
class OrderedMap;

/// JSON that keeps the order in which keys were written, so that equal values print to equal bytes. Headers that only name
/// it include this one: the class itself (json.h) is long.
using Json = nlohmann::basic_json<OrderedMap>;

}  // namespace spyre
