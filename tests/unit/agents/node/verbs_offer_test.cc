// What two ends tell each other of where they are, and what is none of that.
#include "agents/node/verbs/verbs_offer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace coppice::verbs_offer_test {
namespace {

using ::testing::HasSubstr;

VerbsOffer Offer() {
  VerbsOffer offer;
  for (size_t i = 0; i < offer.gid.size(); ++i) offer.gid[i] = static_cast<uint8_t>(0xe0 + i);
  offer.lid = 0xbfff;
  offer.queue_pair = 0x123456;
  offer.packet_number = 0xfffffe;
  offer.mtu = 5;
  return offer;
}

TEST(VerbsOfferTest, ComesAsItWasSent) {
  const std::string bytes = Encode(Offer());
  EXPECT_EQ(bytes.size(), VerbsOffer::kBytes);
  EXPECT_EQ(bytes.substr(16), std::string("\xbf\xff\x00\x12\x34\x56\x00\xff\xff\xfe\x05", 11));
  const auto decoded = DecodeVerbsOffer(bytes);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(*decoded, Offer());
}

TEST(VerbsOfferTest, RefusesWhereNobodyIs) {
  const auto refused = [](auto change, const char* words) {
    VerbsOffer offer = Offer();
    change(offer);
    const absl::Status status = DecodeVerbsOffer(Encode(offer)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << words;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  };
  refused([](VerbsOffer& o) { o.lid = 0; }, "LID over verbs is 0");
  refused([](VerbsOffer& o) { o.lid = 0xc000; }, "LID over verbs is 49152");
  refused([](VerbsOffer& o) { o.queue_pair = 1; }, "queue pair over verbs is 1");
  refused([](VerbsOffer& o) { o.queue_pair = 1 << 24; }, "queue pair");
  refused([](VerbsOffer& o) { o.packet_number = 1 << 24; }, "packet number");
  refused([](VerbsOffer& o) { o.mtu = 0; }, "MTU over verbs is 0");
  refused([](VerbsOffer& o) { o.mtu = 6; }, "MTU");
  const std::string bytes = Encode(Offer());
  for (const std::string& bad : {std::string(), bytes.substr(1), bytes + "x"}) {
    EXPECT_EQ(DecodeVerbsOffer(bad).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(VerbsOfferTest, ReachesWhatIsOnItsSubnet) {
  VerbsOffer other = Offer();
  other.gid[8] = 1;  // another port
  EXPECT_TRUE(CheckReach(Offer(), other).ok());
  other.gid[7] = 1;  // of another subnet
  const absl::Status status = CheckReach(Offer(), other);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("e0e1e2e3e4e5e6e7 and e0e1e2e3e4e5e601"));
}

}  // namespace
}  // namespace coppice::verbs_offer_test
