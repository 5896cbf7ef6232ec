// Events in order of time: a heap with four children a node over one array. Most events are
// followed by one more of the same packet, which takes the place of the first at the cost of one
// descent.
#ifndef COPPICE_DAEMON_SIMULATION_EVENT_QUEUE_H_
#define COPPICE_DAEMON_SIMULATION_EVENT_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

namespace coppice {

// A packet's head at a place of its way. There is at most one event of a packet at a time, so that
// the order is total, whatever order events are added in.
struct Event {
  double at_us = 0;
  double lag_us = 0;    // how far the tail is behind the head
  uint32_t node = 0;    // child end of the edge that it crosses, in Layout::nodes
  uint32_t packet = 0;  // of the node's train
  uint32_t hop = 0;     // channel of the route that it is to enter; the route's length: it is there
  bool down = false;

  friend bool operator<(const Event& a, const Event& b) {
    if (a.at_us != b.at_us) return a.at_us < b.at_us;
    return std::tie(a.node, a.down, a.packet, a.hop) < std::tie(b.node, b.down, b.packet, b.hop);
  }
};

class EventQueue final {
 public:
  bool empty() const { return heap_.empty(); }
  const Event& first() const { return heap_.front(); }

  void Add(const Event& event) {
    size_t at = heap_.size();
    heap_.push_back(event);
    while (at > 0 && event < heap_[(at - 1) / kChildren]) {
      heap_[at] = heap_[(at - 1) / kChildren];
      at = (at - 1) / kChildren;
    }
    heap_[at] = event;
  }

  void RemoveFirst() {
    const Event last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) ReplaceFirst(last);
  }

  void ReplaceFirst(const Event& event) {
    size_t at = 0;
    while (true) {
      const size_t begin = at * kChildren + 1;
      if (begin >= heap_.size()) break;
      const size_t end = begin + kChildren < heap_.size() ? begin + kChildren : heap_.size();
      size_t least = begin;
      for (size_t child = begin + 1; child < end; ++child) {
        if (heap_[child] < heap_[least]) least = child;
      }
      if (!(heap_[least] < event)) break;
      heap_[at] = heap_[least];
      at = least;
    }
    heap_[at] = event;
  }

 private:
  static constexpr size_t kChildren = 4;
  std::vector<Event> heap_;
};

}  // namespace coppice

#endif  // COPPICE_DAEMON_SIMULATION_EVENT_QUEUE_H_
