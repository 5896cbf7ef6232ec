// Mapping over the wire: a search streams and ends with its result, patterns are kept and whose
// they are, and every bad request is refused by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "coppice/v1/mapping.grpc.pb.h"
#include "daemon/mapping/algorithm.h"
#include "tests/unit/rpc/loopback.h"

namespace coppice::mapping_service_test {
namespace {

using absl::StatusCode;
using testing::HasSubstr;
using MappingStub = v1::Mapping::Stub;

class MappingServiceTest : public ::testing::Test {
 protected:
  MappingServiceTest() : MappingServiceTest(Loopback::Options()) {}
  explicit MappingServiceTest(const Loopback::Options& options)
      : loopback_(options), stub_(v1::Mapping::NewStub(loopback_.Connect())) {}

  // Ranks r and r + 8 talk, which sit on different leaf switches today.
  static v1::CommunicationPattern FarPairs() {
    v1::CommunicationPattern pattern;
    pattern.set_rank_count(16);
    for (uint32_t rank = 0; rank < 8; ++rank) {
      pattern.add_from(rank);
      pattern.add_to(rank + 8);
      pattern.add_bytes(1000);
    }
    return pattern;
  }
  v1::MapRanksRequest Request() {
    v1::MapRanksRequest request;
    request.mutable_task()->set_job_id(loopback_.RegisterAll());
    *request.mutable_task()->mutable_pattern() = FarPairs();
    request.mutable_budget()->set_nanos(50'000'000);
    return request;
  }
  // All that the stream says.
  absl::Status Map(const v1::MapRanksRequest& request, std::vector<v1::MapRanksUpdate>& updates) {
    grpc::ClientContext context;
    Loopback::SetDeadline(context);
    const auto reader = stub_->MapRanks(&context, request);
    v1::MapRanksUpdate update;
    while (reader->Read(&update)) updates.push_back(update);
    return Loopback::ToAbsl(reader->Finish());
  }
  // That goes on until it is ended: nobody can prove that nothing is left to gain.
  v1::MapRanksRequest LongRequest() {
    v1::MapRanksRequest request = Request();
    request.mutable_budget()->set_seconds(300);
    request.mutable_task()->mutable_objective()->set_congestion(1);
    request.mutable_task()->mutable_objective()->set_dilation(1);
    return request;
  }
  // Until the server has taken up a search.
  void WaitForSearch() {
    uint64_t open = 0;
    while (open == 0) {
      std::this_thread::yield();
      for (const MethodNumbers& method : loopback_.server().Numbers().rpc.methods) {
        if (method.name == "Mapping.MapRanks") open = method.open;
      }
    }
  }
  void ExpectRefused(const v1::MapRanksRequest& request, StatusCode code, const std::string& why) {
    std::vector<v1::MapRanksUpdate> updates;
    const absl::Status status = Map(request, updates);
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  }
  absl::StatusOr<v1::StoredPattern> Put(const std::string& name) {
    v1::PutPatternRequest request;
    request.set_name(name);
    *request.mutable_pattern() = FarPairs();
    return loopback_.Call(*stub_, &MappingStub::PutPattern, request);
  }

