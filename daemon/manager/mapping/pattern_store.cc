#include "daemon/manager/mapping/pattern_store.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "daemon/base/status_macros.h"
#include "proto/text/plain_text.h"

namespace coppice {
namespace {

constexpr size_t kPartBytes = 256 << 10;
constexpr uint64_t kMinBytes = 4096;  // that a pattern takes: pages of the database, its record
constexpr size_t kMaxPatternName = 128;
constexpr uint64_t kMega = 1'000'000;

uint64_t Taken(const PatternRecord& record) { return std::max(record.stored_bytes, kMinBytes); }

QuotaAmounts AmountsOf(const PatternRecord& record) {
  QuotaAmounts amounts;
  amounts[Quota::kPatternBytes] = static_cast<int64_t>(Taken(record));
  return amounts;
}

absl::Status NoSuchPattern(absl::string_view name) {
  return absl::NotFoundError(absl::StrCat("no pattern is stored as ", name,
                                          " by you or an administrator; `pattern list` "
                                          "shows all, take another's as OWNER:NAME"));
}

absl::Status CheckOrder(const JobRecord& job, const std::vector<uint32_t>& positions,
                        const std::string& note) {
  const size_t ranks = job.endpoints.size();
  if (positions.empty() || positions.size() > ranks) {
    return absl::InvalidArgumentError(
        absl::StrFormat("permutation: %d ranks for the %d of job %d; give 1 to %d",
                        positions.size(), ranks, job.id.value(), ranks));
  }
  std::vector<bool> is_taken(ranks);
  for (size_t rank = 0; rank < positions.size(); ++rank) {
    if (positions[rank] >= ranks) {
      return absl::InvalidArgumentError(
          absl::StrFormat("permutation: rank %d at position %d; job %d has positions 0 to %d", rank,
                          positions[rank], job.id.value(), ranks - 1));
    }
    if (is_taken[positions[rank]]) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "permutation: two ranks at position %d, of which rank %d is one; give each its own",
          positions[rank], rank));
    }
    is_taken[positions[rank]] = true;
  }
  if (note.size() > OrderStore::kMaxNoteBytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("note: %d bytes; give at most %d", note.size(), OrderStore::kMaxNoteBytes));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckPatternName(absl::string_view name) {
  const bool is_spelt =
      name.size() <= kMaxPatternName && std::all_of(name.begin(), name.end(), [](char c) {
        return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
               absl::string_view("._-+/@").find(c) != absl::string_view::npos;
      });
  // Users take it for a path, and their scripts hand it to commands.
  const std::vector<absl::string_view> parts = absl::StrSplit(name, '/');
  const bool are_names = std::none_of(parts.begin(), parts.end(), [](absl::string_view part) {
    return part.empty() || part == "." || part == ".." || part.front() == '-';
  });
  if (is_spelt && are_names) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("\"", ShownText(CutText(name, kMaxPatternName)),
                   "\" is no name of a pattern; give 1 to ", kMaxPatternName,
                   " letters, digits and . _ - + / @, with something other than . or .. between "
                   "slashes that does not begin with -"));
}

absl::StatusOr<std::unique_ptr<PatternStore>> PatternStore::Create(Store* store, const Clock* clock,
                                                                   uint64_t max_bytes,
                                                                   QuotaLedger* quotas,
                                                                   DeedLog* deeds) {
  ASSIGN_OR_RETURN(std::vector<PatternRecord> records, store->Patterns());
  std::unique_ptr<PatternStore> pattern_store(
      new PatternStore(store, clock, max_bytes, quotas, deeds));
  quotas->SetWhole(Quota::kPatternBytes, static_cast<int64_t>(max_bytes));
  absl::MutexLock writing(&pattern_store->writing_);
  absl::MutexLock lock(&pattern_store->mutex_);
  for (PatternRecord& record : records) {
    pattern_store->last_id_ = std::max(pattern_store->last_id_, record.id);
    quotas->Count(PayerOf(record), AmountsOf(record));
    Key key = KeyOf(record);
    pattern_store->records_.emplace(std::move(key), std::move(record));
  }
  return pattern_store;
}

