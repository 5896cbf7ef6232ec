#include "agents/mpi/tree/pipeline.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace coppice::mpi {
namespace {

// Less came than was expected: members of a broadcast name different lengths. As natively, Open MPI
// takes it where it is all in one message, and MPICH does not.
#ifdef OPEN_MPI
constexpr bool kMayFallShort = true;
constexpr int kFellShort = MPI_ERR_TRUNCATE;
#else
constexpr bool kMayFallShort = false;
constexpr int kFellShort = MPI_ERR_OTHER;
#endif

// Of b bytes in segments of s, each of which costs as much as c bytes more, through h stages:
// (h - 1 + b / s) * (s + c), which is least for s * s = b * c / (h - 1). c is some microseconds
// times the bandwidth, about as much on slow networks as on fast ones.
Segments Cut(const TreeTags& tags, const TreeShape& shape, const TypeLayout& layout, int count) {
  constexpr double kSegmentCosts = 8 << 10U, kLeast = 4 << 10U;
  const double bytes = static_cast<double>(layout.size) * count;
  const double best = std::sqrt(bytes * kSegmentCosts / std::max(shape.height - 1, 1));
  const double most = tags.segment_bytes;
  return {count, layout.size, static_cast<int>(std::clamp(best, std::min(kLeast, most), most))};
}

}  // namespace

size_t Pipeline::Pieces(const TreeShape& shape) {
  return shape.children.empty() ? 0 : kSlots + shape.chain_from_end.size();
}

size_t Pipeline::PieceBytes(const TreeTags& tags, const TreeShape& shape, const TypeLayout& layout,
                            int count) {
  return RoomFor(layout, Cut(tags, shape, layout, count).longest());
}

Pipeline::Pipeline(const TreeTags& tags, const TreeShape& shape, const TreeBuffers& pieces,
                   Flow flow)
    : tags_(tags),
      shape_(shape),
      pieces_(pieces),
      flow_(std::move(flow)),
      segments_(Cut(tags, shape, flow_.layout, flow_.count)),
      word_(flow_.word) {
  Allocate();
}

void Pipeline::Allocate() {
  const size_t segments = segments_.count();
  if (flow_.down_from != Flow::kNobody) down_receives_.assign(segments, MPI_REQUEST_NULL);
  down_sends_.reserve(flow_.down_to.size() * (segments + 2));  // and the word, and an error's
  if (!flow_.goes_up) return;
  if (IsLeaf()) {
    leaf_sends_.assign(segments, MPI_REQUEST_NULL);
    return;
  }
  slot_sends_.assign(kSlots, MPI_REQUEST_NULL);
  up_receives_.assign(shape_.chain_from_end.size(), MPI_REQUEST_NULL);
  arrivals_.resize(shape_.chain_from_end.size());
}

void Pipeline::Begin() {
  has_begun_ = true;
  if (flow_.goes_up && !IsLeaf()) {
    size_t piece = 0;
    const auto next = [&] { return OriginIn(pieces_[piece++], flow_.layout, segments_.longest()); };
    for (void*& slot : slots_) slot = next();
    for (void*& arrival : arrivals_) arrival = next();
    for (size_t place = 1; place < arrivals_.size(); ++place) PostNext(place, 0);
  }
  if (!flow_.goes_up && flow_.down_from == Flow::kNobody) {
    for (int segment = 0; segment < segments_.count(); ++segment) {
      SendDown(Result(segment), segment);
    }
  }
}

bool Pipeline::Advance() {
  if (is_over_) return true;
  if (!has_begun_) Begin();
  awaited_[0] = MoveUp();
  awaited_[1] = MoveDown();
  const bool is_moving = awaited_[0] != nullptr || awaited_[1] != nullptr;
  if (error_ == MPI_SUCCESS && (is_moving || !AreSent())) return false;
  if (error_ != MPI_SUCCESS) {
    TellOfError();
    Abandon();
  }
  is_over_ = true;
  return true;
}

void Pipeline::Run(std::deque<Pipeline>* pipelines) {
  for (;;) {
    bool are_over = true;
    for (Pipeline& one : *pipelines) are_over &= one.Advance();
    if (are_over) return;
    Wait(pipelines);
  }
}

