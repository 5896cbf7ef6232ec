#include "client/cli/placement_output.h"

#include <google/protobuf/descriptor.h>

#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "client/cli/output.h"
#include "client/cli/words.h"

namespace coppice {
namespace {

std::string StateWord(v1::PlacementState state) {
  switch (state) {
    case v1::PLACEMENT_STATE_HELD:
      return "held";
    case v1::PLACEMENT_STATE_STARTED:
      return "started";
    case v1::PLACEMENT_STATE_RELEASED:
      return "released";
    case v1::PLACEMENT_STATE_EXPIRED:
      return "expired";
    default:
      return "unknown";
  }
}

std::string TermText(const v1::Placement& placement) {
  if (placement.state() != v1::PLACEMENT_STATE_HELD) return "-";
  return absl::StrCat(placement.term_left().seconds(), " of ", placement.term().seconds(), " s");
}

double NumberOf(const v1::PlacementMeasures& measures,
                const google::protobuf::FieldDescriptor& field) {
  using Field = google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection& fields = *measures.GetReflection();
  if (field.cpp_type() == Field::CPPTYPE_UINT32) return fields.GetUInt32(measures, &field);
  if (field.cpp_type() == Field::CPPTYPE_INT32) return fields.GetInt32(measures, &field);
  return fields.GetDouble(measures, &field);
}

// What came after the measures that have words of their own: a line each, unless it is 0.
void PrintOtherMeasures(const v1::PlacementMeasures& measures) {
  const google::protobuf::Descriptor& all = *measures.GetDescriptor();
  for (int i = 0; i < all.field_count(); ++i) {
    if (all.field(i)->number() <= v1::PlacementMeasures::kCostFieldNumber) continue;
    const double value = NumberOf(measures, *all.field(i));
    if (value == 0) continue;
    const std::string name = absl::StrReplaceAll(all.field(i)->name(), {{"_", " "}});
    std::cout << absl::StrFormat("%-10s %s\n", name, Fixed(value));
  }
}

}  // namespace

void PrintPlacements(const google::protobuf::RepeatedPtrField<v1::Placement>& placements,
                     PlacementColumns columns, bool is_wide) {
  const bool is_listing = columns == PlacementColumns::kListing;
  Table table({"PLACEMENT", "NAME", "OWNER", "STATE", "JOB", "NODES", "TERM LEFT", "SINCE", "LIST"},
              is_listing ? std::vector<size_t>{7, 8} : std::vector<size_t>{2, 3, 6, 7}, is_wide);
  for (const v1::Placement& p : placements) {
    table.Add({p.id(), p.display_name(), p.owner(), StateWord(p.state()),
               p.job_id().empty() ? "-" : p.job_id(), absl::StrCat(p.nodes_size()), TermText(p),
               TimeText(p.create_time()), p.node_list()});
  }
  table.Print(std::cout);
}

void PrintMeasures(const v1::Placement& placement) {
  const v1::PlacementMeasures& m = placement.measures();
  PrintField(std::cout, "nodes", placement.node_list());
  std::cout << "switches   " << Counted(m.leaf_switches(), "leaf switch", "es") << " of at least "
            << m.least_leaf_switches() << ", " << Counted(m.pods(), "pod") << "\n"
            << "distance   " << Fixed(m.mean_distance()) << " links between two of them\n"
            << "load       " << Fixed(100 * m.mean_load(), 1) << " %, most "
            << Fixed(100 * m.most_load(), 1) << " %; " << Counted(m.shared_links(), "link")
            << " shared with others\n";
  PrintOtherMeasures(m);
  std::cout << "cost       " << Fixed(m.cost()) << (placement.is_optimal() ? ", optimal" : "")
            << "\n";
  if (!placement.reason().empty()) PrintField(std::cout, "reason", placement.reason());
}

int ShowPlacement(Session& session, const absl::StatusOr<v1::Placement>& placement) {
  if (!placement.ok()) return Fail(placement.status());
  if (session.json) return PrintJson(std::cout, *placement), 0;
  google::protobuf::RepeatedPtrField<v1::Placement> one;
  *one.Add() = *placement;
  PrintPlacements(one, PlacementColumns::kListing, session.is_wide);
  PrintMeasures(*placement);
  return 0;
}

}  // namespace coppice
