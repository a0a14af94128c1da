// Keeps torch from rebuilding its lists of callbacks where nothing has changed.
//
// Autograd copies its thread's state around each node, and with it the thread's own list of RecordFunction callbacks.
// at::set_record_function_tls_ then builds the lists of all ten scopes anew, in 3,500 instructions, although the
// thread's list is empty before and after: 164 times in a step of 939 operators, and only where somebody listens. Calls
// of it are redirected while the provider is attached; one that would change nothing returns at once. What others
// register for all threads is found by torch's own version check at the next operator.
#pragma once

#include <string>

#include "base/got_patch.h"

namespace leadline::torch {

class QuietGuards {
 public:
  // False with a sentence in *why where this torch keeps a thread's callbacks in another way than is known, or does not
  // call the function through its symbol table; nothing is changed then.
  bool attach(std::string* why);
  void detach() noexcept { patch_.restore(); }
  // One call of this thread that changes nothing, for the provider's self-test: what was registered before it must be
  // called at the next operator all the same.
  static void change_nothing();

 private:
  GotPatch patch_;
};

}  // namespace leadline::torch
