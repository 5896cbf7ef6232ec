#include "daemon/metrics/exporter.h"

#include <arpa/inet.h>
#include <prometheus/exposer.h>

#include <exception>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "daemon/base/status_macros.h"
#include "daemon/metrics/families.h"

namespace coppice {
namespace {

// A scraper, and somebody who looks by hand.
constexpr size_t kThreads = 2;

class Collector final : public prometheus::Collectable {
 public:
  explicit Collector(std::function<DaemonNumbers()> gather) : gather_(std::move(gather)) {}
  std::vector<prometheus::MetricFamily> Collect() const override { return FamiliesOf(gather_()); }

 private:
  const std::function<DaemonNumbers()> gather_;
};

bool IsNumericAddress(absl::string_view text) {
  unsigned char bytes[sizeof(in6_addr)];
  if (absl::ConsumePrefix(&text, "[")) {
    return absl::ConsumeSuffix(&text, "]") &&
           inet_pton(AF_INET6, std::string(text).c_str(), bytes) == 1;
  }
  return inet_pton(AF_INET, std::string(text).c_str(), bytes) == 1;
}

}  // namespace

absl::Status CheckMetricsAddress(absl::string_view listen) {
  const size_t colon = listen.rfind(':');
  uint32_t port = 0;
  if (colon != absl::string_view::npos && IsNumericAddress(listen.substr(0, colon)) &&
      absl::SimpleAtoi(listen.substr(colon + 1), &port) && port <= 0xffff) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("metrics address \"", listen,
                   "\": give ADDRESS:PORT with an address in numbers, "
                   "such as \"127.0.0.1:9709\" or \"[::1]:9709\""));
}

class MetricsExporter::Impl {
 public:
  // Throws what the library throws.
  Impl(const std::string& listen, std::function<DaemonNumbers()> gather)
      : collector_(std::make_shared<Collector>(std::move(gather))), exposer_(listen, kThreads) {
    exposer_.RegisterCollectable(collector_);
    address_ =
        absl::StrCat(listen.substr(0, listen.rfind(':') + 1), exposer_.GetListeningPorts().at(0));
  }
  const std::string& address() const { return address_; }

 private:
  const std::shared_ptr<Collector> collector_;
  prometheus::Exposer exposer_;  // after the collector: its threads, which use it, end first
  std::string address_;
};

MetricsExporter::MetricsExporter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
MetricsExporter::~MetricsExporter() = default;

absl::StatusOr<std::unique_ptr<MetricsExporter>> MetricsExporter::Start(
    const std::string& listen, std::function<DaemonNumbers()> gather) {
  RETURN_IF_ERROR(CheckMetricsAddress(listen));
  // The library reports by exception; it must not leave this function.
  try {
    return std::unique_ptr<MetricsExporter>(
        new MetricsExporter(std::make_unique<Impl>(listen, std::move(gather))));
  } catch (const std::exception&) {  // its text says no more than that something failed
    return absl::UnavailableError(
        absl::StrCat("metrics address ", listen,
                     ": cannot be bound; is another process there, or is the address not one of "
                     "this host? Set metrics.listen, \"\" for none"));
  }
}

const std::string& MetricsExporter::address() const { return impl_->address(); }

}  // namespace coppice
