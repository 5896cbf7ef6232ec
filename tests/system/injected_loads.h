// Traffic that is made up on the simulator's console, and what the daemon has to say of it. Counts
// of data at both ends of some links are set between two readings, as if so many bytes had crossed
// them, and as counters are: some go around, some are reset or slip back meanwhile, some tell what
// no link can carry. Knows what was set and what was read; computes rates and loads by itself.
//
//   fault of a count   first reading    second           what is known of the bytes
//   ----------------   --------------   --------------   -----------------------------------
//   none               n                n + u            4 u
//   goes around        2^64 - u/2       u - u/2          4 u
//   is reset           2^41             u/2              2 u at least
//   slips back         2^40             99 % of it       nothing
//   leaps              n                n + 2^40         as much as the link can carry
//
// A link's load is what its sender counted; if the other end knows more, what that counted. All
// other ports have the packets of management only.
#ifndef COPPICE_TESTS_SYSTEM_INJECTED_LOADS_H_
#define COPPICE_TESTS_SYSTEM_INJECTED_LOADS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "daemon/fabric/fabric.h"
#include "daemon/manager/manager.h"
#include "tests/system/counter_gate.h"

namespace coppice {

// A management packet on the simulator: 72 units of 4 octets.
inline constexpr uint64_t kPacketBytes = 288;

class InjectedLoads {
 public:
  struct Subnet {
    std::function<void(const std::string& command)> console;
    std::function<void(const std::string& what, const std::function<bool()>&)> await;
  };

  // The daemon reads through the gate, and its averages forget within less than a reading: then the
  // load of a link is that of the last interval. All outlive this.
  InjectedLoads(Manager* manager, CounterGate* gate, Subnet subnet, std::mt19937_64* random)
      : manager_(manager), gate_(gate), subnet_(std::move(subnet)), random_(*random) {}

  // On a settled subnet: traffic over `links` links of the published fabric, errors on one of them;
  // then rates of all ports, loads of all links, and the errors' event. Ports whose readings were
  // lost are left out; how many links of those with traffic were compared is returned.
  size_t Check(size_t links);

 private:
  using Readings = std::map<CounterGate::Place, CounterReading>;
  enum class Fault : uint8_t { kNone, kGoesAround, kIsReset, kSlipsBack, kLeaps };
  enum class Known : uint8_t { kNothing, kAtLeast, kExactly };  // ascending

  // A count of data at one end of a link with traffic.
  struct Count {
    CounterGate::Place place;
    bool is_sent = false;
    Fault fault = Fault::kNone;
  };
  struct Traffic {
    ChannelIndex channel;
    uint64_t units = 0;  // of 4 bytes
    std::optional<Count> sender, receiver;
  };
  struct Moved {
    double bytes = 0;
    Known known = Known::kNothing;
  };

  uint64_t Below(uint64_t bound) { return random_() % bound; }
  std::string EndOf(const CounterGate::Place& place) const;
  std::optional<Count> CountAt(ChannelIndex channel, bool is_sent);
  std::vector<Traffic> ChooseTraffic(size_t links);
  void Set(const CounterGate::Place& place, const std::string& field, uint64_t value);
  void SetFirst(const Count& count, uint64_t units);
  void SetSecond(const Count& count, uint64_t units, const Readings& first);
  Readings ReadOnce();
  void CheckErrors(const CounterGate::Place& place, ChannelIndex channel);

  // What a count has moved from reading to reading; checks what was read against what was set.
  Moved MovedBy(const Count& count, uint64_t units, double possible) const;
  // Of a port without traffic.
  Moved MovedAlone(const CounterGate::Place& place, bool is_sent) const;
  double SecondsOf(const CounterGate::Place& place) const;
  bool WasReadTwice(const CounterGate::Place& place) const;
  const Traffic* TrafficOn(ChannelIndex channel) const;
  // Whether a count of the port was: then its other counts are bounds, too.
  bool IsReset(const CounterGate::Place& place) const;
  bool CheckChannel(ChannelIndex channel);
  void CheckRate(const CounterGate::Place& place, bool is_sent, double expected) const;

  Manager* const manager_;
  CounterGate* const gate_;
  const Subnet subnet_;
  std::mt19937_64& random_;

  // Of the check under way.
  std::shared_ptr<const Fabric> fabric_;
  std::vector<Traffic> traffic_;
  Readings first_, second_;
  std::map<CounterGate::Place, PortCounterRecord> records_;
  uint64_t packets_ = 0;  // of management, that can have crossed a link between the readings
};

}  // namespace coppice

#endif  // COPPICE_TESTS_SYSTEM_INJECTED_LOADS_H_
