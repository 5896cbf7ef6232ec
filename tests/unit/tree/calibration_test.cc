// Calibration: known constants recovered from the closed forms' own latencies, data that cannot
// determine them refused by name, and the least squares compared with normal equations solved here.
#include "daemon/tree/calibration/calibration.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "daemon/tree/calibration/model.h"
#include "daemon/tree/closed_form.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/tier.h"

namespace coppice::calibration_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Constants unlike any base's; nothing hides behind the port's rate.
CostProfile Truth() {
  CostProfile profile = *BuiltInProfile("hdr");
  profile.nic = {0.61, 3e-5, 0.031, 9e-5, 0.022};
  profile.switch_ = {0.27, 2e-5, 0.004, 6e-5, 0.003};
  profile.init_us = 0.42;
  profile.link_us = 0.17;
  profile.port_gbps = 0;
  profile.mtu_bytes = 1 << 20;  // every message is one packet
  return profile;
}

// Every operation, size, number of members and width of a type, as `truth` has it.
std::vector<LatencySample> Measured(const CostProfile& truth, TreeType type,
                                    const std::vector<uint64_t>& sizes = {8, 512, 4096},
                                    const std::vector<uint32_t>& members = {32, 128, 512},
                                    const std::vector<uint32_t>& widths = {2, 8, 32}) {
  std::vector<LatencySample> samples;
  for (const Operation operation :
       {Operation::kBarrier, Operation::kBcast, Operation::kReduce, Operation::kAllreduce}) {
    for (const uint64_t bytes : sizes) {
      for (const uint32_t count : members) {
        for (const uint32_t width : widths) {
          LatencySample sample = {.operation = operation,
                                  .bytes = operation == Operation::kBarrier ? 0 : bytes,
                                  .members = count,
                                  .type = type,
                                  .width = width};
          sample.us = PredictUs(truth, sample);
          samples.push_back(sample);
        }
      }
    }
  }
  return samples;
}

std::vector<LatencySample> BothTypes(const CostProfile& truth) {
  std::vector<LatencySample> samples = Measured(truth, TreeType::kTypeI);
  for (const LatencySample& sample : Measured(truth, TreeType::kTypeII)) samples.push_back(sample);
  return samples;
}

// `truth` is what the fixed constants are; the others start from another profile.
CalibrationOptions Fixing(const CostProfile& truth, std::vector<std::string> fixed) {
  CalibrationOptions options;
  options.base = *BuiltInProfile("paper");
  options.base.mean_route_links = truth.mean_route_links;
  options.base.port_gbps = truth.port_gbps;
  options.base.mtu_bytes = truth.mtu_bytes;
  options.base.forward_includes_serialisation = truth.forward_includes_serialisation;
  const auto set = ConstantsNamed(fixed);
  EXPECT_TRUE(set.ok()) << set.status();
  for (size_t c = 0; c < kConstantCount; ++c) {
    if ((*set)[c]) ConstantIn(options.base, c) = ConstantIn(truth, c);
  }
  options.fixed = std::move(fixed);
  return options;
}

const std::vector<std::string> kThree = {"link_us", "nic.send_us", "switch.send_us"};

void ExpectConstants(const Calibration& fit, const CostProfile& truth, double relative) {
  for (size_t c = 0; c < kConstantCount; ++c) {
    const double want = ConstantIn(truth, c);
    EXPECT_NEAR(fit.constants[c].value, want, relative * want) << ConstantName(c);
    EXPECT_EQ(fit.constants[c].value, ConstantIn(fit.profile, c));
  }
}

std::string FitError(const std::vector<LatencySample>& samples, const CalibrationOptions& options) {
  const auto fit = FitProfile(samples, options);
  EXPECT_EQ(fit.status().code(), absl::StatusCode::kInvalidArgument) << fit.status();
  return std::string(fit.status().message());
}

// --- the model