PatternStore::Records::const_iterator PatternStore::FindShared(absl::string_view name,
                                                               absl::string_view owner) const {
  const std::string key(name);
  for (auto it = records_.lower_bound(Key{key, "", false});
       it != records_.end() && it->second.name == key; ++it) {
    if (it->second.by_administrator && (owner.empty() || it->second.owner == owner)) return it;
  }
  return records_.end();
}

PatternStore::Records::const_iterator PatternStore::Find(absl::string_view name,
                                                         absl::string_view user) const {
  // Names have no colon, owners may ("tls:ops").
  const size_t colon = name.rfind(':');
  if (colon == absl::string_view::npos) {
    const auto own = records_.find(Key{std::string(name), std::string(user), false});
    return own != records_.end() ? own : FindShared(name, "");
  }
  const absl::string_view owner = name.substr(0, colon), plain = name.substr(colon + 1);
  const auto own = records_.find(Key{std::string(plain), std::string(owner), false});
  return own != records_.end() || owner.empty() ? own : FindShared(plain, owner);
}

PatternStore::Records::const_iterator PatternStore::FindReplaced(
    const PatternRecord& record) const {
  return record.by_administrator ? FindShared(record.name, "") : records_.find(KeyOf(record));
}

absl::Status PatternStore::CheckRoom(const PatternRecord& record) const {
  const auto replaced = FindReplaced(record);
  uint64_t others = 0;
  for (auto it = records_.begin(); it != records_.end(); ++it) {
    if (it != replaced) others += Taken(it->second);
  }
  const uint64_t wanted = Taken(record);
  if (wanted <= max_bytes_ && others <= max_bytes_ - wanted) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("pattern ", record.name, " takes ", wanted / kMega + 1, " MB, but of the ",
                   max_bytes_ / kMega, " MB for all patterns others take ", others / kMega,
                   " MB; delete some, or raise the limit"));
}

absl::Status PatternStore::DropUnfinished() {
  if (unfinished_ == 0) return absl::OkStatus();
  const absl::Status dropped = store_->Apply(DropPatternParts{unfinished_});
  // It may have come although its write was told as failed.
  if (!dropped.ok() && !absl::IsAlreadyExists(dropped)) return dropped;
  unfinished_ = 0;
  return absl::OkStatus();
}

absl::Status PatternStore::Write(const PatternRecord& record, absl::string_view data,
                                 const DeedPtr& deed) {
  RETURN_IF_ERROR(DropUnfinished());
  unfinished_ = record.id;
  uint32_t part = 0;
  for (size_t at = 0; at < data.size(); at += kPartBytes) {
    RETURN_IF_ERROR(
        store_->Apply(PutPatternPart{record.id, part++, std::string(data.substr(at, kPartBytes))}));
  }
  RETURN_IF_ERROR(store_->Apply(PutPattern{record, part, deed}));
  unfinished_ = 0;
  return absl::OkStatus();
}

// Counts it in place of what it replaces, as Enter expects.
absl::Status PatternStore::TakeRoom(const PatternRecord& record) {
  absl::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(CheckRoom(record));
  const auto replaced = FindReplaced(record);
  const bool replaces = replaced != records_.end();
  if (replaces) quotas_->Give(PayerOf(replaced->second), AmountsOf(replaced->second));
  absl::Status status = quotas_->Take(PayerOf(record), AmountsOf(record));
  if (!status.ok() && replaces) {
    quotas_->Count(PayerOf(replaced->second), AmountsOf(replaced->second));
  }
  return status;
}

void PatternStore::Enter(const PatternRecord& record) {
  absl::MutexLock lock(&mutex_);
  if (const auto old = FindReplaced(record); old != records_.end()) records_.erase(old);
  records_.emplace(KeyOf(record), record);
}

