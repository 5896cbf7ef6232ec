// Packets by time: a heap of four children a node, whose first entry is replaced by what follows
// from it, which mostly is one packet more.
#ifndef COPPICE_DAEMON_TREE_PACKET_QUEUE_H_
#define COPPICE_DAEMON_TREE_PACKET_QUEUE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace coppice {

// A packet's head at a place of its way, its tail `lag_us` later.
struct PacketHead {
  double at_us = 0;
  double lag_us = 0;
  uint64_t edge_and_packet = 0;  // child end of its edge, 1 bit: downwards, 31 bits: which packet
  uint32_t hop = 0;              // to be crossed
  uint32_t end = 0;              // of its way: it is there

  static uint64_t Of(uint32_t node, bool down, uint32_t packet) {
    return uint64_t{node} << 32 | uint64_t{down} << 31 | packet;
  }
  uint32_t node() const { return static_cast<uint32_t>(edge_and_packet >> 32); }
  bool down() const { return (edge_and_packet >> 31 & 1) != 0; }
  uint32_t packet() const { return static_cast<uint32_t>(edge_and_packet & 0x7fffffff); }
  // A total order: a packet has one head.
  friend bool operator<(const PacketHead& a, const PacketHead& b) {
    return a.at_us != b.at_us ? a.at_us < b.at_us : a.edge_and_packet < b.edge_and_packet;
  }
};

class PacketQueue final {
 public:
  bool empty() const { return heap_.empty(); }
  const PacketHead& first() const { return heap_.front(); }

  // Leaves the first one in its place until something is added or DropTaken() is called.
  PacketHead Take() {
    taken_ = true;
    return heap_.front();
  }
  void DropTaken() {
    if (!taken_) return;
    taken_ = false;
    const PacketHead last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) SinkFromFirst(last);
  }

  void Add(const PacketHead& head) {
    if (taken_) {
      taken_ = false;
      return SinkFromFirst(head);
    }
    size_t at = heap_.size();
    heap_.push_back(head);
    for (; at > 0 && head < heap_[(at - 1) / kChildren]; at = (at - 1) / kChildren) {
      heap_[at] = heap_[(at - 1) / kChildren];
    }
    heap_[at] = head;
  }

 private:
  static constexpr size_t kChildren = 4;

  void SinkFromFirst(const PacketHead& head) {
    const size_t size = heap_.size();
    size_t at = 0;
    for (size_t child = 1; child < size; child = at * kChildren + 1) {
      size_t least = child;
      for (size_t other = child + 1; other < std::min(child + kChildren, size); ++other) {
        if (heap_[other] < heap_[least]) least = other;
      }
      if (!(heap_[least] < head)) break;
      heap_[at] = heap_[least];
      at = least;
    }
    heap_[at] = head;
  }

  std::vector<PacketHead> heap_;
  bool taken_ = false;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_TREE_PACKET_QUEUE_H_
