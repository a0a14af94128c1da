// Columns between NumPy and the offline code, without copies.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace leadline::offline {

template <typename T>
using Column = nanobind::ndarray<const T, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;

template <typename T>
std::span<const T> view(const Column<T>& column) {
  return {column.data(), column.shape(0)};
}

// Hands a vector's memory to NumPy.
template <typename T>
nanobind::object array(std::vector<T>&& values) {
  auto owned = std::make_unique<std::vector<T>>(std::move(values));
  const size_t size = owned->size();
  T* data = owned->data();
  nanobind::capsule owner(owned.release(), [](void* held) noexcept { delete static_cast<std::vector<T>*>(held); });
  return nanobind::cast(nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<1>>(data, {size}, owner));
}

}  // namespace leadline::offline