  Loopback loopback_;
  std::unique_ptr<MappingStub> stub_;
};

TEST_F(MappingServiceTest, EndsWithAResultThatEvaluatesAlike) {
  const v1::MapRanksRequest request = Request();
  std::vector<v1::MapRanksUpdate> updates;
  const absl::Status status = Map(request, updates);
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_FALSE(updates.empty());
  ASSERT_TRUE(updates.back().has_result());
  for (size_t i = 0; i + 1 < updates.size(); ++i) EXPECT_TRUE(updates[i].has_progress());
  const v1::MappingResult& result = updates.back().result();
  EXPECT_EQ(result.permutation_size(), 16);
  EXPECT_EQ(result.before().inter_switch_bytes(), 8000);
  EXPECT_EQ(result.after().inter_switch_bytes(), 0);
  EXPECT_LT(result.score(), 1);

  v1::EvaluateMappingRequest evaluate;
  *evaluate.mutable_task() = request.task();
  *evaluate.mutable_permutation() = result.permutation();
  const auto measured = loopback_.Call(*stub_, &MappingStub::EvaluateMapping, evaluate);
  ASSERT_TRUE(measured.ok()) << measured.status();
  EXPECT_EQ(measured->after().hop_bytes(), result.after().hop_bytes());
  EXPECT_EQ(measured->score(), result.score());
  EXPECT_GT(measured->busiest_size(), 0);
}

TEST_F(MappingServiceTest, StreamsOrdersWhenAsked) {
  v1::MapRanksRequest request = LongRequest();
  for (const bool asked : {true, false}) {
    request.set_stream_orders(asked);
    grpc::ClientContext context;
    const auto reader = stub_->MapRanks(&context, request);
    v1::MapRanksUpdate update;
    ASSERT_TRUE(reader->Read(&update));
    ASSERT_TRUE(update.has_progress());
    EXPECT_EQ(update.progress().permutation_size(), asked ? 16 : 0);
    if (asked) {
      v1::EvaluateMappingRequest evaluate;
      *evaluate.mutable_task() = request.task();
      *evaluate.mutable_permutation() = update.progress().permutation();
      const auto measured = loopback_.Call(*stub_, &MappingStub::EvaluateMapping, evaluate);
      ASSERT_TRUE(measured.ok()) << measured.status();
      EXPECT_EQ(measured->score(), update.progress().score());
    }
    context.TryCancel();
    reader->Finish();
  }
}

TEST_F(MappingServiceTest, MapsByAStoredPattern) {
  const auto stored = Put("lammps");
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_EQ(stored->rank_count(), 16u);
  EXPECT_EQ(stored->total_bytes(), 8000);
  v1::MapRanksRequest request = Request();
  request.mutable_task()->clear_pattern();
  request.mutable_task()->set_pattern_name("lammps");
  std::vector<v1::MapRanksUpdate> updates;
  ASSERT_TRUE(Map(request, updates).ok());
  EXPECT_EQ(updates.back().result().after().inter_switch_bytes(), 0);
  request.mutable_task()->set_pattern_name("foam");
  ExpectRefused(request, StatusCode::kNotFound, "foam");
}

TEST_F(MappingServiceTest, ListsPatternsInPages) {
  for (const char* name : {"c", "a", "b"}) ASSERT_TRUE(Put(name).ok());
  v1::ListPatternsRequest request;
  request.set_page_size(2);
  auto page = loopback_.Call(*stub_, &MappingStub::ListPatterns, request);
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->patterns_size(), 2);
  EXPECT_EQ(page->patterns(0).name(), "a");
  request.set_page_token(page->next_page_token());
  page = loopback_.Call(*stub_, &MappingStub::ListPatterns, request);
  ASSERT_EQ(page->patterns_size(), 1);
  EXPECT_EQ(page->patterns(0).name(), "c");
  EXPECT_TRUE(page->next_page_token().empty());