absl::StatusOr<PatternRecord> PatternStore::Put(absl::string_view name, const Actor& actor,
                                                const Pattern& pattern) {
  RETURN_IF_ERROR(CheckPatternName(name));
  const std::string data = EncodePattern(pattern);
  absl::MutexLock writing(&writing_);
  PatternRecord record;
  record.id = last_id_ + 1;
  record.name = std::string(name);
  record.owner = actor.user;
  record.by_administrator = actor.is_administrator;
  ASSIGN_OR_RETURN(record.account,
                   quotas_->accounts()->Choose(actor.user, "", actor.is_administrator));
  record.rank_count = pattern.rank_count();
  record.pair_count = pattern.pair_count();
  record.total_bytes = pattern.total_bytes();
  record.total_messages = pattern.total_messages();
  record.created = clock_->Now();
  record.stored_bytes = data.size();
  RETURN_IF_ERROR(TakeRoom(record));
  ++last_id_;  // also after a failure: its parts may be there
  const DeedPtr deed = DeedOf(actor, absl::StrCat("pattern:", name), record.created);
  if (absl::Status written = Write(record, data, deed); !written.ok()) {
    static_cast<void>(DropUnfinished());  // the next write tries again
    {
      absl::MutexLock lock(&mutex_);  // as it was
      quotas_->Give(PayerOf(record), AmountsOf(record));
      if (const auto old = FindReplaced(record); old != records_.end()) {
        quotas_->Count(PayerOf(old->second), AmountsOf(old->second));
      }
    }
    Reread();
    return written;
  }
  Enter(record);
  Tell(deed);
  return record;
}

void PatternStore::Tell(const DeedPtr& deed) const {
  if (deed != nullptr && deeds_ != nullptr) deeds_->Told(*deed);
}

void PatternStore::Reread() {
  const absl::StatusOr<std::vector<PatternRecord>> there = store_->Patterns();
  if (!there.ok()) return;  // the next write will tell
  absl::MutexLock lock(&mutex_);
  for (const auto& [key, old] : records_) quotas_->Give(PayerOf(old), AmountsOf(old));
  records_.clear();
  for (const PatternRecord& record : *there) {
    quotas_->Count(PayerOf(record), AmountsOf(record));
    records_.emplace(KeyOf(record), record);
  }
}

absl::StatusOr<PatternRecord> PatternStore::Get(absl::string_view name,
                                                absl::string_view user) const {
  absl::MutexLock lock(&mutex_);
  const auto found = Find(name, user);
  if (found == records_.end()) return NoSuchPattern(name);
  return found->second;
}

std::string PatternStore::TokenOf(const PatternRecord& record) {
  return absl::StrCat(record.name, ":", record.by_administrator ? 1 : 0, record.owner);
}

std::vector<PatternRecord> PatternStore::List(absl::string_view after, size_t limit) const {
  const std::pair<absl::string_view, absl::string_view> token =
      absl::StrSplit(after, absl::MaxSplits(':', 1));
  // A name alone: after all of that name.
  const bool is_whole = !token.second.empty();
  const Key last{is_whole || after.empty() ? std::string(token.first)
                                           : absl::StrCat(token.first, absl::string_view("\0", 1)),
                 std::string(is_whole ? token.second.substr(1) : ""),
                 is_whole && token.second.front() == '1'};
  std::vector<PatternRecord> page;
  absl::MutexLock lock(&mutex_);
  for (auto next = records_.upper_bound(last); next != records_.end() && page.size() < limit;
       ++next) {
    page.push_back(next->second);
  }
  return page;
}

absl::StatusOr<std::shared_ptr<const Pattern>> PatternStore::Load(absl::string_view name,
                                                                  absl::string_view user,
                                                                  MemoryBudget& memory) {
  ASSIGN_OR_RETURN(PatternRecord record, Get(name, user));
  const std::string reading = absl::StrCat("reading pattern ", record.name);
  ASSIGN_OR_RETURN(const MemoryBudget::Share stored, memory.Take(record.stored_bytes, reading));
  absl::StatusOr<std::string> data = store_->PatternData(record.id);
  if (absl::IsNotFound(data.status())) {
    // Another took its place meanwhile: once more, while nobody writes.
    absl::MutexLock writing(&writing_);
    ASSIGN_OR_RETURN(record, Get(name, user));
    data = store_->PatternData(record.id);
  }
  RETURN_IF_ERROR(data.status());
  ASSIGN_OR_RETURN(MemoryBudget::Share room, memory.Take(DecodingBytes(*data), reading));
  ASSIGN_OR_RETURN(std::shared_ptr<const Pattern> pattern, DecodePattern(*data));
  room.ShrinkTo(pattern->MemoryBytes());
  return Counted(std::move(pattern), std::move(room));
}

