// Native frames of another process, for `leadline dump --native`. Conversions only.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "bindings/bindings.h"
#include "unwind/other_process.h"

namespace nb = nanobind;

namespace leadline::bindings {
namespace {

// (frames, whole): frames leaf first as (sp, end, file, address in it); end is 0 where it is not known, the file empty
// where the code is in none. `whole`: the stack was walked to its end.
nb::tuple walk(const unwind::OtherProcess& process, uintptr_t pc, uintptr_t sp, const nb::bytes& stack) {
  unwind::End end = unwind::End::kBroken;
  const auto frames =
      process.walk({pc, sp, 0}, reinterpret_cast<const unsigned char*>(stack.c_str()), stack.size(), &end);
  nb::list found;
  for (size_t i = 0; i < frames.size(); ++i) {
    const unwind::NativeFrame& frame = frames[i];
    uint64_t address = 0;
    const std::string* const file = process.file_of(i == 0 ? frame.pc : frame.pc - 1, &address);
    found.append(nb::make_tuple(frame.sp, frame.cfa, file == nullptr ? std::string() : *file, address));
  }
  return nb::make_tuple(found, end == unwind::End::kOutermost);
}

}  // namespace

void define_unwind(nb::module_& m) {
  nb::class_<unwind::OtherProcess>(m, "OtherProcess")
      .def(nb::init<>())
      .def("add", &unwind::OtherProcess::add, nb::arg("path"), nb::arg("address"))
      .def("walk", &walk, nb::arg("pc"), nb::arg("sp"), nb::arg("stack"));
}

}  // namespace leadline::bindings