  v1::DeletePatternRequest drop;
  drop.set_name("b");
  EXPECT_TRUE(loopback_.Call(*stub_, &MappingStub::DeletePattern, drop).ok());
  v1::GetPatternRequest get;
  get.set_name("b");
  EXPECT_EQ(loopback_.Call(*stub_, &MappingStub::GetPattern, get).status().code(),
            StatusCode::kNotFound);
}

TEST_F(MappingServiceTest, RefusesBadTasks) {
  v1::MapRanksRequest request = Request();
  request.mutable_task()->add_hosts("n0");
  ExpectRefused(request, StatusCode::kInvalidArgument, "job_id or hosts");
  request = Request();
  request.mutable_task()->clear_pattern();
  ExpectRefused(request, StatusCode::kInvalidArgument, "one of pattern");
  request = Request();
  request.mutable_task()->mutable_pattern()->add_from(3);
  ExpectRefused(request, StatusCode::kInvalidArgument, "9 from, 8 to");
  request = Request();
  request.mutable_task()->mutable_pattern()->set_bytes(2, -5);
  ExpectRefused(request, StatusCode::kInvalidArgument, "2 -> 10");
  request = Request();
  request.mutable_task()->mutable_objective()->set_congestion(-1);
  ExpectRefused(request, StatusCode::kInvalidArgument, "weight of -1");
  request = Request();
  request.mutable_budget()->set_nanos(0);
  ExpectRefused(request, StatusCode::kInvalidArgument, "budget");
  request = Request();
  request.set_algorithm("simplex");
  ExpectRefused(request, StatusCode::kInvalidArgument, "simplex");
  request = Request();
  request.mutable_task()->add_distance_matrix(1);
  request.mutable_task()->add_distance_matrix(1);
  ExpectRefused(request, StatusCode::kInvalidArgument, "distance matrix");
  request = Request();
  request.mutable_task()->clear_pattern();
  request.mutable_task()->mutable_pattern_file()->set_origin("melt.mat");
  request.mutable_task()->mutable_pattern_file()->set_text("2\n0 1\n1\n");
  ExpectRefused(request, StatusCode::kInvalidArgument, "melt.mat");
}

TEST_F(MappingServiceTest, ListsTheAlgorithms) {
  const auto list =
      loopback_.Call(*stub_, &MappingStub::ListAlgorithms, v1::ListAlgorithmsRequest());
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(static_cast<size_t>(list->algorithms_size()), MappingAlgorithms().size());
}

TEST_F(MappingServiceTest, EndsASearchWhoseClientHasGone) {
  const v1::MapRanksRequest request = LongRequest();
  grpc::ClientContext context;
  const auto reader = stub_->MapRanks(&context, request);
  WaitForSearch();
  context.TryCancel();
  EXPECT_EQ(Loopback::ToAbsl(reader->Finish()).code(), StatusCode::kCancelled);
  // The one thread for searches is free again.
  std::vector<v1::MapRanksUpdate> updates;
  EXPECT_TRUE(Map(Request(), updates).ok());
}

TEST_F(MappingServiceTest, RefusesPolitelyWhenTooManyWait) {
  const v1::MapRanksRequest request = LongRequest();
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::MapRanksUpdate>>> readers;
  absl::Status refused;
  for (int i = 0; i < 40 && refused.ok(); ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    readers.push_back(stub_->MapRanks(contexts.back().get(), request));
    // The first is taken up, the others wait.
    if (i == 0) WaitForSearch();
    while (loopback_.server().Numbers().rpc.waiting_searches != static_cast<uint32_t>(i)) {
      std::this_thread::yield();
    }
    if (i < 16) continue;
    std::vector<v1::MapRanksUpdate> updates;
    refused = Map(request, updates);
  }
  EXPECT_EQ(refused.code(), StatusCode::kUnavailable);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("of your calls 16 wait for a thread already"));
  for (const auto& context : contexts) context->TryCancel();
  for (const auto& reader : readers) reader->Finish();
}

// Fewer than may wait, but large ones; and reading one takes of the memory of all searches.
class LargeRequestsTest : public MappingServiceTest {
 protected:
  static constexpr int kMaxBytes = 1 << 20;
  static constexpr size_t kMemoryBytes = 64 << 20;

