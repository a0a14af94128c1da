// leadline._snapshot: a file's pieces in, columns of its actions and plain Python values out, the work in snapshot.cpp;
// conversions only.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "offline/arrays.h"
#include "offline/snapshot.h"

namespace nb = nanobind;
using leadline::offline::array;
using leadline::offline::Plain;
using leadline::offline::SnapshotActions;
using leadline::offline::SnapshotReader;

namespace {

constexpr int kDeepest = 100;

// What is no UTF-8 is shown as U+FFFD.
nb::object text_of(std::string_view bytes) {
  PyObject* made = PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace");
  if (made == nullptr) throw nb::python_error();
  return nb::steal(made);
}

class Snapshot {
 public:
  explicit Snapshot(const nb::callable& read) {
    nb::object piece;  // as long as the reader looks at it
    root_ = reader_.read([&]() -> std::string_view {
      piece = read();
      const auto bytes = nb::cast<nb::bytes>(piece);
      return {bytes.c_str(), bytes.size()};
    });
  }

  // Everything but actions: a list of them is a dict of columns, `action` and `stack` by the numbers of texts and
  // lists.
  nb::object content() { return made(root_, 0); }
  nb::object text(size_t row) const {
    if (row >= reader_.texts()) throw nb::index_error();
    return text_of(reader_.text(row));
  }
  nb::object items(size_t content) {
    if (content >= reader_.contents()) throw nb::index_error();
    return container(content, false, 0);
  }

 private:
  nb::object made(const Plain& value, int depth) {
    switch (value.kind) {
      case Plain::Kind::kNone:
        return nb::none();
      case Plain::Kind::kBoolean:
        return nb::bool_(value.bits != 0);
      case Plain::Kind::kInteger:
        return nb::int_(static_cast<int64_t>(value.bits));
      case Plain::Kind::kUnsigned:
        return nb::int_(value.bits);
      case Plain::Kind::kReal:
        return nb::float_(std::bit_cast<double>(value.bits));
      case Plain::Kind::kText:
        return text_of(reader_.text(value.bits));
      default:
        break;
    }
    if (reader_.is_action(value)) throw nb::value_error("an action stands where none does");
    const bool is_mapping = value.kind == Plain::Kind::kMapping || value.kind == Plain::Kind::kSharedMapping;
    return container(reader_.content(value), is_mapping, depth);
  }

  // Each content once, so that what is shared in the file is shared here.
  nb::object container(size_t content, bool is_mapping, int depth) {
    if (depth > kDeepest) throw nb::value_error("it is nested too deep");
    if (content == 0) return is_mapping ? nb::object(nb::dict()) : nb::object(nb::list());
    if (made_.size() <= content) made_.resize(content + 1);
    if (made_[content].is_valid() && made_[content].is_none()) throw nb::value_error("it holds itself");
    if (made_[content].is_valid()) return made_[content];
    made_[content] = nb::none();  // as long as what is in it is made
    const std::vector<Plain>& items = reader_.items(content);
    nb::object one = is_mapping                         ? mapping(items, depth)
                     : reader_.is_action(items.front()) ? columns(items)
                                                        : list(items, depth);
    made_[content] = one;
    return one;
  }

  nb::object list(const std::vector<Plain>& items, int depth) {
    nb::list found;
    for (const Plain& item : items) found.append(made(item, depth + 1));
    return found;
  }

  nb::object mapping(const std::vector<Plain>& items, int depth) {
    nb::dict found;
    for (size_t at = 0; at + 1 < items.size(); at += 2)
      found[made(items[at], depth + 1)] = made(items[at + 1], depth + 1);
    return found;
  }

  template <typename T>
  nb::object column(const std::vector<T>& from, const std::vector<Plain>& items) {
    std::vector<T> values;
    values.reserve(items.size());
    for (const Plain& item : items) {
      if (!reader_.is_action(item)) throw nb::value_error("something stands among actions");
      values.push_back(from[reader_.action(item)]);
    }
    return array(std::move(values));
  }

  nb::object columns(const std::vector<Plain>& items) {
    const SnapshotActions& from = reader_.actions();
    nb::dict found;
    found["action"] = column(from.action, items);
    found["address"] = column(from.address, items);
    found["size"] = column(from.size, items);
    found["time_us"] = column(from.time_us, items);
    found["stack"] = column(from.stack, items);
    return found;
  }

  SnapshotReader reader_;
  Plain root_;
  std::vector<nb::object> made_;
};

}  // namespace

NB_MODULE(_snapshot, m) {
  nb::exception<leadline::offline::DamagedPickle>(m, "DamagedPickle", PyExc_ValueError);
  nb::exception<leadline::offline::ObjectInPickle>(m, "ObjectInPickle", PyExc_ValueError);
  nb::class_<Snapshot>(m, "Snapshot")
      .def(nb::init<const nb::callable&>(), nb::arg("read"))
      .def("content", &Snapshot::content)
      .def("text", &Snapshot::text, nb::arg("row"))
      .def("items", &Snapshot::items, nb::arg("content"));
}