void Pipeline::Wait(std::deque<Pipeline>* pipelines) {
  constexpr size_t kMost = 2 * kMaxForestTrees;
  std::array<Pipeline*, kMost> whose;
  std::array<MPI_Request*, kMost> waiting;
  std::array<MPI_Request, kMost> requests;
  int count = 0;
  for (Pipeline& one : *pipelines) {
    if (one.is_over_) continue;
    for (MPI_Request* const request : one.awaited_) {
      if (request == nullptr) continue;
      whose[count] = &one;
      requests[count] = *request;
      waiting[count++] = request;
    }
  }
  if (count == 0) {
    for (Pipeline& one : *pipelines) one.WaitForSends();
    return;
  }
  int ready = MPI_UNDEFINED;
  MPI_Status status = {};
  const int error = PMPI_Waitany(count, requests.data(), &ready, &status);
  // Also after an error, which takes requests away: which of them, MPI libraries see differently.
  for (int i = 0; i < count; ++i) *waiting[i] = requests[i];
  const bool is_one = ready != MPI_UNDEFINED;
  for (int i = 0; error != MPI_SUCCESS && i < count; ++i) {
    if (is_one ? i == ready : requests[i] == MPI_REQUEST_NULL) whose[i]->Check(error);
  }
  if (error != MPI_SUCCESS && !is_one) whose[0]->Check(error);
  if (error != MPI_SUCCESS || !is_one) return;
  // The status of a send says nothing.
  if (whose[ready]->ComesDown(waiting[ready])) whose[ready]->Look(status);
}

void Pipeline::WaitForSends() {
  for (std::vector<MPI_Request>* const sends : Sends()) {
    if (is_over_ || error_ != MPI_SUCCESS) return;
    Check(PMPI_Waitall(static_cast<int>(sends->size()), sends->data(), MPI_STATUSES_IGNORE));
  }
}

bool Pipeline::AreSent() {
  const auto all = Sends();
  for (; sends_ < all.size(); ++sends_, sent_ = 0) {
    for (; sent_ < all[sends_]->size(); ++sent_) {
      if (!IsComplete(&(*all[sends_])[sent_])) return false;
    }
  }
  return true;
}

// ---- up ----------------------------------------------------------------------------------------

MPI_Request* Pipeline::MoveUp() {
  if (!flow_.goes_up) up_ = segments_.count();
  while (error_ == MPI_SUCCESS && !IsUpDone()) {
    if (IsLeaf()) {
      Send(Input(up_), up_, shape_.parent, kUpTag, &leaf_sends_[up_]);
      ++up_;
      continue;
    }
    MPI_Request* const awaited = Combine();
    if (awaited != nullptr) return awaited;
    Finish(up_);
    place_ = 0;
    ++up_;
  }
  return nullptr;
}

MPI_Request* Pipeline::Combine() {
  for (; place_ < shape_.chain_from_end.size(); ++place_) {
    MPI_Request* const awaited = place_ == 0 ? TakeFirst() : TakeNext(place_);
    if (awaited != nullptr || error_ != MPI_SUCCESS) return awaited;
  }
  return nullptr;
}

// The end of the chain becomes the accumulator as it is.
MPI_Request* Pipeline::TakeFirst() {
  MPI_Request* const slot = &slot_sends_[up_ % kSlots];
  if (shape_.chain_from_end[0] == TreeShape::kOwn) {
    if (!IsComplete(slot)) return slot;
    Copy(Input(up_), Accumulator(up_), up_);
    return nullptr;
  }
  if (first_posted_ == up_) {
    if (!IsComplete(slot)) return slot;
    PostFirst(up_);
  }
  if (!IsComplete(&up_receives_[0])) return &up_receives_[0];
  const int next = up_ + 1;
  if (next < segments_.count() && IsComplete(&slot_sends_[next % kSlots])) PostFirst(next);
  return nullptr;
}

void Pipeline::PostFirst(int segment) {
  Receive(Accumulator(segment), segment, shape_.chain_from_end[0], kUpTag, &up_receives_[0]);
  first_posted_ = segment + 1;
}

