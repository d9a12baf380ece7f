#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

namespace spyre {

/// What a JSON object is made of: members in the order in which they were written, few enough to be looked for one by one.
///
/// nlohmann's own `ordered_map` keeps `pair<const Key, T>`, which a vector that grows cannot move: it copies every member
/// with all that is below. Here keys are not const, and growing moves.
template <class Key, class T, class /*IgnoredLess*/ = std::less<Key>,
          class /*IgnoredAllocator*/ = std::allocator<std::pair<const Key, T>>>
class OrderedMap : public std::vector<std::pair<Key, T>> {
 public:
  using Members = std::vector<std::pair<Key, T>>;
  using key_type = Key;
  using mapped_type = T;
  using key_compare = std::equal_to<>;
  using Members::erase;
  using Members::Members;
  using typename Members::const_iterator;
  using typename Members::iterator;
  using typename Members::size_type;
  using typename Members::value_type;

  template <class Name>
  iterator find(const Name& key) {
    return std::find_if(this->begin(), this->end(),
                        [&](const value_type& member) { return member.first == key; });
  }
  template <class Name>
  const_iterator find(const Name& key) const {
    return std::find_if(this->begin(), this->end(),
                        [&](const value_type& member) { return member.first == key; });
  }
  template <class Name>
  size_type count(const Name& key) const {
    return find(key) == this->end() ? 0 : 1;
  }

  /// Of two members of one name, the first one stays.
  template <class Name>
  std::pair<iterator, bool> emplace(Name&& key, T&& value) {
    if (const iterator found = find(key); found != this->end()) {
      return {found, false};
    }
    Members::emplace_back(Key(std::forward<Name>(key)), std::move(value));
    return {std::prev(this->end()), true};
  }
  std::pair<iterator, bool> insert(value_type&& member) {
    return emplace(std::move(member.first), std::move(member.second));
  }
  std::pair<iterator, bool> insert(const value_type& member) {
    return emplace(member.first, T(member.second));
  }
  template <class Iterator>
  void insert(Iterator first, Iterator last) {
    for (; first != last; ++first) insert(*first);
  }

  template <class Name>
  T& operator[](Name&& key) {
    return emplace(std::forward<Name>(key), T()).first->second;
  }
  template <class Name>
  const T& operator[](const Name& key) const {
    return at(key);
  }
  template <class Name>
  T& at(const Name& key) {
    const iterator found = find(key);
    if (found == this->end()) throw std::out_of_range("key not found");
    return found->second;
  }
  template <class Name>
  const T& at(const Name& key) const {
    const const_iterator found = find(key);
    if (found == this->end()) throw std::out_of_range("key not found");
    return found->second;
  }
  size_type erase(const Key& key) {
    const iterator found = find(key);
    if (found == this->end()) return 0;
    Members::erase(found);
    return 1;
  }
};

}  // namespace spyre
