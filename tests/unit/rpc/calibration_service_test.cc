// Calibrate and ResetCalibration over a real connection.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "coppice/v1/admin.grpc.pb.h"
#include "daemon/tree/calibration/model.h"
#include "tests/unit/rpc/loopback.h"

namespace coppice::calibration_service_test {
namespace {

using ::testing::HasSubstr;
using FabricStub = v1::Fabric::Stub;

std::string Samples() {
  CostProfile truth = *BuiltInProfile("hdr");
  truth.nic = {5, 3e-4, 0.31, 9e-4, truth.nic.send_us};
  std::string csv = "operation,bytes,members,type,width,us\n\n";
  for (const char* operation : {"bcast", "reduce", "allreduce"}) {
    for (const uint64_t bytes : {8, 512, 4096}) {
      for (const uint32_t members : {32, 512}) {
        for (const uint32_t width : {2, 8, 32}) {
          LatencySample sample;
          sample.operation = *ParseOperation(operation);
          sample.bytes = bytes, sample.members = members, sample.width = width;
          absl::StrAppend(&csv, operation, ",", bytes, ",", members, ",I,", width, ",",
                          PredictUs(truth, sample), "\n");
        }
      }
    }
  }
  return csv;
}

class CalibrationServiceTest : public ::testing::Test {
 protected:
  absl::StatusOr<v1::CalibrateResponse> Calibrate(const v1::CalibrateRequest& request) {
    return loopback_.Call(loopback_.fabric(), &FabricStub::Calibrate, request);
  }
  v1::TypeTable Table() {
    v1::GetTypeTableRequest request;
    request.set_members(512);
    const auto table = loopback_.Call(loopback_.fabric(), &FabricStub::GetTypeTable, request);
    EXPECT_TRUE(table.ok()) << table.status();
    return table.ok() ? *table : v1::TypeTable();
  }
  int Deeds() {
    const auto admin = v1::Admin::NewStub(loopback_.Connect());
    v1::ListDeedsRequest request;
    request.set_method_prefix("Fabric.Calibrate");
    const auto deeds = loopback_.Call(*admin, &v1::Admin::Stub::ListDeeds, request);
    EXPECT_TRUE(deeds.ok()) << deeds.status();
    return deeds.ok() ? deeds->deeds_size() : -1;
  }
  Loopback loopback_;
};

TEST_F(CalibrationServiceTest, FitsAppliesAndResets) {
  v1::CalibrateRequest request;
  request.set_samples_csv(Samples());
  for (const char* fixed : {"link_us=0.15", "nic.send_us", "switch"}) request.add_fixed(fixed);
  request.set_name("mine");
  const auto fit = Calibrate(request);
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_FALSE(fit->applied());
  EXPECT_EQ(fit->samples(), 54);
  EXPECT_EQ(fit->constants_size(), 12);
  EXPECT_EQ(fit->constants(1).name(), "link_us");
  EXPECT_EQ(fit->constants(1).state(), "fixed");
  EXPECT_EQ(fit->constants(1).value(), 0.15);
  EXPECT_EQ(fit->residuals_us_size(), 54);
  ASSERT_EQ(fit->measured_size(), 54);
  EXPECT_EQ(fit->measured(0).line(), 3);
  EXPECT_EQ(fit->measured(0).operation(), v1::OPERATION_BCAST);
  EXPECT_EQ(fit->measured(0).type(), v1::TREE_TYPE_I);
  EXPECT_LT(fit->worst_sample(), 54);
  EXPECT_GT(fit->r_squared(), 0.999);
  EXPECT_LT(fit->rms_us(), 0.01);
  EXPECT_EQ(ParseProfile(fit->profile_toml(), "answer")->name, "mine");
  const v1::TypeTable before = Table();
  EXPECT_EQ(before.profile(), "hdr");
  EXPECT_EQ(Deeds(), 0) << "it changed nothing";

  request.set_apply(true);
  ASSERT_TRUE(Calibrate(request)->applied());
  EXPECT_EQ(Deeds(), 1);
  const v1::TypeTable slow = Table();
  EXPECT_EQ(slow.profile(), "mine");
  EXPECT_GT(slow.rows(0).type_i_us(), before.rows(0).type_i_us());

  const auto reset = loopback_.Call(loopback_.fabric(), &FabricStub::ResetCalibration,
                                    v1::ResetCalibrationRequest());
  ASSERT_TRUE(reset.ok()) << reset.status();
  EXPECT_EQ(reset->profile(), "hdr");
  EXPECT_EQ(Table().SerializeAsString(), before.SerializeAsString());
}

TEST_F(CalibrationServiceTest, RefusalsNameTheText) {
  v1::CalibrateRequest request;
  request.set_origin("lab.csv");
  request.set_apply(true);
  const auto words = [&] {
    const absl::Status status = Calibrate(request).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_EQ(Table().profile(), "hdr");
    return std::string(status.message());
  };
  EXPECT_THAT(words(), HasSubstr("lab.csv"));
  request.set_samples_csv(Samples());
  EXPECT_THAT(words(), HasSubstr("lab.csv"));  // link_us and nic.forward_us cannot be told apart
  request.set_samples_csv(absl::StrCat(Samples(), "bcast,8,32,III,2,1\n"));
  EXPECT_THAT(words(), HasSubstr("lab.csv, line 57"));
  request.set_samples_csv(std::string((16 << 20) + 1, '\n'));
  EXPECT_THAT(words(), HasSubstr("lab.csv"));
}

}  // namespace
}  // namespace coppice::calibration_service_test
