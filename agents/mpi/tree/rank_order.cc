#include "agents/mpi/tree/rank_order.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <map>
#include <utility>

namespace coppice::mpi {
namespace {

using Part = ExchangeStep::Part;

// What one rank does, from its place.
class RankExchange final {
 public:
  RankExchange(const RankOrder& order, int rank, int count)
      : order_(order), whole_{.first = 0, .count = count, .is_there = true} {
    place_ = static_cast<int>(std::find(order.ranks.begin(), order.ranks.end(), rank) -
                              order.ranks.begin());
    const auto next = std::upper_bound(order.first_place.begin(), order.first_place.end(), place_);
    host_ = static_cast<int>(next - order.first_place.begin()) - 1;
    hosts_ = static_cast<int>(order.first_place.size()) - 1;
  }

  std::vector<ExchangeStep> Steps(bool halves) {
    GatherOnHost();
    if (place_ == order_.first_place[host_]) AmongHosts(halves);
    SpreadOnHost();
    return std::move(steps_);
  }

 private:
  int RanksOfHost() const { return order_.first_place[host_ + 1] - order_.first_place[host_]; }

  void Send(int place, const Part& part) { Add(place, part, {}, false); }
  void Take(int place, const Part& part, bool combines) { Add(place, {}, part, combines); }
  void Add(int place, const Part& send, const Part& receive, bool combines) {
    steps_.push_back({.peer = order_.ranks[place],
                      .send = send,
                      .receive = receive,
                      .combines = combines,
                      .is_peer_later = place > place_});
  }

  // Along a binomial tree, to the host's first place.
  void GatherOnHost() {
    const int own = place_ - order_.first_place[host_];
    for (int bit = 1; bit < RanksOfHost(); bit *= 2) {
      if ((own & bit) != 0) return Send(place_ - bit, whole_);
      if (own + bit < RanksOfHost()) Take(place_ + bit, whole_, true);
    }
  }

  // The same way back.
  void SpreadOnHost() {
    const int own = place_ - order_.first_place[host_];
    const int lowest = own & -own;
    if (own != 0) Take(place_ - lowest, whole_, false);
    const auto all = static_cast<int>(std::bit_ceil(static_cast<unsigned>(RanksOfHost())));
    for (int bit = (own == 0 ? all : lowest) / 2; bit > 0; bit /= 2) {
      if (own + bit < RanksOfHost()) Send(place_ + bit, whole_);
    }
  }

  // Hosts beyond a power of two take part by their neighbour: 0 and 1, 2 and 3, ...
  void AmongHosts(bool halves) {
    const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(hosts_)));
    const int pairs = hosts_ - power;
    const bool is_paired = host_ < 2 * pairs;
    if (is_paired && host_ % 2 != 0) {
      Send(order_.first_place[host_ - 1], whole_);
      Take(order_.first_place[host_ - 1], whole_, false);
      return;
    }
    if (is_paired) Take(order_.first_place[host_ + 1], whole_, true);
    const int number = is_paired ? host_ / 2 : host_ - pairs;
    const auto place = [&](int other) {
      return order_.first_place[other < pairs ? 2 * other : other + pairs];
    };
    if (halves) {
      Halve(number, power, place);
    } else {
      for (int bit = 1; bit < power; bit *= 2) Add(place(number ^ bit), whole_, whole_, true);
    }
    if (is_paired) Send(order_.first_place[host_ + 1], whole_);
  }

  template <class Place>
  void Halve(int number, int power, const Place& place) {
    std::vector<Part> kept = {whole_}, given;
    for (int bit = 1; bit < power; bit *= 2) {
      const Part& all = kept.back();
      const int half = all.count / 2;
      const Part low = {all.first, half, true};
      const Part high = {all.first + half, all.count - half, true};
      const bool is_low = (number & bit) == 0;
      const Part own = is_low ? low : high;
      given.push_back(is_low ? high : low);
      kept.push_back(own);
      Add(place(number ^ bit), given.back(), own, true);
    }
    for (int bit = power / 2; bit > 0; bit /= 2) {
      Add(place(number ^ bit), kept.back(), given.back(), false);
      kept.pop_back();
      given.pop_back();
    }
  }

  const RankOrder& order_;
  const Part whole_;
  int place_, host_, hosts_;
  std::vector<ExchangeStep> steps_;
};

}  // namespace

bool RankOrder::IsAscending() const { return std::is_sorted(ranks.begin(), ranks.end()); }

std::vector<int> DepthFirst(const std::vector<int32_t>& parents) {
  std::vector<std::vector<int>> children(parents.size());
  std::vector<int> left;
  for (int rank = static_cast<int>(parents.size()) - 1; rank >= 0; --rank) {
    (parents[rank] < 0 ? left : children[parents[rank]]).push_back(rank);
  }
  std::vector<int> order;
  while (!left.empty()) {
    const int rank = left.back();
    left.pop_back();
    order.push_back(rank);
    left.insert(left.end(), children[rank].begin(), children[rank].end());
  }
  return order;
}

RankOrder OrderByHosts(std::vector<int> ranks, const std::vector<int>& hosts) {
  std::map<int, int> seen;  // [number of a host], in which order they come
  for (const int rank : ranks) seen.emplace(hosts[rank], static_cast<int>(seen.size()));
  RankOrder order;
  order.ranks = std::move(ranks);
  std::stable_sort(order.ranks.begin(), order.ranks.end(),
                   [&](int a, int b) { return seen[hosts[a]] < seen[hosts[b]]; });
  for (size_t place = 0; place < order.ranks.size(); ++place) {
    if (place == 0 || hosts[order.ranks[place]] != hosts[order.ranks[place - 1]]) {
      order.first_place.push_back(static_cast<int>(place));
    }
  }
  order.first_place.push_back(static_cast<int>(order.ranks.size()));
  return order;
}

std::vector<int32_t> ChainParents(const RankOrder& order) {
  std::vector<int32_t> parents(order.ranks.size(), -1);
  for (size_t place = 1; place < order.ranks.size(); ++place) {
    parents[order.ranks[place]] = order.ranks[place - 1];
  }
  return parents;
}

std::vector<int32_t> BinomialParents(const RankOrder& order) {
  std::vector<int32_t> parents(order.ranks.size(), -1);
  for (size_t place = 1; place < order.ranks.size(); ++place) {
    parents[order.ranks[place]] = order.ranks[place & (place - 1)];
  }
  return parents;
}

std::vector<ExchangeStep> ExchangeSteps(const RankOrder& order, int rank, int count, bool halves) {
  return RankExchange(order, rank, count).Steps(halves);
}

}  // namespace coppice::mpi