TEST(CalibrationModel, IsTheClosedForms) {
  std::mt19937_64 random(TestSeed());
  std::uniform_real_distribution<double> unit(0.001, 1);
  for (int round = 0; round < 2000; ++round) {
    CostProfile profile;
    for (size_t c = 0; c < kConstantCount; ++c) ConstantIn(profile, c) = unit(random);
    profile.nic.reduce_us_per_byte *= 1e-4;
    profile.switch_.reduce_us_per_byte *= 1e-4;
    profile.mean_route_links = 2 + 2 * static_cast<double>(random() % 3);
    profile.port_gbps = random() % 2 == 0 ? 0 : 1 + static_cast<double>(random() % 400);
    profile.header_bytes = random() % 2 == 0 ? 0 : 26;
    profile.mtu_bytes = 256U << random() % 5;
    profile.forward_includes_serialisation = random() % 2 == 0;
    LatencySample sample = {.operation = static_cast<Operation>(random() % 4),
                            .bytes = random() % 10'000,
                            .members = 2U << random() % 12};
    const Payload payload = PayloadOf(sample.operation, sample.bytes);
    sample.width = 2 + static_cast<uint32_t>(random() % 30);
    EXPECT_DOUBLE_EQ(PredictUs(profile, sample),
                     TypeIUs(profile, sample.members, sample.width, payload));
    // Type II's width is P^(2/delta) in the closed form; a whole number here.
    CostProfile two = profile;
    two.mean_route_links = 2;
    sample.type = TreeType::kTypeII;
    sample.width = sample.members;
    EXPECT_DOUBLE_EQ(PredictUs(two, sample), TypeIIUs(two, sample.members, payload));

    // Linear, however far the constants move, if no max() changes sides.
    sample.type = static_cast<TreeType>(1 + random() % 2);
    sample.width = 2 + static_cast<uint32_t>(random() % 30);
    const PortBounds bounds = PortBoundsOf(profile, sample);
    const LinearForm form = LinearFormOf(profile, sample, bounds);
    CostProfile other = profile;
    for (size_t c = 0; c < kConstantCount; ++c) ConstantIn(other, c) *= 1 + unit(random);
    EXPECT_NEAR(form.Us(profile), PredictUs(profile, sample), 1e-9 * form.Us(profile));
    if (PortBoundsOf(other, sample) != bounds) continue;
    EXPECT_NEAR(form.Us(other), PredictUs(other, sample), 1e-9 * form.Us(other));
  }
}

TEST(CalibrationModel, NamesConstantsAndWholeNodes) {
  EXPECT_EQ(NamesOf(*ConstantsNamed({"switch", "link_us"})), "link_us, switch");
  EXPECT_EQ(NamesOf(*ConstantsNamed({"nic.send_us", "nic.match_us"})), "nic.match_us, nic.send_us");
  EXPECT_THAT(std::string(ConstantsNamed({"nic.sent_us"}).status().message()),
              HasSubstr("\"nic.sent_us\": the constants are init_us, link_us"));
}

TEST(FixConstant, TakesNamesAndValues) {
  CalibrationOptions options;
  ASSERT_TRUE(FixConstant("link_us=0.25", options).ok());
  ASSERT_TRUE(FixConstant("switch", options).ok());
  ASSERT_TRUE(FixConstant("mean_route_links=6", options).ok());
  ASSERT_TRUE(FixConstant("port_gbps=0", options).ok());
  EXPECT_EQ(options.base.link_us, 0.25);
  EXPECT_EQ(options.base.mean_route_links, 6);
  EXPECT_EQ(options.base.port_gbps, 0);
  EXPECT_THAT(options.fixed, ElementsAre("link_us", "switch"));
  for (const char* wrong : {"", "=", "=1", "linkus", "link_us=", "link_us=x", "link_us=-1",
                            "link_us=nan", "link_us=inf", "mtu_bytes=3", "link_us=1=2"}) {
    EXPECT_EQ(FixConstant(wrong, options).code(), absl::StatusCode::kInvalidArgument) << wrong;
  }
}

// --- recovery

TEST(FitProfile, RecoversEveryConstantFromExactSamples) {
  const CostProfile truth = Truth();
  for (const ResidualScale scale : {ResidualScale::kAbsolute, ResidualScale::kRelative}) {
    CalibrationOptions options = Fixing(truth, kThree);
    options.scale = scale;
    options.name = "ours";
    const auto fit = FitProfile(BothTypes(truth), options);
    ASSERT_TRUE(fit.ok()) << fit.status();
    ExpectConstants(*fit, truth, 1e-6);
    EXPECT_LT(fit->worst_us, 1e-9);
    EXPECT_NEAR(fit->r_squared, 1, 1e-12);
    EXPECT_EQ(fit->profile.name, "ours");
    EXPECT_THAT(fit->outliers, IsEmpty());
    EXPECT_THAT(fit->notes, IsEmpty());
    EXPECT_EQ(fit->constants[kLinkConstant].state, ConstantState::kFixed);
    EXPECT_EQ(fit->constants[kInitConstant].state, ConstantState::kFitted);
  }
}

