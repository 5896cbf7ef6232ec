// A disk that fills up under a running store: everyone who waits is told, nothing is half-written,
// and the store goes on when there is space again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include "absl/strings/match.h"
#include "tests/unit/db/store_records.h"

namespace coppice::sqlite_failure_test {
namespace {

using absl::StatusCode;

// Submits `count` grants of trees with `members` from `first` on, and returns the answers.
std::vector<absl::Status> GrantMany(Store& store, int64_t first, int64_t count, uint32_t members) {
  std::vector<absl::Status> answers;
  for (int64_t id = first; id < first + count; ++id) {
    store.Submit(GrantTree{Tree(id, 1, {0}, members)},
                 [&](absl::Status status) { answers.push_back(std::move(status)); });
  }
  store.Apply(AppendEvents{}).IgnoreError();  // answered after all of them
  return answers;
}

void ExpectExactly(Store& store, const std::vector<int64_t>& granted) {
  absl::StatusOr<StoredState> state = store.Load();
  ASSERT_TRUE(state.ok()) << state.status();
  std::vector<int64_t> ids;
  for (const TreeRecord& tree : state->trees) ids.push_back(tree.id.value());
  EXPECT_EQ(ids, granted);
  EXPECT_EQ(state->entries.at(0).entries_taken, granted.size());
}

// The trees that were granted; all other answers must be `code` with `words`.
std::vector<int64_t> Granted(const std::vector<absl::Status>& answers, int64_t first,
                             const std::string& words = "disk full") {
  std::vector<int64_t> ids;
  for (size_t n = 0; n < answers.size(); ++n) {
    if (answers[n].ok()) {
      ids.push_back(first + static_cast<int64_t>(n));
    } else {
      EXPECT_STATUS(answers[n], StatusCode::kUnavailable, words);
      EXPECT_STATUS(answers[n], StatusCode::kUnavailable, "coppice.db");
    }
  }
  return ids;
}

TEST(SqliteFailureTest, FullDatabase) {
  StoreDirectory directory;
  const std::string path = directory.File("coppice.db");
  auto store = SqliteStore::Open(path, {.max_pages = 150});
  ASSERT_TRUE(store.ok()) << store.status();
  ASSERT_APPLIED((*store)->Apply(Capabilities(1, 10'000)));
  ASSERT_APPLIED((*store)->Apply(PutJob{Job(1)}));
  std::vector<int64_t> granted;
  int64_t first = 1;
  for (bool full = false; !full; first += 10) {
    const std::vector<int64_t> ids = Granted(GrantMany(**store, first, 10, 100), first);
    full = ids.size() < 10;
    granted.insert(granted.end(), ids.begin(), ids.end());
  }
  absl::Status last;  // one at a time: nothing is written after it
  while ((last = (*store)->Apply(GrantTree{Tree(first, 1, {0}, 100)})).ok()) {
    granted.push_back(first++);
  }
  EXPECT_STATUS(last, StatusCode::kUnavailable, "disk full");
  ASSERT_GT(granted.size(), 5u);
  ExpectExactly(**store, granted);
  EXPECT_THAT((*store)->Statistics().fault, testing::HasSubstr("disk full"));
  EXPECT_GT((*store)->Statistics().refused, 0u);
  while (granted.size() > 2) {  // space returns
    ASSERT_APPLIED((*store)->Apply(ReleaseTree{TreeId(granted.back()), JobId(1)}));
    granted.pop_back();
  }
  EXPECT_EQ(Granted(GrantMany(**store, first, 2, 100), first).size(), 2u);
  granted.insert(granted.end(), {first, first + 1});
  ExpectExactly(**store, granted);
  EXPECT_EQ((*store)->Statistics().fault, "");
  store->reset();
  store = SqliteStore::Open(path);
  ASSERT_TRUE(store.ok()) << store.status();
  ExpectExactly(**store, granted);
}

// The kernel refuses writes beyond a file size, as it does on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, SIG_DFL);
  }

 private:
  rlimit before_;
};

TEST(SqliteFailureTest, FailingWrites) {
  StoreDirectory directory;
  const std::string path = directory.File("coppice.db");
  auto store = SqliteStore::Open(path);
  ASSERT_TRUE(store.ok()) << store.status();
  ASSERT_APPLIED((*store)->Apply(Capabilities(1, 10'000)));
  ASSERT_APPLIED((*store)->Apply(PutJob{Job(1)}));
  std::vector<int64_t> granted = Granted(GrantMany(**store, 1, 10, 100), 1);
  ASSERT_EQ(granted.size(), 10u);
  const uint64_t log_size = std::filesystem::file_size(path + "-wal");
  // The limit lies inside the next transaction's frames, then at other places of them.
  int64_t first = 11;
  for (uint64_t more : {0, 100, 4'096 + 24, 20'000}) {
    {
      FileSizeLimit limit(log_size + more);
      const std::vector<absl::Status> answers = GrantMany(**store, first, 64, 1000);
      // A short write is a full disk to SQLite, a refused one an I/O error: either, but for all.
      const bool full = absl::StrContains(answers[0].message(), "disk full");
      EXPECT_TRUE(Granted(answers, first, full ? "disk full" : "check the disk").empty());
      ExpectExactly(**store, granted);
    }
    first += 64;
  }
  EXPECT_EQ(Granted(GrantMany(**store, first, 3, 100), first).size(), 3u);
  for (int64_t id = first; id < first + 3; ++id) granted.push_back(id);
  ExpectExactly(**store, granted);
  store->reset();
  store = SqliteStore::Open(path);
  ASSERT_TRUE(store.ok()) << store.status();
  ExpectExactly(**store, granted);
}

}  // namespace
}  // namespace coppice::sqlite_failure_test
