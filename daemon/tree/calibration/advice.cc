#include "daemon/tree/calibration/advice.h"

#include <Eigen/Core>
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/tree/calibration/model.h"

namespace coppice {
namespace {

// Kinds of samples that may be missing, most easily measured first. A set of them is a mask.
enum Variation : uint32_t { kWidths, kMembers, kSizes, kReduce, kBcast, kOtherType, kVariations };

// Constants that are worth fitting, before those that data sheets and single messages tell.
constexpr size_t kPreference[] = {kNicConstants + kForward,
                                  kNicConstants + kMatch,
                                  kInitConstant,
                                  kNicConstants + kReducePerByte,
                                  kNicConstants + kForwardPerByte,
                                  kSwitchConstants + kForward,
                                  kSwitchConstants + kMatch,
                                  kSwitchConstants + kReducePerByte,
                                  kSwitchConstants + kForwardPerByte,
                                  kLinkConstant,
                                  kNicConstants + kSend,
                                  kSwitchConstants + kSend};

std::string Describe(uint32_t variation, TreeType type) {
  switch (variation) {
    case kWidths:
      return "a second width";
    case kMembers:
      return "a second number of members";
    case kSizes:
      return "a second size";
    case kReduce:
      return "reduce or allreduce";
    case kBcast:
      return "bcast";
    default:
      return type == TreeType::kTypeI ? "type II trees" : "type I trees";
  }
}

// Some different samples, spread over all, that stand for what could be measured beside them.
std::vector<LatencySample> Representatives(absl::Span<const LatencySample> samples) {
  constexpr size_t kMax = 48;
  const auto key = [](const LatencySample& s) {
    return std::make_tuple(s.type, s.operation, s.bytes, s.members, s.width);
  };
  std::vector<LatencySample> different(samples.begin(), samples.end());
  std::stable_sort(different.begin(), different.end(),
                   [&](const auto& a, const auto& b) { return key(a) < key(b); });
  different.erase(std::unique(different.begin(), different.end(),
                              [&](const auto& a, const auto& b) { return key(a) == key(b); }),
                  different.end());
  std::vector<LatencySample> chosen;
  const size_t count = std::min(kMax, different.size());
  for (size_t i = 0; i < count; ++i) chosen.push_back(different[i * different.size() / count]);
  return chosen;
}

// The same sample with one thing changed; none if it cannot be.
std::vector<LatencySample> Varied(LatencySample sample, uint32_t variation) {
  constexpr uint64_t kShort = 64, kLong = 65536;  // a packet, and a message that fills the port
  const uint32_t width = sample.width;
  switch (variation) {
    case kWidths:
      if (width < 4 && width * 4 > sample.members) return {};
      sample.width = width * 4 <= sample.members ? width * 4 : width / 2;
      return {sample};
    case kMembers:
      sample.members = std::min(sample.members, uint32_t{1} << 20) * 8;
      return {sample};
    case kSizes: {
      if (sample.operation == Operation::kBarrier) return {};
      LatencySample longer = sample;
      sample.bytes = sample.bytes == kShort ? 2 * kShort : kShort;
      longer.bytes = longer.bytes == kLong ? 2 * kLong : kLong;
      return {sample, longer};
    }
    case kReduce:
    case kBcast:
      sample.operation = variation == kReduce ? Operation::kReduce : Operation::kBcast;
      sample.bytes = std::max(sample.bytes, kShort);
      return {sample};
    default:
      sample.type = sample.type == TreeType::kTypeI ? TreeType::kTypeII : TreeType::kTypeI;
      return {sample};
  }
}

class Advice {
 public:
  Advice(const CostProfile& profile, absl::Span<const LatencySample> samples,
         const Unknowns& unknowns, ResidualScale scale, double tolerance)
      : profile_(profile),
        samples_(samples),
        unknowns_(unknowns),
        scale_(scale),
        tolerance_(tolerance),
        real_(WeightedRows(profile, samples, SidesAt(profile, samples), unknowns, scale)),
        triangle_(Reduce(real_, Eigen::VectorXd())),
        open_(UndeterminedDirections(triangle_, tolerance)) {}

  absl::Status Check() const {
    if (open_.cols() == 0) return absl::OkStatus();
    std::vector<std::string> sentences = {"the samples do not determine all constants"};
    ConstantSet unseen;
    for (size_t j = 0; j < unknowns_.size(); ++j) unseen[unknowns_[j]] = real_.col(j).isZero(0);
    if (unseen.any()) sentences.push_back(absl::StrCat("none depends on ", NamesOf(unseen)));
    const std::string together = Groups(open_);
    if (!together.empty()) sentences.push_back(absl::StrCat("cannot be told apart: ", together));
    AddMeasurements(sentences);
    sentences.push_back(absl::StrCat("fixing ", NamesOf(Dispensable()),
                                     " leaves constants that these samples determine"));
    return absl::InvalidArgumentError(absl::StrJoin(sentences, "; "));
  }