  LargeRequestsTest() : MappingServiceTest(Small()) {}
  static Loopback::Options Small() {
    Loopback::Options options;
    options.server.max_request_bytes = kMaxBytes;
    options.mapper.memory_bytes = kMemoryBytes;
    return options;
  }
  // A pattern of few ranks with a long comment.
  static void SetLongFile(v1::InputFile& file) {
    file.set_origin("long");
    file.set_text("%" + std::string(kMaxBytes * 3 / 4, 'c') + "\n2 1\n2\n1\n");
  }
  bool AwaitWaiting(uint32_t searches) {
    const absl::Time deadline = absl::Now() + absl::Seconds(60);
    while (loopback_.server().Numbers().rpc.waiting_searches != searches) {
      if (absl::Now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }
};

TEST_F(LargeRequestsTest, AreRefusedPolitelyWhenThereIsNoRoomForMore) {
  grpc::ClientContext under_way;
  const auto first = stub_->MapRanks(&under_way, LongRequest());
  WaitForSearch();
  ASSERT_TRUE(AwaitWaiting(0));
  v1::MapRanksRequest request = LongRequest();
  request.mutable_task()->clear_pattern();
  SetLongFile(*request.mutable_task()->mutable_pattern_file());
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::MapRanksUpdate>>> readers;
  for (uint32_t i = 0; i < 5; ++i) {  // there are two of each
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    readers.push_back(stub_->MapRanks(contexts.back().get(), request));
    ASSERT_TRUE(AwaitWaiting(i + 1));
  }
  ExpectRefused(request, StatusCode::kResourceExhausted, "this request, as long as it waits,");
  v1::PutPatternRequest put;
  put.set_name("long");
  SetLongFile(*put.mutable_pattern_file());
  EXPECT_EQ(loopback_.Call(*stub_, &MappingStub::PutPattern, put).status().code(),
            StatusCode::kResourceExhausted);
  EXPECT_TRUE(Put("short").ok());
  // They give their room back.
  for (const auto& context : contexts) context->TryCancel();
  for (const auto& reader : readers) reader->Finish();
  ASSERT_TRUE(AwaitWaiting(0));
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  absl::Status stored;
  do {
    stored = loopback_.Call(*stub_, &MappingStub::PutPattern, put).status();
  } while (absl::IsResourceExhausted(stored) && absl::Now() < deadline);
  EXPECT_TRUE(stored.ok()) << stored;
  under_way.TryCancel();
  first->Finish();
}

TEST_F(LargeRequestsTest, AreReadOnlyIfThereIsRoomForThePattern) {
  v1::PutPatternRequest put;
  put.set_name("wide");
  std::string text;
  for (int row = 0; row < 600; ++row) {
    for (int column = 0; column < 600; ++column) text += column == 0 ? "0" : " 1";
    text += "\n";
  }
  put.mutable_pattern_file()->set_text(text);
  v1::MapRanksRequest map = Request();
  map.mutable_task()->clear_pattern();
  *map.mutable_task()->mutable_pattern_file() = put.pattern_file();
  v1::EvaluateMappingRequest evaluate;
  *evaluate.mutable_task() = map.task();
  v1::GetMappingProblemRequest problem;
  *problem.mutable_task() = map.task();
  for (const absl::Status& status :
       {loopback_.Call(*stub_, &MappingStub::PutPattern, put).status(),
        loopback_.Call(*stub_, &MappingStub::EvaluateMapping, evaluate).status(),
        loopback_.Call(*stub_, &MappingStub::GetMappingProblem, problem).status()}) {
    EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(status.message()), HasSubstr("reading this request needs about"));
  }
  ExpectRefused(map, StatusCode::kResourceExhausted, "reading this request needs about");
}

// What waits for the one thread that searches goes with its client, and not when its turn comes.
TEST_F(MappingServiceTest, ASearchThatWaitsGoesWithItsClient) {
  const v1::MapRanksRequest request = LongRequest();
  grpc::ClientContext under_way;
  const auto first = stub_->MapRanks(&under_way, request);
  WaitForSearch();
  const auto await_waiting = [&](uint32_t searches) {
    while (loopback_.server().Numbers().rpc.waiting_searches != searches) {
      std::this_thread::yield();
    }
  };
  await_waiting(0);  // a worker has taken up the first
  for (int round = 0; round < 2; ++round) {
    std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
    std::vector<std::unique_ptr<grpc::ClientReader<v1::MapRanksUpdate>>> readers;
    for (uint32_t i = 0; i < 16; ++i) {
      contexts.push_back(std::make_unique<grpc::ClientContext>());
      readers.push_back(stub_->MapRanks(contexts.back().get(), request));
    }
    await_waiting(16);
    for (const auto& context : contexts) context->TryCancel();
    for (const auto& reader : readers) {
      EXPECT_EQ(Loopback::ToAbsl(reader->Finish()).code(), StatusCode::kCancelled);
    }
    await_waiting(0);
  }
  under_way.TryCancel();
  EXPECT_EQ(Loopback::ToAbsl(first->Finish()).code(), StatusCode::kCancelled);
}

TEST_F(MappingServiceTest, AShutdownEndsSearches) {
  const v1::MapRanksRequest request = LongRequest();
  grpc::ClientContext context;
  const auto reader = stub_->MapRanks(&context, request);
  WaitForSearch();
  std::thread stop([&] { loopback_.server().Shutdown(absl::Seconds(30)); });
  v1::MapRanksUpdate update;
  while (reader->Read(&update)) {
  }
  const absl::Status status = Loopback::ToAbsl(reader->Finish());
  EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status;
  stop.join();
}

}  // namespace
}  // namespace coppice::mapping_service_test
