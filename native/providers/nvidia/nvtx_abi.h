// NVTX version 3's binary interface between a program's copy of the header and an injected tool.
//
// A program asks the tool for InitializeInjectionNvtx2(get_export_table); the tool fetches the callbacks table and, per
// module, an array of slots, one per function, into which it writes its own functions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace leadline::nvidia::nvtx {

using GetExportTable = const void* (*)(std::uint32_t table_id);
inline constexpr std::uint32_t kCallbacksTable = 1;

enum class Module : std::int32_t { kCore = 1, kCuda = 2, kOpenCl = 3, kCudaRuntime = 4, kCore2 = 5, kSync = 6 };

using FunctionSlot = void (**)();
struct CallbacksTable {
  std::size_t struct_size;
  int (*get_module_functions)(Module module, FunctionSlot** functions, unsigned int* count);
};

namespace core {
enum Id : unsigned {
  kMarkEx = 1,
  kMarkA,
  kMarkW,
  kRangeStartEx,
  kRangeStartA,
  kRangeStartW,
  kRangeEnd,
  kRangePushEx,
  kRangePushA,
  kRangePushW,
  kRangePop,
  kNameCategoryA,
  kNameCategoryW
};
}  // namespace core

namespace core2 {
enum Id : unsigned {
  kDomainMarkEx = 1,
  kDomainRangeStartEx,
  kDomainRangeEnd,
  kDomainRangePushEx,
  kDomainRangePop,
  kResourceCreate,
  kResourceDestroy,
  kNameCategoryA,
  kNameCategoryW,
  kRegisterStringA,
  kRegisterStringW,
  kDomainCreateA,
  kDomainCreateW,
  kDomainDestroy,
  kInitialize
};
}  // namespace core2

enum class MessageType : std::int32_t { kNone = 0, kAscii = 1, kUnicode = 2, kRegistered = 3 };
enum class PayloadType : std::int32_t {
  kNone = 0,
  kUint64 = 1,
  kInt64 = 2,
  kDouble = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat = 6
};
enum class ColorType : std::int32_t { kNone = 0, kArgb = 1 };

union MessageValue {
  const char* ascii;
  const wchar_t* unicode;
  const void* registered;
};

struct EventAttributes {
  std::uint16_t version;
  std::uint16_t size;
  std::uint32_t category;
  ColorType color_type;
  std::uint32_t color;
  PayloadType payload_type;
  std::int32_t reserved0;
  union {
    std::uint64_t u64;
    std::int64_t i64;
    double f64;
    std::uint32_t u32;
    std::int32_t i32;
    float f32;
  } payload;
  MessageType message_type;
  MessageValue message;
};

}  // namespace leadline::nvidia::nvtx
