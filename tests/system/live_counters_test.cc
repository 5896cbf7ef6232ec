// Counters of a live subnet against what was set on the simulator's console and what perfquery
// says. The simulator counts its own management packets, which is all that may lie between.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/support/tier.h"
#include "tests/system/injected_loads.h"
#include "tests/system/live_subnet.h"

namespace coppice::live_counters_test {
namespace {

using Place = std::pair<Guid, PortNum>;

// A field as console and perfquery name it, and where it ends up; units of 4 octets become bytes.
struct Field {
  const char* name;
  uint64_t PortCounters::*value;
  uint64_t top;
  uint64_t unit = 1;
};
constexpr Field kErrors[] = {
    {"SymbolErrorCounter", &PortCounters::symbol_errors, 0xFFFF},
    {"LinkErrorRecoveryCounter", &PortCounters::link_recoveries, 0xFF},
    {"LinkDownedCounter", &PortCounters::link_downed, 0xFF},
    {"PortRcvErrors", &PortCounters::receive_errors, 0xFFFF},
    {"PortRcvRemotePhysicalErrors", &PortCounters::remote_physical_errors, 0xFFFF},
    {"PortRcvSwitchRelayErrors", &PortCounters::relay_errors, 0xFFFF},
    {"PortXmitDiscards", &PortCounters::send_discards, 0xFFFF},
    {"PortXmitConstraintErrors", &PortCounters::send_constraint_errors, 0xFF},
    {"PortRcvConstraintErrors", &PortCounters::receive_constraint_errors, 0xFF},
    {"LocalLinkIntegrityErrors", &PortCounters::integrity_errors, 0xF},
    {"ExcessiveBufferOverrunErrors", &PortCounters::buffer_overruns, 0xF},
    {"VL15Dropped", &PortCounters::vl15_dropped, 0xFFFF},
    {"PortXmitWait", &PortCounters::sent_wait_ticks, 0xFFFFFFFF},
};
constexpr Field kData[] = {
    {"PortXmitData", &PortCounters::sent_bytes, 1ull << 50, 4},
    {"PortRcvData", &PortCounters::received_bytes, 1ull << 50, 4},
    {"PortXmitPkts", &PortCounters::sent_packets, 1ull << 50},
    {"PortRcvPkts", &PortCounters::received_packets, 1ull << 50},
};

class LiveCounters : public LiveSubnet {
 protected:
  void Console(const std::string& command) {
    const absl::StatusOr<std::string> said = subnet_->Console(command);
    ASSERT_TRUE(said.ok()) << said.status();
  }

  CounterSweep ReadOrFail() {
    absl::StatusOr<CounterSweep> sweep = port_->ReadCounters();
    if (!sweep.ok()) {
      ADD_FAILURE() << sweep.status();
      return {};
    }
    return *std::move(sweep);
  }

  static std::string WhatOf(const CounterSweep& sweep) {
    std::string text;
    for (const UnansweredNode& node : sweep.unanswered) {
      absl::StrAppend(&text, node.path, " ", node.what, "\n");
    }
    return text;
  }

  static std::map<Place, CounterReading> ByPlace(const CounterSweep& sweep) {
    std::map<Place, CounterReading> readings;
    for (const CounterReading& reading : sweep.readings) {
      EXPECT_TRUE(readings.emplace(Place(reading.node, reading.port), reading).second);
    }
    return readings;
  }

  // Every port of a switch that has a cable.
  static std::vector<Place> CabledPorts(const Fabric& fabric) {
    std::vector<Place> places;
    for (uint32_t s = 0; s < fabric.switch_count(); ++s) {
      const SwitchInfo& info = fabric.switch_info(SwitchIndex(s));
      for (int port = 1; port <= info.port_count; ++port) {
        const PortNum number(static_cast<uint8_t>(port));
        if (fabric.channel_at(SwitchIndex(s), number) != kNoChannel) {
          places.emplace_back(info.guid, number);
        }
      }
    }
    std::sort(places.begin(), places.end());
    return places;
  }

