#include "stack/module_names.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "testing/forked_child.h"

namespace leadline {
namespace {

constexpr uintptr_t kModel = 0x1000, kBlock = 0x2000, kLayer = 0x3000;

TEST_CASE("a name is the attributes from the topmost object") {
  ModuleNames names;
  names.add(kBlock, kLayer, "linear");
  names.add(kModel, kBlock, "block");
  names.name_root(kModel, "model");
  const ModuleNames::Qualified found = names.qualified(kLayer);
  CHECK(found.complete);
  CHECK(found.root_named);
  CHECK(found.root == kModel);
  CHECK(found.name == "model.block.linear");
}

TEST_CASE("a parent that has died is never named as the root of a child that lives") {
  ModuleNames names;
  names.add(kModel, kBlock, "block");
  names.add(kBlock, kLayer, "linear");
  names.forget(kModel);
  const ModuleNames::Qualified found = names.qualified(kLayer);
  CHECK(found.root == kBlock);
  CHECK_FALSE(found.root_named);
  CHECK(found.name == "linear");
}

TEST_CASE("a child whose parent has died goes on under the next") {
  ModuleNames names;
  names.add(kModel, kLayer, "old");
  names.add(kBlock, kLayer, "head");
  names.name_root(kBlock, "other");
  CHECK(names.qualified(kLayer).name == "old");
  names.forget(kModel);
  CHECK(names.qualified(kLayer).name == "other.head");
}

TEST_CASE("an attribute that is given another module is that one's name, and no longer the first one's") {
  ModuleNames names;
  names.name_root(kModel, "model");
  names.add(kModel, kLayer, "head");
  names.add(kModel, kBlock, "head");
  CHECK(names.qualified(kBlock).name == "model.head");
  CHECK(names.qualified(kLayer).name.empty());
  names.add(kBlock, kLayer, "base");
  CHECK(names.qualified(kLayer).name == "model.head.base");
  names.remove(kBlock, "base");
  CHECK(names.qualified(kLayer).root == kLayer);
}

TEST_CASE("of several parents the one being called counts, the innermost first") {
  constexpr uintptr_t kOther = 0x4000;
  ModuleNames names;
  names.name_root(kModel, "model");
  names.add(kModel, kBlock, "a");
  names.add(kModel, kOther, "b");
  names.add(kBlock, kLayer, "shared");
  names.add(kOther, kLayer, "again");
  const uintptr_t within[] = {kOther, kModel};
  CHECK(names.qualified(kLayer, within).caller == 0);
  CHECK(names.qualified(kLayer, within).name == "again");
  const uintptr_t above[] = {0x9000, kModel};
  CHECK(names.qualified(kLayer, above).caller == 1);
  CHECK(names.qualified(kLayer, above).name == "a.shared");
  const uintptr_t elsewhere[] = {0x9000};
  CHECK(names.qualified(kLayer, elsewhere).caller == ModuleNames::kNoCaller);
  CHECK(names.qualified(kLayer, elsewhere).name == "model.a.shared");
}

TEST_CASE("modules that hold each other have a name all the same") {
  ModuleNames names;
  names.add(kModel, kBlock, "child");
  names.add(kBlock, kModel, "parent");
  const uintptr_t callers[] = {kLayer};
  CHECK_FALSE(names.qualified(kBlock, callers).name.empty());
}

TEST_CASE("forgetting changes the generation, so that cached names are asked for again") {
  ModuleNames names;
  names.add(kModel, kBlock, "block");
  const uint64_t before = names.generation();
  names.forget(kModel);
  CHECK(names.generation() != before);
}

TEST_CASE("a child forked while another thread names modules has a lock of its own") {
  ModuleNames names;
  const auto registers = [&](std::uint64_t i) { names.name_root(kModel + i % 1000, std::to_string(i)); };
  CHECK(testing::failures_of_children_beside(registers, [&] {
          names.after_fork();
          names.add(kBlock, kLayer, "linear");
          return names.qualified(kLayer).name == "linear" ? 0 : 1;
        }) == 0);
}

}  // namespace
}  // namespace leadline