TEST(FitProfile, KeepsWhatTheClosedFormsDoNotHold) {
  const CostProfile truth = Truth();
  CalibrationOptions options = Fixing(truth, kThree);
  options.base.same_host_us = 0.77;
  options.base.mtu_bytes = 8192;
  options.base.nic_degree = 17;
  options.base.is_estimate = true;
  const auto fit = FitProfile(BothTypes(truth), options);
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_EQ(fit->profile.same_host_us, 0.77);
  EXPECT_EQ(fit->profile.mtu_bytes, 8192U);
  EXPECT_EQ(fit->profile.nic_degree, 17U);
  EXPECT_TRUE(fit->profile.is_estimate);  // the fixed constants still are
}

TEST(FitProfile, SwitchesAreMeasuredByOneSampleOfTypeTwo) {
  const CostProfile truth = Truth();
  std::vector<LatencySample> samples = Measured(truth, TreeType::kTypeI);
  CalibrationOptions options = Fixing(truth, {"link_us", "nic.send_us", "switch"});
  const auto is_measured = [&] {
    const auto fit = FitProfile(samples, options);
    EXPECT_TRUE(fit.ok()) << fit.status();
    return fit.ok() && fit->profile.switch_is_measured;
  };
  EXPECT_FALSE(is_measured());
  options.base.switch_is_measured = true;  // earlier, and nobody says otherwise
  EXPECT_TRUE(is_measured());
  options.base.switch_is_measured = false;
  samples.push_back(Measured(truth, TreeType::kTypeII).front());
  EXPECT_TRUE(is_measured());
}

// The forward of one node in place of the link: any one of the three will do.
TEST(FitProfile, OneOfLinkAndTheForwardsDeterminesTheOthers) {
  const CostProfile truth = Truth();
  for (const char* one : {"link_us", "nic.forward_us", "switch.forward_us"}) {
    const auto fit =
        FitProfile(BothTypes(truth), Fixing(truth, {one, "nic.match_us", "switch.match_us"}));
    ASSERT_TRUE(fit.ok()) << fit.status();
    ExpectConstants(*fit, truth, 1e-6);
  }
}

// With a port's rate, long broadcasts cost S / B for each child whatever c_send is, so the sum of
// matching and sending splits.
TEST(FitProfile, SplitsMatchingFromSendingWhereThePortBoundsSome) {
  CostProfile truth = Truth();
  truth.port_gbps = 100;  // 8e-5 us a byte: above 275 bytes it exceeds c_send of a NIC
  for (const bool included : {false, true}) {
    truth.forward_includes_serialisation = included;
    const auto fit = FitProfile(BothTypes(truth), Fixing(truth, {"link_us"}));
    ASSERT_TRUE(fit.ok()) << fit.status();
    // gamma of the switch is below B, so some of its samples are bound on the way up, too.
    ExpectConstants(*fit, truth, 1e-6);
  }
}

TEST(FitProfile, RandomTruthsAreRecovered) {
  std::mt19937_64 random(TestSeed());
  std::uniform_real_distribution<double> factor(0.3, 3);
  const int rounds = FullTier() ? 500 : 25;
  for (int round = 0; round < rounds; ++round) {
    CostProfile truth = Truth();
    for (size_t c = 0; c < kConstantCount; ++c) ConstantIn(truth, c) *= factor(random);
    truth.mean_route_links = 2 + static_cast<double>(random() % 5);
    const auto fit = FitProfile(BothTypes(truth), Fixing(truth, kThree));
    ASSERT_TRUE(fit.ok()) << fit.status();
    ExpectConstants(*fit, truth, 1e-6);
  }
}

