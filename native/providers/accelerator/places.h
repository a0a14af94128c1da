// Where calls are caught: the thunks of the audit library, which sees nearly every binding as it is made, and the
// global offset tables of callers that were compiled so that it does not (-fno-plt), or that were bound before there
// was one.
//
// Thunks and what they stand for are the process's own and stay: a library keeps their addresses for as long as it
// likes. Without a measuring they jump to the functions themselves.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/got_patch.h"
#include "providers/accelerator/description.h"

namespace leadline::accelerator {

class Places {
 public:
  // Of a description that lives for ever.
  explicit Places(const Description& description);
  ~Places() { close(); }
  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;

  // What a processor of this kind, or this process, cannot do, in one sentence; empty: all is well.
  static std::string why_not();
  // From now on calls come to leadline_accelerator_begin.
  void open();
  // Looks at libraries that have come since.
  void look();
  void close() noexcept;
  // No call into the loader: for the child of a fork.
  void abandon() noexcept;

  bool audited() const noexcept { return audited_; }
  // Libraries that were met, by their paths, each with the names of declared functions that it does not have.
  const std::map<std::string, std::vector<std::string>>& missing() const noexcept { return missing_; }
  std::uint64_t functions_bound() const noexcept;

  // What a thunk stands for.
  struct Target {
    const Function* function = nullptr;
    void* original = nullptr;
  };
  static Target target(std::uint64_t thunk) noexcept;

 private:
  void patch(const Accelerator& accelerator, const std::string& path);

  const Description& description_;
  std::uint32_t base_;  // number of the description's first function in this process
  bool audited_ = false;
  bool open_ = false;
  std::uint64_t loads_ = 0;
  std::map<std::string, std::vector<std::string>> missing_;
  std::vector<GotPatch> patches_;
};

}  // namespace leadline::accelerator
