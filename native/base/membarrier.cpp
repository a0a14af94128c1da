#include "base/membarrier.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace leadline {
namespace {

long call(int command) noexcept { return syscall(SYS_membarrier, command, 0, 0); }

}  // namespace

bool register_membarrier() noexcept { return call(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0; }

void membarrier() noexcept { call(MEMBARRIER_CMD_PRIVATE_EXPEDITED); }

}  // namespace leadline
