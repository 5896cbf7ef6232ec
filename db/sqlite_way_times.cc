// How soon collectives went in earlier runs.
#include <algorithm>

#include "daemon/base/status_macros.h"
#include "db/sqlite_tables.h"

namespace coppice {
namespace {

constexpr const char* kWays[] = {"native", "tree", "chain", "binomial", "exchange", "forest"};

}  // namespace

absl::Status Apply(SqliteConnection& db, const PutWayTimes& put) {
  Statement& drop = db.Sql(R"sql(
      DELETE FROM way_time
      WHERE owner = ? AND application = ? AND layout = ? AND tree_type = ?)sql");
  for (const WayTimesOf& of : put.drop) {
    RETURN_IF_ERROR(drop.Run(of.owner, of.application, of.layout, of.tree_type));
  }
  const WayTimesOf& of = put.record.of;
  Statement& insert =
      db.Sql("INSERT OR REPLACE INTO way_time VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  for (const WayTime& time : put.record.times) {
    RETURN_IF_ERROR(insert.Run(of.owner, of.application, of.layout, of.tree_type,
                               std::string(ToString(time.operation)), time.length_bits,
                               NameOf(kWays, time.way), time.us, time.spread, time.runs,
                               time.last_job, put.record.measured));
  }
  return absl::OkStatus();
}

// Rows that are none are found when the database is opened (CheckIntegrity).
absl::Status LoadWayTimes(SqliteConnection& db, StoredState& state) {
  return db
      .Sql(R"sql(
      SELECT owner, application, layout, tree_type, operation, length_bits, way, us, spread, runs,
             last_job, measured_ns
      FROM way_time ORDER BY owner, application, layout, tree_type)sql")
      .ForEach([&](const Statement& row) {
        WayTimesOf of;
        WayTime time;
        std::string operation, way;
        absl::Time measured;
        row.Read(of.owner, of.application, of.layout, of.tree_type, operation, time.length_bits,
                 way, time.us, time.spread, time.runs, time.last_job, measured);
        time.operation = ParseOperation(operation).value_or(Operation::kAllreduce);
        time.way = ValueOf<CollectiveWay>(kWays, way);
        std::vector<WayTimesRecord>& records = state.way_times;
        if (records.empty() || records.back().of != of) records.push_back({of, {}, measured});
        records.back().times.push_back(time);
        records.back().measured = std::max(records.back().measured, measured);
      });
}

}  // namespace coppice
