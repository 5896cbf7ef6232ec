#include "tests/support/schedules.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

namespace coppice {
namespace {

using Blocks = std::vector<uint32_t>;

uint32_t Add(BlockSchedule& schedule, uint32_t from, uint32_t to, bool reduced, Blocks blocks,
             std::vector<uint32_t> after) {
  ScheduledMessage message;
  message.from = from;
  message.to = to;
  message.reduced = reduced;
  message.after = std::move(after);
  schedule.messages.push_back(std::move(message));
  schedule.held.push_back(std::move(blocks));
  return static_cast<uint32_t>(schedule.messages.size() - 1);
}

// partner(r, i) of `ranks`, a power of two, in step i of the reduce-scatter. Who ends with which
// block follows from the partners, from the last step backwards: before a step a rank answers for
// what it and its partner answer for after it.
class Butterfly {
 public:
  Butterfly(uint32_t ranks, std::vector<std::vector<uint32_t>> partners)
      : partners_(std::move(partners)), own_(partners_.size() + 1) {
    own_.back().resize(ranks);
    for (uint32_t r = 0; r < ranks; ++r) own_.back()[r] = {r};
    for (size_t step = partners_.size(); step-- > 0;) {
      own_[step].resize(ranks);
      for (uint32_t r = 0; r < ranks; ++r) {
        const Blocks &mine = own_[step + 1][r], &theirs = own_[step + 1][partners_[step][r]];
        std::merge(mine.begin(), mine.end(), theirs.begin(), theirs.end(),
                   std::back_inserter(own_[step][r]));
      }
    }
  }

  size_t steps() const { return partners_.size(); }
  uint32_t partner(size_t step, uint32_t r) const { return partners_[step][r]; }
  const Blocks& own_after(size_t step, uint32_t r) const { return own_[step + 1][r]; }

 private:
  std::vector<std::vector<uint32_t>> partners_;  // [step][rank]
  std::vector<std::vector<Blocks>> own_;         // [step][rank] before the step
};

// Plays the butterfly with ranks[i] as its i-th rank, and keeps what arrived where.
class ButterflyPlay {
 public:
  ButterflyPlay(const Butterfly& butterfly, std::vector<uint32_t> ranks, BlockSchedule& schedule,
                std::vector<std::vector<uint32_t>>& arrived)
      : butterfly_(butterfly), ranks_(std::move(ranks)), schedule_(schedule), arrived_(arrived) {}

  void Play() {
    for (size_t step = 0; step < butterfly_.steps(); ++step) Step(step, true);
    for (size_t step = butterfly_.steps(); step-- > 0;) Step(step, false);
  }

 private:
  void Step(size_t step, bool reduced) {
    std::vector<std::pair<uint32_t, uint32_t>> news;  // rank, message
    for (uint32_t r = 0; r < ranks_.size(); ++r) {
      const uint32_t partner = butterfly_.partner(step, r);
      const Blocks& blocks = butterfly_.own_after(step, reduced ? partner : r);
      news.emplace_back(ranks_[partner], Add(schedule_, ranks_[r], ranks_[partner], reduced, blocks,
                                             arrived_[ranks_[r]]));
    }
    for (const auto& [rank, message] : news) arrived_[rank].push_back(message);
  }

  const Butterfly& butterfly_;
  std::vector<uint32_t> ranks_;
  BlockSchedule& schedule_;
  std::vector<std::vector<uint32_t>>& arrived_;  // [rank] messages
};

// partner(r, step, ranks) among a power of two, in the order of the reduce-scatter.
using PartnerRule = std::function<uint32_t(uint32_t, uint32_t, uint32_t)>;

BlockSchedule FoldedButterfly(uint32_t ranks, bool far_first, const PartnerRule& partner) {
  uint32_t steps = 0;
  while ((2U << steps) <= ranks) ++steps;
  const uint32_t power = 1U << steps, rest = ranks - power;
  std::vector<std::vector<uint32_t>> partners(steps, std::vector<uint32_t>(power));
  for (uint32_t i = 0; i < steps; ++i) {
    const uint32_t distance = far_first ? steps - 1 - i : i;
    for (uint32_t r = 0; r < power; ++r) partners[i][r] = partner(r, distance, power);
  }
  BlockSchedule schedule{.ranks = ranks, .blocks = power, .messages = {}, .held = {}};
  std::vector<std::vector<uint32_t>> arrived(ranks);
  Blocks all(power);
  std::iota(all.begin(), all.end(), 0U);
  std::vector<uint32_t> players;
  for (uint32_t r = 0; r < ranks; ++r) {
    if (r >= 2 * rest || r % 2 == 1) players.push_back(r);
  }
  for (uint32_t r = 0; r < 2 * rest; r += 2) {
    arrived[r + 1].push_back(Add(schedule, r, r + 1, true, all, {}));
  }
  ButterflyPlay(Butterfly(power, std::move(partners)), players, schedule, arrived).Play();
  for (uint32_t r = 0; r < 2 * rest; r += 2) Add(schedule, r + 1, r, false, all, arrived[r + 1]);
  return schedule;
}

// Bit m of row n: message n waits, at once or not, for message m.
class Ancestors {
 public:
  explicit Ancestors(const std::vector<ScheduledMessage>& messages)
      : words_((messages.size() + 63) / 64), bits_(messages.size() * words_) {
    for (size_t m = 0; m < messages.size(); ++m) {
      for (const uint32_t before : messages[m].after) {
        for (size_t w = 0; w < words_; ++w) bits_[m * words_ + w] |= bits_[before * words_ + w];
        bits_[m * words_ + before / 64] |= uint64_t{1} << (before % 64);
      }
    }
  }
  bool Have(size_t m, size_t before) const {
    return (bits_[m * words_ + before / 64] >> (before % 64) & 1) != 0;
  }