// Of 9 constants in each of many fits, 95 % should be within two standard errors; demand 90 % in
// all, and 5 everywhere. The spread of the noise itself is seen in the residuals.
TEST(FitProfile, NoisyConstantsAreWithinTheirStandardErrors) {
  std::mt19937_64 random(TestSeed());
  const CostProfile truth = Truth();
  for (const ResidualScale scale : {ResidualScale::kAbsolute, ResidualScale::kRelative}) {
    const bool absolute = scale == ResidualScale::kAbsolute;
    std::normal_distribution<double> noise(0, absolute ? 0.05 : 0.003);
    uint32_t within = 0, all = 0;
    for (int round = 0; round < 40; ++round) {
      std::vector<LatencySample> samples = BothTypes(truth);
      for (LatencySample& s : samples) s.us += noise(random) * (absolute ? 1 : s.us);
      CalibrationOptions options = Fixing(truth, kThree);
      options.scale = scale;
      const auto fit = FitProfile(samples, options);
      ASSERT_TRUE(fit.ok()) << fit.status();
      if (absolute) {
        EXPECT_NEAR(fit->rms_us, 0.05, 0.015);
      }
      for (size_t c = 0; c < kConstantCount; ++c) {
        if (fit->constants[c].state != ConstantState::kFitted) continue;
        const double error = std::abs(fit->constants[c].value - ConstantIn(truth, c));
        EXPECT_GT(fit->constants[c].standard_error, 0);
        EXPECT_LT(error, 5 * fit->constants[c].standard_error) << ConstantName(c);
        within += error < 2 * fit->constants[c].standard_error ? 1 : 0;
        ++all;
      }
    }
    EXPECT_GT(within, 0.9 * all);
    EXPECT_LT(within, 0.995 * all);  // errors that are far too wide would be no errors
  }
}

// --- the least squares against normal equations in long double, with slopes taken from the closed
// forms by difference

using Row = std::vector<long double>;

// Solves a x = b in place, the largest pivot first; returns the inverse's diagonal, too.
std::pair<Row, Row> SolveNormal(std::vector<Row> a, const Row& b) {
  const size_t n = b.size();
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) a[i].push_back(i == j ? 1 : 0);
    a[i].push_back(b[i]);
  }
  for (size_t c = 0; c < n; ++c) {
    size_t pivot = c;
    for (size_t i = c; i < n; ++i) {
      if (std::abs(a[i][c]) > std::abs(a[pivot][c])) pivot = i;
    }
    std::swap(a[c], a[pivot]);
    const long double head = a[c][c];
    for (long double& value : a[c]) value /= head;
    for (size_t i = 0; i < n; ++i) {
      const long double times = a[i][c];
      if (i == c) continue;
      for (size_t j = 0; j < a[i].size(); ++j) a[i][j] -= times * a[c][j];
    }
  }
  Row solution, diagonal;
  for (size_t i = 0; i < n; ++i) {
    solution.push_back(a[i][2 * n]);
    diagonal.push_back(a[i][n + i]);
  }
  return {solution, diagonal};
}

long double ClosedFormUs(const CostProfile& profile, const LatencySample& s) {
  const Payload payload = PayloadOf(s.operation, s.bytes);
  return TypeIUs(profile, s.members, s.width, payload);
}

