#include "db/sqlite_patterns.h"

#include <utility>

#include "daemon/base/status_macros.h"
#include "db/refusals.h"

namespace coppice {

absl::Status PatternWriter::Prepare() {
  RETURN_IF_ERROR(connection_.Execute(
      "DELETE FROM pattern_part WHERE pattern_id NOT IN (SELECT id FROM pattern)"));
  ASSIGN_OR_RETURN(insert_part_,
                   connection_.Prepare("INSERT OR IGNORE INTO pattern_part VALUES (?, ?, ?)"));
  ASSIGN_OR_RETURN(count_parts_, connection_.Prepare(R"sql(
      SELECT count(*), ifnull(max(part) + 1, 0) FROM pattern_part WHERE pattern_id = ?)sql"));
  ASSIGN_OR_RETURN(find_, connection_.Prepare("SELECT 1 FROM pattern WHERE id = ?"));
  ASSIGN_OR_RETURN(drop_parts_,
                   connection_.Prepare("DELETE FROM pattern_part WHERE pattern_id = ?"));
  ASSIGN_OR_RETURN(drop_name_, connection_.Prepare(R"sql(
      DELETE FROM pattern WHERE name = ?1 AND owner = ?2 AND by_administrator = 0)sql"));
  ASSIGN_OR_RETURN(drop_shared_, connection_.Prepare(R"sql(
      DELETE FROM pattern WHERE name = ? AND by_administrator = 1)sql"));
  ASSIGN_OR_RETURN(
      insert_, connection_.Prepare("INSERT INTO pattern VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  return absl::OkStatus();
}

absl::StatusOr<bool> PatternWriter::IsThere(int64_t id) {
  find_.Bind(id);
  ASSIGN_OR_RETURN(const bool row, find_.Step());
  find_.Reset();
  return row;
}

absl::Status PatternWriter::Put(const PutPatternPart& put) {
  ASSIGN_OR_RETURN(const bool taken, IsThere(put.pattern));
  if (taken) return PatternIdTaken(put.pattern);
  RETURN_IF_ERROR(insert_part_.Bind(put.pattern).Bind(int64_t{put.part}).BindBlob(put.data).Run());
  return connection_.changes() == 0 ? PatternPartTaken(put.pattern, put.part) : absl::OkStatus();
}

absl::Status PatternWriter::DropName(const std::string& name, const std::string& owner,
                                     bool by_administrator) {
  if (by_administrator) return drop_shared_.Bind(name).Run();
  return drop_name_.Bind(name).Bind(owner).Run();
}

absl::Status PatternWriter::Put(const PutPattern& put) {
  const PatternRecord& p = put.pattern;
  ASSIGN_OR_RETURN(const bool taken, IsThere(p.id));
  if (taken) return PatternIdTaken(p.id);
  count_parts_.Bind(p.id);
  RETURN_IF_ERROR(count_parts_.Step().status());
  const int64_t count = count_parts_.Integer(0), end = count_parts_.Integer(1);
  count_parts_.Reset();
  if (count != int64_t{put.parts} || end != count) {
    return PatternPartsMissing(p, put.parts, static_cast<uint64_t>(count));
  }
  RETURN_IF_ERROR(DropName(p.name, p.owner, p.by_administrator));
  insert_.Bind(p.id).Bind(p.name).Bind(p.owner).Bind(int64_t{p.rank_count});
  insert_.Bind(static_cast<int64_t>(p.pair_count)).Bind(p.total_bytes).Bind(p.total_messages);
  insert_.Bind(p.created).Bind(static_cast<int64_t>(p.stored_bytes));
  return insert_.Bind(int64_t{p.by_administrator}).Run();
}

absl::Status PatternWriter::Drop(const DropPatternParts& drop) {
  ASSIGN_OR_RETURN(const bool taken, IsThere(drop.pattern));
  if (taken) return PatternIdTaken(drop.pattern);
  return drop_parts_.Bind(drop.pattern).Run();
}

absl::Status PatternWriter::Drop(const DropPattern& drop) {
  RETURN_IF_ERROR(DropName(drop.name, drop.owner, drop.by_administrator));
  return connection_.changes() == 0 ? NoSuchPattern(drop.name) : absl::OkStatus();
}

absl::Status PatternReader::Prepare() {
  ASSIGN_OR_RETURN(list_, connection_.Prepare(R"sql(
      SELECT id, name, owner, rank_count, pair_count, total_bytes, total_messages, created_ns,
             stored_bytes, by_administrator
      FROM pattern ORDER BY name, owner, by_administrator)sql"));
  ASSIGN_OR_RETURN(find_, connection_.Prepare("SELECT stored_bytes FROM pattern WHERE id = ?"));
  ASSIGN_OR_RETURN(parts_, connection_.Prepare(
                               "SELECT data FROM pattern_part WHERE pattern_id = ? ORDER BY part"));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<PatternRecord>> PatternReader::List() {
  std::vector<PatternRecord> patterns;
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, list_.Step());
    if (!row) return patterns;
    PatternRecord pattern;
    pattern.id = list_.Integer(0);
    pattern.name = std::string(list_.Text(1));
    pattern.owner = std::string(list_.Text(2));
    pattern.rank_count = list_.Word(3);
    pattern.pair_count = static_cast<uint64_t>(list_.Integer(4));
    pattern.total_bytes = list_.Real(5);
    pattern.total_messages = list_.Real(6);
    pattern.created = list_.TimeAt(7);
    pattern.stored_bytes = static_cast<uint64_t>(list_.Integer(8));
    pattern.by_administrator = list_.Integer(9) != 0;
    patterns.push_back(std::move(pattern));
  }
}

absl::StatusOr<std::string> PatternReader::Data(int64_t id) {
  find_.Bind(id);
  ASSIGN_OR_RETURN(const bool there, find_.Step());
  find_.Reset();
  if (!there) return NoSuchPatternId(id);
  std::string data;
  parts_.Bind(id);
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, parts_.Step());
    if (!row) return data;
    const std::string_view part = parts_.Blob(0);
    data.append(part.data(), part.size());
  }
}

}  // namespace coppice