MPI_Request* Pipeline::TakeNext(size_t place) {
  const bool is_own = shape_.chain_from_end[place] == TreeShape::kOwn;
  if (!is_own && !IsComplete(&up_receives_[place])) return &up_receives_[place];
  if (flow_.op != MPI_OP_NULL) {
    const void* const earlier = is_own ? Input(up_) : arrivals_[place];
    Check(PMPI_Reduce_local(const_cast<void*>(earlier), Accumulator(up_), segments_.length(up_),
                            flow_.layout.type, flow_.op));
  }
  if (up_ + 1 < segments_.count()) PostNext(place, up_ + 1);
  return nullptr;
}

void Pipeline::PostNext(size_t place, int segment) {
  const int child = shape_.chain_from_end[place];
  if (child == TreeShape::kOwn) return;
  Receive(arrivals_[place], segment, child, kUpTag, &up_receives_[place]);
}

// The chain of `segment` is whole.
void Pipeline::Finish(int segment) {
  if (error_ != MPI_SUCCESS) return;
  MPI_Request* const slot = &slot_sends_[segment % kSlots];
  if (shape_.parent >= 0) {
    Send(Accumulator(segment), segment, shape_.parent, kUpTag, slot);
  } else if (flow_.has_result) {
    if (!IsResultAccumulator()) Copy(Accumulator(segment), Result(segment), segment);
    SendDown(Result(segment), segment);
  } else {
    // Reduced for another rank, which is the only target: the slot is sent once.
    Send(Accumulator(segment), segment, flow_.down_to.front(), kDownTag, slot);
  }
}

// ---- down --------------------------------------------------------------------------------------

MPI_Request* Pipeline::MoveDown() {
  const bool is_input_sent_from_result = flow_.goes_up && IsLeaf() && flow_.input == flow_.result;
  while (error_ == MPI_SUCCESS && !IsDownDone()) {
    // A segment may be received as soon as what lies in its place has gone up.
    for (; down_posted_ < up_; ++down_posted_) {
      if (is_input_sent_from_result && !IsComplete(&leaf_sends_[down_posted_])) break;
      Receive(Result(down_posted_), down_posted_, flow_.down_from, kDownTag,
              &down_receives_[down_posted_]);
    }
    if (down_ == down_posted_) {
      return is_input_sent_from_result && down_ < up_ ? &leaf_sends_[down_] : nullptr;
    }
    MPI_Request* awaited = nullptr;
    if (!HasCome(&awaited)) return awaited;
    SendDown(Result(down_), down_);
    ++down_;
  }
  return nullptr;
}

bool Pipeline::ComesDown(const MPI_Request* request) const {
  if (flow_.down_from == Flow::kNobody || IsDownDone()) return false;
  return request == &rest_receive_ || request == &down_receives_[down_];
}

// At what came of segment down_.
void Pipeline::Look(const MPI_Status& status) {
  int count = 0;
  if (!Check(PMPI_Get_count(&status, flow_.layout.type, &count))) return;
  if (count == segments_.length(down_)) return;
  if (count == 0 && down_ == 0 && !word_) {
    word_ = true;
    Receive(Result(0), 0, flow_.down_from, kDownRestTag, &rest_receive_);
    return;
  }
  if (!kMayFallShort || count == 0 || segments_.count() > 1) Check(kFellShort);
}

bool Pipeline::HasCome(MPI_Request** awaited) {
  for (MPI_Request* const receive : {&down_receives_[down_], &rest_receive_}) {
    *awaited = receive;
    if (*receive == MPI_REQUEST_NULL) continue;
    MPI_Status status = {};
    if (!IsComplete(receive, &status)) return false;
    if (error_ == MPI_SUCCESS) Look(status);
    if (error_ != MPI_SUCCESS) return false;
  }
  return true;
}

