// What the environment asks of the preloaded library, or parameters of the component. Everything is
// off unless it is named, so that a program that is started with the library alone runs as without
// it: not one message is sent.
#ifndef COPPICE_AGENTS_MPI_CORE_SETTINGS_H_
#define COPPICE_AGENTS_MPI_CORE_SETTINGS_H_

#include <string>

namespace coppice::mpi {

// When a communicator's tree is asked for.
enum class TreesWhen { kNever, kFirstUse, kCreation };

// The way of all collectives of a fixed choice that have it; the others go along the tree.
enum class TreesWay { kTree, kChain, kBinomial, kExchange, kForest };

// Who aggregates: whoever the daemon finds faster; the ranks (I); switches (II).
enum class TreesType { kAuto, kRanks, kSwitches };

// What all ranks must agree on, or some would wait in a collective that the others never call: rank
// 0's, which is broadcast as it is.
struct AgreedSettings {
  bool has_trace_file = false;
  bool put_pattern = false;             // COPPICE_TRACE_PUT=1: the pattern goes to the daemon, too
  bool reorder = false;                 // COPPICE_REORDER=1
  int reorder_budget_ms = 0;            // COPPICE_REORDER_BUDGET_MS; 0: the daemon's
  TreesWhen trees = TreesWhen::kNever;  // COPPICE_TREES=first-use|creation
  // COPPICE_TREES_AFTER: collectives of a communicator before its tree is asked for, and again as
  // many before the answer is looked for; 0: it is waited for at once
  int trees_after = 32;
  // COPPICE_TREES_MAX_BYTES: the longest messages that go along trees, all of them; negative: which
  // way is sooner is measured (tree/trial.h)
  int trees_max_bytes = -1;
  TreesWay trees_way = TreesWay::kTree;  // COPPICE_TREES_WAY, if trees_max_bytes fixes the choice
  // COPPICE_TREES_TYPE=auto|1|2: 2: of type II, even if nobody has measured what its switches take
  TreesType trees_type = TreesType::kAuto;
  int timeout_ms = 2000;  // COPPICE_TIMEOUT_MS: of each question to the agent
  // Of the times that the daemon keeps of earlier runs: Session::Application, as a daemon takes it.
  char agreed_application[129] = {};

  // Whether there is anything to do. Where there is, all ranks of the world speak to each other,
  // once each one's own environment has said so (session.cc).
  bool AskForAnything() const {
    return has_trace_file || put_pattern || reorder || trees != TreesWhen::kNever;
  }
  // The choice is the user's: all messages up to a length go along trees.
  bool IsWayFixed() const { return trees_max_bytes >= 0; }
  void AskForNothing() {
    has_trace_file = put_pattern = reorder = false;
    trees = TreesWhen::kNever;
  }
};

struct Settings : AgreedSettings {
  std::string agent;             // COPPICE_AGENT: socket of the node's agent; empty: the usual one
  std::string host;              // COPPICE_HOST: this node's name in the fabric; empty: the agent's
  std::string application;       // COPPICE_APPLICATION: of stored patterns; empty: the program's
  uint32_t partition = 0;        // COPPICE_PARTITION: of the job; 0: the one that its nodes share
  std::string trace_file;        // COPPICE_TRACE: where rank 0 writes the pattern; empty: no file
  int start_timeout_ms = 20000;  // COPPICE_START_TIMEOUT_MS: for all ranks to say they are here
  bool verbose = false;  // COPPICE_VERBOSE=1: rank 0 says on stderr what was done and why not
};

// Where settings come from. Names are those of the variables: "COPPICE_TREES_AFTER".
struct SettingSource {
  std::string (*text)(const std::string& name);  // empty: it is not set
  std::string (*word)(const std::string& name);  // what the user calls it
  std::string (*strangers)();                    // which of our names are nobody's, one line each
  const char* reader;                            // "library", "component"
};
// COPPICE_TREES_AFTER and the others.
extern const SettingSource kEnvironment;

// A value that cannot be read is taken as its preset; whoever calls says so once on stderr:
// `problems`, one line each, the source's strangers among them.
Settings ReadSettings(const SettingSource& source, std::string* problems);

}  // namespace coppice::mpi

#endif  // COPPICE_AGENTS_MPI_CORE_SETTINGS_H_
