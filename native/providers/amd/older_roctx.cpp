#include "providers/amd/older_roctx.h"

#include <mutex>

#include "base/library.h"
#include "gpu/in_callback.h"
#include "providers/amd/measuring.h"
#include "providers/amd/roctracer_abi.h"

namespace leadline::amd {
namespace {

using Register = void(tracer::RoctxCallback);

std::mutex g_mutex;
Register* g_asked = nullptr;  // whom; null: nobody

int on_range(std::uint32_t, std::uint32_t operation, void* data) {
  const gpu::InCallback<Measuring> self;
  if (self && data != nullptr) self->callbacks().traced_range(operation, *static_cast<const tracer::RoctxCall*>(data));
  return 0;
}

}  // namespace

void follow_older_roctx() {
  const std::lock_guard lock(g_mutex);
  if (g_asked != nullptr) return;
  const std::optional<Library> library = Library::find_loaded("libroctx64.so");
  if (library) g_asked = library->symbol<Register>("roctxRegisterTracerCallback");
  if (g_asked != nullptr) g_asked(on_range);
}

void leave_older_roctx() {
  const std::lock_guard lock(g_mutex);
  if (g_asked != nullptr) g_asked(nullptr);
  g_asked = nullptr;
}

}  // namespace leadline::amd
