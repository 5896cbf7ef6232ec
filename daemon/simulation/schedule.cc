// The event loop of schedules. An event is a packet's head before the next channel of its way, or
// at the end. Ways between ranks are laid out once, whatever number of messages takes them.
#include "daemon/simulation/schedule.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <string>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"
#include "daemon/simulation/channels.h"

namespace coppice {
namespace {

absl::Status CheckMessage(const MessageSchedule& schedule, uint32_t m) {
  const ScheduledMessage& message = schedule.messages[m];
  const auto invalid = [&](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat("message ", m, " ", what));
  };
  const size_t ranks = schedule.places.size();
  if (message.from >= ranks || message.to >= ranks) {
    return invalid(absl::StrCat("goes from rank ", message.from, " to ", message.to,
                                "; the schedule has ", ranks, " ranks"));
  }
  if (message.from == message.to) {
    return invalid(absl::StrCat("goes from rank ", message.from, " to itself"));
  }
  for (const uint32_t before : message.after) {
    if (before >= m) return invalid(absl::StrCat("waits for message ", before, ", a later one"));
    if (schedule.messages[before].to != message.from) {
      return invalid(absl::StrCat("leaves rank ", message.from, " after message ", before,
                                  ", which ends at rank ", schedule.messages[before].to));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSchedule(const Fabric& fabric, const MessageSchedule& schedule) {
  for (size_t rank = 0; rank < schedule.places.size(); ++rank) {
    if (schedule.places[rank].value() < fabric.endpoint_count()) continue;
    return absl::InvalidArgumentError(absl::StrCat("rank ", rank, " is at endpoint ",
                                                   schedule.places[rank].value(),
                                                   "; the fabric has ", fabric.endpoint_count()));
  }
  for (uint32_t m = 0; m < schedule.messages.size(); ++m) {
    RETURN_IF_ERROR(CheckMessage(schedule, m));
  }
  return absl::OkStatus();
}

// What a run reads and never changes.
struct ScheduleLayout {
  RouteLayout routes;
  std::vector<uint32_t> way;         // [message] in routes.begin
  std::vector<PacketTrain> trains;   // [message]
  std::vector<uint32_t> next_begin;  // [message + 1] in `next`
  std::vector<uint32_t> next;        // messages that wait for each

  uint32_t Begin(uint32_t message) const { return routes.begin[way[message]]; }
  uint32_t Length(uint32_t message) const {
    return routes.begin[way[message] + 1] - routes.begin[way[message]];
  }
};

void ListFollowers(const MessageSchedule& schedule, ScheduleLayout& layout) {
  layout.next_begin.assign(schedule.messages.size() + 1, 0);
  for (const ScheduledMessage& message : schedule.messages) {
    for (const uint32_t before : message.after) ++layout.next_begin[before + 1];
  }
  for (size_t m = 1; m < layout.next_begin.size(); ++m) {
    layout.next_begin[m] += layout.next_begin[m - 1];
  }
  layout.next.resize(layout.next_begin.back());
  std::vector<uint32_t> at(layout.next_begin.begin(), layout.next_begin.end() - 1);
  for (uint32_t m = 0; m < schedule.messages.size(); ++m) {
    for (const uint32_t before : schedule.messages[m].after) layout.next[at[before]++] = m;
  }
}

absl::StatusOr<ScheduleLayout> LayOutSchedule(const Snapshot& snapshot, const CostProfile& profile,
                                              const MessageSchedule& schedule,
                                              const SimulationOptions& options) {
  RETURN_IF_ERROR(CheckSchedule(*snapshot.fabric, schedule));
  RETURN_IF_ERROR(CheckConditions(profile, options));
  ScheduleLayout layout;
  std::vector<Way> ways;
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, uint32_t> known;
  uint64_t packets = 0;
  for (const ScheduledMessage& message : schedule.messages) {
    const EndpointIndex from = schedule.places[message.from], to = schedule.places[message.to];
    const auto [way, is_new] =
        known.try_emplace({from.value(), to.value()}, static_cast<uint32_t>(ways.size()));
    if (is_new) ways.push_back({snapshot.fabric->Vertex(from), snapshot.fabric->Vertex(to)});
    layout.way.push_back(way->second);
    ASSIGN_OR_RETURN(const PacketTrain train,
                     SplitIntoPackets(message.bytes, profile.mtu_bytes, options.max_events));
    layout.trains.push_back(train);
    packets += train.count;
    if (packets > options.max_events) return TooManyEvents(options.max_events);
  }
  ASSIGN_OR_RETURN(layout.routes, LayOutRoutes(snapshot, profile, ways, options));
  uint64_t events = 0;
  for (uint32_t m = 0; m < schedule.messages.size(); ++m) {
    events += uint64_t{layout.trains[m].count} * (layout.Length(m) + 1);
  }
  if (events > options.max_events) return TooManyEvents(options.max_events);
  ListFollowers(schedule, layout);
  return layout;
}

// There is at most one event of a packet at a time, so that the order is total.
struct PacketEvent {
  double at_us = 0;
  double lag_us = 0;  // how far the tail is behind the head
  uint32_t message = 0;
  uint32_t packet = 0;
  uint32_t hop = 0;

  friend bool operator>(const PacketEvent& a, const PacketEvent& b) {
    return std::tie(a.at_us, a.message, a.packet, a.hop) >
           std::tie(b.at_us, b.message, b.packet, b.hop);
  }
};

class RunningSchedule {
 public:
  RunningSchedule(const MessageSchedule& schedule, const ScheduleLayout& layout, uint64_t seed)
      : schedule_(schedule),
        layout_(layout),
        base_(*layout.routes.layout),
        channels_(base_, seed),
        messages_(schedule.messages.size()),
        ranks_(schedule.places.size()),
        reduced_packets_(base_.channels.size(), 0) {
    for (uint32_t m = 0; m < messages_.size(); ++m) {
      messages_[m].waits_for = static_cast<uint32_t>(schedule.messages[m].after.size());
      messages_[m].packets_left = layout.trains[m].count;
    }
  }

  ScheduleResult Run() {
    for (uint32_t m = 0; m < messages_.size(); ++m) {
      if (messages_[m].waits_for == 0) Start(m, 0);
    }
    for (; !queue_.empty(); ++events_) {
      const PacketEvent event = queue_.top();
      queue_.pop();
      Handle(event);
    }
    return Result();
  }

 private:
  struct MessageState {
    uint32_t waits_for = 0, packets_left = 0;
    double ready_us = 0;  // may enter the fabric
    double done_us = 0;   // of the packets so far
  };
  struct RankState {
    double match_free_us = 0;
    double last_take_us = -std::numeric_limits<double>::infinity();
    double finish_us = 0;
  };

  double LeaveUs(uint32_t m, uint64_t bytes) const {
    return layout_.Length(m) == 0 ? base_.profile.same_host_us : base_.profile.nic.ForwardUs(bytes);
  }

  void Start(uint32_t m, double at_us) {
    messages_[m].ready_us = at_us;
    queue_.push({.at_us = at_us + LeaveUs(m, layout_.trains[m].Bytes(0)), .message = m});
  }

  // When the port has sent `packet`, or the host has taken it.
  void OfferNext(uint32_t m, uint32_t packet, double now) {
    if (packet + 1 >= layout_.trains[m].count) return;
    const double ready = messages_[m].ready_us + LeaveUs(m, layout_.trains[m].Bytes(packet + 1));
    queue_.push({.at_us = std::max(now, ready), .message = m, .packet = packet + 1});
  }

  void Handle(const PacketEvent& event) {
    if (event.hop < layout_.Length(event.message)) {
      Cross(event);
      return;
    }
    Arrive(event.message, event.packet, event.at_us);
  }

  void Cross(const PacketEvent& event) {
    const uint32_t channel = base_.hops[layout_.Begin(event.message) + event.hop];
    const uint64_t bytes = layout_.trains[event.message].Bytes(event.packet);
    const Crossing on = channels_.Cross(channel, event.at_us, event.lag_us, bytes);
    if (schedule_.messages[event.message].reduced) ++reduced_packets_[channel];
    PacketEvent next = event;
    next.lag_us = on.tail_us - on.head_us;
    next.at_us = on.head_us + base_.profile.link_us;
    const bool last = event.hop + 1 == layout_.Length(event.message);
    if (last && !base_.profile.forward_includes_serialisation) next.at_us += next.lag_us;
    ++next.hop;
    queue_.push(next);
    if (event.hop == 0) OfferNext(event.message, event.packet, on.free_us);
  }

  // When the rank at the end has reduced the packet, if it has to.
  double Taken(uint32_t m, uint64_t bytes, double now) {
    if (!schedule_.messages[m].reduced) return now;
    RankState& rank = ranks_[schedule_.messages[m].to];
    const double match_us = base_.profile.nic.MatchUs(bytes);
    double port_us = 0;
    if (layout_.Length(m) > 0) {
      const uint32_t port = base_.hops[layout_.Begin(m) + layout_.Length(m) - 1];
      port_us = base_.channels[port].us_per_byte * static_cast<double>(bytes + base_.header_bytes);
    }
    rank.last_take_us =
        std::max({now, rank.match_free_us, rank.last_take_us + std::max(match_us, port_us)});
    rank.match_free_us = rank.last_take_us + match_us;
    return rank.match_free_us;
  }

  void Arrive(uint32_t m, uint32_t packet, double now) {
    MessageState& message = messages_[m];
    message.done_us = std::max(message.done_us, Taken(m, layout_.trains[m].Bytes(packet), now));
    if (layout_.Length(m) == 0) {
      const ScheduledMessage& sent = schedule_.messages[m];
      OfferNext(m, packet, sent.reduced ? ranks_[sent.to].last_take_us : now);
    }
    if (--message.packets_left > 0) return;
    RankState& rank = ranks_[schedule_.messages[m].to];
    rank.finish_us = std::max(rank.finish_us, message.done_us);
    for (uint32_t f = layout_.next_begin[m]; f < layout_.next_begin[m + 1]; ++f) {
      MessageState& next = messages_[layout_.next[f]];
      next.ready_us = std::max(next.ready_us, message.done_us);
      if (--next.waits_for == 0) Start(layout_.next[f], next.ready_us);
    }
  }

  ScheduleResult Result() const {
    ScheduleResult result;
    const double init_us = base_.profile.init_us;
    result.total_us = init_us;
    for (const RankState& rank : ranks_) {
      result.finish_us.push_back(init_us + rank.finish_us);
      result.total_us = std::max(result.total_us, result.finish_us.back());
    }
    result.channels = channels_.Uses();
    for (size_t c = 0; c < result.channels.size(); ++c) {
      result.channels[c].up_packets = reduced_packets_[c];
    }
    result.events = events_;
    return result;
  }

  const MessageSchedule& schedule_;
  const ScheduleLayout& layout_;
  const Layout& base_;
  Channels channels_;
  std::priority_queue<PacketEvent, std::vector<PacketEvent>, std::greater<>> queue_;
  uint64_t events_ = 0;
  std::vector<MessageState> messages_;
  std::vector<RankState> ranks_;
  std::vector<uint64_t> reduced_packets_;  // [channel]
};

}  // namespace

absl::StatusOr<ScheduleResult> SimulateSchedule(const Snapshot& snapshot,
                                                const CostProfile& profile,
                                                const MessageSchedule& schedule,
                                                const SimulationOptions& options, uint64_t seed) {
  ASSIGN_OR_RETURN(const ScheduleLayout layout,
                   LayOutSchedule(snapshot, profile, schedule, options));
  return RunningSchedule(schedule, layout, seed).Run();
}

}  // namespace coppice
