// The host half of the sanitizer backend for python/leadline/tools/backends/sanitizer.py. Conversions only.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <string>
#include <vector>

#include "backends/sanitizer/backend.h"
#include "backends/sanitizer/patches.h"
#include "bindings/bindings.h"

namespace nb = nanobind;

namespace leadline::bindings {
namespace {

using sanitizer::Backend;
using sanitizer::Lost;

constexpr std::size_t kAtOnce = std::size_t{1} << 16;

// Rows as bytes; the caller makes an array of them.
template <class Row, class Take>
nb::bytes rows_of(const Take& take) {
  std::vector<Row> rows(kAtOnce);
  const std::size_t count = take(rows.data(), rows.size());
  return nb::bytes(reinterpret_cast<const char*>(rows.data()), count * sizeof(Row));
}

sanitizer::Options options_of(std::vector<std::string> candidates, const nb::bytes& image,
                              const std::vector<std::uint64_t>& page_sizes, std::uint32_t page_shift,
                              std::uint32_t want, std::uint32_t element, bool without_copies, std::uint64_t raw_room) {
  sanitizer::Options options;
  options.candidates = std::move(candidates);
  options.image = std::string(image.c_str(), image.size());
  for (std::size_t i = 0; i < page_sizes.size() && i < sanitizer::kPageSizes; ++i) {
    options.shape.page_sizes[i] = page_sizes[i];
    options.shape.words = options.shape.words || page_sizes[i] != std::uint64_t{1} << page_shift;
  }
  options.shape.page_shift = page_shift;
  options.shape.want = want;
  options.shape.raw_room = raw_room;
  options.shape.element = element;
  options.patches = sanitizer::patches_for(want, without_copies);
  return options;
}

class SanitizerBackend {
 public:
  SanitizerBackend(sanitizer::Options options, std::int64_t first, std::int64_t end, std::int64_t every,
                   std::string kernel, std::string layer, std::string phase)
      : backend_([&] {
          options.wanted = {first, end, every, std::move(kernel), std::move(layer), std::move(phase)};
          return std::move(options);
        }()) {}

  Backend& get() noexcept { return backend_; }

 private:
  Backend backend_;
};

std::uint64_t lost(SanitizerBackend& of, std::uint32_t what) {
  return what < static_cast<std::uint32_t>(Lost::kCount) ? of.get().lost().of(static_cast<Lost>(what)) : 0;
}

}  // namespace

void define_sanitizer(nb::module_& m) {
  using Self = SanitizerBackend;
  nb::class_<Self>(m, "SanitizerBackend")
      .def(
          "__init__",
          [](Self* self, std::vector<std::string> candidates, const nb::bytes& image,
             const std::vector<std::uint64_t>& page_sizes, std::uint32_t page_shift, std::uint32_t want,
             std::uint32_t element, bool without_copies, std::uint64_t raw_room, std::int64_t first, std::int64_t end,
             std::int64_t every, std::string kernel, std::string layer, std::string phase) {
            new (self) Self(options_of(std::move(candidates), image, page_sizes, page_shift, want, element,
                                       without_copies, raw_room),
                            first, end, every, std::move(kernel), std::move(layer), std::move(phase));
          },
          nb::kw_only(), nb::arg("candidates"), nb::arg("image"), nb::arg("page_sizes"), nb::arg("page_shift"),
          nb::arg("want"), nb::arg("element"), nb::arg("without_copies"), nb::arg("raw_room"), nb::arg("first"),
          nb::arg("end"), nb::arg("every"), nb::arg("kernel"), nb::arg("layer"), nb::arg("phase"))
      .def("start", [](Self& self) { return self.get().start(); })
      .def(
          "stop", [](Self& self) { self.get().stop(); }, nb::call_guard<nb::gil_scoped_release>())
      .def(
          "wait", [](Self& self, std::int64_t timeout_ns) { self.get().wait(timeout_ns); }, nb::arg("timeout_ns"),
          nb::call_guard<nb::gil_scoped_release>())
      .def("objects",
           [](Self& self) {
             return rows_of<sanitizer::Birth>(
                 [&](auto* rows, std::size_t room) { return self.get().objects().births(rows, room); });
           })
      .def("launches",
           [](Self& self) {
             return rows_of<sanitizer::LaunchRow>(
                 [&](auto* rows, std::size_t room) { return self.get().launches().take(rows, room); });
           })
      .def("touched",
           [](Self& self) {
             return rows_of<sanitizer::TouchedRow>(
                 [&](auto* rows, std::size_t room) { return self.get().results().touched.take(rows, room); });
           })
      .def("instructions",
           [](Self& self) {
             return rows_of<sanitizer::InstructionRow>(
                 [&](auto* rows, std::size_t room) { return self.get().results().instructions.take(rows, room); });
           })
      .def("done",
           [](Self& self) {
             return rows_of<sanitizer::DoneRow>(
                 [&](auto* rows, std::size_t room) { return self.get().results().done.take(rows, room); });
           })
      .def(
          "name",
          [](Self& self, std::uint32_t number) {
            return self.get().code() == nullptr ? std::string() : self.get().code()->name(number);
          },
          nb::arg("number"))
      .def("problem",
           [](Self& self) { return self.get().code() == nullptr ? std::string() : self.get().code()->problem(); })
      .def("without_tma", [](Self& self) { return self.get().code() != nullptr && self.get().code()->without_tma(); })
      .def("lost", &lost, nb::arg("what"))
      .def("lost_objects", [](Self& self) { return self.get().objects().lost(); })
      .def("skipped", [](Self& self) { return self.get().skipped(); })
      .def("under_way", [](Self& self) { return self.get().under_way(); });
}

}  // namespace leadline::bindings
