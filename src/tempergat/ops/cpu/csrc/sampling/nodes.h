// The nodes of one type in a batch: which are there, and at which place.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

namespace tempergat {

// Memory that is zero at first, and taken from the system only where it is used.
template <class T>
class Zeros {
 public:
  explicit Zeros(int64_t count)
      : data_(static_cast<T*>(std::calloc(size_t(count) + 1, sizeof(T)))) {
    if (!data_) throw std::bad_alloc();
  }
  Zeros(Zeros&& other) noexcept : data_(other.data_) { other.data_ = nullptr; }
  Zeros(const Zeros&) = delete;
  ~Zeros() { std::free(data_); }
  T& operator[](int64_t k) const { return data_[k]; }
  const T* at(int64_t k) const { return data_ + k; }

 private:
  T* data_;
};

// New nodes are marked in a bit field, and read from it in ascending order. A second
// field marks the words of the first that have a bit, so that few words are read.
class Nodes {
 public:
  explicit Nodes(int64_t count)
      : count_(count),
        place_(count),
        seen_((count >> 6) + 1),
        fresh_((count >> 6) + 1),
        fresh_words_((count >> 12) + 1) {}

  int64_t count() const { return count_; }
  const std::vector<int64_t>& ids() const { return ids_; }
  // The places at which the nodes of each hop begin, and the end of the last one.
  const std::vector<int64_t>& begins() const { return begins_; }
  int32_t place(int64_t id) const { return place_[id]; }
  const void* place_address(int64_t id) const { return place_.at(id); }

  // Adds the seeds. Returns false if one does not exist or is there twice.
  bool begin(const int64_t* seeds, int64_t count) {
    for (int64_t k = 0; k < count; ++k) {
      const int64_t id = seeds[k];
      if (id < 0 || id >= count_ || (seen_[id >> 6] >> (id & 63) & 1)) return false;
      seen_[id >> 6] |= uint64_t(1) << (id & 63);
      add(id);
    }
    begins_ = {0, int64_t(ids_.size())};
    return true;
  }

  // Marks a node as new, unless it has been seen.
  void see(int64_t id) {
    const int64_t word = id >> 6;
    const uint64_t bit = uint64_t(1) << (id & 63);
    if (seen_[word] & bit) return;
    seen_[word] |= bit;
    fresh_[word] |= bit;
    fresh_words_[word >> 6] |= uint64_t(1) << (word & 63);
  }

  // Ends a hop: gives its new nodes their places, in ascending order.
  void end_hop() {
    for (int64_t group = 0; group <= count_ >> 12; ++group) {
      for (uint64_t words = fresh_words_[group]; words; words &= words - 1) {
        const int64_t word = (group << 6) + __builtin_ctzll(words);
        for (uint64_t bits = fresh_[word]; bits; bits &= bits - 1)
          add((word << 6) + __builtin_ctzll(bits));
        fresh_[word] = 0;
      }
      fresh_words_[group] = 0;
    }
    begins_.push_back(int64_t(ids_.size()));
  }

  // Forgets all nodes. An unfinished hop is finished first, for its bits.
  void clear() {
    end_hop();
    for (const int64_t id : ids_) seen_[id >> 6] = 0;
    ids_.clear();
    begins_.clear();
  }

 private:
  void add(int64_t id) {
    place_[id] = int32_t(ids_.size());
    ids_.push_back(id);
  }

  int64_t count_;
  std::vector<int64_t> ids_, begins_;
  Zeros<int32_t> place_;
  Zeros<uint64_t> seen_, fresh_, fresh_words_;
};

}  // namespace tempergat
