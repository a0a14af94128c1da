#include "stack/module_names.h"

#include <doctest/doctest.h>

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

TEST_CASE("a child whose parent has died takes the next parent") {
  ModuleNames names;
  names.add(kModel, kLayer, "old");
  names.forget(kModel);
  names.add(kBlock, kLayer, "head");
  names.name_root(kBlock, "other");
  CHECK(names.qualified(kLayer).name == "other.head");
}

TEST_CASE("forgetting changes the generation, so that cached names are asked for again") {
  ModuleNames names;
  names.add(kModel, kBlock, "block");
  const uint64_t before = names.generation();
  names.forget(kModel);
  CHECK(names.generation() != before);
}

}  // namespace
}  // namespace leadline
