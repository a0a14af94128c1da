// The words of a tool's `gpu` text: LL_STORE(a) { ... } is called for each element that is stored to a known object,
// and what it counts is summed per launch and object. The same words as on the CPU
// (leadline/tools/backends/host_text.py).
#pragma once

struct ll_object {
  int is_float;
  leadline::device::u64* counted;
};

struct ll_access {
  ll_object object;
  leadline::device::u64 address;
  leadline::device::u32 bytes;
  double value;  // of floats; 0 where the object holds something else
};

static LEADLINE_DEVICE inline bool ll_is_float(const ll_object& object) { return object.is_float != 0; }
static LEADLINE_DEVICE inline bool ll_isnan(const ll_access& a) { return a.value != a.value; }
static LEADLINE_DEVICE inline bool ll_isinf(const ll_access& a) { return a.value - a.value != 0 && a.value == a.value; }
static LEADLINE_DEVICE inline void ll_count(const ll_object& object) { ++*object.counted; }

#define LL_STORE(a) static LEADLINE_DEVICE inline void ll_on_store([[maybe_unused]] const ll_access& a)
