#include "daemon/manager/switches/switches.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status_macros.h"

namespace coppice {
namespace {

constexpr size_t kMaxNamedSwitches = 4;  // in a reason

}  // namespace

void Avoid(const Fabric& fabric, const AvoidedSwitches& avoided,
           std::vector<SwitchCapacity>& capacity) {
  for (const auto& [guid, words] : avoided) {
    const std::optional<SwitchIndex> s = fabric.FindSwitch(guid);
    if (s.has_value() && s->value() < capacity.size()) capacity[s->value()] = {};
  }
}

std::string WordsOf(const AvoidedSwitches& avoided) {
  std::string words;
  size_t named = 0;
  for (const auto& [guid, why] : avoided) {
    if (++named > kMaxNamedSwitches) {
      absl::StrAppend(&words, "; and ", avoided.size() - kMaxNamedSwitches, " more");
      break;
    }
    absl::StrAppend(&words, named == 1 ? "; round " : ", ", "switch ", ToString(guid), ", which (",
                    why, ")");
  }
  return words;
}

absl::Status GoneRound(const absl::Status& refusal, const AvoidedSwitches& avoided) {
  if (avoided.empty()) return refusal;
  absl::Status status(refusal.code(), absl::StrCat(refusal.message(), WordsOf(avoided)));
  refusal.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { status.SetPayload(url, payload); });
  return status;
}

void Add(const std::vector<RefusingSwitch>& refusing, AvoidedSwitches& avoided) {
  for (const RefusingSwitch& one : refusing) avoided[one.guid] = one.words;
}

absl::Status GiveCarriage(const SwitchInstaller& installer, TreeRecord& record) {
  const bool was_carried = !std::exchange(record.carriage, {}).key.empty();
  CarriageOffer offer = installer.OfferFor(record);
  if (was_carried && offer.speak == CarriageOffer::Speak::kNone) {
    absl::StrAppend(&record.reason, "; it carries no data any more, as its switches do not speak");
  }
  if (offer.speak == CarriageOffer::Speak::kSome) {
    absl::StrAppend(&record.reason, "; it carries no data, as ", offer.silent, " does not speak");
  }
  if (offer.speak != CarriageOffer::Speak::kAll) return absl::OkStatus();
  record.carriage = std::move(offer.terms);
  ASSIGN_OR_RETURN(record.carriage.key, NewInstallKey());
  return absl::OkStatus();
}

absl::StatusOr<Switches::Connected> Switches::Connect(SwitchHello hello, SwitchLink link,
                                                      std::string identity) {
  RETURN_IF_ERROR(CheckSwitchHello(hello));
  const std::shared_ptr<const FabricView> view = tables_->Published();
  if (view == nullptr) return NoFabricError();
  const Fabric& fabric = *view->snapshot->fabric;
  const std::optional<SwitchIndex> found = fabric.FindSwitch(hello.guid);
  if (!found) {
    return absl::NotFoundError(absl::StrCat(
        "the fabric has no switch ", ToString(hello.guid),
        "; coppicectl fabric switches lists them: start the agent with --switch as one is called"));
  }
  Connected connected;
  connected.name = fabric.switch_info(*found).description;
  std::lock_guard changing(changing_);
  RETURN_IF_ERROR(installer_->CheckPlace(hello.guid, identity));
  const Guid guid = hello.guid;
  CapabilityRecord capability;
  capability.guid = guid;
  capability.entries_total = hello.abilities.entries;
  capability.degree_limit = hello.abilities.children;
  RETURN_IF_ERROR(topology_->SetSpoken(capability));
  SwitchInstaller::Connected entered =
      installer_->Connect(std::move(hello), std::move(link), std::move(identity));
  {
    std::lock_guard lock(tables_->mu);
    tables_->SetAway(guid, false);
    tables_->JudgeWaiting();
  }
  connected.session = entered.session;
  connected.keep = std::move(entered.keep);
  return connected;
}

void Switches::Disconnect(SwitchSession session) {
  std::lock_guard changing(changing_);
  // The ledger first: what fails now, and is planned again, must not come here again.
  const std::optional<Guid> guid = installer_->GuidOf(session);
  if (!guid) return;
  {
    std::lock_guard lock(tables_->mu);
    tables_->SetAway(*guid, true);
  }
  installer_->Disconnect(session);
}

}  // namespace coppice
