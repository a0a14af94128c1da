#include "providers/torch/scope_names.h"

#include <doctest/doctest.h>

#include <string>

#include "leadline/monitor.h"

using leadline::torch::read_scope_name;
using leadline::torch::ScopeName;

TEST_CASE("torch's own marks become phases with the class they name") {
  ScopeName scope;
  read_scope_name("Optimizer.step#AdamW.step", &scope);
  CHECK(scope.is_phase);
  CHECK(std::string(scope.name) == "optimizer");
  CHECK(scope.flags == LEADLINE_REGION_FLAG_ENDS_STEP);
  CHECK(std::string(scope.detail) == R"({"optimizer": "AdamW"})");

  ScopeName loading;
  read_scope_name("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", &loading);
  CHECK(std::string(loading.name) == "data loading");
  CHECK(loading.flags == LEADLINE_REGION_FLAG_DATA_WAIT);
  CHECK(std::string(loading.detail) == R"({"loader": "_MultiProcessingDataLoaderIter"})");
}

TEST_CASE("any other name is the user's region") {
  ScopeName scope;
  read_scope_name("my Optimizer.step#x", &scope);
  CHECK_FALSE(scope.is_phase);
  CHECK(std::string(scope.name) == "my Optimizer.step#x");
  CHECK(std::string(scope.detail).empty());
}

TEST_CASE("a class name cannot break the JSON") {
  ScopeName scope;
  read_scope_name("Optimizer.step#Bad\"Name\\x.step", &scope);
  CHECK(std::string(scope.detail) == R"({"optimizer": "Bad?Name?x"})");
}