 private:
  // What the best set of imagined samples would settle, and what even it leaves.
  void AddMeasurements(std::vector<std::string>& sentences) const {
    uint32_t best = 0;
    Eigen::MatrixXd left = open_;
    for (uint32_t mask = 1; mask < (1U << kVariations); ++mask) {
      const Eigen::MatrixXd open = OpenWith(mask);
      const bool is_smaller = std::popcount(mask) < std::popcount(best);
      if (open.cols() < left.cols() || (open.cols() == left.cols() && best != 0 && is_smaller)) {
        best = mask;
        left = open;
      }
    }
    std::vector<std::string> wanted;
    for (uint32_t v = 0; v < kVariations; ++v) {
      if ((best >> v & 1) != 0) wanted.push_back(Describe(v, samples_.front().type));
    }
    if (!wanted.empty()) {
      sentences.push_back(absl::StrCat("measure ", absl::StrJoin(wanted, " and "), " as well"));
    }
    const std::string never = Groups(left);
    if (!never.empty()) {
      sentences.push_back(
          absl::StrCat("no latencies of whole trees tell apart ", never, ", so fix some of them"));
    }
  }

  // Open directions if the variations of `mask`, alone and combined, were measured as thoroughly as
  // the real samples.
  Eigen::MatrixXd OpenWith(uint32_t mask) const {
    std::vector<LatencySample> imagined = Representatives(samples_);
    for (uint32_t v = 0; v < kVariations; ++v) {
      if ((mask >> v & 1) == 0) continue;
      const size_t count = imagined.size();
      for (size_t i = 0; i < count; ++i) {
        for (const LatencySample& sample : Varied(imagined[i], v)) imagined.push_back(sample);
      }
    }
    for (LatencySample& sample : imagined) {
      sample.us = std::max(PredictUs(profile_, sample), 1e-3);
    }
    const double times = std::sqrt(
        std::max(1.0, static_cast<double>(samples_.size()) / static_cast<double>(imagined.size())));
    const Eigen::MatrixXd more =
        WeightedRows(profile_, imagined, SidesAt(profile_, imagined), unknowns_, scale_);
    Eigen::MatrixXd rows(real_.cols() + more.rows(), real_.cols());
    rows << Rows(triangle_), times * more;
    return UndeterminedDirections(Reduce(std::move(rows), Eigen::VectorXd()), tolerance_);
  }

  // The constants that the open directions tie together, a list for each tie. Two constants are
  // tied if the projection on the open directions maps one on the other.
  std::string Groups(const Eigen::MatrixXd& open) const {
    constexpr double kTied = 1e-3;
    const Eigen::MatrixXd projection = open * open.transpose();
    const size_t count = unknowns_.size();
    std::vector<bool> seen(count);
    std::vector<std::string> groups;
    for (size_t first = 0; first < count; ++first) {
      std::vector<size_t> tied = {first};
      ConstantSet names;
      for (size_t i = 0; i < tied.size(); ++i) {
        names.set(unknowns_[tied[i]]);
        seen[tied[i]] = true;
        for (size_t j = 0; j < count; ++j) {
          if (seen[j] || std::abs(projection(tied[i], j)) < kTied) continue;
          seen[j] = true;
          tied.push_back(j);
        }
      }
      if (names.count() > 1) groups.push_back(absl::StrCat("(", NamesOf(names), ")"));
    }
    return absl::StrJoin(groups, ", ");
  }

  // The unknowns beside a largest set that the real samples determine.
  ConstantSet Dispensable() const {
    ConstantSet dispensable;
    const Eigen::MatrixXd rows = Rows(triangle_);
    std::vector<Eigen::Index> kept;
    for (const size_t constant : kPreference) {
      const auto at = std::find(unknowns_.begin(), unknowns_.end(), constant);
      if (at == unknowns_.end()) continue;
      kept.push_back(at - unknowns_.begin());
      const Triangle triangle = Reduce(rows(Eigen::all, kept), Eigen::VectorXd());
      if (UndeterminedDirections(triangle, tolerance_).cols() == 0) continue;
      kept.pop_back();
      dispensable.set(constant);
    }
    return dispensable;
  }

  const CostProfile& profile_;
  absl::Span<const LatencySample> samples_;
  const Unknowns& unknowns_;
  ResidualScale scale_;
  double tolerance_;
  Eigen::MatrixXd real_;
  Triangle triangle_;
  Eigen::MatrixXd open_;
};

}  // namespace

absl::Status CheckDetermined(const CostProfile& profile, absl::Span<const LatencySample> samples,
                             const Unknowns& unknowns, ResidualScale scale, double tolerance) {
  return Advice(profile, samples, unknowns, scale, tolerance).Check();
}

}  // namespace coppice