 private:
  size_t words_;
  std::vector<uint64_t> bits_;
};

// What a rank has of one block, and who read and wrote it.
struct Held {
  std::vector<uint32_t> times;  // [rank] its contribution is in it
  std::vector<uint32_t> readers, writers;
};

absl::Status Broken(uint32_t m, uint32_t rank, uint32_t block, const std::string& what) {
  return absl::InternalError(
      absl::StrCat("message ", m, ", rank ", rank, ", block ", block, ": ", what));
}

}  // namespace

MessageSchedule ForBytes(const BlockSchedule& schedule, std::vector<EndpointIndex> places,
                         uint64_t bytes) {
  MessageSchedule result{.places = std::move(places), .messages = schedule.messages};
  const auto begin = [&](uint64_t block) { return bytes * block / schedule.blocks; };
  for (size_t m = 0; m < result.messages.size(); ++m) {
    for (const uint32_t block : schedule.held[m]) {
      result.messages[m].bytes += begin(block + 1) - begin(block);
    }
  }
  return result;
}

BlockSchedule RingAllreduce(uint32_t ranks) {
  BlockSchedule schedule{.ranks = ranks, .blocks = ranks, .messages = {}, .held = {}};
  std::vector<uint32_t> last(ranks), now(ranks);
  for (uint32_t step = 0; step + 2 < 2 * ranks; ++step) {
    const bool reduced = step + 1 < ranks;
    for (uint32_t r = 0; r < ranks; ++r) {
      const uint32_t block = (r + 2 * ranks - step) % ranks;
      const uint32_t to = (r + 1) % ranks;
      now[to] = Add(schedule, r, to, reduced, {block},
                    step == 0 ? std::vector<uint32_t>() : std::vector<uint32_t>{last[r]});
    }
    last = now;
  }
  return schedule;
}

BlockSchedule HalvingDoubling(uint32_t ranks, bool far_first) {
  return FoldedButterfly(ranks, far_first,
                         [](uint32_t r, uint32_t i, uint32_t) { return r ^ (1U << i); });
}

BlockSchedule BineAllreduce(uint32_t ranks, bool far_first) {
  return FoldedButterfly(ranks, far_first, [](uint32_t r, uint32_t i, uint32_t power) {
    const int64_t distance = (1 - (i % 2 == 0 ? -1 : 1) * (int64_t{2} << i)) / 3;
    const int64_t to = r % 2 == 0 ? r + distance : r - distance;
    return static_cast<uint32_t>((to + 2 * int64_t{power}) % power);
  });
}

std::array<std::vector<int32_t>, 2> DoubleBinaryTree(uint32_t ranks) {
  std::array<std::vector<int32_t>, 2> trees = {std::vector<int32_t>(ranks, -1),
                                               std::vector<int32_t>(ranks, -1)};
  const auto other = [&](uint32_t r) {  // in the second tree: one on, or counted from the end
    return ranks % 2 == 1 ? (r + 1) % ranks : ranks - 1 - r;
  };
  for (uint32_t r = 1; r < ranks; ++r) {
    const uint32_t bit = r & (~r + 1);
    uint32_t parent = (r ^ bit) | (bit << 1);
    if (parent >= ranks) parent = r ^ bit;
    trees[0][r] = static_cast<int32_t>(parent);
    trees[1][other(r)] = static_cast<int32_t>(other(parent));
  }
  return trees;
}

absl::Status CheckAllreduce(const BlockSchedule& schedule) {
  const uint32_t ranks = schedule.ranks;
  const Ancestors ancestors(schedule.messages);
  std::vector<Held> held(size_t{ranks} * schedule.blocks);
  const auto at = [&](uint32_t rank, uint32_t block) -> Held& {
    return held[size_t{rank} * schedule.blocks + block];
  };
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    for (uint32_t block = 0; block < schedule.blocks; ++block) {
      at(rank, block).times.assign(ranks, 0);
      at(rank, block).times[rank] = 1;
    }
  }
  for (uint32_t m = 0; m < schedule.messages.size(); ++m) {
    const ScheduledMessage& message = schedule.messages[m];
    const auto before = [&](uint32_t earlier) { return ancestors.Have(m, earlier); };
    for (const uint32_t block : schedule.held[m]) {
      Held &from = at(message.from, block), &to = at(message.to, block);
      if (!absl::c_all_of(from.writers, before)) {
        return Broken(m, message.from, block, "is sent although more may still arrive");
      }
      if (!absl::c_all_of(to.readers, before)) {
        return Broken(m, message.to, block, "may arrive before what was there is sent");
      }
      if (!message.reduced && !absl::c_all_of(to.writers, before)) {
        return Broken(m, message.to, block, "replaces what may arrive later");
      }
      from.readers.push_back(m);
      to.writers.push_back(m);
      for (uint32_t r = 0; r < ranks; ++r) {
        to.times[r] = (message.reduced ? to.times[r] : 0) + from.times[r];
      }
    }
  }
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    for (uint32_t block = 0; block < schedule.blocks; ++block) {
      for (uint32_t of = 0; of < ranks; ++of) {
        const uint32_t times = at(rank, block).times[of];
        if (times == 1) continue;
        return absl::InternalError(absl::StrCat("rank ", rank, ", block ", block, ": rank ", of,
                                                " is in it ", times, " times"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace coppice