// Those who wait for what will not be sent get an empty message instead, which is not the word for
// long: they fail, too, and tell on.
void Pipeline::TellOfError() {
  const bool begins_here = flow_.down_from == Flow::kNobody;
  const int sent = !begins_here ? down_ : flow_.goes_up ? up_ : segments_.count();
  if (sent == segments_.count()) return;
  for (const int to : flow_.down_to) {
    for (const TreeTag tag : {kDownTag, kDownRestTag}) {
      if (tag == kDownRestTag && sent > 0) break;
      down_sends_.push_back(MPI_REQUEST_NULL);
      PMPI_Isend(nullptr, 0, MPI_BYTE, tags_.members.World(to), tags_.first_tag + tag, tags_.comm,
                 &down_sends_.back());
    }
  }
}

void Pipeline::SendDown(const void* data, int segment) {
  const bool has_word = word_ && segment == 0;
  for (const int to : flow_.down_to) {
    down_sends_.push_back(MPI_REQUEST_NULL);
    if (has_word) {
      SendElements(data, 0, to, kDownTag, &down_sends_.back());
      down_sends_.push_back(MPI_REQUEST_NULL);
    }
    Send(data, segment, to, has_word ? kDownRestTag : kDownTag, &down_sends_.back());
  }
}

// ---- memory and messages -----------------------------------------------------------------------

// The result is where the root combines, unless its own data lies there.
bool Pipeline::IsResultAccumulator() const {
  return shape_.parent < 0 && flow_.has_result && flow_.result != flow_.input;
}

void* Pipeline::Accumulator(int segment) {
  return IsResultAccumulator() ? Result(segment) : slots_[segment % kSlots];
}

const void* Pipeline::Input(int segment) const {
  return ElementAt(flow_.input, flow_.layout, segments_.first(segment));
}

void* Pipeline::Result(int segment) const {
  return ElementAt(flow_.result, flow_.layout, segments_.first(segment));
}

void Pipeline::Copy(const void* from, void* to, int segment) {
  const int length = segments_.length(segment);
  if (error_ != MPI_SUCCESS || length == 0) return;
  Check(CopyElements(tags_, flow_.layout, from, to, length));
}

void Pipeline::Send(const void* data, int segment, int to, TreeTag tag, MPI_Request* request) {
  SendElements(data, segments_.length(segment), to, tag, request);
}

void Pipeline::SendElements(const void* data, int count, int to, TreeTag tag,
                            MPI_Request* request) {
  if (error_ != MPI_SUCCESS) return;
  Check(PMPI_Isend(data, count, flow_.layout.type, tags_.members.World(to), tags_.first_tag + tag,
                   tags_.comm, request));
}

void Pipeline::Receive(void* data, int segment, int from, TreeTag tag, MPI_Request* request) {
  if (error_ != MPI_SUCCESS) return;
  Check(PMPI_Irecv(data, segments_.length(segment), flow_.layout.type, tags_.members.World(from),
                   tags_.first_tag + tag, tags_.comm, request));
}

bool Pipeline::IsComplete(MPI_Request* request, MPI_Status* status) {
  bool is_complete = false;
  return !Check(TestMessage(request, &is_complete, status)) || is_complete;
}

bool Pipeline::Check(int error) {
  if (error != MPI_SUCCESS && error_ == MPI_SUCCESS) error_ = error;
  return error == MPI_SUCCESS;
}

// After an error nothing may arrive in memory that is not ours any more, nor be sent from there.
void Pipeline::Abandon() {
  std::vector<MPI_Request> rest = {rest_receive_};
  for (std::vector<MPI_Request>* receives : {&up_receives_, &down_receives_, &rest}) {
    for (MPI_Request& request : *receives) {
      if (request == MPI_REQUEST_NULL) continue;
      PMPI_Cancel(&request);
      PMPI_Wait(&request, MPI_STATUS_IGNORE);
    }
  }
  bool is_sending = false;
  for (std::vector<MPI_Request>* const sends : Sends()) {
    for (MPI_Request& request : *sends) {
      if (request == MPI_REQUEST_NULL) continue;
      int is_complete = 0;
      if (PMPI_Test(&request, &is_complete, MPI_STATUS_IGNORE) != MPI_SUCCESS || !is_complete) {
        is_sending = true;
        if (request != MPI_REQUEST_NULL) PMPI_Request_free(&request);
      }
    }
  }
  is_memory_lost_ = is_sending;
}

}  // namespace coppice::mpi