TEST(FitProfile, AgreesWithNormalEquations) {
  std::mt19937_64 random(TestSeed());
  const std::vector<double CostProfile::*> top = {&CostProfile::init_us};
  const std::vector<double NodeCost::*> node = {&NodeCost::forward_us,
                                                &NodeCost::forward_us_per_byte, &NodeCost::match_us,
                                                &NodeCost::reduce_us_per_byte};
  std::normal_distribution<double> noise(0, 0.05);
  for (int round = 0; round < 20; ++round) {
    std::vector<LatencySample> samples = Measured(Truth(), TreeType::kTypeI);
    std::shuffle(samples.begin(), samples.end(), random);
    samples.resize(40 + random() % 40);
    for (LatencySample& sample : samples) sample.us += noise(random);
    const CalibrationOptions options = Fixing(Truth(), {"link_us", "nic.send_us", "switch"});
    const auto fit = FitProfile(samples, options);
    ASSERT_TRUE(fit.ok()) << fit.status();

    CostProfile zero = options.base;
    zero.init_us = 0;
    for (const auto field : node) zero.nic.*field = 0;
    std::vector<Row> normal(5, Row(5));
    Row right(5);
    std::vector<Row> design;
    for (const LatencySample& sample : samples) {
      const long double base = ClosedFormUs(zero, sample);
      Row row;
      for (size_t j = 0; j < 5; ++j) {
        CostProfile one = zero;
        (j == 0 ? one.*top[0] : one.nic.*node[j - 1]) = 1;
        row.push_back(ClosedFormUs(one, sample) - base);
      }
      for (size_t i = 0; i < 5; ++i) {
        for (size_t j = 0; j < 5; ++j) normal[i][j] += row[i] * row[j];
        right[i] += row[i] * (sample.us - base);
      }
      design.push_back(row);
    }
    const auto [solution, diagonal] = SolveNormal(normal, right);
    long double squares = 0;
    for (size_t s = 0; s < samples.size(); ++s) {
      long double residual = samples[s].us - ClosedFormUs(zero, samples[s]);
      for (size_t j = 0; j < 5; ++j) residual -= design[s][j] * solution[j];
      EXPECT_NEAR(fit->residuals_us[s], static_cast<double>(residual), 1e-8);
      squares += residual * residual;
    }
    const size_t constants[] = {kInitConstant, kNicConstants + kForward,
                                kNicConstants + kForwardPerByte, kNicConstants + kMatch,
                                kNicConstants + kReducePerByte};
    for (size_t j = 0; j < 5; ++j) {
      const FittedConstant& got = fit->constants[constants[j]];
      EXPECT_NEAR(got.value, static_cast<double>(solution[j]), 1e-8);
      const auto error = static_cast<double>(
          std::sqrt(diagonal[j] * squares / static_cast<long double>(samples.size() - 5)));
      EXPECT_NEAR(got.standard_error, error, 1e-6 * error);
    }
    EXPECT_NEAR(fit->rms_us,
                std::sqrt(static_cast<double>(squares) / static_cast<double>(samples.size())),
                1e-8);
  }
}

// --- what cannot be determined

TEST(FitProfile, NamesTheSumsThatNoLatencySplits) {
  const std::string error = FitError(BothTypes(Truth()), Fixing(Truth(), {}));
  EXPECT_THAT(error, HasSubstr("(link_us, nic.forward_us, switch.forward_us)"));
  EXPECT_THAT(error, HasSubstr("(nic.match_us, nic.send_us)"));
  EXPECT_THAT(error, HasSubstr("(switch.match_us, switch.send_us)"));
  EXPECT_THAT(error, HasSubstr("no latencies of whole trees tell apart"));
  EXPECT_THAT(error, HasSubstr("fixing link_us, nic.send_us, switch.send_us leaves"));
  EXPECT_THAT(error, Not(HasSubstr("measure")));
}

TEST(FitProfile, TypeOneAloneSaysNothingOfSwitches) {
  const auto samples = Measured(Truth(), TreeType::kTypeI);
  const std::string error = FitError(samples, Fixing(Truth(), {"link_us", "nic.send_us"}));
  EXPECT_THAT(error, HasSubstr("none depends on switch;"));
  EXPECT_THAT(error, HasSubstr("measure type II trees as well"));
  EXPECT_THAT(error, HasSubstr("fixing switch leaves"));
  EXPECT_TRUE(FitProfile(samples, Fixing(Truth(), {"link_us", "nic.send_us", "switch"})).ok());
}

TEST(FitProfile, TypeTwoAloneSaysNothingOfNics) {
  const auto samples = Measured(Truth(), TreeType::kTypeII);
  const std::string error = FitError(samples, Fixing(Truth(), {"link_us", "switch.send_us"}));
  EXPECT_THAT(error, HasSubstr("none depends on nic;"));
  EXPECT_THAT(error, HasSubstr("measure type I trees as well"));
}

const std::vector<std::string> kTypeIOnly = {"link_us", "nic.send_us", "switch"};

TEST(FitProfile, OneWidthTiesForwardingToMatching) {
  const auto samples = Measured(Truth(), TreeType::kTypeI, {8, 512}, {64, 128, 512}, {16});
  const std::string error = FitError(samples, Fixing(Truth(), kTypeIOnly));
  EXPECT_THAT(error, HasSubstr("(nic.forward_us, nic.match_us)"));
  EXPECT_THAT(error, HasSubstr("measure a second width as well;"));
  EXPECT_THAT(error, HasSubstr("fixing nic.match_us leaves"));
}