absl::Status PatternStore::Delete(absl::string_view name, const Actor& actor,
                                  const MayChange& may_change) {
  absl::MutexLock writing(&writing_);
  ASSIGN_OR_RETURN(const PatternRecord record, Get(name, actor.user));
  RETURN_IF_ERROR(may_change(record));
  // A deletion that was told as failed may have been done.
  const DeedPtr deed =
      DeedOf(actor, absl::StrCat("pattern:", record.owner, ":", record.name), clock_->Now());
  const absl::Status dropped =
      store_->Apply(DropPattern{record.name, record.owner, record.by_administrator, deed});
  if (!dropped.ok() && !absl::IsNotFound(dropped)) return dropped;
  Tell(deed);
  absl::MutexLock lock(&mutex_);
  records_.erase(KeyOf(record));
  quotas_->Give(PayerOf(record), AmountsOf(record));
  return absl::OkStatus();
}

absl::StatusOr<JobView> OrderStore::ActiveJob(JobId id) {
  ASSIGN_OR_RETURN(JobView job, manager_->GetJob(id));
  RETURN_IF_ERROR(CheckActive(*job.record));
  return job;
}

absl::StatusOr<OrderRecord> OrderStore::Put(JobId id, std::vector<uint32_t> positions,
                                            std::string note, const MayChange& may_change) {
  ASSIGN_OR_RETURN(const JobView job, ActiveJob(id));
  RETURN_IF_ERROR(may_change(*job.record));
  RETURN_IF_ERROR(CheckOrder(*job.record, positions, note));
  OrderRecord order{id, std::move(positions), std::move(note), clock_->Now()};
  RETURN_IF_ERROR(store_->Apply(PutOrder{order, kMaxPositions}));
  return order;
}

absl::StatusOr<OrderRecord> OrderStore::Get(JobId id) {
  ASSIGN_OR_RETURN(const JobView job, ActiveJob(id));
  absl::StatusOr<OrderRecord> order = store_->GetOrder(id);
  if (absl::IsNotFound(order.status())) {
    return absl::NotFoundError(absl::StrCat(
        order.status().message(),
        "; find one with coppice-search --job, or map the job, which needs none to be kept"));
  }
  absl::Status damage = order.status();
  if (order.ok()) damage = CheckOrder(*job.record, order->positions, order->note);
  if (damage.ok()) return order;
  if (order.ok() || absl::IsDataLoss(damage)) {
    return absl::DataLossError(absl::StrCat("the order that was kept for job ", id.value(),
                                            " is damaged (", damage.message(),
                                            "); find another with coppice-search --job"));
  }
  return damage;
}

absl::StatusOr<std::string> OrderStore::LaunchTextOf(const OrderRecord& order,
                                                     LaunchFormat format) {
  ASSIGN_OR_RETURN(const JobView job, ActiveJob(order.job));
  const std::shared_ptr<const FabricView> view = manager_->fabric();
  if (view == nullptr) return NoFabricError();
  const Fabric& fabric = *view->snapshot->fabric;
  std::vector<absl::string_view> hosts;
  for (const Guid guid : job.record->endpoints) {
    const std::optional<EndpointIndex> endpoint = fabric.FindEndpoint(guid);
    if (!endpoint.has_value()) {
      return absl::FailedPreconditionError(
          absl::StrCat("job ", order.job.value(), ": its port ", ToString(guid),
                       " has left the fabric; map over the hosts that are left"));
    }
    hosts.push_back(fabric.host_name(fabric.host(*endpoint)));
  }
  return LaunchText(format, hosts, order.positions);
}

}  // namespace coppice
