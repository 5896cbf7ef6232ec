#include "agents/mpi/core/settings.h"

#include <errno.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>

#include "proto/text/byte_size.h"
#include "proto/text/environment.h"
#include "proto/text/partition_number.h"

namespace coppice::mpi {
namespace {

std::string TextOfVariable(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

std::string SameName(const std::string& name) { return name; }

std::string StrangeVariables() { return UnknownVariables(environ); }

class Reader {
 public:
  Reader(const SettingSource& source, std::string* problems)
      : source_(source), problems_(problems) {}

  std::string Text(const char* name) const { return source_.text(name); }

  bool Switch(const char* name) {
    const std::string value = Text(name);
    if (value == "1") return true;
    if (!value.empty() && value != "0") Complain(name, value, "0 or 1", "0");
    return false;
  }

  int Milliseconds(const char* name, int preset) {
    return Number(name, "milliseconds", 1, 24 * 3600 * 1000, preset);
  }

  int Number(const char* name, const std::string& unit, int least, int most, int preset) {
    const std::string value = Text(name);
    if (value.empty()) return preset;
    char* end = nullptr;
    errno = 0;
    const long number = std::strtol(value.c_str(), &end, 10);
    if (errno == 0 && *end == '\0' && number >= least && number <= most) {
      return static_cast<int>(number);
    }
    Complain(name, value, unit + " from " + std::to_string(least) + " to " + std::to_string(most),
             std::to_string(preset));
    return preset;
  }

  // With suffixes.
  int Bytes(const char* name, int preset, const std::string& otherwise) {
    const std::string value = Text(name);
    if (value.empty()) return preset;
    if (const auto size = ParseByteSize(value, INT_MAX)) return static_cast<int>(*size);
    Complain(name, value, "bytes, such as 8K or 1M, up to " + std::to_string(INT_MAX), otherwise);
    return preset;
  }

  uint32_t Partition(const char* name) {
    const std::string value = Text(name);
    if (value.empty()) return 0;
    if (const auto number = ParsePartition(value)) return *number;
    Complain(name, value, kPartitionMeant, "the nodes' own");
    return 0;
  }

  // One of the words, which stand in the order of the enumerators; the first one is the preset.
  template <class Value, size_t kCount>
  Value Word(const char* name, const char* const (&words)[kCount]) {
    const std::string value = Text(name);
    std::string all;
    for (size_t i = 0; i < kCount; ++i) {
      if (value == words[i]) return static_cast<Value>(i);
      all += (i == 0 ? "" : i + 1 == kCount ? " or " : ", ") + std::string(words[i]);
    }
    if (!value.empty()) Complain(name, value, all, words[0]);
    return Value();
  }

 private:
  void Complain(const char* name, const std::string& value, const std::string& wanted,
                const std::string& preset) {
    *problems_ +=
        source_.word(name) + "=" + value + " is none of: " + wanted + "; " + preset + " is taken\n";
  }

  const SettingSource& source_;
  std::string* problems_;
};

}  // namespace

const SettingSource kEnvironment = {TextOfVariable, SameName, StrangeVariables, "library"};

Settings ReadSettings(const SettingSource& source, std::string* problems) {
  Reader reader(source, problems);
  Settings settings;
  settings.agent = reader.Text("COPPICE_AGENT");
  settings.host = reader.Text("COPPICE_HOST");
  settings.application = reader.Text("COPPICE_APPLICATION");
  settings.partition = reader.Partition("COPPICE_PARTITION");
  settings.trace_file = reader.Text("COPPICE_TRACE");
  settings.has_trace_file = !settings.trace_file.empty();
  settings.put_pattern = reader.Switch("COPPICE_TRACE_PUT");
  settings.reorder = reader.Switch("COPPICE_REORDER");
  settings.reorder_budget_ms = reader.Milliseconds("COPPICE_REORDER_BUDGET_MS", 0);
  settings.trees = reader.Word<TreesWhen>("COPPICE_TREES", {"never", "first-use", "creation"});
  settings.trees_type = reader.Word<TreesType>("COPPICE_TREES_TYPE", {"auto", "1", "2"});
  settings.trees_after =
      reader.Number("COPPICE_TREES_AFTER", "collectives", 0, 1'000'000'000, settings.trees_after);
  settings.trees_max_bytes =
      reader.Bytes("COPPICE_TREES_MAX_BYTES", settings.trees_max_bytes, "what is usual");
  settings.trees_way = reader.Word<TreesWay>("COPPICE_TREES_WAY",
                                             {"tree", "chain", "binomial", "exchange", "forest"});
  settings.timeout_ms = reader.Milliseconds("COPPICE_TIMEOUT_MS", settings.timeout_ms);
  settings.start_timeout_ms =
      reader.Milliseconds("COPPICE_START_TIMEOUT_MS", settings.start_timeout_ms);
  settings.verbose = reader.Switch("COPPICE_VERBOSE");
  if (settings.trees_way != TreesWay::kTree && settings.trees_max_bytes < 0) {
    *problems += source.word("COPPICE_TREES_WAY") + " has no effect without " +
                 source.word("COPPICE_TREES_MAX_BYTES") + "\n";
  }
  *problems += source.strangers();
  return settings;
}

}  // namespace coppice::mpi