TEST(FitProfile, OneSizeTiesMatchingToReduction) {
  std::vector<LatencySample> samples;
  for (const LatencySample& sample : Measured(Truth(), TreeType::kTypeI, {64})) {
    if (sample.operation == Operation::kReduce) samples.push_back(sample);
  }
  const std::string error = FitError(samples, Fixing(Truth(), kTypeIOnly));
  EXPECT_THAT(error, HasSubstr("(nic.forward_us, nic.forward_us_per_byte)"));
  EXPECT_THAT(error, HasSubstr("(nic.match_us, nic.reduce_us_per_byte)"));
  EXPECT_THAT(error, HasSubstr("measure a second size as well;"));
}

TEST(FitProfile, BarriersSayNothingOfBytes) {
  std::vector<LatencySample> samples;
  for (const LatencySample& sample : Measured(Truth(), TreeType::kTypeI)) {
    if (sample.operation == Operation::kBarrier) samples.push_back(sample);
  }
  const std::string error = FitError(samples, Fixing(Truth(), kTypeIOnly));
  EXPECT_THAT(error, HasSubstr("none depends on nic.forward_us_per_byte, nic.reduce_us_per_byte"));
  EXPECT_THAT(error, HasSubstr("measure reduce or allreduce as well"));
  for (LatencySample& sample : samples) sample.operation = Operation::kBcast;
  EXPECT_THAT(FitError(samples, Fixing(Truth(), kTypeIOnly)),
              HasSubstr("measure reduce or allreduce as well"));
}

TEST(FitProfile, OneShapeTiesStartingToLevels) {
  const auto samples = Measured(Truth(), TreeType::kTypeI, {8, 512, 4096}, {64}, {8});
  const std::string error = FitError(samples, Fixing(Truth(), kTypeIOnly));
  EXPECT_THAT(error, HasSubstr("(init_us, nic.forward_us, nic.match_us)"));
  EXPECT_THAT(error, HasSubstr("measure a second width"));
}

TEST(FitProfile, OneSampleDeterminesNextToNothing) {
  const LatencySample sample = {.members = 2, .us = 3};
  EXPECT_THAT(FitError({sample}, Fixing(Truth(), kTypeIOnly)),
              HasSubstr("cannot be told apart: (init_us, nic.forward_us, nic.match_us)"));
  EXPECT_THAT(FitError({sample, sample, sample}, Fixing(Truth(), {})), HasSubstr("measure "));
  EXPECT_THAT(FitError({}, Fixing(Truth(), {})), HasSubstr("no samples"));
}

TEST(FitProfile, AsManySamplesAsConstantsShowNoResiduals) {
  std::vector<LatencySample> samples;
  for (const uint32_t width : {2U, 4U, 8U}) {
    samples.push_back({.members = 64, .width = width});
    samples.back().us = PredictUs(Truth(), samples.back());
  }
  CalibrationOptions options = Fixing(
      Truth(),
      {"link_us", "nic.send_us", "switch", "nic.forward_us_per_byte", "nic.reduce_us_per_byte"});
  EXPECT_THAT(
      FitError(samples, options),
      HasSubstr("3 samples for 3 constants leave nothing to tell how well these fit; "
                "measure at least 4, or fix some of init_us, nic.forward_us, nic.match_us"));
  samples.push_back(samples.front());
  EXPECT_TRUE(FitProfile(samples, options).ok());
}

TEST(FitProfile, NothingLeftToFitIsAnError) {
  EXPECT_THAT(
      FitError(BothTypes(Truth()), Fixing(Truth(), {"init_us", "link_us", "nic", "switch"})),
      HasSubstr("every constant is fixed"));
}

// Sizes of 1000 and 1001 bytes determine the sum of two constants well and each by itself so badly
// that the noise alone would be its value.
TEST(FitProfile, NearlyEqualSizesUnderNoiseAreNotEnough) {
  std::mt19937_64 random(TestSeed());
  std::normal_distribution<double> noise(0, 0.1);
  std::vector<LatencySample> samples;
  for (LatencySample sample : Measured(Truth(), TreeType::kTypeI, {1000, 1001})) {
    if (sample.operation != Operation::kReduce) continue;
    samples.push_back(sample);
  }
  const CalibrationOptions options = Fixing(Truth(), kTypeIOnly);
  EXPECT_TRUE(FitProfile(samples, options).ok());  // exact latencies tell even these apart
  for (LatencySample& sample : samples) sample.us += noise(random);
  const std::string error = FitError(samples, options);
  EXPECT_THAT(error, HasSubstr("the samples scatter too much"));
  EXPECT_THAT(error, HasSubstr("nic.match_us"));
  EXPECT_THAT(error, HasSubstr("measure a second size"));
}

