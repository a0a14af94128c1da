// The binary interface of a PJRT plug-in, as far as it is followed: slots of its table and the arguments of calls.
//
// A table begins with its size, a chain of extensions and its version; from byte 40 on it is pointers to functions.
// Each takes one structure, which begins with its size and a chain of extensions, and answers with an error or null.
// While the major version is 0 slots and structures grow at their ends only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace leadline::pjrt {

struct Error;
struct Arguments {
  std::size_t struct_size;
  void* extensions;
};
using Function = Error* (*)(Arguments*);

struct Table {
  std::size_t struct_size;
  void* extensions;
  std::size_t version_size;
  void* version_extensions;
  std::int32_t major;
  std::int32_t minor;
  Function slots[1];  // as many as struct_size has room for
};
static_assert(offsetof(Table, slots) == 40);

enum Slot : std::uint8_t {
  kErrorDestroy = 0,
  kEventDestroy = 5,
  kEventAwait = 8,
  kEventOnReady = 9,
  kClientCreate = 10,
  kClientPlatformName = 12,
  kClientCompile = 20,
  kBufferFromHostBuffer = 22,
  kDeviceLocalHardwareId = 31,
  kExecutableDestroy = 40,
  kExecutableNumOutputs = 44,
  kLoadedExecutableDestroy = 50,
  kLoadedExecutableGetExecutable = 51,
  kLoadedExecutableExecute = 55,
  kExecutableDeserializeAndLoad = 56,
  kBufferDestroy = 58,
  kBufferOnDeviceSize = 64,
  kBufferDevice = 65,
  kBufferCopyToDevice = 69,
  kBufferToHostBuffer = 70,
  kBufferReadyEvent = 72,
  kCopyToDeviceStreamAddChunk = 78,
  kBufferCopyToMemory = 92,
  kBufferCopyRawToHost = 100,
  kTransferManagerTransferData = 102,
  kTransferManagerDevice = 105,
};

struct ErrorDestroy : Arguments {
  Error* error;
};
struct ClientCreate : Arguments {
  void* given[6];  // options and their number, two callbacks and what they are called with
  void* client;    // out; members after it do not matter here
};
static_assert(sizeof(ClientCreate) == 64 + sizeof(void*));  // `client` is at 64
struct PlatformName : Arguments {
  void* client;
  const char* name;  // out, not terminated
  std::size_t size;  // out
};
struct BufferFromHost : Arguments {
  void* client;
  const void* data;
  std::int32_t type;
  const std::int64_t* dimensions;
  std::size_t dimension_count;
  const std::int64_t* strides;
  std::size_t stride_count;
  std::int32_t semantics;
  void* device;
  void* memory;
  void* layout;
  void* done;    // out
  void* buffer;  // out
};
static_assert(sizeof(BufferFromHost) == 120);
struct Execute : Arguments {
  void* executable;
  void* options;
  void* const* const* arguments;
  std::size_t device_count;
  std::size_t argument_count;
  void** const* results;
  void** complete;
  void* device;  // null: the one that it was compiled for
};
static_assert(sizeof(Execute) == 80);
// Calls about one buffer begin so.
struct OfBuffer : Arguments {
  void* buffer;
};
struct BufferSize : OfBuffer {
  std::size_t bytes;  // out
};
struct BufferDevice : OfBuffer {
  void* device;  // out
};
struct ToHost : OfBuffer {
  void* layout;
  void* destination;  // null: only asks for the size
  std::size_t bytes;  // in and out
  void* event;        // out
};
static_assert(sizeof(ToHost) == 56);
struct RawToHost : OfBuffer {
  void* destination;
  std::int64_t offset;
  std::int64_t bytes;
  void* event;  // out
};
static_assert(sizeof(RawToHost) == 56);
// Calls about one executable, or an event, begin so as well.
struct OfObject : Arguments {
  void* object;
};
struct GetObject : OfObject {
  void* found;  // out: of a loaded executable the plain one, of a buffer its event, of a manager its device
};
struct OutputCount : OfObject {
  std::size_t count;  // out
};
struct OnReady : OfObject {
  void (*callback)(Error*, void*);  // which owns the error
  void* given;
};
static_assert(sizeof(OnReady) == 40);
struct TransferData : OfObject {
  std::int32_t buffer_index;
  const void* data;
  std::int64_t offset;
  std::int64_t bytes;
  bool is_last;
  void* event;  // out
};
static_assert(sizeof(TransferData) == 72);
struct Chunk {
  void* data;
  std::size_t bytes;
  void (*deleter)(void*, void*);
  void* given;
};
struct AddChunk : OfObject {
  Chunk* chunk;  // gone after the call
  void* event;   // out
};
static_assert(sizeof(AddChunk) == 40);
struct HardwareId : Arguments {
  void* device;
  std::int32_t id;  // out
};
// As callers say it: up to the end of the last member, which the compiler may pad.
inline constexpr std::size_t kHardwareIdSize = sizeof(Arguments) + sizeof(void*) + sizeof(std::int32_t);

// Of the element of a buffer, by the interface's number of its type; 0 where it is none of whole bytes.
constexpr std::int64_t element_bytes(std::int32_t type) noexcept {
  //                          -  pred 8  16 32 64 u8 16 32 64 f16 32 64 bf16 c64 c128 f8...
  constexpr std::uint8_t kBytes[] = {0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 2, 8, 16, 1, 1, 1, 1, 1};
  return type >= 0 && type < static_cast<std::int32_t>(sizeof kBytes) ? kBytes[type] : 0;
}

}  // namespace leadline::pjrt