  static std::string NameOf(const Fabric& fabric, const Place& place) {
    const SwitchIndex s = *fabric.FindSwitch(place.first);
    return absl::StrCat("\"", fabric.switch_info(s).description, "\"[", place.second.value(), "]");
  }

  // "PortXmitData:....................3168"
  static std::map<std::string, uint64_t> ReadPerfquery(const std::string& text) {
    std::map<std::string, uint64_t> values;
    std::istringstream in(text);
    std::string line;
    while (std::getline(in, line)) {
      const size_t colon = line.find(':'), dot = line.find_last_of('.');
      uint64_t value = 0;
      if (colon == std::string::npos || dot == std::string::npos || dot < colon) continue;
      if (absl::SimpleAtoi(line.substr(dot + 1), &value)) values[line.substr(0, colon)] = value;
    }
    return values;
  }
};

TEST_F(LiveCounters, EveryCabledSwitchPortIsReadOnce) {
  ASSERT_NO_FATAL_FAILURE(Start(kSmallFabric, "ftree"));
  const SweepResult swept = SweepOrFail();
  ASSERT_NE(swept.fabric, nullptr);
  const CounterSweep sweep = ReadOrFail();
  EXPECT_EQ(WhatOf(sweep), "");
  std::vector<Place> read;
  for (const auto& [place, reading] : ByPlace(sweep)) {
    read.push_back(place);
    EXPECT_TRUE(reading.is_extended);
  }
  EXPECT_EQ(read, CabledPorts(*swept.fabric));
  EXPECT_EQ(sweep.mads_sent, 2 * read.size() + swept.fabric->switch_count());
  EXPECT_EQ(ReadOrFail().mads_sent, 2 * read.size());  // what the switches can is known now
}

TEST_F(LiveCounters, WhatWasSetIsReadAndIsWhatPerfquerySays) {
  ASSERT_NO_FATAL_FAILURE(Start(kSmallFabric, "ftree"));
  const SweepResult swept = SweepOrFail();
  ASSERT_NE(swept.fabric, nullptr);
  const std::vector<Place> places = CabledPorts(*swept.fabric);
  std::mt19937_64 random(TestSeed());
  std::map<Place, std::map<std::string, uint64_t>> set;
  for (int i = 0; i < (FullTier() ? 60 : 12); ++i) {
    const Place place = places[random() % places.size()];
    const auto inject = [&](const char* attribute, const Field& field) {
      // The top itself in one of four: a count that stopped.
      const uint64_t value = random() % 4 == 0 ? field.top : random() % field.top;
      Console(absl::StrCat("PerformanceSet ", NameOf(*swept.fabric, place), " ", attribute, ".",
                           field.name, "=", value));
      set[place][field.name] = value;
    };
    for (const Field& field : kErrors) {
      if (field.value != &PortCounters::vl15_dropped) inject("PortCounters", field);
    }
    for (const Field& field : kData) inject("PortCountersExtended", field);
    if (HasFailure()) return;
  }
  const CounterSweep sweep = ReadOrFail();
  EXPECT_EQ(WhatOf(sweep), "");
  const std::map<Place, CounterReading> readings = ByPlace(sweep);
  // Neither the reading itself nor a tool sends more packets over one link than this.
  const uint64_t slack = 2 * sweep.mads_sent + 1000;
  for (const auto& [place, values] : set) {
    ASSERT_EQ(readings.count(place), 1u);
    const PortCounters& read = readings.at(place).values;
    const std::string lid =
        absl::StrCat(swept.fabric->switch_info(*swept.fabric->FindSwitch(place.first)).lid.value());
    const std::string port = absl::StrCat(place.second.value());
    const absl::StatusOr<std::string> classic = subnet_->Run({"perfquery", lid, port});
    const absl::StatusOr<std::string> extended = subnet_->Run({"perfquery", "-x", lid, port});
    ASSERT_TRUE(classic.ok() && extended.ok()) << classic.status() << extended.status();
    const std::map<std::string, uint64_t> errors = ReadPerfquery(*classic);
    const std::map<std::string, uint64_t> data = ReadPerfquery(*extended);
    for (const Field& field : kErrors) {
      EXPECT_EQ(read.*field.value, errors.at(field.name)) << field.name;
      const auto injected = values.find(field.name);
      if (injected == values.end()) continue;
      EXPECT_EQ(read.*field.value, injected->second) << field.name;
    }
    for (const Field& field : kData) {
      const uint64_t sent = values.at(field.name) * field.unit;
      const uint64_t more = slack * (field.unit == 1 ? 1 : kPacketBytes);
      EXPECT_GE(read.*field.value, sent) << field.name;
      EXPECT_LE(read.*field.value, sent + more) << field.name;
      EXPECT_LE(read.*field.value, data.at(field.name) * field.unit) << field.name;
      EXPECT_GE(read.*field.value + more, data.at(field.name) * field.unit) << field.name;
    }
  }
}

TEST_F(LiveCounters, WithoutASubnetManagerEachSwitchIsNamed) {
  ASSERT_NO_FATAL_FAILURE(Start(kSmallFabric, ""));
  const SweepResult swept = SweepOrFail();
  ASSERT_NE(swept.fabric, nullptr);
  const CounterSweep sweep = ReadOrFail();
  EXPECT_TRUE(sweep.readings.empty());
  ASSERT_EQ(sweep.unanswered.size(), swept.fabric->switch_count());
  EXPECT_TRUE(absl::StrContains(sweep.unanswered[0].what, "no LID of its own")) << WhatOf(sweep);
  EXPECT_EQ(sweep.mads_sent, 0u);
}

TEST_F(LiveCounters, LostPacketsAreAskedForAgain) {
  ASSERT_NO_FATAL_FAILURE(Start(kSmallFabric, "ftree"));
  const SweepResult swept = SweepOrFail();
  ASSERT_NE(swept.fabric, nullptr);
  const size_t ports = CabledPorts(*swept.fabric).size();
  for (const char* rate : {"1", "10"}) {
    for (int s = 0; s < 16; ++s) {
      ASSERT_NO_FATAL_FAILURE(Console(absl::StrCat("Error \"S", s, "\" ", rate)));
    }
    uint64_t resent = 0;
    for (int round = 0; round < 5; ++round) {
      const CounterSweep sweep = ReadOrFail();
      resent += sweep.mads_resent;
      // What passes a lossy spine may be lost four times, if seldom; nothing is missed in silence.
      EXPECT_GE(sweep.readings.size() + sweep.unanswered.size(), ports);
      EXPECT_GE(sweep.readings.size() + 20, ports) << WhatOf(sweep);
    }
    EXPECT_GT(resent, 0u);
  }
}

TEST_F(LiveCounters, ASilentSwitchIsNamedAndTheRestIsRead) {
  ASSERT_NO_FATAL_FAILURE(Start(kSmallFabric, "ftree"));
  const SweepResult swept = SweepOrFail();
  ASSERT_NE(swept.fabric, nullptr);
  const size_t ports = CabledPorts(*swept.fabric).size();
  EXPECT_EQ(ReadOrFail().readings.size(), ports);
  ASSERT_NO_FATAL_FAILURE(Console("Error \"L7\" 100"));
  for (int round = 0; round < 2; ++round) {
    const CounterSweep sweep = ReadOrFail();
    EXPECT_EQ(sweep.readings.size(), ports - 32) << WhatOf(sweep);
    ASSERT_EQ(sweep.unanswered.size(), 1u) << WhatOf(sweep);
    EXPECT_TRUE(absl::StrContains(sweep.unanswered[0].what, "switch L7:")) << WhatOf(sweep);
  }
  ASSERT_NO_FATAL_FAILURE(Console("Error \"L7\" 0"));
  EXPECT_EQ(ReadOrFail().readings.size(), ports);
}

}  // namespace
}  // namespace coppice::live_counters_test