// --- signs, outliers, odd samples

TEST(FitProfile, SignificantlyNegativeConstantIsAnError) {
  CostProfile truth = Truth();
  truth.init_us = -0.4;
  std::mt19937_64 random(TestSeed());
  std::normal_distribution<double> noise(0, 0.01);
  std::vector<LatencySample> samples = BothTypes(truth);
  for (LatencySample& sample : samples) sample.us += noise(random);
  const std::string error = FitError(samples, Fixing(Truth(), kThree));
  EXPECT_THAT(error, HasSubstr("init_us comes out at -0."));
  EXPECT_THAT(error, HasSubstr("fixed (link_us, nic.send_us, switch.send_us)"));
}

TEST(FitProfile, ConstantBelowZeroByChanceIsHeldThere) {
  CostProfile truth = Truth();
  truth.init_us = 0;
  truth.switch_.forward_us_per_byte = 0;
  std::mt19937_64 random(TestSeed());
  std::normal_distribution<double> noise(0, 0.05);
  uint32_t held = 0;
  for (int round = 0; round < 20; ++round) {
    std::vector<LatencySample> samples = BothTypes(truth);
    for (LatencySample& sample : samples) sample.us += noise(random);
    const auto fit = FitProfile(samples, Fixing(truth, kThree));
    if (!fit.ok()) continue;  // 1 of 700 is three standard errors low
    for (const FittedConstant& constant : fit->constants) {
      EXPECT_GE(constant.value, 0);
      if (constant.state != ConstantState::kHeldAtZero) continue;
      EXPECT_EQ(constant.value, 0);
      EXPECT_GT(constant.standard_error, 0);
      EXPECT_THAT(fit->notes, ::testing::Contains(HasSubstr(constant.name + " came out at -")));
      ++held;
    }
  }
  EXPECT_GT(held, 4U);  // about half of 40
}

TEST(FitProfile, ReportsOutliersAndKeepsThem) {
  std::mt19937_64 random(TestSeed());
  std::normal_distribution<double> noise(0, 0.01);
  std::vector<LatencySample> samples = BothTypes(Truth());
  for (LatencySample& sample : samples) sample.us += noise(random);
  samples[17].us += 0.8;
  const auto fit = FitProfile(samples, Fixing(Truth(), kThree));
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_THAT(fit->outliers, ::testing::Contains(17U));
  EXPECT_LT(fit->outliers.size(), 10U);
  EXPECT_EQ(fit->worst_sample, 17U);
  EXPECT_GT(fit->worst_us, 0.5);
  EXPECT_EQ(fit->residuals_us.size(), samples.size());
  EXPECT_THAT(fit->notes, ::testing::Contains(HasSubstr("the largest residual")));
}

TEST(FitProfile, RecoversFromMessagesOfManyPackets) {
  for (const auto& sizes : {std::vector<uint64_t>{8, 4096}, {8, 512, 65536}, {8, 100'000}}) {
    CostProfile truth = Truth();
    truth.mtu_bytes = 2048;
    const auto fit =
        FitProfile(Measured(truth, TreeType::kTypeI, sizes), Fixing(truth, kTypeIOnly));
    ASSERT_TRUE(fit.ok()) << fit.status();
    EXPECT_LT(fit->worst_us, 1e-9);
    EXPECT_THAT(fit->notes, IsEmpty());
  }
}

TEST(FitProfile, RefusesWrongInputs) {
  std::vector<LatencySample> samples = BothTypes(Truth());
  samples[3].width = 1;
  EXPECT_THAT(FitError(samples, Fixing(Truth(), kThree)), HasSubstr("sample 4: column width"));
  samples[3] = samples[4];
  CalibrationOptions options = Fixing(Truth(), kThree);
  options.fixed.push_back("gamma");
  EXPECT_THAT(FitError(samples, options), HasSubstr("\"gamma\""));
  options = Fixing(Truth(), kThree);
  options.base.nic.match_us = NAN;
  EXPECT_THAT(FitError(samples, options), HasSubstr("base profile paper: nic.match_us is nan"));
}

}  // namespace
}  // namespace coppice::calibration_test
